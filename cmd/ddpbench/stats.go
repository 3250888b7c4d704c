package main

import (
	"time"

	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
)

// traffic is the cost of runs: counters of associations, of the transport and of this process.
type traffic struct {
	PacketsOut      uint64 `json:"packets_out"`
	PacketsIn       uint64 `json:"packets_in"`
	DataOut         uint64 `json:"data_chunks_out"`
	DataIn          uint64 `json:"data_chunks_in"`
	Retransmits     uint64 `json:"retransmits"`
	FastRetransmits uint64 `json:"fast_retransmits"`
	Timeouts        uint64 `json:"timeouts"`
	DuplicatesIn    uint64 `json:"duplicates_in"`
	SacksOut        uint64 `json:"sacks_out"`
	SacksIn         uint64 `json:"sacks_in"`
	BatchesOut      uint64 `json:"link_batches_out"`
	BatchesIn       uint64 `json:"link_batches_in"`
	Refused         uint64 `json:"link_refused"`
	Dropped         uint64 `json:"link_dropped"`
	Suspected       uint64 `json:"paths_suspected"`
	Down            uint64 `json:"paths_down"`
	FPDUsOut        uint64 `json:"fpdus_out,omitempty"` // over TCP, where all others are 0
	FPDUsIn         uint64 `json:"fpdus_in,omitempty"`
}

// counterFields lists the fields, for arithmetic.
func (t *traffic) counterFields() []*uint64 {
	return []*uint64{
		&t.PacketsOut, &t.PacketsIn, &t.DataOut, &t.DataIn, &t.Retransmits, &t.FastRetransmits, &t.Timeouts,
		&t.DuplicatesIn, &t.SacksOut, &t.SacksIn, &t.BatchesOut, &t.BatchesIn, &t.Refused, &t.Dropped, &t.Suspected,
		&t.Down, &t.FPDUsOut, &t.FPDUsIn,
	}
}

// addSigned adds sign times u, where sign is 1 or -1.
func (t *traffic) addSigned(u *traffic, sign int) {
	from := u.counterFields()
	for i, c := range t.counterFields() {
		*c += uint64(sign) * *from[i]
	}
}

// pathUsage is a path of an association.
type pathUsage struct {
	Local  string  `json:"local"`
	Remote string  `json:"remote"`
	State  string  `json:"state"`
	InUse  bool    `json:"in_use"`  // new data goes there
	Cwnd   int     `json:"cwnd"`    // octets
	SRTT   float64 `json:"srtt_us"` // 0: not measured
	MTU    int     `json:"mtu"`     // octets
}

// usage adds up the cost of runs.
type usage struct {
	traffic
	Paths  []pathUsage `json:"paths"` // at the end of the last run, of all associations
	Wall   float64     `json:"seconds"`
	User   float64     `json:"cpu_user_seconds"`
	System float64     `json:"cpu_system_seconds"`
	// Allocs is the number of this process's heap allocations for each message in the second half
	// of the last run.
	Allocs   *float64 `json:"allocs_per_message,omitempty"`
	cpuKnown bool     // the processor time is known

	runBegan usageMark // where the current run began
}

// usageMark is what was used up to a moment.
type usageMark struct {
	traffic
	takenAt      time.Time
	user, system time.Duration
	cpuKnown     bool // the processor time is known
}

func (e *engine) takeMark() usageMark {
	m := usageMark{traffic: e.trafficSoFar(), takenAt: time.Now()}
	m.user, m.system, m.cpuKnown = cpuTime()
	return m
}

func (u *usage) beginRun(e *engine) { u.runBegan = e.takeMark() }

func (u *usage) endRun(e *engine) {
	u.addBetween(u.runBegan, e.takeMark())
	u.Paths = u.Paths[:0]
	for _, qp := range e.associationQPs() {
		list := qp.Paths()
		for i := range list {
			u.Paths = append(u.Paths, pathOf(&list[i], i == indexInUse(list)))
		}
	}
}

func pathOf(p *rdma.PathStats, used bool) pathUsage {
	state := p.State.String()
	if p.Suspected {
		state = "suspected"
	}
	if p.Primary {
		state += ", primary"
	}
	return pathUsage{p.Local.Addr().String(), p.Remote.Addr().String(), state, used, p.Cwnd, float64(p.SRTT) / 1e3,
		p.MTU}
}

// indexInUse returns the path that new data goes to, or -1 if there is none. That is the primary
// path while it answers, or else another that does (RFC 9260 section 6.4.1). Among several it is
// the one with the most data under way.
func indexInUse(list []rdma.PathStats) int {
	best, rank := -1, -1
	for i := range list {
		p, r := &list[i], 0
		switch {
		case p.State == sctp.PathActive && !p.Suspected && p.Primary:
			return i
		case p.State == sctp.PathActive && !p.Suspected:
			r = 3
		case p.State == sctp.PathActive:
			r = 2
		case p.State != sctp.PathUnconfirmed && p.Primary:
			r = 1
		}
		if r > rank || r == rank && p.Flight > list[best].Flight {
			best, rank = i, r
		}
	}
	return best
}

// pathInUse returns the path of an association that is in use.
func pathInUse(qp *rdma.QP) (p rdma.PathStats, ok bool) {
	list := qp.Paths()
	if i := indexInUse(list); i >= 0 {
		return list[i], true
	}
	return p, false
}

// addBetween adds what was used between two marks.
func (u *usage) addBetween(from, to usageMark) {
	u.Wall += to.takenAt.Sub(from.takenAt).Seconds()
	u.User += (to.user - from.user).Seconds()
	u.System += (to.system - from.system).Seconds()
	u.cpuKnown = to.cpuKnown
	u.traffic.addSigned(&to.traffic, 1)
	u.traffic.addSigned(&from.traffic, -1)
}

// associationQPs returns a QP of each association.
func (e *engine) associationQPs() []*rdma.QP {
	n := 1
	if e.ownAssociations {
		n = len(e.lanes)
	}
	var list []*rdma.QP
	for _, l := range e.lanes[:n] {
		list = append(list, l.qp)
	}
	return list
}

func (e *engine) trafficSoFar() (t traffic) {
	if e.dev.Transport() == nil {
		for _, l := range e.lanes {
			s, _ := l.qp.StreamStats()
			t.FPDUsOut, t.FPDUsIn = t.FPDUsOut+s.Out, t.FPDUsIn+s.In
		}
		return t
	}
	for _, qp := range e.associationQPs() {
		s, _ := qp.Stats()
		one := trafficOf(&s)
		t.addSigned(&one, 1)
	}
	s := e.dev.Transport().Stats()
	t.setLinkCounters(&s)
	return t
}

// trafficOf returns the counters of an association.
func trafficOf(s *rdma.AssocStats) traffic {
	return traffic{
		PacketsOut: s.PacketsOut, PacketsIn: s.PacketsIn, DataOut: s.DataOut, DataIn: s.DataIn,
		Retransmits: s.Retransmits, FastRetransmits: s.FastRetransmits, Timeouts: s.Timeouts,
		DuplicatesIn: s.DuplicatesIn, SacksOut: s.SacksOut, SacksIn: s.SacksIn, Suspected: s.PathsSuspected,
		Down: s.PathsDown,
	}
}

// setLinkCounters sets the counters of the link, which all associations share.
func (t *traffic) setLinkCounters(s *sctp.TransportStats) {
	t.BatchesOut, t.BatchesIn, t.Refused, t.Dropped = s.TxBatches, s.RxBatches, s.TxFailed, s.RxDropped
}
