package metrics_test

import (
	"bufio"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/rddp-go/rddp/metrics"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rdma"
)

// A program that serves the metrics of its Device; http.ListenAndServe(addr, h) would do so on a
// port.
func ExampleHandler() {
	link, _, err := mem.Pair(mem.Options{})
	if err != nil {
		panic(err)
	}
	dev, err := rdma.NewDevice(link, nil)
	if err != nil {
		panic(err)
	}
	defer dev.Close()

	c := metrics.NewCollector()
	c.AddDevice("storage", dev)
	c.AddLink("storage", link)
	h := metrics.Handler(c)

	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for lines := bufio.NewScanner(w.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "rddp_rdma_queue_pairs") {
			fmt.Println(lines.Text())
		}
	}
	// Output: rddp_rdma_queue_pairs{source="storage"} 0
}
