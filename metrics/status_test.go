package metrics

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/mempair"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
)

// Who may look sees each association, path, QP and region, without its STag; who may not, or wants to change something, sees nothing.
func TestStatusShowsWhatIsThere(t *testing.T) {
	la, lb := mempair.New(t, mem.Options{})
	a, b := must.Get(rdma.NewDevice(la, nil))(t), must.Get(rdma.NewDevice(lb, nil))(t)
	defer a.Close()
	defer b.Close()
	l := must.Get(b.Transport().Listen(77, nil))(t)
	to := netip.AddrPortFrom(lb.LocalAddrs()[0].Addr(), 77)
	conn := must.Get(a.Transport().Dial(t.Context(), to, nil))(t)
	accepted := must.Get(l.Accept(t.Context()))(t)
	must.Get(conn.WriteMsg(make([]byte, 1000), sctp.SendInfo{}))(t)
	n, _, err := accepted.ReadMsg(make([]byte, 2000))
	must.That(t, n == 1000 && err == nil, "%v, %v", n, err)
	pd, cq := a.AllocPD(), must.Get(a.CreateCQ(8))(t)
	mr := must.Get(pd.Register(make([]byte, 4096), rdma.RemoteRead|rdma.RemoteWrite, nil))(t)
	defer must.Get(a.CreateQP(&rdma.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, MaxSend: 4, MaxRecv: 4}))(t).Close()
	c := NewCollector()
	c.AddDevice("<script>", a)
	c.AddTransport("b", b.Transport())
	get := func(method, path, from string, opts *StatusOptions) (int, string) {
		r, w := httptest.NewRequestWithContext(context.Background(), method, path, nil), httptest.NewRecorder()
		r.RemoteAddr = from
		Status(c, opts).ServeHTTP(w, r)
		check.Equal(t, "cookies", w.Header().Get("Set-Cookie"), "")
		check.Equal(t, path+" refreshes", w.Header().Get("Refresh") != "", path == "/" && w.Code == 200)
		return w.Code, w.Body.String()
	}
	for _, row := range []struct {
		method, path, from string
		opts               *StatusOptions
		code               int
		want               string
	}{
		{"GET", "/text", "127.0.0.1:5", nil, 200, `(?s)^<script>: 1 associations, 1 QPs, 1 regions
ESTABLISHED +\d+ queued  port \d+  peer ` + regexp.QuoteMeta(to.String()) + `  set up here, \d+s old
	 streams:10/\d+ .* mem:\d+ retrans:0 .*
	 path 10\.\d\.\d\.\d -> 10\.\d\.\d\.\d: active primary newreno cwnd:\d+ ssthresh:- flight:\d+ rtt:\d+\.\d{3}/\d+\.\d{3} rto:1000 mtu:\d+ errors:0
	 stream 0 next_out:1 next_in:0 waiting:0
QP 1 Init  peer -  \d+s old  pd:1 stream:-1 ird:16 ord:16 .*
region pd:1 4096 bytes rw
b: 1 associations, 0 QPs, 0 regions
.* set up by the peer, .* bytes_in:1000`},
		{"GET", "/json", "[::1]:5", nil, 200, `"State":"ESTABLISHED".*"State":"active".*"Controller":"newReno".*"Streams":\[\{"ID":0,"NextOut":1`},
		{"GET", "/", "[::ffff:127.0.0.1]:5", nil, 200, `(?s)<h2>&lt;script&gt;</h2>.*<caption>1 associations</caption>.*<td>ESTABLISHED</td>.*</html>`},
		{"GET", "/?hold", "[::1]:5", nil, 200, `(?s)</style>.*Load this page anew`},
		{"GET", "/", "192.0.2.1:5", nil, 403, `for the host itself`},
		{"GET", "/", "192.0.2.1:5", &StatusOptions{Remote: true}, 200, `</html>`},
		{"POST", "/", "127.0.0.1:5", nil, 405, ``},
		{"GET", "/keys", "127.0.0.1:5", nil, 404, ``},
		{"PUT", "/json", "127.0.0.1:5", nil, 405, ``},
		{"DELETE", "/text", "127.0.0.1:5", nil, 405, ``},
		{"GET", "/text", "not an address", nil, 403, ``},
		{"GET", "/pprof/heap", "127.0.0.1:5", nil, 404, ``},
		{"GET", "/pprof/heap", "127.0.0.1:5", &StatusOptions{Remote: true}, 404, ``},
		{"GET", "/pprof/heap", "192.0.2.1:5", &StatusOptions{Pprof: true}, 403, `for the host itself`},
		{"GET", "/pprof/heap", "127.0.0.1:5", &StatusOptions{Pprof: true}, 200, `(?s)^\x1f`}, // gzip
		{"GET", "/pprof/nothing", "127.0.0.1:5", &StatusOptions{Pprof: true}, 404, `no such profile`},
		{"GET", "/pprof/profile?seconds=0", "127.0.0.1:5", &StatusOptions{Pprof: true}, 400, `1 to 300`},
		{"POST", "/pprof/heap", "127.0.0.1:5", &StatusOptions{Pprof: true}, 405, ``},
	} {
		code, body := get(row.method, row.path, row.from, row.opts)
		check.That(t, code == row.code && regexp.MustCompile(row.want).MatchString(body),
			"%s %s from %s: %d\n%s\nwant %d and %s", row.method, row.path, row.from, code, body, row.code, row.want)
		check.That(t, !strings.Contains(body, fmt.Sprint(uint32(mr.STag()))), "%s shows the STag", row.path)
	}
	ctx, end := context.WithCancel(t.Context())
	end() // who asked for the profile of the processor has gone: it ends at once
	r, w := httptest.NewRequestWithContext(ctx, "GET", "/pprof/profile", nil), httptest.NewRecorder()
	r.RemoteAddr = "127.0.0.1:5"
	Status(c, &StatusOptions{Pprof: true}).ServeHTTP(w, r)
	check.That(t, w.Code == 200 && strings.HasPrefix(w.Body.String(), "\x1f\x8b"), "profile of the processor: %d %q", w.Code, w.Body)
	for _, path := range []string{"/", "/json", "/text", "/status/", "/pprof/heap", "/debug/pprof/", "/debug/pprof/heap", "/metrics"} {
		_, pattern := http.DefaultServeMux.Handler(httptest.NewRequest("GET", path, nil))
		check.That(t, pattern == "", "http.DefaultServeMux has %s", pattern)
	}
}
