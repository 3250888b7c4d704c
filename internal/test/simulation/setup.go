package simulation

import (
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// sessionSetup is how a session is set up: plain, with both depths equal at both ends, or
// negotiated from what each end has (RFC 6581).
type sessionSetup struct {
	enhanced   bool
	asked, own llp.Setup // of the initiator; of the responder
}

func (w *World) newSetup() sessionSetup {
	depth := func() uint16 { return uint16(w.rand.IntN(7)) }
	if w.rand.IntN(2) == 0 {
		n := 1 + depth()
		return sessionSetup{asked: llp.Setup{IRD: n, ORD: n}, own: llp.Setup{IRD: n, ORD: n}}
	}
	s := sessionSetup{enhanced: true,
		asked: llp.Setup{IRD: depth(), ORD: depth(), RTR: llp.RTRSend | llp.RTRWrite | llp.RTRRead},
		own:   llp.Setup{IRD: depth(), ORD: depth(), RTR: llp.RTR(1 + w.rand.IntN(7))}}
	s.asked.PeerToPeer = w.rand.IntN(2) == 0
	if s.own.RTR == llp.RTRRead && (s.asked.ORD == 0 || s.own.IRD == 0) {
		s.own.RTR = llp.RTRSend // an indication that can be given
	}
	return s
}

// openSession starts the session of q.
func (c *conn) openSession(q *qp, private []byte) (s *ddpadapt.Session, err error) {
	if q.setup.enhanced {
		s, err = c.mux.OpenEnhanced(c.h.node.Time(), -1, q.core.Stream(), q.setup.asked, private)
	} else {
		s, err = c.mux.Open(c.h.node.Time(), -1, q.core.Stream(), private)
	}
	if err == nil {
		q.bindSession(c, s)
	}
	return s, err
}

// answerRequest accepts what the peer asks for, in kind.
func (q *qp) answerRequest(asked *llp.Setup, accept func(reply *llp.Setup) error) {
	var reply *llp.Setup
	if asked != nil {
		own := q.setup.own.Answer(*asked)
		reply = &own
	}
	err := accept(reply)
	if err == nil && reply != nil && q.core.State() == rdmap.StateInit { // what came early may have ended it
		err = q.core.LimitORD(int(reply.ORD))
	}
	if err != nil || (asked != nil) != q.setup.enhanced || asked != nil && *asked != q.setup.seenByResponder() {
		q.h.w.failf("%s: accept: %v, setup %+v", q.h.name, err, asked)
	}
	q.core.Start()
}

// seenByResponder is what the responder sees of what was asked.
func (s *sessionSetup) seenByResponder() llp.Setup {
	seen := s.asked
	if !seen.PeerToPeer {
		seen.RTR = 0
	}
	return seen
}

// sessionAccepted takes the answer.
func (q *qp) sessionAccepted(reply *llp.Setup) {
	if q.core.State() != rdmap.StateInit {
		return // its user has ended it meanwhile
	}
	if (reply != nil) != q.setup.enhanced {
		q.h.w.failf("%s: accepted with setup %+v", q.h.name, reply)
		return
	}
	if reply == nil {
		q.core.Start()
		return
	}
	ord, first, err := q.setup.asked.Conclude(*reply)
	if err == nil {
		err = q.core.LimitORD(int(ord))
	}
	switch {
	case err != nil:
	case first == 0:
		q.core.Start()
	default:
		q.onIndicate(first)
		err = q.core.StartRTR(map[llp.RTR]rdmap.WROpcode{llp.RTRSend: rdmap.WRSend,
			llp.RTRWrite: rdmap.WRWrite, llp.RTRRead: rdmap.WRRead}[first])
	}
	if err != nil || (first != 0) != q.setup.asked.PeerToPeer {
		q.h.w.failf("%s: %+v answered by %+v: first %d, %v", q.h.name, q.setup.asked, *reply, first, err)
	}
}

// expectIndication expects the effect of a Ready to Receive indication at the peer: a Send takes a
// receive.
func (l *workload) expectIndication(first llp.RTR) {
	if first == llp.RTRSend && l.peer.credits > 0 { // unless the peer has ended the session meanwhile
		l.expectMessage(new(message))
	}
}

// checkDepths: neither end may ask for more than the other serves.
func (l *workload) checkDepths() {
	if ord, ird := l.q.core.ORD(), l.peer.q.core.IRD(); ord > ird {
		l.w.failf("%s: ORD %d, and the peer serves %d", l.q.h.name, ord, ird)
	}
}
