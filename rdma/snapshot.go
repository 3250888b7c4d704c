package rdma

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/rddp-go/rddp/internal/pollpolicy"
)

// QPSnapshot is one end of a stream.
type QPSnapshot struct {
	Num       uint32
	State     string
	Since     time.Time      // when it was made
	Remote    netip.AddrPort // not valid before the QP is connected
	PD        uint32
	IRD, ORD  int
	MULPDU    int // octets
	InProcess int // receives that the peer has begun to fill
	SCTP      int // the number of the SCTP stream pair, -1 before the QP is connected
	Stream    StreamStats
}

// RegionSnapshot is registered memory.
type RegionSnapshot struct {
	PD     uint32
	Octets uint64
	Access string // r, w and a for what the peer may do, l for a local target, - for nothing
	Valid  bool   // not invalidated
}

// Snapshot returns what the Device is doing, for people to read. It holds one connection lock at a
// time, only while it copies. It takes some 0.5 s for 10,000 associations, and for 10,000 QPs.
func (d *Device) Snapshot() Snapshot {
	s := Snapshot{Associations: d.associations()}
	qps := d.QPs()
	s.QPs = make([]QPSnapshot, len(qps))
	var stroll pollpolicy.Throttle
	for i, q := range qps {
		s.QPs[i] = q.takeSnapshot()
		stroll.Step()
	}
	slices.SortFunc(s.QPs, func(a, b QPSnapshot) int { return cmp.Compare(a.Num, b.Num) })
	d.regionsMu.Lock()
	for r := range d.table.All {
		s.Regions = append(s.Regions, RegionSnapshot{PD: uint32(r.PD()), Octets: r.Len(),
			Access: accessLetters(r.Access()), Valid: r.Valid()})
	}
	d.regionsMu.Unlock()
	slices.SortFunc(s.Regions, func(a, b RegionSnapshot) int {
		return cmp.Or(cmp.Compare(a.PD, b.PD), cmp.Compare(b.Octets, a.Octets))
	})
	return s
}

func (q *QP) takeSnapshot() QPSnapshot {
	s := QPSnapshot{Num: q.Num(), Since: q.createdAt, PD: uint32(q.pd.id), SCTP: -1}
	look := func() {
		s.State, s.IRD, s.ORD, s.InProcess = q.core.State().String(), q.core.IRD(), q.core.ORD(), q.core.InProcess()
	}
	q.mu.Lock()
	p := q.peer.Load()
	if p == nil {
		look()
	}
	q.mu.Unlock()
	if p != nil {
		p.conn.peek(func() {
			look()
			s.Remote = p.conn.remoteAddrLocked()
			s.MULPDU, s.SCTP, s.Stream = q.session.MULPDU(), q.session.streamNumber(), q.session.Stats()
		})
	}
	return s
}

func accessLetters(a Access) (s string) {
	for i, right := range []Access{LocalWrite, RemoteRead, RemoteWrite, RemoteAtomic} {
		if a&right != 0 {
			s += "lrwa"[i : i+1]
		}
	}
	return cmp.Or(s, "-")
}
