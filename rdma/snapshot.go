package rdma

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/sctp"
)

// Snapshot is what a Device is doing. It has no STags: who knows one may use it.
type Snapshot struct {
	Associations []sctp.Snapshot
	QPs          []QPSnapshot     // by number
	Regions      []RegionSnapshot // by protection domain, the larger ones first
}

// QPSnapshot is one end of a stream.
type QPSnapshot struct {
	Num       uint32
	State     string
	Remote    netip.AddrPort // not valid before the QP is connected
	PD        uint32
	IRD, ORD  int
	MULPDU    int // octets
	InProcess int // receives that the peer has begun to fill
	Stream    StreamStats
}

// RegionSnapshot is registered memory.
type RegionSnapshot struct {
	PD     uint32
	Octets uint64
	Access string // r, w and a for what the peer may do, l for a local target, - for nothing
	Valid  bool   // not invalidated
}

// Snapshot returns what the Device is doing, for people who look. It holds the gate of one association at a time, and no longer than it takes to copy
// what is there.
func (d *Device) Snapshot() Snapshot {
	s := Snapshot{Associations: d.t.Snapshot()}
	for _, q := range d.QPs() {
		stream, _ := q.StreamStats()
		s.QPs = append(s.QPs, QPSnapshot{Num: q.Num(), State: q.State().String(), Remote: q.RemoteAddr(), PD: uint32(q.pd.id), IRD: q.IRD(), ORD: q.ORD(),
			MULPDU: q.MULPDU(), InProcess: q.InProcess(), Stream: stream})
	}
	slices.SortFunc(s.QPs, func(a, b QPSnapshot) int { return cmp.Compare(a.Num, b.Num) })
	d.regions.Lock()
	for r := range d.table.All {
		s.Regions = append(s.Regions, RegionSnapshot{PD: uint32(r.PD()), Octets: r.Len(), Access: rights(r.Access()), Valid: r.Valid()})
	}
	d.regions.Unlock()
	slices.SortFunc(s.Regions, func(a, b RegionSnapshot) int { return cmp.Or(cmp.Compare(a.PD, b.PD), cmp.Compare(b.Octets, a.Octets)) })
	return s
}

func rights(a Access) (s string) {
	for i, right := range []Access{LocalWrite, RemoteRead, RemoteWrite, RemoteAtomic} {
		if a&right != 0 {
			s += "lrwa"[i : i+1]
		}
	}
	return cmp.Or(s, "-")
}
