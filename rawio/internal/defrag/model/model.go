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
	Octets, Source int // of what waits, in all and from one address
	Piece, Least   int // what a fragment and a packet cost
	Pieces         int // of a packet
}

// Stats are defrag.Stats.
type Stats struct{ Bad, Late, Full uint64 }

// Model keeps the fragments of a packet as they came, and looks at all of them each time.
type Model struct {
	Limits Limits
	Stats  Stats
	open   []*packet // the oldest first
}

type key struct {
	src, dst netip.Addr
	id       uint32
}

type packet struct {
	key   key
	since rawio.Time
	bad   bool
	frags []iphdr.Packet
}

// Add takes a fragment, and returns the packet that it makes whole.
func (m *Model) Add(now rawio.Time, f iphdr.Packet) (whole iphdr.Packet, ok bool) {
	for len(m.open) > 0 && now-m.open[0].since >= 60e9 {
		m.Stats.Late += uint64(len(m.open[0].frags))
		m.open = m.open[1:]
	}
	k := key{f.Src, f.Dst, f.ID}
	i := slices.IndexFunc(m.open, func(p *packet) bool { return p.key == k })
	if i < 0 {
		i = len(m.open)
		m.open = append(m.open, &packet{key: k, since: now})
	}
	p := m.open[i]
	for _, q := range p.frags {
		if q.Offset == f.Offset && q.More == f.More && bytes.Equal(q.Payload, f.Payload) {
			return whole, false
		}
	}
	p.frags = append(p.frags, f)
	if p.bad || p.contradicts(m.Limits.Pieces) {
		m.Stats.Bad += uint64(len(p.frags))
		p.bad, p.frags = true, nil
	} else if whole, ok = p.whole(); ok {
		m.open = slices.Delete(m.open, i, i+1)
	}
	for m.cost(netip.Addr{}) > m.Limits.Octets {
		m.drop(0)
	}
	for m.cost(f.Src) > m.Limits.Source {
		m.drop(slices.IndexFunc(m.open, func(p *packet) bool { return p.key.src == f.Src }))
	}
	return whole, ok
}

func (m *Model) drop(i int) {
	m.Stats.Full += uint64(len(m.open[i].frags))
	m.open = slices.Delete(m.open, i, i+1)
}

func (m *Model) cost(src netip.Addr) (n int) {
	for _, p := range m.open {
		c := 0
		for _, f := range p.frags {
			c += len(f.Payload) + m.Limits.Piece
		}
		if !src.IsValid() || p.key.src == src {
			n += max(c, m.Limits.Least)
		}
	}
	return n
}

// contradicts reports whether no packet can have had these fragments, of which it may have so many at most.
func (p *packet) contradicts(most int) bool {
	var ecn [4]bool
	for i, f := range p.frags {
		ecn[f.ECN] = true
		for k, g := range p.frags {
			if k != i && f.Offset < g.Offset+len(g.Payload) && g.Offset < f.Offset+len(f.Payload) {
				return true
			}
			if k != i && !f.More && g.Offset > f.Offset {
				return true
			}
		}
	}
	return len(p.frags) > most || ecn[rawio.NotECT] && ecn[rawio.CE]
}

func (p *packet) whole() (w iphdr.Packet, ok bool) {
	there := make(map[int]iphdr.Packet)
	ce := false
	for _, f := range p.frags {
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
		if !f.More {
			return w, true
		}
	}
}
