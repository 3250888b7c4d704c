package main

import (
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/httpget"
)

// A measurement can be watched while it runs.
func TestMetricsAreServed(t *testing.T) {
	url, end := httpget.Tool(t, runProgram, "write", "--self", "--link", "mem", "-D", "3600")
	httpget.Until(t, url, `rddp_rdma_connected_total{source="client"} 1`, `rddp_rdma_accepted_total{source="server"} 1`)
	end()
	_, errs, code := runBench(t, "write", "--self", "--metrics", "nowhere")
	check.That(t, code == exitError && strings.Contains(errs, "--metrics nowhere: it is an address and a TCP port"),
		"exit %d: %s", code, errs)
	if _, errs, code := runBench(t, "--sweep", t.TempDir(), "--metrics", ":0"); code != exitError ||
		!strings.Contains(errs, "--metrics does not go with --sweep") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
