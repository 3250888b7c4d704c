package main

import (
	"time"

	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
)

// traffic is what runs cost: counters of associations, of the transport and of this process.
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
}

// counters lists the fields, for arithmetic.
func (t *traffic) counters() []*uint64 {
	return []*uint64{
		&t.PacketsOut, &t.PacketsIn, &t.DataOut, &t.DataIn, &t.Retransmits, &t.FastRetransmits, &t.Timeouts,
		&t.DuplicatesIn, &t.SacksOut, &t.SacksIn, &t.BatchesOut, &t.BatchesIn, &t.Refused, &t.Dropped, &t.Suspected, &t.Down,
	}
}

// add adds sign times u, where sign is 1 or -1.
func (t *traffic) add(u *traffic, sign int) {
	from := u.counters()
	for i, c := range t.counters() {
		*c += uint64(sign) * *from[i]
	}
}

// path is a path of an association.
type path struct {
	Local  string  `json:"local"`
	Remote string  `json:"remote"`
	State  string  `json:"state"`
	InUse  bool    `json:"in_use"`  // new data goes there
	Cwnd   int     `json:"cwnd"`    // octets
	SRTT   float64 `json:"srtt_us"` // 0: not measured
	MTU    int     `json:"mtu"`     // octets
}

// usage sums the cost of runs up.
type usage struct {
	traffic
	Paths  []path  `json:"paths"` // at the end of the last run, of all associations
	Wall   float64 `json:"seconds"`
	User   float64 `json:"cpu_user_seconds"`
	System float64 `json:"cpu_system_seconds"`
	// Allocs is the number of heap allocations for a message in the second half of the last run, of this process.
	Allocs *float64 `json:"allocs_per_message,omitempty"`
	cpu    bool     // known

	from mark // where the run under way began
}

// mark is what has been used so far.
type mark struct {
	traffic
	at           time.Time
	user, system time.Duration
	known        bool // what the processor has done
}

func (e *engine) mark() mark {
	m := mark{traffic: e.traffic(), at: time.Now()}
	m.user, m.system, m.known = cpuTime()
	return m
}

func (u *usage) begin(e *engine) { u.from = e.mark() }

func (u *usage) end(e *engine) {
	u.add(u.from, e.mark())
	u.Paths = u.Paths[:0]
	for _, qp := range e.associations() {
		list := qp.Paths()
		for i := range list {
			u.Paths = append(u.Paths, pathOf(&list[i], i == inUse(list)))
		}
	}
}

func pathOf(p *rdma.PathStats, used bool) path {
	state := p.State.String()
	if p.Suspected {
		state = "suspected"
	}
	if p.Primary {
		state += ", primary"
	}
	return path{p.Local.Addr().String(), p.Remote.Addr().String(), state, used, p.Cwnd, float64(p.SRTT) / 1e3, p.MTU}
}

// inUse returns which path new data goes to, -1 where there is none: the primary path while that answers, else another that does (RFC 9260 section 6.4.1). Among
// those it is the one with most under way.
func inUse(list []rdma.PathStats) int {
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

// current returns the path of an association that is in use.
func current(qp *rdma.QP) (p rdma.PathStats, ok bool) {
	list := qp.Paths()
	if i := inUse(list); i >= 0 {
		return list[i], true
	}
	return p, false
}

// add adds what was used from one mark to another.
func (u *usage) add(from, to mark) {
	u.Wall += to.at.Sub(from.at).Seconds()
	u.User += (to.user - from.user).Seconds()
	u.System += (to.system - from.system).Seconds()
	u.cpu = to.known
	u.traffic.add(&to.traffic, 1)
	u.traffic.add(&from.traffic, -1)
}

// associations returns a QP of each.
func (e *engine) associations() []*rdma.QP {
	n := 1
	if e.own {
		n = len(e.lanes)
	}
	var list []*rdma.QP
	for _, l := range e.lanes[:n] {
		list = append(list, l.qp)
	}
	return list
}

func (e *engine) traffic() (t traffic) {
	for _, qp := range e.associations() {
		s, _ := qp.Stats()
		one := trafficOf(&s)
		t.add(&one, 1)
	}
	s := e.dev.Transport().Stats()
	t.ofLink(&s)
	return t
}

// trafficOf is what an association has counted.
func trafficOf(s *rdma.AssocStats) traffic {
	return traffic{
		PacketsOut: s.PacketsOut, PacketsIn: s.PacketsIn, DataOut: s.DataOut, DataIn: s.DataIn,
		Retransmits: s.Retransmits, FastRetransmits: s.FastRetransmits, Timeouts: s.Timeouts,
		DuplicatesIn: s.DuplicatesIn, SacksOut: s.SacksOut, SacksIn: s.SacksIn, Suspected: s.PathsSuspected, Down: s.PathsDown,
	}
}

// ofLink takes in what the link has counted, which all associations share.
func (t *traffic) ofLink(s *sctp.TransportStats) {
	t.BatchesOut, t.BatchesIn, t.Refused, t.Dropped = s.TxBatches, s.RxBatches, s.TxFailed, s.RxDropped
}
