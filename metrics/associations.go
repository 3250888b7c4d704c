package metrics

import (
	"iter"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rddp-go/rddp/sctp"
)

// assocMetrics are the metrics of one association; its primary path has cwnd and the times.
var assocMetrics = []struct {
	name, help string
	kind       prometheus.ValueType
	of         func(a *sctp.Snapshot, p *sctp.PathStats) float64
}{
	{"sent_bytes_total", "Octets of packets sent.", prometheus.CounterValue, func(a *sctp.Snapshot, _ *sctp.PathStats) float64 { return float64(a.OctetsOut) }},
	{"received_bytes_total", "Octets of packets received.", prometheus.CounterValue, func(a *sctp.Snapshot, _ *sctp.PathStats) float64 { return float64(a.OctetsIn) }},
	{"retransmits_total", "DATA chunks sent again.", prometheus.CounterValue, func(a *sctp.Snapshot, _ *sctp.PathStats) float64 { return float64(a.Retransmits) }},
	{"timeouts_total", "T3-rtx expiries.", prometheus.CounterValue, func(a *sctp.Snapshot, _ *sctp.PathStats) float64 { return float64(a.Timeouts) }},
	{"queued_bytes", "User data accepted and not yet sent.", prometheus.GaugeValue, func(a *sctp.Snapshot, _ *sctp.PathStats) float64 { return float64(a.Queued) }},
	{"outstanding_bytes", "User data sent and not acknowledged.", prometheus.GaugeValue, func(a *sctp.Snapshot, _ *sctp.PathStats) float64 { return float64(a.Outstanding) }},
	{"memory_bytes", "Memory that the peer is charged for.", prometheus.GaugeValue, func(a *sctp.Snapshot, _ *sctp.PathStats) float64 { return float64(a.Memory) }},
	{"window_bytes", "User data that the peer still takes.", prometheus.GaugeValue, func(a *sctp.Snapshot, _ *sctp.PathStats) float64 { return float64(a.PeerWindow) }},
	{"congestion_window_bytes", "Congestion window of the primary path.", prometheus.GaugeValue, func(_ *sctp.Snapshot, p *sctp.PathStats) float64 { return float64(p.Cwnd) }},
	{"smoothed_rtt_seconds", "Smoothed round trip time of the primary path.", prometheus.GaugeValue, func(_ *sctp.Snapshot, p *sctp.PathStats) float64 { return p.SRTT.Seconds() }},
	{"rto_seconds", "Retransmission timeout of the primary path.", prometheus.GaugeValue, func(_ *sctp.Snapshot, p *sctp.PathStats) float64 { return p.RTO.Seconds() }},
}

// sendAssociations sends the metrics of the first n.
func (e *emitter) sendAssociations(list iter.Seq[*sctp.Snapshot], n int) {
	for a := range list {
		p := new(sctp.PathStats)
		if a.Primary < len(a.Paths) {
			p = &a.Paths[a.Primary]
		}
		for _, m := range assocMetrics {
			desc := prometheus.NewDesc("rddp_sctp_peer_"+m.name, m.help, []string{"source", "peer", "local_port"}, nil)
			e.ch <- prometheus.MustNewConstMetric(desc, m.kind, m.of(a, p), e.source, a.Remote.String(),
				strconv.Itoa(int(a.LocalPort)))
		}
		if n--; n == 0 {
			return
		}
	}
}
