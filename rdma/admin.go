package rdma

import (
	"errors"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/ddp/llp"
)

// What an administrator needs against peers that hold resources, or cost more than they should (RFC
// 5042 sections 6.4.2 and 6.4.4). It shows their addresses and what they do, and can end it.

// ErrIdle is why a QP has ended that moved nothing for Config.IdleTimeout.
var ErrIdle = errors.New("rdma: nothing was sent or received for Config.IdleTimeout; the session was ended to " +
	"reclaim its resources")

// StreamStats counts the messages of one session. OutOfOrder, Fragmented and Early count those that
// cost more than the ordinary one and end no stream. If there are many of them, the peer is at
// fault, or its network.
//
//	type StreamStats struct {
//		In, Out uint64
//		// Messages in that took a slower way than others (RFC 5042 section 6.4.4). Over TCP there are
//		// none.
//		OutOfOrder uint64 // waited for an earlier one
//		Fragmented uint64 // came in several DATA chunks and were put together first
//		Early      uint64 // came before the session was accepted and were kept
//	}
type StreamStats = llp.StreamStats

// StreamStats returns the counters of the QP's session.
func (q *QP) StreamStats() (s StreamStats, ok bool) {
	p := q.lockCore()
	defer q.unlockCore(p)
	if p == nil {
		return s, false
	}
	return q.session.Stats(), true
}

// QPs returns all QPs that have not ended, in no particular order. QP.Close ends one.
func (d *Device) QPs() []*QP {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]*QP, 0, len(d.qps))
	for q := range d.qps {
		list = append(list, q)
	}
	return list
}

// Peer is an established association or TCP connection of the Device, whichever side set it up.
type Peer struct{ p *peer }

// Peers returns the established associations and TCP connections, in no particular order.
func (d *Device) Peers() []Peer {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]Peer, 0, len(d.peers))
	for p := range d.peers {
		list = append(list, Peer{p})
	}
	return list
}

// Remote returns the peer's address and SCTP port.
func (p Peer) Remote() netip.AddrPort { return p.p.conn.remoteAddr() }

// Stats returns the counters.
func (p Peer) Stats() PeerStats { return p.p.conn.peerStats() }

// Abort ends the association and with it all its sessions, without a Terminate on each (RFC 5043
// section 11.3). The peer's stack gets reason.
func (p Peer) Abort(reason string) { p.p.conn.abortFor(reason) }

// sweepsPerTimeout is how many times in Config.IdleTimeout the QPs are looked at.
const sweepsPerTimeout = 4

// idleness is what is known of a QP that nothing has moved on.
type idleness struct {
	messagesMoved uint64 // messages, at the last look
	sweepsWithout int    // since then
}

// startIdleSweeps ends what is idle from now on, until Close.
func (d *Device) startIdleSweeps(timeout time.Duration) {
	tick := time.NewTicker(max(timeout/sweepsPerTimeout, time.Millisecond))
	go func() {
		for {
			select {
			case <-tick.C:
				d.sweepIdle()
			case <-d.closing.Done():
				return
			}
		}
	}()
}

// sweepIdle looks at every QP and association once and ends those that have been idle for long
// enough.
func (d *Device) sweepIdle() {
	for _, q := range d.QPs() {
		s, ok := q.StreamStats()
		if !ok {
			continue // not connected: it has no peer
		}
		if moved := s.In + s.Out; moved != q.idle.messagesMoved {
			q.idle = idleness{messagesMoved: moved}
		} else if q.idle.sweepsWithout++; q.idle.sweepsWithout > sweepsPerTimeout {
			d.countStat(&d.stats.IdleEnded)
			q.abortSession(ErrIdle)
			d.dropQP(q)
			q.endUse()
		}
	}
	for _, p := range d.Peers() {
		p.p.conn.sweepIdle()
	}
}
