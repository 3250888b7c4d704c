package sctp

import (
	"encoding/binary"
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
)

// lookup finds the association of each of n packets, and waits for nobody. What has none, or is only claimed by one, is left for seek: what those
// before it bring about may change that. None is looked at for it.
func (r *receiver) lookup(n int) {
	t, pkts := r.t, r.pkts[:n]
	r.changed = false
	var last endpoint.Before
	expects := t.crowd.Load() && n > 1
	if expects {
		t.ep.Expect(pkts, r.hashes[:n])
	}
	for i := range pkts {
		if expects {
			last.Hash = r.hashes[i]
		}
		switch a, ok := t.ep.LookupNext(&pkts[i], &last); {
		case !ok:
			t.stats.rxDropped.Add(1)
			pkts[i].Release()
		case a == nil || last.Claimed:
			r.leaveOpen(i)
		default:
			r.conns[i] = connOf(a)
		}
	}
}

// leaveOpen has the i-th packet be looked at again in its turn.
func (r *receiver) leaveOpen(i int) {
	r.conns[i], r.open[i] = nil, true
	r.opens++
}

// known returns the number of the first packet between the i-th and the n-th that may be for an association, and is not known to be: those
// behind it wait for that. It is n where there is none.
func (r *receiver) known(c *Conn, i, n int) int {
	for ; r.opens > 0 && i < n; i++ {
		if r.open[i] && c.between(&r.pkts[i]) {
			return i
		}
	}
	return n
}

// between says whether a packet is for the two ports of an association.
func (c *Conn) between(p *rawio.Packet) bool {
	return binary.BigEndian.Uint32(p.Data) == uint32(c.a.PeerPort())<<16|uint32(c.a.LocalPort())
}

// gone leaves open whose the packets from the i-th to the n-th are that were for an association: it has ended.
func (r *receiver) gone(c *Conn, i, n int) {
	r.last = c
	r.done(false)
	r.t.bury(c)
	for r.changed = true; i < n; i++ {
		if r.conns[i] == c {
			r.leaveOpen(i)
		}
	}
}

// bury has an association that has ended be found no more: what else there is to do may wait for its owner.
func (t *Transport) bury(c *Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ep.Remove(&c.a)
}

// seek finds the association of the i-th packet, which was left open, now that those before it are handled. A packet without one gets the endpoint's
// answer; a valid COOKIE ECHO makes a new association.
func (r *receiver) seek(i int) {
	r.open[i] = false
	r.opens--
	if r.owned { // the tables are locked before any gate, and what it has to tell may be about them
		if r.last.a.Eventful() {
			r.done(false)
		} else {
			r.last.disown()
			r.owned = false
		}
	}
	p := &r.pkts[i]
	if r.changed {
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
	r.sought = true
	r.conns[i] = r.t.unmatched(r.at, p)
}

// handledAll is the end of handle: it sends the endpoint's answers, and gives n packets back.
func (r *receiver) handledAll(n int) {
	if r.sought {
		r.sought = false
		r.t.answer(r.at)
	}
	rawio.ReleaseAll(r.pkts[:n])
}

// answer sends the endpoint's answers, and notes in the journal which limits it has reached.
func (t *Transport) answer(now rawio.Time) {
	t.setup.Lock()
	t.transmitReplies(now)
	before, after := t.reported, t.ep.Stats()
	full, nowFull := t.reportedFull, t.stats.acceptRefused.Load()
	t.reported, t.reportedFull = after, nowFull
	t.setup.Unlock()
	if nowFull > full {
		t.journal.reached(limitAccept, nowFull)
	}
	if after.AssocsRefused-before.AssocsRefused > nowFull-full {
		t.journal.reached(limitAssocs, after.AssocsRefused)
	}
	if after.OverBudget > before.OverBudget {
		t.journal.reached(limitSetups, after.OverBudget)
	}
	if after.RateLimited > before.RateLimited {
		t.journal.reached(limitAnswers, after.RateLimited)
	}
}

// reroute handles the packets that have come for an association behind its end, each for what there is now.
func (t *Transport) reroute(c *Conn, pkts []rawio.Packet) {
	t.bury(c)
	r := receiver{t: t, again: true}
	for len(pkts) > 0 {
		r.pkts = pkts[:min(rxBatch, len(pkts))]
		r.handle(len(r.pkts))
		r.done(false)
		pkts = pkts[len(r.pkts):]
	}
	if r.combined {
		t.sendCombined()
	}
}

// unmatched handles a packet that belonged to no association a moment ago, or sets one up. The tables are locked for
// a look, and alone for the moment in which there is a new association.
func (t *Transport) unmatched(now rawio.Time, p *rawio.Packet) *Conn {
	t.setup.Lock()
	defer t.setup.Unlock()
	var s endpoint.Stranger
	if !t.ep.Judge(now, p, &s) {
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
	t.adopt = func(a *assoc.Assoc) {
		l := t.listenerOf(a.LocalPort(), a.LocalAddr().Addr())
		c := newConn(t, a, l.cfg)
		c.listener, c.placed, c.from, c.boundAt = l, l.accepts(), t.taker, &l.cfg.LocalAddrs
		t.enter(c, a.PeerAddr().Addr())
		t.take(a.LocalPort(), l.cfg.LocalAddrs)
	}
	a, _ := t.ep.Make(now, &s)
	t.adopt = nil
	if a == nil {
		return nil
	}
	return a.Owner.(*Conn)
}

// accepts says whether a listener has a place for one more association with the host at peer, and takes it. Called with setup and mu held.
func (t *Transport) accepts(local netip.AddrPort, peer netip.Addr) bool {
	l := t.listenerOf(local.Port(), local.Addr())
	t.taker = peer
	if !l.accepts() || l.waiting.Take(peer, 1) {
		return true
	}
	t.stats.acceptRefused.Add(1)
	return false
}
