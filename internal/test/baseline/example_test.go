package baseline_test

import (
	"fmt"
	"time"

	"github.com/rddp-go/rddp/internal/test/baseline"
	"github.com/rddp-go/rddp/rawio/mem"
)

func ExampleRun() {
	a, b, err := mem.Pair(mem.Options{MTU: 1500})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer a.Close()
	defer b.Close()
	_, received, err := baseline.Run(a, b, b.LocalAddrs()[0],
		baseline.Config{Packet: 1480, Duration: time.Millisecond, Work: true})
	fmt.Println(received.GBps() > 0, received.Bad, err)
	// Output: true 0 <nil>
}
