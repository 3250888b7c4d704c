package rdmapeer

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/rdma"
)

// TestMain checks, once all attacks are over, that there was one for each counter of faults.
func TestMain(m *testing.M) {
	seen.names = make(map[string]bool)
	flag.Parse()
	code := m.Run()
	if all := flag.Lookup("test.run").Value.String() == "" && !testing.Short() &&
		flag.Lookup("test.list").Value.String() == ""; all && code == 0 {
		counters.Each(rdma.Faults{}, func(name string, _ uint64) {
			if !seen.names[name] && !inside[name] {
				fmt.Fprintf(os.Stderr, "no attack makes rdma.Faults.%s count\n", name)
				code = 1
			}
		})
	}
	os.Exit(code)
}
