package monitor

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/internal/scrape"
	"github.com/rddp-go/rddp/rdma"
)

// Both devices, and their links, are among the metrics.
func TestDevicesAreServed(t *testing.T) {
	m, said := Metrics{addr: "127.0.0.1:0"}, new(strings.Builder)
	must.OK(t, m.Open(said))
	defer m.Close()
	d := must.Get((&cli.LinkFlags{Kind: "udp", Shards: 1}).Devices(nil, &m))(t)
	defer d.Close()
	cq := must.Get(d.Client.CreateCQ(2))(t)
	qp := must.Get(d.Client.CreateQP(&rdma.QPConfig{PD: d.Client.AllocPD(), SendCQ: cq, RecvCQ: cq, MaxSend: 1, MaxRecv: 1}))(t)
	defer qp.Close()
	if _, err := qp.Connect(t.Context(), netip.AddrPortFrom(d.Addr, 7), nil); err == nil || !strings.HasPrefix(cli.Explain(err), "the host is up but refused") {
		t.Errorf("nobody listens: %v", err)
	}
	url, _ := strings.CutPrefix(strings.TrimSpace(said.String()), "metrics: ")
	text := scrape.Page(t, url)
	for _, end := range []string{"server", "client"} {
		for _, name := range []string{"rddp_udp_packets_sent_total", "rddp_sctp_packets_sent_total"} {
			want := fmt.Sprintf("%s{source=%q} ", name, end)
			check.That(t, strings.Contains(text, want) && !strings.Contains(text, want+"0"), "no %s, or nothing", want)
		}
	}
}

// What is no TCP port is refused in words of the flag, and a client that asks for nothing is not served for ever.
func TestMetricsNeedAPort(t *testing.T) {
	for _, addr := range []string{"localhost", "localhost:x", "localhost:-1", "localhost:65536", "127.0.0.1:0"} {
		m, usage := Metrics{addr: addr}, new(cli.UsageError)
		err := m.Open(io.Discard)
		check.That(t, errors.As(err, &usage) == (m.server == nil) && (m.server == nil || m.server.ReadHeaderTimeout >= time.Second), "%s: %v", addr, err)
		m.Close()
	}
}
