package sctp

import (
	"encoding/binary"
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
)

// lookupConns finds the association of each of n packets, without waiting. A packet that has none,
// or is only claimed by one, is left for resolveDeferred: earlier packets may change that. None is
// looked at for it.
func (r *receiver) lookupConns(n int) {
	t, pkts := r.t, r.pkts[:n]
	r.indexChanged = false
	var last endpoint.LookupState
	expects := t.manyAssocs.Load() && n > 1
	if expects {
		t.ep.PrefetchLookup(pkts, r.hashes[:n])
	}
	for i := range pkts {
		if expects {
			last.Hash = r.hashes[i]
		}
		switch a, ok := t.ep.LookupNext(&pkts[i], &last); {
		case !ok:
			t.stats.rxDropped.Add(1)
			pkts[i].Release()
		case a == nil || last.ByClaim:
			r.deferLookup(i)
		default:
			r.conns[i] = connOf(a)
		}
	}
}

// deferLookup leaves the i-th packet to be looked up again when it comes to it.
func (r *receiver) deferLookup(i int) {
	r.conns[i], r.isDeferred[i] = nil, true
	r.numDeferred++
}

// firstDeferred returns the first deferred packet between the i-th and the n-th that may be for an
// association. Those behind it wait until its association is known. It returns n if there is none.
func (r *receiver) firstDeferred(c *Conn, i, n int) int {
	for ; r.numDeferred > 0 && i < n; i++ {
		if r.isDeferred[i] && c.matchesPorts(&r.pkts[i]) {
			return i
		}
	}
	return n
}

// matchesPorts says whether a packet is for the two ports of an association.
func (c *Conn) matchesPorts(p *rawio.Packet) bool {
	return binary.BigEndian.Uint32(p.Data) == uint32(c.core.PeerPort())<<16|uint32(c.core.LocalPort())
}

// dropEndedConn defers the look-up of the packets from the i-th to the n-th that were for c: it has
// ended.
func (r *receiver) dropEndedConn(c *Conn, i, n int) {
	r.lastConn = c
	r.releaseConn(false)
	r.t.removeFromIndex(c)
	for r.indexChanged = true; i < n; i++ {
		if r.conns[i] == c {
			r.deferLookup(i)
		}
	}
}

// removeFromIndex makes an ended association unfindable. The rest of the clean-up may wait for its
// owner.
func (t *Transport) removeFromIndex(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ep.Remove(t.now(), &c.core)
}

// resolveDeferred finds the association of the i-th packet, which was deferred, now that those
// before it are handled. A packet without one gets the endpoint's answer. A valid COOKIE ECHO makes
// a new association.
func (r *receiver) resolveDeferred(i int) {
	r.isDeferred[i] = false
	r.numDeferred--
	if r.holdsLock { // the tables are locked before any association lock, and its events may be about them
		if r.lastConn.core.HasEvents() {
			r.releaseConn(false)
		} else {
			r.lastConn.releaseLock()
			r.holdsLock = false
		}
	}
	p := &r.pkts[i]
	if r.indexChanged {
		switch a, ok := r.t.ep.Lookup(p); {
		case !ok:
			r.t.stats.rxDropped.Add(1)
			p.Release()
			return
		case a != nil:
			r.conns[i] = connOf(a)
			return
		}
	}
	r.repliesPending = true
	r.conns[i] = r.t.handleUnmatched(r.arrivedAt, p)
}

// connFor returns the association of the i-th of n packets, nil if it was handled or has none. It
// resolves a deferred packet now.
func (r *receiver) connFor(i, n int) *Conn {
	r.prefetchConns(i, n)
	if r.isDeferred[i] {
		r.resolveDeferred(i)
	}
	return r.conns[i]
}

// finishBatch is the end of dispatchBatch: it sends the endpoint's answers, and gives n packets
// back.
func (r *receiver) finishBatch(n int) {
	if r.repliesPending {
		r.repliesPending = false
		r.t.sendEndpointReplies(r.arrivedAt)
	}
	rawio.ReleaseAll(r.pkts[:n])
}

// sendEndpointReplies sends the endpoint's answers, and logs which limits it has reached.
func (t *Transport) sendEndpointReplies(now rawio.Time) {
	t.setup.mu.Lock()
	t.transmitReplies(now)
	before, after := t.setup.reportedStats, t.ep.Stats()
	full, nowFull := t.setup.reportedRefused, t.stats.acceptRefused.Load()
	t.setup.reportedStats, t.setup.reportedRefused = after, nowFull
	t.setup.mu.Unlock()
	if nowFull > full {
		t.eventLog.logLimit(limitAccept, nowFull)
	}
	if after.AssocsRefused-before.AssocsRefused > nowFull-full {
		t.eventLog.logLimit(limitAssocs, after.AssocsRefused)
	}
	if after.OverBudget > before.OverBudget {
		t.eventLog.logLimit(limitSetups, after.OverBudget)
	}
	if after.RateLimited > before.RateLimited {
		t.eventLog.logLimit(limitAnswers, after.RateLimited)
	}
}

// redeliverPackets handles packets that came for an association after its end. Each goes to what
// there is now.
func (t *Transport) redeliverPackets(c *Conn, pkts []rawio.Packet) {
	t.removeFromIndex(c)
	r := receiver{t: t, isRedelivery: true}
	for len(pkts) > 0 {
		r.setPackets(pkts[:min(rxBatchPackets, len(pkts))])
		r.dispatchBatch(len(r.pkts))
		r.releaseConn(false)
		pkts = pkts[len(r.pkts):]
	}
	if r.mustSendCoalesced {
		t.sendCoalesced()
	}
}

// handleUnmatched handles a packet that belonged to no association a moment ago, or sets one up.
// The tables are locked for reading, and exclusively only while a new association enters.
func (t *Transport) handleUnmatched(now rawio.Time, p *rawio.Packet) *Conn {
	t.setup.mu.Lock()
	defer t.setup.mu.Unlock()
	var s endpoint.UnmatchedPacket
	if !t.ep.Screen(now, p, &s) {
		return nil
	}
	t.mu.RLock()
	if a := t.ep.Find(&s); a != nil {
		t.mu.RUnlock()
		return connOf(a)
	}
	t.mu.RUnlock()
	if !t.ep.Answer(now, &s) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.setup.adopt = func(a *assoc.Assoc) {
		l := t.listenerOf(a.LocalPort(), a.LocalAddr().Addr())
		c := newConn(t, a, l.cfg)
		c.origin.listener, c.origin.hasAcceptSlot = l, l.queuesForAccept()
		c.origin.peerAddr, c.origin.boundAddrs = t.setup.slotAddr, l.cfg.boundAt()
		t.addConn(c, a.PeerAddr().Addr())
		t.addPortUser(a.LocalPort(), l.cfg.bindAddrs())
	}
	a, _ := t.ep.MakeAssoc(now, &s)
	t.setup.adopt = nil
	if a == nil {
		return nil
	}
	return connOf(a)
}

// reserveAcceptSlot takes a place at a listener for one more association with the host at peer, and
// says whether it had one. Called with setup.mu and mu held.
func (t *Transport) reserveAcceptSlot(local netip.AddrPort, peer netip.Addr) bool {
	l := t.listenerOf(local.Port(), local.Addr())
	t.setup.slotAddr = peer
	if !l.queuesForAccept() || l.slots.TryAcquire(peer, 1) {
		return true
	}
	t.stats.acceptRefused.Add(1)
	return false
}
