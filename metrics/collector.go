package metrics

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
)

// Collector collects the counters of its sources. It is a prometheus.Collector and an expvar.Var,
// and may be used by several goroutines.
type Collector struct {
	mu              sync.Mutex
	sources         map[string]source
	maxAssociations int // see PerAssociation
}

// source is what goes by one name. Each part may be nil.
type source struct {
	transport *sctp.Transport
	device    *rdma.Device
	link      reflect.Value // method Stats
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a Collector without sources.
func NewCollector() *Collector { return &Collector{sources: make(map[string]source)} }

// AddTransport adds a Transport, in place of one that has the name.
func (c *Collector) AddTransport(name string, t *sctp.Transport) {
	c.updateSource(name, func(s *source) { s.transport = t })
}

// AddDevice adds a Device and its Transport, in place of those that have the name.
func (c *Collector) AddDevice(name string, d *rdma.Device) {
	c.updateSource(name, func(s *source) { s.device, s.transport = d, d.Transport() })
}

// AddLink adds the counters of a link, if it has any: those that its method Stats returns. A source
// may have a link and a Device of the same name.
func (c *Collector) AddLink(name string, l rawio.Link) {
	m := reflect.ValueOf(l).MethodByName("Stats")
	if !m.IsValid() || m.Type().NumIn() != 0 || m.Type().NumOut() != 1 || m.Type().Out(0).Kind() != reflect.Struct {
		return
	}
	c.updateSource(name, func(s *source) { s.link = m })
}

// Remove removes everything of a name, as after Close.
func (c *Collector) Remove(name string) {
	c.mu.Lock()
	delete(c.sources, name)
	c.mu.Unlock()
}

func (c *Collector) updateSource(name string, f func(*source)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.sources[name]
	f(&s)
	c.sources[name] = s
}

// PerAssociation adds metrics of single associations, rddp_sctp_peer_*, with the labels peer and
// local_port. It exports at most the n oldest of each source, so that peers cannot make as many
// time series as they like. 0, the default, exports none.
func (c *Collector) PerAssociation(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.maxAssociations = max(n, 0)
}

// sortedSources returns the sources and their names in order.
func (c *Collector) sortedSources() ([]string, map[string]source) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.sources)), maps.Clone(c.sources)
}

// Describe describes nothing: which metrics there are depends on the sources.
func (c *Collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends the metrics of all sources.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	names, sources := c.sortedSources()
	c.mu.Lock()
	each := c.maxAssociations
	c.mu.Unlock()
	for _, name := range names {
		s := sources[name]
		e := emitter{ch: ch, source: name}
		if t := s.transport; t != nil {
			e.sendCounters("sctp", t.Stats())
			e.sendCounters("sctp_assoc", t.Totals())
			m := t.Memory()
			e.sendGauge("rddp_sctp_memory_bytes", "Memory that peers make the transport hold.", int(m.Used))
			e.sendGauge("rddp_sctp_memory_limit_bytes", "TransportConfig.MaxMemory, or its default.", int(m.Max))
			e.sendGauge("rddp_sctp_associations", "Associations, those that this side sets up included.",
				t.Associations())
			e.sendHistogram("rddp_sctp_rtt_seconds", "Round trip times measured, over all paths.", t.Trips(), "", "")
			if each > 0 {
				e.sendAssociations(t.Snapshots(), each)
			}
		}
		if d := s.device; d != nil {
			e.sendCounters("rdma", d.Stats())
			e.sendGauge("rddp_rdma_peers", "Established associations of the device.", len(d.Peers()))
			e.sendGauge("rddp_rdma_queue_pairs", "Queue pairs that have not ended.", len(d.QPs()))
			l := d.Latency()
			for _, op := range []struct {
				name string
				took rdma.Histogram
			}{{"send", l.Send}, {"write", l.Write}, {"read", l.Read}, {"atomic", l.Atomic}} {
				e.sendHistogram("rddp_rdma_completion_seconds",
					"How long requests took, from PostSend until they were found complete.", op.took, "operation",
					op.name)
			}
		}
		if s.link.IsValid() {
			stats := s.link.Call(nil)[0]
			kind, _, _ := strings.Cut(stats.Type().String(), ".")
			e.sendCounters(kind, stats.Interface())
		}
	}
}

// sourceVariables is what a source looks like as a variable of package expvar.
type sourceVariables struct {
	Transport    *sctp.TransportStats `json:",omitempty"`
	Associations int                  `json:",omitempty"`
	Memory       *sctp.Memory         `json:",omitempty"` // that peers make the transport hold
	Totals       *sctp.Counters       `json:",omitempty"` // over the associations
	Device       *rdma.Stats          `json:",omitempty"`
	Peers        int                  `json:",omitempty"`
	QueuePairs   int                  `json:",omitempty"`
	Link         any                  `json:",omitempty"`
}

// String returns all counters as JSON, by source: it makes the Collector an expvar.Var.
func (c *Collector) String() string {
	names, sources := c.sortedSources()
	out := make(map[string]sourceVariables, len(names))
	for _, name := range names {
		s, v := sources[name], sourceVariables{}
		if t := s.transport; t != nil {
			stats, totals := t.Stats(), t.Totals()
			memory := t.Memory()
			v.Transport, v.Totals, v.Associations, v.Memory = &stats, &totals, t.Associations(), &memory
		}
		if d := s.device; d != nil {
			stats := d.Stats()
			v.Device, v.Peers, v.QueuePairs = &stats, len(d.Peers()), len(d.QPs())
		}
		if s.link.IsValid() {
			v.Link = s.link.Call(nil)[0].Interface()
		}
		out[name] = v
	}
	b, err := json.Marshal(out)
	if err != nil {
		return `{}` // never: numbers and strings only
	}
	return string(b)
}
