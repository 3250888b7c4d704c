package metrics

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
)

// emittedMetrics are the metrics that f sends, in their order.
func emittedMetrics(t *testing.T, f func(e *emitter)) (list []*dto.Metric, names []string) {
	t.Helper()
	ch := make(chan prometheus.Metric, 100)
	f(&emitter{ch: ch, source: "src"})
	close(ch)
	for m := range ch {
		d := new(dto.Metric)
		must.OK(t, m.Write(d))
		_, name, _ := strings.Cut(m.Desc().String(), `fqName: "`)
		name, _, _ = strings.Cut(name, `"`)
		list, names = append(list, d), append(names, name)
	}
	return list, names
}

// Each metric of an association is its figure, of the primary path where it is a path's, and there
// are no more than asked for.
func TestFiguresOfOneAssociation(t *testing.T) {
	a := &sctp.Snapshot{Remote: netip.MustParseAddrPort("10.0.0.1:77"), LocalPort: 5, Memory: 7}
	a.OctetsOut, a.OctetsIn, a.Retransmits, a.Timeouts, a.Queued, a.Outstanding, a.PeerWindow, a.Primary = 1, 2, 3, 4,
		5, 6, 8, 1
	a.Paths = []sctp.PathStats{{Cwnd: 99}, {Cwnd: 9, SRTT: 10 * time.Second, RTO: 11 * time.Second}}
	last := &sctp.Snapshot{Remote: netip.MustParseAddrPort("10.0.0.2:77")} // whose paths are gone
	for n, want := range map[int]int{1: len(assocMetrics), 2: 2 * len(assocMetrics), 3: 2 * len(assocMetrics)} {
		list, names := emittedMetrics(t, func(e *emitter) {
			e.sendAssociations(slices.Values([]*sctp.Snapshot{a, last}), n)
		})
		check.Equal(t, "metrics", len(list), want)
		for i, m := range list[:len(assocMetrics)] {
			v := m.GetCounter().GetValue() + m.GetGauge().GetValue()
			check.That(t, v == float64(i+1) && (m.GetCounter() != nil) == strings.HasSuffix(names[i], "_total"),
				"%s is %v", names[i], m)
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			check.Equal(t, "labels", strings.Join(labels, " "), "local_port=5 peer=10.0.0.1:77 source=src")
		}
	}
	c := NewCollector()
	for n, want := range map[int]int{-1: 0, 0: 0, 3: 3} {
		c.PerAssociation(n)
		check.Equal(t, "associations asked for", c.maxAssociations, want)
	}
}

// The buckets of a histogram count all below their bounds, and the last has none.
func TestBucketsOfAHistogram(t *testing.T) {
	var h counters.Histogram
	h.Count[0], h.Count[2], h.Count[counters.NumBuckets-2], h.Count[counters.NumBuckets-1], h.Sum = 1, 2, 3, 4,
		5*time.Second
	for _, label := range []string{"", "operation"} {
		list, _ := emittedMetrics(t, func(e *emitter) { e.sendHistogram("name", "help", h, label, "value") })
		got := list[0].GetHistogram()
		check.That(t, got.GetSampleCount() == 10 && got.GetSampleSum() == 5 &&
			len(got.GetBucket()) == counters.NumBuckets-1, "%v", got)
		for i, b := range got.GetBucket() {
			want := uint64(1)
			switch {
			case i >= counters.NumBuckets-2:
				want = 6
			case i >= 2:
				want = 3
			}
			check.That(t, b.GetCumulativeCount() == want && b.GetUpperBound() == counters.BucketBound(i).Seconds(),
				"bucket %d: %v", i, b)
		}
		check.Equal(t, "labels", len(list[0].GetLabel()), map[string]int{"": 1, "operation": 2}[label])
	}
}

// A name is shown without what might be taken for more than a name, in a hundred octets at most.
func TestNamesAreShownAsNames(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a-~!z": "a-~!z", "a b": "a?b", "a\x1fb\x7fc": "a?b?c", "<ä>": "<?>",
		strings.Repeat("a", 100): strings.Repeat("a", 100), strings.Repeat("b", 101): strings.Repeat("b", 100),
	} {
		check.Equal(t, in, printableHost(in), want)
	}
}

// An address is a name of this host where the connection comes from elsewhere, where it is a
// loopback one, or where the program has given it.
func TestAddressesAsNames(t *testing.T) {
	for _, row := range []struct {
		host, from string
		hosts      []string
		want       bool
	}{
		{"192.0.2.1:80", "127.0.0.1:5", nil, false}, {"192.0.2.1:80", "127.0.0.1:5", []string{"192.0.2.1"}, true}, {"192.0.2.1", "127.0.0.1:5", []string{"192.0.2.2"}, false},
		{"192.0.2.1", "192.0.2.7:5", nil, true}, {"[2001:db8::1]:80", "192.0.2.7:5", nil, true}, {"[2001:db8::1]", "192.0.2.7:5", nil, true}, {"2001:db8::1", "192.0.2.7:5", nil, true},
		{"[::ffff:127.0.0.1]:80", "127.0.0.1:5", nil, true}, {"other:80", "192.0.2.7:5", []string{"name", "OTHER"}, true}, {"other.", "192.0.2.7:5", []string{"other"}, true}, {"other", "192.0.2.7:5", nil, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host, r.RemoteAddr = row.host, row.from
		check.That(t, hasAllowedHost(r, row.hosts) == row.want, "%+v", row)
	}
}

// What headers say of the page behind a request.
func TestWhichPageIsBehindARequest(t *testing.T) {
	type headers = map[string]string
	for _, row := range []struct {
		name       string
		h          headers
		navigation bool
		want       bool
	}{
		{"nothing", nil, false, false}, {"its own origin", headers{"Origin": "http://here"}, false, false}, {"another", headers{"Origin": "http://there"}, true, true},
		{"a page elsewhere", headers{"Referer": "http://there/x"}, false, true}, {"a link elsewhere", headers{"Referer": "http://there/x"}, true, false},
		{"a link elsewhere, of another origin", headers{"Referer": "http://here/x", "Origin": "http://there"}, true, true}, {"no URL", headers{"Origin": "http://a b%zz"}, true, true},
		{"navigation", headers{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, true, false},
		{"navigation, where there is none", headers{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, false, true},
		{"a mode alone", headers{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, true, true}, {"a destination alone", headers{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document"}, true, true},
		{"the same origin, as it says, and another", headers{"Sec-Fetch-Site": "same-origin", "Origin": "http://there"}, false, false}, {"typed", headers{"Sec-Fetch-Site": "none"}, false, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = "here"
		for k, v := range row.h {
			r.Header.Set(k, v)
		}
		check.Equal(t, row.name, isCrossOrigin(r, row.navigation), row.want)
	}
	for agent, want := range map[string]bool{"": false, "curl/8": false, "Mozilla/5.0": true, "xMozilla/5.0": false} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("User-Agent", agent)
		check.Equal(t, "a browser: "+agent, looksLikeBrowser(r), want)
		r.Header.Set("Sec-Fetch-Site", "none")
		check.Equal(t, "a browser that says more: "+agent, looksLikeBrowser(r), false)
	}
	for from, want := range map[string]bool{"127.0.0.1:5": true, "[::1]:5": true, "[::ffff:127.0.0.1]:5": true,
		"192.0.2.1:5": false, "nowhere": false} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = from
		check.Equal(t, "from "+from+": within this host", isLocalRequest(r), want)
		check.Equal(t, "from "+from+", to another address",
			isLocalRequest(contextWith(r, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})), want)
	}
}

// A profile lasts from one second to five minutes, is a file to be kept, and there is one of the
// processor at a time.
func TestProfilesAtTheirLimits(t *testing.T) {
	get := func(path string) *httptest.ResponseRecorder {
		ctx, end := context.WithCancel(t.Context())
		end() // so that none lasts
		r, w := httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil), httptest.NewRecorder()
		r.RemoteAddr, r.Host = "127.0.0.1:5", "localhost"
		Status(NewCollector(), &StatusOptions{Pprof: true}).ServeHTTP(w, r)
		return w
	}
	for seconds, want := range map[string]int{"": 200, "1": 200, "300": 200, "0": 400, "301": 400, "-1": 400,
		"x": 400, "1.5": 400} {
		for _, name := range []string{"heap", "profile"} {
			w := get("/pprof/" + name + "?seconds=" + seconds)
			check.That(t, w.Code == want, "%s of %q seconds: %d %s", name, seconds, w.Code, w.Body)
			disposition := ""
			if want == 200 {
				disposition = `attachment; filename="` + name + `"`
				check.Equal(t, "kind", w.Header().Get("Content-Type"), "application/octet-stream")
			}
			check.Equal(t, "disposition", w.Header().Get("Content-Disposition"), disposition)
			check.Equal(t, "sniffing", w.Header().Get("X-Content-Type-Options"), "nosniff")
			check.Equal(t, "caching", w.Header().Get("Cache-Control"), "no-store")
		}
	}
	must.OK(t, pprof.StartCPUProfile(io.Discard))
	w := get("/pprof/profile")
	pprof.StopCPUProfile()
	check.That(t, w.Code == 409 && w.Header().Get("Content-Disposition") == "" &&
		w.Body.String() == "the processor is being profiled already\n", "a second profile: %d %s", w.Code, w.Body)
	check.Equal(t, "a profile behind it", get("/pprof/profile").Code, 200)
	check.Equal(t, "one that there is not", get("/pprof/none").Code, 404)
}

// The small texts of a status page.
func TestTextsOfAStatus(t *testing.T) {
	for in, want := range map[netip.AddrPort]string{{}: "*", netip.MustParseAddrPort("10.0.0.1:0"): "10.0.0.1",
		netip.MustParseAddrPort("10.0.0.1:9"): "10.0.0.1:9", netip.MustParseAddrPort("[::1]:9"): "[::1]:9"} {
		check.Equal(t, "the end of a path", addrLabel(in), want)
	}
	for in, want := range map[int]string{1<<31 - 1: "-", 1<<31 - 2: "2147483646", 1 << 40: "-", 0: "0"} {
		check.Equal(t, "ssthresh", ssthreshLabel(sctp.PathStats{Ssthresh: in}), want)
	}
	check.Equal(t, "a QP without a peer", peerLabel(rdma.QPSnapshot{}), "-")
	check.Equal(t, "the passive side", sideLabel(&sctp.Snapshot{Passive: true}), "set up by the peer")
	check.Equal(t, "milliseconds", toMilliseconds(1500*time.Microsecond), 1.5)
	check.Equal(t, "age", ageSince(time.Now().Add(-2500*time.Millisecond)), 2*time.Second)
	for field, want := range map[string]string{"RxPackets": "packets_received", "TxBatches": "batches_sent",
		"RxCalls": "receive_calls", "TxCalls": "transmit_calls", "In": "received", "Out": "sent",
		"OctetsPerOctets": "bytes_per_bytes", "A": "a", "AB": "ab", "ABc": "a_bc", "aB": "a_b", "InRx": "in_rx"} {
		check.Equal(t, field, metricName(field), want)
	}
}

// A Collector's variable has a source's parts, and none that it has not.
func TestVariablesOfEachKindOfSource(t *testing.T) {
	a, b := newDevices(t)
	c := NewCollector()
	c.AddTransport("t", b.Transport())
	text := c.String()
	check.That(t, strings.Contains(text, `"t":{"Transport":{`) && !strings.Contains(text, `"Device"`) &&
		!strings.Contains(text, `"Link"`), "%s", text)
	c.AddDevice("d", a)
	c.AddLink("l", counted[foreign]{stats: foreign{RxLost: 5, Name: "n"}})
	text = c.String()
	check.That(t, strings.Contains(text, `"d":{"Transport":{`) && strings.Contains(text, `"Device":{`) &&
		strings.Contains(text, `"l":{"Link":{"RxLost":5,"Name":"n"}}`), "%s", text)
	s := c.takeSnapshots()
	check.That(t, len(s) == 2 && len(s["t"].QPs) == 0 && len(s["t"].Regions) == 0, "%+v", s)
}
