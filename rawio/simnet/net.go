package simnet

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// Buffers come in two sizes, so that a short packet does not hold a long buffer.
const (
	smallBuf    = 2048
	largeBuf    = rawio.MaxMTU
	maxIdleBufs = 1024 // buffers of each size kept for reuse
)

// Stats count what became of packets. Every packet sent, duplicated or reported is in the end
// delivered, discarded, or counted as one of the losses.
type Stats struct {
	Sent         uint64 // packets given to Send
	Delivered    uint64 // packets and reports handed out by Deliver
	Unrouted     uint64 // lost: no link between the two addresses
	Partitioned  uint64 // lost: sent or arrived during a partition
	TooBig       uint64 // lost: longer than the MTU
	QueueDropped uint64 // lost: transmit queue full
	BurstLost    uint64 // lost: Burst
	Lost         uint64 // lost: Loss
	Discarded    uint64 // lost: Discard
	Duplicated   uint64 // additional copies made
	Reordered    uint64 // packets held back by ReorderDelay
	Corrupted    uint64 // packets changed
	Reports      uint64 // KindPacketTooBig reports made
	Marked       uint64 // packets marked with CE
	Fragmented   uint64 // packets that took more than one fragment
}

type addrPair struct{ from, to netip.Addr }

// Net is a simulated network. It is not safe for concurrent use.
type Net struct {
	rand          *Rand
	separateRands bool               // each link has a generator of its own
	links         map[addrPair]*link // looked up only, never walked
	arrivals      arrivalHeap
	nextSeq       uint64
	small         *rawio.Pool
	large         *rawio.Pool
	hash          runningHash
	stats         Stats
}

// New returns an empty network. The seed decides every fault.
func New(seed uint64) *Net {
	return &Net{
		rand:  NewRand(seed),
		links: make(map[addrPair]*link),
		small: rawio.NewPool(smallBuf, maxIdleBufs),
		large: rawio.NewPool(largeBuf, maxIdleBufs),
	}
}

// Separate gives each link made from now on its own generator, which follows from the network's
// seed and the two addresses. What one link does to packets then no longer depends on the traffic
// of others.
func (n *Net) Separate() { n.separateRands = true }

// SetLink creates the link from one address to another, or changes it for packets sent from now on.
// Packets already under way, and a partition, stay as they are.
func (n *Net) SetLink(from, to netip.Addr, p Params) {
	l := n.links[addrPair{from, to}]
	if l == nil {
		l = newLink(n.randFor(from, to))
		n.links[addrPair{from, to}] = l
	}
	l.Params = p
	if p.Burst == (Burst{}) {
		l.inBadState = false
	}
}

// randFor returns the generator of a new link.
func (n *Net) randFor(from, to netip.Addr) *Rand {
	if !n.separateRands {
		return n.rand
	}
	seed := runningHash(n.rand.state)
	for _, a := range [...]netip.Addr{from, to} {
		b := a.As16()
		seed.addWord(binary.LittleEndian.Uint64(b[:8]))
		seed.addWord(binary.LittleEndian.Uint64(b[8:]))
	}
	return NewRand(uint64(seed))
}

// Connect sets the links of both directions.
func (n *Net) Connect(a, b netip.Addr, p Params) {
	n.SetLink(a, b, p)
	n.SetLink(b, a, p)
}

// Link returns the parameters of a link, and whether it exists.
func (n *Net) Link(from, to netip.Addr) (Params, bool) {
	if l := n.links[addrPair{from, to}]; l != nil {
		return l.Params, true
	}
	return Params{}, false
}

// Backlog returns how long a packet that is sent now would wait for the transmitter of a link.
func (n *Net) Backlog(now rawio.Time, from, to netip.Addr) time.Duration {
	if l := n.links[addrPair{from, to}]; l != nil {
		return max(l.transmitterFreeAt.Sub(now), 0)
	}
	return 0
}

// Partition cuts the links between two addresses, in both directions: what is sent or would arrive
// until Heal is lost. For a cut in one direction set Loss to 1.
func (n *Net) Partition(a, b netip.Addr) { n.setPartitioned(a, b, true) }

// Heal ends a partition.
func (n *Net) Heal(a, b netip.Addr) { n.setPartitioned(a, b, false) }

func (n *Net) setPartitioned(a, b netip.Addr, cut bool) {
	for _, k := range [...]addrPair{{a, b}, {b, a}} {
		if l := n.links[k]; l != nil {
			l.partitioned = cut
		}
	}
}

// Send takes a packet at time now: the octets of p.Vec, from p.Local, which must be valid, to
// p.Remote. It keeps no reference to p.
func (n *Net) Send(now rawio.Time, p *rawio.Packet) {
	pkt := n.copyPacket(p)
	n.stats.Sent++
	n.hash.addPacket(hashSend, now, &pkt)
	if !n.routePacket(now, pkt) {
		pkt.Release()
	}
}

// routePacket lets a packet meet its link and says whether it is under way.
func (n *Net) routePacket(now rawio.Time, pkt rawio.Packet) bool {
	l := n.links[addrPair{pkt.Local.Addr(), pkt.Remote.Addr()}]
	if l == nil {
		n.stats.Unrouted++
		return false
	}
	if l.partitioned {
		n.stats.Partitioned++
		return false
	}
	size := len(pkt.Data) + rawio.Overhead(pkt.Remote)
	mtu := l.MTU
	if mtu <= 0 || mtu > rawio.MaxMTU {
		mtu = rawio.MaxMTU
	}
	octets, ok := fragmentedSize(size, mtu, &pkt)
	if !ok {
		n.stats.TooBig++
		return n.reportTooBig(now, l, pkt, mtu)
	}
	if octets > size {
		n.stats.Fragmented++
	}
	left, congested, ok := l.scheduleTransmit(now, octets)
	if !ok {
		n.stats.QueueDropped++
		return false
	}
	if ect := pkt.ECN == rawio.ECT0 || pkt.ECN == rawio.ECT1; ect && (congested || drawChance(l.rand, l.Mark)) {
		pkt.ECN = rawio.CE
		n.stats.Marked++
	}
	if l.stepBurst(l.rand) {
		n.stats.BurstLost++
		return false
	}
	if drawChance(l.rand, l.Loss) {
		n.stats.Lost++
		return false
	}
	n.scheduleArrival(left, l, pkt)
	return true
}

// fragmentedSize returns the octets that a packet of size octets takes on a link, the headers of
// its fragments included. It also reports whether the link lets it pass.
func fragmentedSize(size, mtu int, pkt *rawio.Packet) (int, bool) {
	piece := size // the longest that is sent
	if pkt.Fragment > 0 {
		piece = min(size, pkt.Fragment)
	}
	ip := rawio.Overhead(netip.AddrPortFrom(pkt.Remote.Addr(), 0))
	head := ip // of a fragment
	if v6 := ip == 40; v6 {
		head += 8
		if piece > mtu {
			return 0, false
		}
	} else if piece > mtu {
		if pkt.Fragment == 0 {
			return 0, false // DF
		}
		piece = mtu // a router fragments too
	}
	if piece == size {
		return size, true
	}
	room := (piece - head) &^ 7 // of each fragment but the last
	n := (size - ip + room - 1) / room
	return size - ip + n*head, true
}

// scheduleArrival schedules the arrival of a packet that has left at the given time and is not
// lost.
func (n *Net) scheduleArrival(left rawio.Time, l *link, pkt rawio.Packet) {
	if len(pkt.Data) > 0 && drawChance(l.rand, l.Corrupt) {
		pkt.Data[l.rand.IntN(len(pkt.Data))] ^= byte(1 + l.rand.IntN(255))
		n.stats.Corrupted++
	}
	at := left.Add(l.Delay).Add(l.drawJitter(l.rand))
	if drawChance(l.rand, l.Reorder) {
		at = at.Add(l.ReorderDelay)
		n.stats.Reordered++
	} else {
		at = max(at, l.lastArrivalAt)
		l.lastArrivalAt = at
	}
	// The peer's view: what was remote is local.
	pkt.Local, pkt.Remote, pkt.Fragment = pkt.Remote, pkt.Local, 0
	n.pushArrival(at, l, pkt)
	if drawChance(l.rand, l.Duplicate) {
		pkt.Buf.Retain()
		n.pushArrival(at.Add(l.drawJitter(l.rand)), l, pkt)
		n.stats.Duplicated++
	}
}

// reportTooBig schedules a KindPacketTooBig about pkt for its sender and says whether it did.
func (n *Net) reportTooBig(now rawio.Time, l *link, pkt rawio.Packet, mtu int) bool {
	if l.Quote <= 0 {
		return false
	}
	pkt.Kind, pkt.MTU, pkt.ECN, pkt.Fragment = rawio.KindPacketTooBig, mtu, 0, 0
	pkt.Data = pkt.Data[:min(l.Quote, len(pkt.Data))]
	n.pushArrival(now.Add(l.Delay), l, pkt)
	n.stats.Reports++
	return true
}

func (n *Net) pushArrival(at rawio.Time, l *link, pkt rawio.Packet) {
	n.arrivals.push(scheduledPacket{arrivesAt: at, seq: n.nextSeq, link: l, pkt: pkt})
	n.nextSeq++
}

// NextArrival returns when the next packet arrives, or rawio.Never.
func (n *Net) NextArrival() rawio.Time {
	if len(n.arrivals) == 0 {
		return rawio.Never
	}
	return n.arrivals[0].arrivesAt
}

// Deliver returns the next packet that arrives at or before now and the address it is for. The
// order is that of arrival and, at the same time, of sending. p is as a Link would give it: Local
// is the receiver. The caller releases it. ok is false when nothing has arrived. That may be so
// even at the time that NextArrival gave: a partition takes packets until their arrival.
func (n *Net) Deliver(now rawio.Time) (to netip.Addr, p rawio.Packet, ok bool) {
	for len(n.arrivals) > 0 && n.arrivals[0].arrivesAt <= now {
		f := n.arrivals.pop()
		if f.link.partitioned {
			n.stats.Partitioned++
			f.pkt.Release()
			continue
		}
		n.stats.Delivered++
		n.hash.addPacket(hashDeliver, now, &f.pkt)
		return f.pkt.Local.Addr(), f.pkt, true
	}
	return netip.Addr{}, rawio.Packet{}, false
}

// Discard drops everything under way, as at the end of a test.
func (n *Net) Discard() {
	for len(n.arrivals) > 0 {
		f := n.arrivals.pop()
		f.pkt.Release()
		n.stats.Discarded++
	}
}

// Pending returns how many packets are under way.
func (n *Net) Pending() int { return len(n.arrivals) }

// Outstanding returns how many buffers are under way or held by receivers, so that a test can find
// a leak.
func (n *Net) Outstanding() int { return n.small.Outstanding() + n.large.Outstanding() }

// Stats returns the counters so far.
func (n *Net) Stats() Stats { return n.stats }

// Hash returns a hash over the time, addresses and contents of every packet sent and delivered so
// far. Two runs of one seed agree in it or have diverged.
func (n *Net) Hash() uint64 { return uint64(n.hash) }

// copyPacket copies a packet to transmit into a buffer of the network's own.
func (n *Net) copyPacket(p *rawio.Packet) rawio.Packet {
	size := p.Len()
	var buf *rawio.Buf
	switch {
	case size <= smallBuf:
		buf = n.small.Get()
	case size <= largeBuf:
		buf = n.large.Get()
	default: // no link takes it, but a report quotes it
		buf = rawio.NewBuf(make([]byte, size))
	}
	k := 0
	for _, v := range p.Vec {
		k += copy(buf.B[k:], v)
	}
	return rawio.Packet{Data: buf.B[:k], Buf: buf, Local: p.Local, Remote: p.Remote, ECN: p.ECN, DSCP: p.DSCP,
		FlowLabel: p.FlowLabel, Fragment: p.Fragment}
}
