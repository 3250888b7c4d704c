package main

import (
	"net"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/httpget"
	"github.com/rddp-go/rddp/internal/test/must"
)

// While a ping runs, its counters can be scraped; with the end of it the port is free again.
func TestMetricsAreServed(t *testing.T) {
	url, end := httpget.Tool(t, runProgram, "--self", "--link", "mem", "-i", "0.01")
	// the session may not be there yet
	httpget.Until(t, url, `rddp_sctp_packets_received_total{source="client"}`,
		"rddp_rdma_accepted_total{source=\"server\"} 1\n")
	text := httpget.Page(t, strings.Replace(url, "/metrics", "/debug/vars", 1))
	check.That(t, strings.Contains(text, `"rddp": {"client":{"Transport":`), "/debug/vars has\n%s", text)
	addr := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/metrics")
	if code, out, errs := runTool(t.Context(), "--stat", addr); code != exitOK ||
		!strings.HasPrefix(out, "client: 1 associations, 1 QPs, 3 regions\nESTABLISHED ") {
		t.Errorf("--stat: exit %d\n%s%s", code, out, errs)
	}
	check.Equal(t, "exit", end(), exitOK)
	l, err := net.Listen("tcp", strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/metrics"))
	must.Error(t, "the port is not given up", err, nil)
	l.Close()
}

func TestMetricsAddressIsChecked(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	for _, row := range []struct{ name, addr, want string }{
		{"no port", "localhost", "it is an address and a TCP port, such as localhost:9100"},
		{"no number", "localhost:http", "it is an address and a TCP port"},
		{"too large a port", "localhost:65536", "it is an address and a TCP port"},
		{"busy", l.Addr().String(), "the TCP port is in use by another program"},
		{"somebody else's address", "192.0.2.1:9100", "this host does not have the address"},
	} {
		code, out, errs := runTool(t.Context(), "--self", "--link", "mem", "-c", "1", "--metrics", row.addr)
		check.That(t, code == exitError && out == "" &&
			strings.Contains(errs, "ddpping: --metrics "+row.addr+": "+row.want),
			"%s: exit %d, %q", row.name, code, errs)
	}
}
