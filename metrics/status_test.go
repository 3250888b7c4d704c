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
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
)

// A client that may look sees each association, path, QP and region, without its STag; one that may
// not, or wants to change something, sees nothing.
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
		r.RemoteAddr, r.Host = from, "localhost:9100"
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
	 path 10\.\d\.\d\.\d -> 10\.\d\.\d\.\d: active primary cubic cwnd:\d+ ssthresh:- flight:\d+ rtt:\d+\.\d{3}/\d+\.\d{3} rto:1000 mtu:\d+ errors:0
	 stream 0 next_out:1 next_in:0 waiting:0
QP 1 Init  peer -  \d+s old  pd:1 stream:-1 ird:16 ord:16 .*
region pd:1 4096 bytes rw
b: 1 associations, 0 QPs, 0 regions
.* set up by the peer, .* bytes_in:1000`},
		{"GET", "/json", "[::1]:5", nil, 200, `"State":"ESTABLISHED".*"State":"active".*"Controller":"cubic".*"Streams":\[\{"ID":0,"NextOut":1`},
		{"GET", "/", "[::ffff:127.0.0.1]:5", nil, 200, `(?s)<h2>&lt;script&gt;</h2>.*<caption>1 associations</caption>.*<td>ESTABLISHED</td>.*</html>`},
		{"GET", "/?hold", "[::1]:5", nil, 200, `(?s)</style>.*Load this page anew`},
		{"GET", "/", "192.0.2.1:5", nil, 403, `^this page is for the host itself\n$`},
		{"GET", "/", "192.0.2.1:5", &StatusOptions{Remote: true}, 200, `</html>`},
		{"POST", "/", "127.0.0.1:5", nil, 405, ``},
		{"GET", "/keys", "127.0.0.1:5", nil, 404, ``},
		{"PUT", "/json", "127.0.0.1:5", nil, 405, ``},
		{"DELETE", "/text", "127.0.0.1:5", nil, 405, ``},
		{"GET", "/text", "not an address", nil, 403, ``},
		{"GET", "/pprof/heap", "127.0.0.1:5", nil, 404, ``},
		{"GET", "/pprof/heap", "127.0.0.1:5", &StatusOptions{Remote: true}, 404, ``},
		{"GET", "/pprof/heap", "192.0.2.1:5", &StatusOptions{Pprof: true}, 403, `^this page is for the host itself\n$`},
		{"GET", "/pprof/heap", "127.0.0.1:5", &StatusOptions{Pprof: true}, 200, `(?s)^\x1f`}, // gzip
		{"GET", "/pprof/nothing", "127.0.0.1:5", &StatusOptions{Pprof: true}, 404, `^no such profile\n$`},
		{"GET", "/pprof/profile?seconds=0", "127.0.0.1:5", &StatusOptions{Pprof: true}, 400, `^seconds: 1 to 300\n$`},
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
	r.RemoteAddr, r.Host = "127.0.0.1:5", "localhost"
	Status(c, &StatusOptions{Pprof: true}).ServeHTTP(w, r)
	check.That(t, w.Code == 200 && strings.HasPrefix(w.Body.String(), "\x1f\x8b"), "profile of the processor: %d %q",
		w.Code, w.Body)
	for _, path := range []string{"/", "/json", "/text", "/status/", "/pprof/heap", "/debug/pprof/",
		"/debug/pprof/heap", "/metrics"} {
		_, pattern := http.DefaultServeMux.Handler(httptest.NewRequest("GET", path, nil))
		check.That(t, pattern == "", "http.DefaultServeMux has %s", pattern)
	}
}

// Each figure of the text stands behind its name.
func TestTextHasEachFigureInItsPlace(t *testing.T) {
	a := &sctp.Snapshot{Remote: netip.MustParseAddrPort("10.0.0.1:77"), LocalPort: 5, Memory: 6} // since ever
	a.Queued, a.OutStreams, a.InStreams, a.Outstanding, a.Unacked, a.RecvWindow, a.PeerWindow, a.Buffered = 1, 2, 3,
		4, 7, 8, 9, 10
	a.Retransmits, a.FastRetransmits, a.Timeouts, a.DataOut, a.DataIn, a.DataOctetsIn = 11, 12, 13, 14, 15, 16
	a.Streams, a.Paths = []sctp.StreamStats{{ID: 17, NextOut: 18, NextIn: 19, Waiting: 20}},
		[]sctp.PathStats{{Remote: netip.MustParseAddrPort("10.0.0.1:9899"), Suspected: true,
			Controller: "BBR", Cwnd: 21, Ssthresh: 22, Flight: 23, SRTT: 24 * time.Millisecond,
			RTTVar: 25 * time.Millisecond, RTO: 26 * time.Millisecond, MTU: 27, Errors: 28}}
	q := rdma.QPSnapshot{Num: 29, State: "RTS", Remote: a.Remote, PD: 30, SCTP: 31, IRD: 32, ORD: 33, MULPDU: 34,
		InProcess: 35, Stream: rdma.StreamStats{In: 36, Out: 37}}
	check.Equal(t, "text",
		statusText(map[string]rdma.Snapshot{"x": {Associations: []*sctp.Snapshot{a}, QPs: []rdma.QPSnapshot{q},
			Regions: []rdma.RegionSnapshot{{PD: 38, Octets: 39, Access: "r"}}}}),
		"x: 1 associations, 1 QPs, 1 regions\nCLOSED                 1 queued  port 5  peer 10.0.0.1:77  set up here, 2562047h47m16s old\n"+
			"\t streams:2/3 outstanding:4 unacked:7 rwnd:8 peer_rwnd:9 buffered:10 mem:6 retrans:11 fast:12 timeouts:13 data_out:14 data_in:15 bytes_in:16\n"+
			"\t path * -> 10.0.0.1:9899: unconfirmed suspected bbr cwnd:21 ssthresh:22 flight:23 rtt:24.000/25.000 rto:26 mtu:27 errors:28\n"+
			"\t stream 17 next_out:18 next_in:19 waiting:20\n"+
			"QP 29 RTS  peer 10.0.0.1:77  2562047h47m16s old  pd:30 stream:31 ird:32 ord:33 mulpdu:34 in_process:35 in:36 out:37\nregion pd:38 39 bytes r invalidated\n")
}

// A path is both: the primary one, and suspected.
func TestSuspectedPathMayBeThePrimary(t *testing.T) {
	for want, p := range map[string]sctp.PathStats{": active primary suspected ": {State: sctp.PathActive,
		Primary: true, Suspected: true}, ": active primary ": {State: sctp.PathActive, Primary: true},
		": active suspected ": {State: sctp.PathActive, Suspected: true}, ": active ": {State: sctp.PathActive}} {
		a := &sctp.Snapshot{Paths: []sctp.PathStats{p}}
		text := statusText(map[string]rdma.Snapshot{"x": {Associations: []*sctp.Snapshot{a}}})
		check.That(t, strings.Contains(text, want+" cwnd:"), "%+v: no %q in %s", p, want, text)
	}
}
