package metrics

import (
	"expvar"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler serves the Collector at /metrics as Prometheus text, with the metrics of the Go runtime
// and of the process. At /debug/vars it serves JSON, as the variable rddp among those of package
// expvar. It needs no other registration. It reveals much about the process: serve it where only
// the operator has access. Over a connection within this host it answers only to the names of
// localhost, of loopback addresses, and of hosts. Pages of other sites get nothing (see
// StatusOptions.Hosts).
func Handler(c *Collector, hosts ...string) http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(c, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/vars", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		fmt.Fprintf(w, "{\n%q: %s", "rddp", c)
		expvar.Do(func(kv expvar.KeyValue) {
			if kv.Key != "rddp" { // published by the program too
				fmt.Fprintf(w, ",\n%q: %s", kv.Key, kv.Value)
			}
		})
		fmt.Fprint(w, "\n}\n")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !refuseRequest(w, r, hosts, true) {
			mux.ServeHTTP(w, r)
		}
	})
}
