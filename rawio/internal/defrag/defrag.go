// Package defrag reassembles IP packets from their fragments, for links that are the IP layer
// themselves. It follows RFC 791 section 3.2, RFC 1122 section 3.3.2 and RFC 8200 section 4.5.
//
//   - In: fragments, and the time.
//   - Out: whole packets.
//   - Invariant: what waits is bounded in octets and time, for each source too. Fragments that
//     overlap are never joined.
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
	// Timeout is how long after the first fragment the others have to be there (RFC 1122 section
	// 3.3.2, RFC 8200 section 4.5). It is checked when a fragment comes.
	Timeout = 60 * time.Second
	// MaxOctets is what all packets that wait count for at most, MaxOctetsPerSource those of one
	// source. Beyond that the oldest is given up.
	MaxOctets          = 4 << 20
	MaxOctetsPerSource = 1 << 20

	// A packet that waits counts for its octets plus fragmentCost for each fragment, and at least
	// minPacketCost. So there are 512 at most, 128 of one source: few enough for a linear search.
	minPacketCost = 8 << 10
	fragmentCost  = 256
	// maxFragments is how many fragments a packet may have: the largest has 119 at an MTU of 576.
	maxFragments = 128
)

// Stats counts fragments that were dropped.
type Stats struct {
	Bad  uint64 // they overlap, do not fit together, or belong to such a packet
	Late uint64 // the others did not come in time
	Full uint64 // given up for newer ones
}

// Assembler holds the fragments of packets that are not complete. Its zero value is ready.
type Assembler struct {
	Stats      Stats
	incomplete []partialPacket // the oldest first
}

// partialPacket is what has come of an IP packet.
type partialPacket struct {
	src, dst       netip.Addr
	id             uint32
	totalOctets    int        // octets of the whole packet, 0 while its last fragment is missing
	receivedOctets int        // octets in fragments
	fragments      []fragment // by offset, without overlaps
	firstAt        rawio.Time // when the first of them came
	ecnSeen        uint8      // a bit for each codepoint seen
	invalid        bool       // what comes of it is dropped (RFC 5722 section 4)
}

// fragment is a fragment that waits. Of the Payload it has a copy.
type fragment = iphdr.Packet

func fragmentEnd(p *fragment) int { return p.Offset + len(p.Payload) }

func (p *partialPacket) memoryCost() int {
	return max(minPacketCost, p.receivedOctets+fragmentCost*len(p.fragments))
}

// Add takes a fragment for which iphdr.Parse has returned iphdr.ErrFragment, and copies what it
// keeps. IPv4 fragments are all of one protocol, so addresses and identification tell packets
// apart. When f completes a packet, whole is what Parse would have returned of it, but without
// Header. The IPv6 extension headers behind the fragment header are still in front of the Payload.
func (a *Assembler) Add(now rawio.Time, f iphdr.Packet) (whole iphdr.Packet, ok bool) {
	a.dropExpired(now)
	i := slices.IndexFunc(a.incomplete, func(p partialPacket) bool {
		return p.id == f.ID && p.src == f.Src && p.dst == f.Dst
	})
	if i < 0 {
		i = len(a.incomplete)
		a.incomplete = append(a.incomplete, partialPacket{src: f.Src, dst: f.Dst, id: f.ID, firstAt: now})
	}
	p := &a.incomplete[i]
	at, found := slices.BinarySearchFunc(p.fragments, f.Offset, func(q fragment, off int) int {
		return cmp.Compare(q.Offset, off)
	})
	switch {
	case p.invalid:
		a.Stats.Bad++
		return whole, false
	case found && p.fragments[at].MoreFragments == f.MoreFragments && bytes.Equal(p.fragments[at].Payload, f.Payload):
		return whole, false // a duplicate
	case !p.isConsistentAt(&f, at):
		a.Stats.Bad += 1 + uint64(len(p.fragments))
		*p = partialPacket{src: p.src, dst: p.dst, id: p.id, firstAt: p.firstAt, invalid: true}
		return whole, false
	}
	p.ecnSeen |= 1 << f.ECN
	p.receivedOctets += len(f.Payload)
	if !f.MoreFragments {
		p.totalOctets = fragmentEnd(&f)
	}
	f.Payload = bytes.Clone(f.Payload)
	p.fragments = slices.Insert(p.fragments, at, f)
	if p.receivedOctets == p.totalOctets { // there are no overlaps, so there are no holes
		whole = p.joinFragments()
		a.incomplete = slices.Delete(a.incomplete, i, i+1)
		return whole, true
	}
	a.enforceLimits(f.Src)
	return whole, false
}

// isConsistentAt reports whether f, which belongs in front of fragments[at], contradicts nothing
// that has come.
func (p *partialPacket) isConsistentAt(f *fragment, at int) bool {
	n := len(p.fragments)
	switch ecn := p.ecnSeen | 1<<f.ECN; {
	case at > 0 && fragmentEnd(&p.fragments[at-1]) > f.Offset, at < n && fragmentEnd(f) > p.fragments[at].Offset:
		return false // an overlap (RFC 5722, RFC 8200 section 4.5)
	case p.totalOctets > 0 && fragmentEnd(f) > p.totalOctets, !f.MoreFragments && at < n:
		return false // something behind the end, another one too
	case ecn&(1<<rawio.NotECT) != 0 && ecn&(1<<rawio.CE) != 0:
		return false // RFC 3168 section 5.3
	}
	return n < maxFragments
}

// joinFragments joins the fragments.
func (p *partialPacket) joinFragments() iphdr.Packet {
	w := p.fragments[0] // whose header counts (RFC 8200 section 4.5)
	b := make([]byte, 0, p.totalOctets)
	for i := range p.fragments {
		b = append(b, p.fragments[i].Payload...)
	}
	if p.ecnSeen&(1<<rawio.CE) != 0 {
		w.ECN = rawio.CE
	}
	return iphdr.Packet{Src: w.Src, Dst: w.Dst, Proto: w.Proto, ECN: w.ECN, Payload: b}
}

// dropExpired drops what has waited for too long.
func (a *Assembler) dropExpired(now rawio.Time) {
	n := 0
	for n < len(a.incomplete) && now.Sub(a.incomplete[n].firstAt) >= Timeout {
		a.Stats.Late += uint64(len(a.incomplete[n].fragments))
		n++
	}
	a.incomplete = slices.Delete(a.incomplete, 0, n)
}

// enforceLimits drops the oldest packets, as long as all or those of one source count for too many
// octets.
func (a *Assembler) enforceLimits(src netip.Addr) {
	all, own := 0, 0
	for i := range a.incomplete {
		c := a.incomplete[i].memoryCost()
		all += c
		if a.incomplete[i].src == src {
			own += c
		}
	}
	a.incomplete = slices.DeleteFunc(a.incomplete, func(p partialPacket) bool {
		if all <= MaxOctets && (own <= MaxOctetsPerSource || p.src != src) {
			return false
		}
		c := p.memoryCost()
		all -= c
		if p.src == src {
			own -= c
		}
		a.Stats.Full += uint64(len(p.fragments))
		return true
	})
}
