package metrics

import (
	"encoding/json"
	"expvar"
	"maps"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/httpget"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/tun"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
)

// counted is a link that counts as one of another kind does.
type counted[T any] struct {
	*mem.Link
	stats T
}

func (l counted[T]) Stats() T { return l.stats }

// foreign are counters of somebody else's.
type foreign struct {
	RxLost uint64
	Name   string
}

// newDevices returns two joined devices, with an association that the first has set up and ended.
func newDevices(t testing.TB) (a, b *rdma.Device) {
	t.Helper()
	la, lb := mempair.New(t, mem.Options{})
	a, b = must.Get(rdma.NewDevice(la, nil))(t), must.Get(rdma.NewDevice(lb, nil))(t)
	t.Cleanup(func() {
		a.Close()
		b.Close()
	})
	must.Do(b.Transport().Listen(77, nil))(t)
	c, err := a.Transport().Dial(t.Context(), netip.AddrPortFrom(lb.LocalAddrs()[0].Addr(), 77), nil)
	if err == nil {
		err = c.Close()
	}
	must.OK(t, err)
	return a, b
}

func gatherFamilies(t *testing.T, c *Collector) map[string]*dto.MetricFamily {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	must.OK(t, reg.Register(c))
	list := must.Get(reg.Gather())(t)
	byName := make(map[string]*dto.MetricFamily)
	for _, f := range list {
		byName[f.GetName()] = f
	}
	return byName
}

// Every counter there is comes out as a sample of its own, with a help text, and the names keep the
// conventions.
func TestEveryCounterIsExported(t *testing.T) {
	a, _ := newDevices(t)
	c := NewCollector()
	c.AddDevice("x", a)
	link := counted[udp.Stats]{}
	c.AddLink("x", link)
	families := gatherFamilies(t, c)
	samples := 0
	for name, f := range families {
		check.That(t, f.GetHelp() != "" && !strings.HasPrefix(f.GetHelp(), "Count of"), "%s has no help: %q", name,
			f.GetHelp())
		if f.GetType() == dto.MetricType_COUNTER {
			samples += len(f.GetMetric())
		}
		for _, m := range f.GetMetric() {
			check.That(t, m.GetLabel()[len(m.GetLabel())-1].GetName() == "source" ||
				m.GetLabel()[0].GetName() == "source",
				"%s: labels %v", name, m.GetLabel())
		}
	}
	want := 0
	one := func(string, uint64) { want++ }
	counters.Each(sctp.TransportStats{}, one)
	counters.Each(sctp.Counters{}, one)
	counters.Each(rdma.Stats{}, one)
	counters.Each(udp.Stats{}, one)
	want--
	check.That(t, samples == want, "%d samples of %d counters", samples, want) // Faults[0] of ddpadapt is none
	problems := must.Get(testutil.CollectAndLint(c))(t)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	for _, name := range []string{"rddp_sctp_packets_received_total", "rddp_sctp_packets_sent_total",
		"rddp_sctp_endpoint_bad_checksum_total",
		"rddp_sctp_assoc_bytes_received_total", "rddp_sctp_assoc_mtu_probes_sent_total", "rddp_sctp_associations",
		"rddp_sctp_associations_ended_total",
		"rddp_rdma_terminates_sent_total", "rddp_rdma_faults_total", "rddp_ddp_session_faults_total",
		"rddp_udp_receive_overflow_total"} {
		check.That(t, families[name] != nil, "there is no %s among %v", name, slices.Sorted(maps.Keys(families)))
	}
	check.Equal(t, "faults of sessions", len(families["rddp_ddp_session_faults_total"].GetMetric()),
		int(ddpadapt.FaultEarlyData))
}

// The values are those that Stats returns, under the label of the source.
func TestValuesAreThoseOfStats(t *testing.T) {
	a, b := newDevices(t)
	c := NewCollector()
	c.AddDevice("client", a)
	c.AddTransport("server", b.Transport())
	c.AddLink("server", counted[raw.Stats]{stats: raw.Stats{RxOverflow: 7}})
	c.AddLink("server", &mem.Link{}) // counts nothing, and takes nothing away
	c.AddLink("tun", counted[tun.Stats]{stats: tun.Stats{RxFragments: 9}})
	c.AddLink("tun2", counted[foreign]{stats: foreign{RxLost: 5}})
	want := strings.NewReader(`
# HELP rddp_metrics_receive_lost_total The counter RxLost.
# TYPE rddp_metrics_receive_lost_total counter
rddp_metrics_receive_lost_total{source="tun2"} 5
# HELP rddp_raw_receive_overflow_total Dropped by the kernel for want of receive buffer.
# TYPE rddp_raw_receive_overflow_total counter
rddp_raw_receive_overflow_total{source="server"} 7
# HELP rddp_tun_receive_fragments_total IP fragments of SCTP packets.
# TYPE rddp_tun_receive_fragments_total counter
rddp_tun_receive_fragments_total{source="tun"} 9
# HELP rddp_sctp_established_total Associations that came to be, set up by either side.
# TYPE rddp_sctp_established_total counter
rddp_sctp_established_total{source="client"} 1
rddp_sctp_established_total{source="server"} 1
`)
	check.OK(t, testutil.CollectAndCompare(c, want, "rddp_metrics_receive_lost_total",
		"rddp_raw_receive_overflow_total", "rddp_tun_receive_fragments_total", "rddp_sctp_established_total"))
	c.Remove("server")
	c.Remove("tun")
	c.Remove("tun2")
	for name, f := range gatherFamilies(t, c) {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				check.That(t, l.GetName() != "source" || l.GetValue() == "client", "%s: still of %s", name,
					l.GetValue())
			}
		}
	}
}

// What there is now is told in both forms.
func TestGaugesAreWhatThereIs(t *testing.T) {
	a, b := newDevices(t)
	l := must.Get(b.Listen(rdma.DefaultPort))(t)
	qp := func(d *rdma.Device) *rdma.QP {
		cq := must.Get(d.CreateCQ(4))(t)
		return must.Get(d.CreateQP(&rdma.QPConfig{PD: d.AllocPD(), SendCQ: cq, RecvCQ: cq, MaxSend: 1, MaxRecv: 1}))(t)
	}
	there := qp(b)
	go func() {
		if req, err := l.Accept(t.Context()); err == nil {
			_ = req.Accept(there, nil)
		}
	}()
	here, _, _ := qp(a), qp(a), qp(a)
	to := netip.MustParseAddr("10.0.0.2")
	must.Do(here.Connect(t.Context(), netip.AddrPortFrom(to, rdma.DefaultPort), nil))(t)
	must.Do(a.Transport().Dial(t.Context(), netip.AddrPortFrom(to, 77), nil))(t)
	c := NewCollector()
	c.AddDevice("x", a)
	c.PerAssociation(0)
	tr := a.Transport()
	m, all, families, said := tr.Memory(), tr.Trips(), gatherFamilies(t, c), c.String()
	for n := 0; n < 1000 && (m != tr.Memory() || all != tr.Trips()); n++ { // acknowledgements are on their way
		m, all, families, said = tr.Memory(), tr.Trips(), gatherFamilies(t, c), c.String()
	}
	for name, want := range map[string]float64{"rddp_sctp_memory_bytes": float64(m.Used),
		"rddp_sctp_memory_limit_bytes": float64(m.Max),
		"rddp_sctp_associations":       2, "rddp_rdma_peers": 1, "rddp_rdma_queue_pairs": 3} {
		if check.Equal(t, "samples of "+name, len(families[name].GetMetric()), 1) {
			check.Equal(t, name, families[name].GetMetric()[0].GetGauge().GetValue(), want)
		}
	}
	trips := families["rddp_sctp_rtt_seconds"].GetMetric()[0].GetHistogram()
	check.That(t, trips.GetSampleCount() != 0 && trips.GetSampleCount() == all.Total() &&
		trips.GetSampleSum() == all.Sum.Seconds() &&
		len(trips.GetBucket()) == counters.NumBuckets-1 && trips.GetBucket()[3].GetUpperBound() == 8e-6, "%v; %+v",
		trips, all)
	check.Equal(t, "histograms of requests", len(families["rddp_rdma_completion_seconds"].GetMetric()), 4)
	check.Equal(t, "metrics of single associations unless asked for", families["rddp_sctp_peer_rto_seconds"], nil)
	c.PerAssociation(1) // there are two
	families = gatherFamilies(t, c)
	for _, m := range assocMetrics {
		list := families["rddp_sctp_peer_"+m.name].GetMetric()
		check.That(t, len(list) == 1 && len(list[0].GetLabel()) == 3 && list[0].GetLabel()[1].GetValue() ==
			to.String()+":5043",
			"%s: %v", m.name, list)
	}
	check.Equal(t, "timeout of the oldest", families["rddp_sctp_peer_rto_seconds"].GetMetric()[0].GetGauge().GetValue(), 1)
	var vars map[string]sourceVariables
	must.OK(t, json.Unmarshal([]byte(said), &vars))
	x := vars["x"]
	check.That(t, x.Associations == 2 && x.Peers == 1 && x.QueuePairs == 3 && *x.Memory == m && m.Used != m.Max,
		"%+v", x)
}

// The handler serves both forms.
func TestHandlerServesBothForms(t *testing.T) {
	a, _ := newDevices(t)
	c := NewCollector()
	c.AddDevice("x", a)
	s := httptest.NewServer(Handler(c))
	defer s.Close()
	text := httpget.Page(t, s.URL+"/metrics")
	for _, line := range []string{`rddp_sctp_associations_ended_total{reason="shutdown",source="x"} 1`,
		"go_goroutines "} {
		check.That(t, strings.Contains(text, line), "no %s", line)
	}
	var vars struct {
		Rddp map[string]struct {
			Transport sctp.TransportStats
			Totals    sctp.Counters
			Device    rdma.Stats
		}
		Memstats map[string]any
	}
	must.OK(t, json.Unmarshal([]byte(httpget.Page(t, s.URL+"/debug/vars")), &vars))
	x := vars.Rddp["x"]
	check.That(t, x.Transport.Established == 1 && x.Transport == a.Transport().Stats() &&
		x.Totals == a.Transport().Totals() && len(vars.Memstats) != 0, "%+v", x)
	var _ expvar.Var = c
}

// asked is a link whose method Stats wants to know something.
type asked struct{ *mem.Link }

func (asked) Stats(string) udp.Stats { return udp.Stats{} }

// A link whose method Stats returns no counters, or that has none, is no source.
func TestLinkWithoutCounters(t *testing.T) {
	for _, link := range []rawio.Link{&mem.Link{}, counted[int]{}, counted[[]uint64]{}, asked{}} {
		c := NewCollector()
		c.AddLink("x", link)
		got := c.String()
		check.That(t, got == "{}", "%T: %s", link, got)
		check.Equal(t, "metrics", len(gatherFamilies(t, c)), 0)
	}
}

// A program may publish the Collector as the variable rddp itself: the handler has it once
// nevertheless.
func TestVariableIsThereOnce(t *testing.T) {
	c := NewCollector()
	if expvar.Get("rddp") == nil { // once in the life of a process
		expvar.Publish("rddp", c)
	}
	w := httptest.NewRecorder()
	Handler(c).ServeHTTP(w, httptest.NewRequest("GET", "/debug/vars", nil))
	check.Equal(t, "times that the variable is there", strings.Count(w.Body.String(), "\n\"rddp\":"), 1)
}

func TestNamesFollowThePrometheusConventions(t *testing.T) {
	for field, want := range map[string]string{
		"PacketsIn": "packets_received", "MTUProbesOut": "mtu_probes_sent", "ICMPIn": "icmp_received",
		"OctetsOut": "bytes_sent",
		"RxBatches": "batches_received", "TxPackets": "packets_sent", "RxICMP": "receive_icmp",
		"TxTooLong":   "transmit_too_long",
		"CQOverflows": "cq_overflows", "Restarts": "restarts", "BadHeartbeatAcks": "bad_heartbeat_acks",
	} {
		check.Equal(t, field, metricName(field), want)
	}
}
