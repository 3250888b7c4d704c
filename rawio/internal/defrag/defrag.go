// Package defrag puts IP packets together from their fragments (RFC 791 section 3.2, RFC 1122 section 3.3.2, RFC 8200 section 4.5),
// for links that are the IP layer themselves. What waits is bounded in octets and time, for each source too.
package defrag

import (
	"bytes"
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
)

const (
	// Timeout is how long after the first fragment the others have to be there (RFC 1122 section 3.3.2, RFC 8200 section 4.5). It is looked
	// at when a fragment comes.
	Timeout = 60 * time.Second
	// MaxOctets is what all packets that wait count for at most, MaxSource those of one source. Beyond that the oldest is given up.
	MaxOctets = 4 << 20
	MaxSource = 1 << 20

	// A packet that waits counts for the octets it has, pieceCost beside each fragment, and no less than leastCost: so
	// there are 512 at most, 128 of one source, which are few enough to look through.
	leastCost = 8 << 10
	pieceCost = 256
	// maxPieces is how many fragments a packet may have: the largest has 119 at an MTU of 576.
	maxPieces = 128
)

// Stats counts fragments that were dropped.
type Stats struct {
	Bad  uint64 // they overlap, do not fit together, or belong to such a packet
	Late uint64 // the others did not come in time
	Full uint64 // given up for newer ones
}

// Assembler holds the fragments of packets that are not complete. Its zero value is ready.
type Assembler struct {
	Stats Stats
	open  []packet // the oldest first
}

// packet is what has come of an IP packet.
type packet struct {
	src, dst netip.Addr
	id       uint32
	end      int        // octets of the whole packet, 0 while its last fragment is missing
	have     int        // octets in pieces
	pieces   []piece    // by offset, without overlaps
	first    rawio.Time // when the first of them came
	ecn      uint8      // a bit for each codepoint seen
	bad      bool       // what comes of it is dropped (RFC 5722 section 4)
}

// piece is a fragment that waits. Of the Payload it has a copy.
type piece = iphdr.Packet

func end(p *piece) int { return p.Offset + len(p.Payload) }

func (p *packet) cost() int { return max(leastCost, p.have+pieceCost*len(p.pieces)) }

// Add takes a fragment, with which iphdr.Parse has returned iphdr.ErrFragment, and copies what it keeps. Those of IPv4 are all of one protocol, so
// that addresses and identification tell packets apart. When f completes a packet, whole is what Parse would have returned of it, but
// without Header, and with the IPv6 extension headers behind the fragment header still in front of the Payload.
func (a *Assembler) Add(now rawio.Time, f iphdr.Packet) (whole iphdr.Packet, ok bool) {
	a.expire(now)
	i := slices.IndexFunc(a.open, func(p packet) bool { return p.id == f.ID && p.src == f.Src && p.dst == f.Dst })
	if i < 0 {
		i = len(a.open)
		a.open = append(a.open, packet{src: f.Src, dst: f.Dst, id: f.ID, first: now})
	}
	p := &a.open[i]
	at, found := slices.BinarySearchFunc(p.pieces, f.Offset, func(q piece, off int) int { return cmp.Compare(q.Offset, off) })
	switch {
	case p.bad:
		a.Stats.Bad++
		return whole, false
	case found && p.pieces[at].More == f.More && bytes.Equal(p.pieces[at].Payload, f.Payload):
		return whole, false // a duplicate
	case !p.fits(&f, at):
		a.Stats.Bad += 1 + uint64(len(p.pieces))
		*p = packet{src: p.src, dst: p.dst, id: p.id, first: p.first, bad: true}
		return whole, false
	}
	p.ecn |= 1 << f.ECN
	p.have += len(f.Payload)
	if !f.More {
		p.end = end(&f)
	}
	f.Payload = bytes.Clone(f.Payload)
	p.pieces = slices.Insert(p.pieces, at, f)
	if p.have == p.end { // there are no overlaps, so there are no holes
		whole = p.whole()
		a.open = slices.Delete(a.open, i, i+1)
		return whole, true
	}
	a.limit(f.Src)
	return whole, false
}

// fits reports whether f, which belongs in front of pieces[at], contradicts nothing that has come.
func (p *packet) fits(f *piece, at int) bool {
	n := len(p.pieces)
	switch ecn := p.ecn | 1<<f.ECN; {
	case at > 0 && end(&p.pieces[at-1]) > f.Offset, at < n && end(f) > p.pieces[at].Offset:
		return false // an overlap (RFC 5722, RFC 8200 section 4.5)
	case p.end > 0 && end(f) > p.end, !f.More && at < n:
		return false // something behind the end, another one too
	case ecn&(1<<rawio.NotECT) != 0 && ecn&(1<<rawio.CE) != 0:
		return false // RFC 3168 section 5.3
	}
	return n < maxPieces
}

// whole joins the pieces.
func (p *packet) whole() iphdr.Packet {
	w := p.pieces[0] // whose header counts (RFC 8200 section 4.5)
	b := make([]byte, 0, p.end)
	for i := range p.pieces {
		b = append(b, p.pieces[i].Payload...)
	}
	if p.ecn&(1<<rawio.CE) != 0 {
		w.ECN = rawio.CE
	}
	return iphdr.Packet{Src: w.Src, Dst: w.Dst, Proto: w.Proto, ECN: w.ECN, Payload: b}
}

// expire drops what has waited for too long.
func (a *Assembler) expire(now rawio.Time) {
	n := 0
	for n < len(a.open) && now.Sub(a.open[n].first) >= Timeout {
		a.Stats.Late += uint64(len(a.open[n].pieces))
		n++
	}
	a.open = slices.Delete(a.open, 0, n)
}

// limit drops the oldest packets, as long as all or those of one source count for too many octets.
func (a *Assembler) limit(src netip.Addr) {
	all, own := 0, 0
	for i := range a.open {
		c := a.open[i].cost()
		all += c
		if a.open[i].src == src {
			own += c
		}
	}
	a.open = slices.DeleteFunc(a.open, func(p packet) bool {
		if all <= MaxOctets && (own <= MaxSource || p.src != src) {
			return false
		}
		c := p.cost()
		all -= c
		if p.src == src {
			own -= c
		}
		a.Stats.Full += uint64(len(p.pieces))
		return true
	})
}
