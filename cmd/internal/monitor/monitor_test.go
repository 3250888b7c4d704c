package monitor

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/httpget"
	"github.com/rddp-go/rddp/internal/test/must"
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
	qp := must.Get(d.Client.CreateQP(&rdma.QPConfig{PD: d.Client.AllocPD(), SendCQ: cq, RecvCQ: cq, MaxSend: 1,
		MaxRecv: 1}))(t)
	defer qp.Close()
	if _, err := qp.Connect(t.Context(), netip.AddrPortFrom(d.Addr, 7), nil); err == nil ||
		!strings.HasPrefix(cli.Explain(err), "the host is up but refused") {
		t.Errorf("nobody listens: %v", err)
	}
	url, _ := strings.CutPrefix(strings.TrimSpace(said.String()), "metrics: ")
	text := httpget.Page(t, url)
	for _, end := range []string{"server", "client"} {
		for _, name := range []string{"rddp_udp_packets_sent_total", "rddp_sctp_packets_sent_total"} {
			want := fmt.Sprintf("%s{source=%q} ", name, end)
			check.That(t, strings.Contains(text, want) && !strings.Contains(text, want+"0"), "no %s, or nothing", want)
		}
	}
}

// What is no TCP port is refused in words of the flag, and a client that asks for nothing is not
// served for ever.
func TestMetricsNeedAPort(t *testing.T) {
	for _, addr := range []string{"localhost", "localhost:x", "localhost:-1", "localhost:65536", "127.0.0.1:0"} {
		m, usage := Metrics{addr: addr}, new(cli.UsageError)
		err := m.Open(io.Discard)
		check.That(t, errors.As(err, &usage) == (m.server == nil) &&
			(m.server == nil || m.server.ReadHeaderTimeout >= time.Second), "%s: %v", addr, err)
		m.Close()
	}
}

// open serves, with connections that may say nothing for so long, and returns where.
func open(t *testing.T, addr string, idle time.Duration) string {
	t.Helper()
	m, said := &Metrics{addr: addr, connIdleTimeout: idle}, new(strings.Builder)
	must.OK(t, m.Open(said))
	t.Cleanup(m.Close)
	url, _ := strings.CutPrefix(strings.TrimSpace(said.String()), "metrics: ")
	return strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/metrics")
}

// A connection that says nothing, or no more, or says it slowly, does not stay, and neither does a
// header without end.
func TestConnectionsThatSayNothingAreClosed(t *testing.T) {
	at := open(t, "127.0.0.1:0", 50*time.Millisecond)
	const get = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
	for name, says := range map[string]string{"nothing": "", "half of a header": get, "one request": get + "\r\n",
		"half of a body": "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1"} {
		c := must.Get(net.Dial("tcp", at))(t)
		must.Get(io.WriteString(c, says))(t)
		must.OK(t, c.SetReadDeadline(time.Now().Add(30*time.Second)))
		_, err := io.Copy(io.Discard, c)
		check.That(t, !errors.Is(err, os.ErrDeadlineExceeded), "%s: the connection stays", name)
		c.Close()
	}
	c := must.Get(net.Dial("tcp", open(t, "127.0.0.1:0", 0)))(t)
	defer c.Close()
	_, _ = io.WriteString(c, get+"A: "+strings.Repeat("a", 10*maxHeaderOctets)) // it may be closed meanwhile
	b := make([]byte, 100)
	n, err := c.Read(b)
	check.That(t, err != nil || strings.Contains(string(b[:n]), " 431 "), "a header of %d octets: %q, %v",
		10*maxHeaderOctets, b[:n], err)
}

// There are so many connections at a time: those beyond are closed, and who leaves makes room.
func TestConnectionsAreCounted(t *testing.T) {
	at := open(t, "127.0.0.1:0", 0)
	var held []net.Conn
	for range maxConns + 1 {
		held = append(held, must.Get(net.Dial("tcp", at))(t))
	}
	must.OK(t, held[maxConns].SetReadDeadline(time.Now().Add(30*time.Second)))
	_, err := held[maxConns].Read(make([]byte, 1))
	check.That(t, err != nil && !errors.Is(err, os.ErrDeadlineExceeded), "one more than %d stays: %v", maxConns, err)
	for _, c := range held {
		c.Close()
	}
	for err != nil { // until the server has seen that they have left
		var resp *http.Response
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		if resp, err = client.Get("http://" + at + "/metrics"); err == nil {
			resp.Body.Close()
		}
	}
}

// A page's own name that leads here reads nothing (DNS rebinding); localhost, and the name that
// --metrics was given, do. What --stat prints is shown and not obeyed.
func TestNamesThatMetricsGoBy(t *testing.T) {
	_, port, _ := strings.Cut(open(t, "localhost:0", 0), ":")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	host, _ := os.Hostname()
	for name, code := range map[string]int{"localhost": 200, "127.0.0.1": 200, host: 200, "evil.example": 403} {
		for _, path := range []string{"/metrics", "/status/", "/status/json", "/debug/vars"} {
			r := must.Get(http.NewRequest(http.MethodGet, "http://127.0.0.1:"+port+path, nil))(t)
			r.Host = name + ":" + port
			resp := must.Get(client.Do(r))(t)
			resp.Body.Close()
			check.That(t, resp.StatusCode == code, "%s as %s: %s", path, name, resp.Status)
		}
	}
	var out strings.Builder
	must.OK(t, PrintStatus(t.Context(), "127.0.0.1:"+port, &out))
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "a\tb\n\x1b[2Jc\n")
	}))
	defer s.Close()
	out.Reset()
	must.OK(t, PrintStatus(t.Context(), strings.TrimPrefix(s.URL, "http://"), &out))
	check.Equal(t, "what --stat prints", out.String(), "a\tb\n\uFFFD[2Jc\n")
}

// Why it cannot be served is said in words of the flag.
func TestMetricsThatCannotBeServed(t *testing.T) {
	taken := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	for addr, want := range map[string]string{
		taken.Addr().String(): ": the TCP port is in use by another program: stop it or choose another",
		"192.0.2.1:0":         ": this host does not have the address",
		"no such host:1":      ": listen tcp: ",
		"localhost": ": it is an address and a TCP port, such as localhost:9100, or :9100 for every address " +
			"of this host",
		"localhost:65536": ": it is an address and a TCP port",
	} {
		m := Metrics{addr: addr}
		err := m.Open(io.Discard)
		check.That(t, err != nil && strings.HasPrefix(err.Error(), "--metrics "+addr+want), "%s: %v", addr, err)
		m.Device("x", nil, nil) // which nobody asks for
		m.Close()
	}
	m, said := new(Metrics), new(strings.Builder)
	must.OK(t, m.Open(said))
	check.That(t, said.Len() == 0 && m.server == nil, "without the flag it serves: %s", said)
	m.Device("x", nil, nil)
	m.Close()

	m = &Metrics{addr: "127.0.0.1:0"}
	must.OK(t, m.Open(io.Discard))
	s := m.server
	check.That(t, s.IdleTimeout == 2*time.Minute && s.ReadTimeout == 2*time.Minute &&
		s.ReadHeaderTimeout == 10*time.Second && s.WriteTimeout == time.Minute && s.MaxHeaderBytes == 16<<10, "%+v", s)
	m.Close()
	select {
	case <-m.serverDone:
	default:
		t.Error("it serves behind Close")
	}
	m = &Metrics{addr: "127.0.0.1:0", connIdleTimeout: 5 * time.Second}
	must.OK(t, m.Open(io.Discard))
	check.That(t, m.server.ReadHeaderTimeout == 5*time.Second && m.server.IdleTimeout == 5*time.Second, "%+v", m.server)
	m.Close()
}

// It goes by the name of the host and by the one that stands in the flag.
func TestNameOfTheHostIsGood(t *testing.T) {
	at := open(t, "localhost:0", 0)
	name := must.Get(os.Hostname())(t)
	for host, want := range map[string]int{"localhost": 200, name: 200, name + "x": 403, "evil.example": 403} {
		for _, path := range []string{"/metrics", "/status/text"} {
			r := must.Get(http.NewRequest(http.MethodGet, "http://"+at+path, nil))(t)
			r.Host = host
			resp := must.Get((&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r))(t)
			resp.Body.Close()
			check.That(t, resp.StatusCode == want, "%s of %s: %d, want %d", path, host, resp.StatusCode, want)
		}
	}
}

// What cannot be shown is said in words of the flag, and what is shown is complete.
func TestStatThatCannotBeShown(t *testing.T) {
	status := http.StatusOK
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, r.Method, " ", r.URL.Path)
	}))
	at := strings.TrimPrefix(s.URL, "http://")
	var b strings.Builder
	must.OK(t, PrintStatus(t.Context(), at, &b))
	check.Equal(t, "asked for", b.String(), "GET /status/text")
	fails := errors.New("fails")
	check.Equal(t, "where it cannot be written", PrintStatus(t.Context(), at, writes{fails}), fails)
	status = http.StatusForbidden
	b.Reset()
	err := PrintStatus(t.Context(), at, &b)
	check.That(t, err != nil && err.Error() == "--stat "+at+
		": the answer is 403 Forbidden: it is for the host itself, and for tools of this release" && b.Len() == 0,
		"%v, %s", err, &b)
	s.Close()
	err = PrintStatus(t.Context(), at, &b)
	check.That(t, err != nil && strings.HasPrefix(err.Error(),
		"--stat "+at+": nobody serves there: start ddpping or ddpbench with --metrics "+at+" ("), "%v", err)
	usage := new(cli.UsageError)
	err = PrintStatus(t.Context(), "a b", &b)
	check.That(t, errors.As(err, &usage) && strings.HasPrefix(err.Error(), "--stat a b: it is the address"), "%v", err)
}

// writes is a Writer that fails.
type writes struct{ err error }

func (w writes) Write([]byte) (int, error) { return 0, w.err }
