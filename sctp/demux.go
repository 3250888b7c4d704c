package sctp

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
)

// lookup finds the association of each packet, and waits for nobody; hashes is room for its own use. A packet without one gets the endpoint's answer; a
// valid COOKIE ECHO makes a new association. None is looked at for it.
func (t *Transport) lookup(now rawio.Time, pkts []rawio.Packet, conns []*Conn, hashes []uint64) {
	unmatched := false
	var last endpoint.Before
	expects := t.crowd.Load() && len(pkts) > 1
	if expects {
		t.ep.Expect(pkts, hashes)
	}
	for i := range pkts {
		if expects {
			last.Hash = hashes[i]
		}
		switch a, ok := t.ep.LookupNext(&pkts[i], &last); {
		case !ok:
			t.stats.rxDropped.Add(1)
			pkts[i].Release()
		case a == nil:
			unmatched = true
		default:
			conns[i] = connOf(a)
		}
	}
	if !unmatched {
		return
	}
	t.setup.Lock()
	before := t.ep.Stats()
	for i := range pkts {
		if conns[i] == nil && pkts[i].Data != nil {
			conns[i] = t.unmatched(now, &pkts[i])
		}
	}
	t.transmitReplies(now)
	after := t.ep.Stats()
	t.setup.Unlock()
	if after.AssocsRefused > before.AssocsRefused {
		t.journal.reached(limitAssocs, after.AssocsRefused)
	}
	if after.OverBudget > before.OverBudget {
		t.journal.reached(limitSetups, after.OverBudget)
	}
	if after.RateLimited > before.RateLimited {
		t.journal.reached(limitAnswers, after.RateLimited)
	}
}

// unmatched handles a packet that belonged to no association a moment ago, or sets one up. The tables are locked for
// a look, and alone for the moment in which there is a new association. Called with setup held.
func (t *Transport) unmatched(now rawio.Time, p *rawio.Packet) *Conn {
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
		l := t.listenerOf(a)
		c := newConn(t, a, l.cfg)
		c.listener = l
		t.enter(c, a.PeerAddr().Addr())
		t.ports[a.LocalPort()]++
	}
	a, _ := t.ep.Make(now, &s)
	t.adopt = nil
	if a == nil {
		return nil
	}
	return a.Owner.(*Conn)
}
