// Package model is what defrag.Assembler is compared with: it does the same in the plainest way.
package model

import (
	"bytes"
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
)

// Limits are those of defrag.
type Limits struct {
	MaxOctets, MaxOctetsPerSource int // of what waits, in all and from one address
	FragmentCost, MinPacketCost   int // what a fragment and a packet cost
	MaxFragments                  int // of a packet
}

// Stats are defrag.Stats.
type Stats struct{ Bad, Late, Full uint64 }

// Model keeps the fragments of a packet as they came, and looks at all of them each time.
type Model struct {
	Limits     Limits
	Stats      Stats
	incomplete []*partialPacket // the oldest first
}

type packetKey struct {
	src, dst netip.Addr
	id       uint32
}

type partialPacket struct {
	key       packetKey
	firstAt   rawio.Time
	invalid   bool
	fragments []iphdr.Packet
}

// Add takes a fragment, and returns the packet that it makes whole.
func (m *Model) Add(now rawio.Time, f iphdr.Packet) (whole iphdr.Packet, ok bool) {
	for len(m.incomplete) > 0 && now-m.incomplete[0].firstAt >= 60e9 {
		m.Stats.Late += uint64(len(m.incomplete[0].fragments))
		m.incomplete = m.incomplete[1:]
	}
	k := packetKey{f.Src, f.Dst, f.ID}
	i := slices.IndexFunc(m.incomplete, func(p *partialPacket) bool { return p.key == k })
	if i < 0 {
		i = len(m.incomplete)
		m.incomplete = append(m.incomplete, &partialPacket{key: k, firstAt: now})
	}
	p := m.incomplete[i]
	for _, q := range p.fragments {
		if q.Offset == f.Offset && q.MoreFragments == f.MoreFragments && bytes.Equal(q.Payload, f.Payload) {
			return whole, false
		}
	}
	p.fragments = append(p.fragments, f)
	if p.invalid || p.isContradictory(m.Limits.MaxFragments) {
		m.Stats.Bad += uint64(len(p.fragments))
		p.invalid, p.fragments = true, nil
	} else if whole, ok = p.joinFragments(); ok {
		m.incomplete = slices.Delete(m.incomplete, i, i+1)
	}
	for m.costFrom(netip.Addr{}) > m.Limits.MaxOctets {
		m.dropPacket(0)
	}
	for m.costFrom(f.Src) > m.Limits.MaxOctetsPerSource {
		m.dropPacket(slices.IndexFunc(m.incomplete, func(p *partialPacket) bool { return p.key.src == f.Src }))
	}
	return whole, ok
}

func (m *Model) dropPacket(i int) {
	m.Stats.Full += uint64(len(m.incomplete[i].fragments))
	m.incomplete = slices.Delete(m.incomplete, i, i+1)
}

func (m *Model) costFrom(src netip.Addr) (n int) {
	for _, p := range m.incomplete {
		c := 0
		for _, f := range p.fragments {
			c += len(f.Payload) + m.Limits.FragmentCost
		}
		if !src.IsValid() || p.key.src == src {
			n += max(c, m.Limits.MinPacketCost)
		}
	}
	return n
}

// isContradictory reports whether no packet can have had these fragments, of which it may have so
// many at most.
func (p *partialPacket) isContradictory(most int) bool {
	var ecn [4]bool
	for i, f := range p.fragments {
		ecn[f.ECN] = true
		for k, g := range p.fragments {
			if k != i && f.Offset < g.Offset+len(g.Payload) && g.Offset < f.Offset+len(f.Payload) {
				return true
			}
			if k != i && !f.MoreFragments && g.Offset > f.Offset {
				return true
			}
		}
	}
	return len(p.fragments) > most || ecn[rawio.NotECT] && ecn[rawio.CE]
}

func (p *partialPacket) joinFragments() (w iphdr.Packet, ok bool) {
	there := make(map[int]iphdr.Packet)
	ce := false
	for _, f := range p.fragments {
		there[f.Offset] = f
		ce = ce || f.ECN == rawio.CE
	}
	w.ECN = there[0].ECN
	if ce {
		w.ECN = rawio.CE
	}
	for {
		f, ok := there[len(w.Payload)]
		if !ok {
			return iphdr.Packet{}, false
		}
		w.Payload = append(w.Payload, f.Payload...)
		if !f.MoreFragments {
			return w, true
		}
	}
}
