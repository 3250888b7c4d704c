package attack

import (
	"errors"

	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/test/simulation"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// victimConn is one association of the victim's, with the sessions on it.
type victimConn struct {
	s        *Simulation
	a        *assoc.Assoc
	mux      *ddpadapt.Mux
	gone     bool
	worked   uint64      // steps when it was looked at last
	closing  []*victimQP // whose peer has ended its half
	flushing []*victimQP
}

func (s *Simulation) adoptAssoc(a *assoc.Assoc, initiator bool) *victimConn {
	h := &victimConn{s: s, a: a, mux: ddpadapt.NewMux(a, ddpadapt.Config{Initiator: initiator, MaxPending: 8})}
	a.Owner = h
	a.SetUpper(h.mux, h.mux)
	s.stats.Associations++
	if a.LocalPort() == sealedPort {
		s.path.keys.Attach(s.victim, h)
	}
	return h
}

var _ simulation.Conn = (*victimConn)(nil)

// Assoc implements simulation.Conn.
func (h *victimConn) Assoc() *assoc.Assoc { return h.a }

// Gone implements simulation.Conn.
func (h *victimConn) Gone() bool { return h.gone }

// Pump implements simulation.Conn.
func (h *victimConn) Pump() {
	now := h.s.victim.Time()
	for rounds := 0; ; rounds++ {
		for {
			ev, ok := h.a.PollEvent()
			if !ok {
				break
			}
			h.handleEvent(ev)
		}
		left := h.mux.HandleReceived(now)
		for _, q := range h.closing {
			q.core.Close()
		}
		h.closing = h.closing[:0]
		busy := false
		for {
			ev, ok := h.mux.PollEvent()
			if !ok {
				break
			}
			busy = true
			h.handleSession(ev)
		}
		more := h.s.victim.Transmit(h.a) || left
		flushing := h.flushing
		for h.flushing = nil; len(flushing) > 0; flushing = flushing[1:] {
			flushing[0].core.Flush()
		}
		more = more || len(h.flushing) > 0
		if rounds > 1000 {
			h.s.recordFailure("one packet keeps an association busy for %d rounds", rounds)
			return
		}
		if !busy && !more {
			h.s.checkWork(h, &h.worked)
			h.s.victim.Settled(h)
			return
		}
	}
}

func (h *victimConn) handleEvent(ev assoc.Event) {
	switch ev.Kind {
	case assoc.EventRestart:
		if h.a.LocalPort() == sealedPort {
			h.s.recordFailure("the friend's association is restarted")
		}
		h.s.stats.Restarts++
		h.s.victim.EP.Refresh(h.a)
	case assoc.EventUp, assoc.EventPathUp, assoc.EventPathDown:
		h.s.victim.EP.Refresh(h.a)
	case assoc.EventDown:
		h.gone = true
		h.s.stats.Ends++
		if err := (*assoc.InternalError)(nil); errors.As(ev.Err, &err) {
			h.s.recordFailure("%v", err)
		}
		h.s.victim.EP.Remove(h.s.victim.Time(), h.a)
	}
	h.mux.HandleEvent(h.s.victim.Time(), ev)
	if ev.Kind == assoc.EventUp && h.a.LocalPort() != sealedPort && h.s.c.One(2) { // the victim's program has a wish of its own
		q := h.s.newQueue(h)
		if q == nil {
			return
		}
		s, err := h.mux.Open(h.s.victim.Time(), -1, q.core.Stream(), []byte("let me in"))
		if err != nil {
			q.releaseAll()
			return
		}
		q.session, s.Owner = s, q
	}
}

func (h *victimConn) handleSession(ev ddpadapt.Event) {
	if ev.Session == nil {
		return
	}
	q, _ := ev.Session.Owner.(*victimQP)
	switch ev.Kind {
	case ddpadapt.EventInitiate:
		if h.a.LocalPort() == sealedPort {
			h.s.recordFailure("a session that nobody has asked for on the friend's association")
		}
		if q = h.s.newQueue(h); q == nil || h.s.c.One(8) {
			ev.Session.Reject(h.s.victim.Time(), nil) // it may be over by now
			if q != nil {
				q.releaseAll()
			}
			return
		}
		q.session, ev.Session.Owner = ev.Session, q
		if err := ev.Session.Accept(h.s.victim.Time(), q.core.Stream(), q.knownSTags()); err != nil {
			return // EventEnded, or EventDown, comes
		}
		h.s.stats.Sessions++
		q.startQP()
	case ddpadapt.EventAccepted:
		if q != nil && q.core.State() == rdmap.StateInit {
			h.s.stats.Sessions++
			q.startQP()
		}
	case ddpadapt.EventEnded, ddpadapt.EventDown:
		if q != nil {
			q.core.Ended()
			q.releaseAll()
		}
	}
}
