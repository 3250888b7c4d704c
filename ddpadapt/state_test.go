package ddpadapt

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// deliverAll lets all that e has to send arrive, and its acknowledgement come back.
func (e *end) deliverAll() {
	for list := e.pullPackets(); len(list) > 0 || len(e.flight) > 0; list = e.pullPackets() {
		for _, p := range e.flight {
			p.arrived = true
		}
		e.ackArrived()
	}
}

// injectForeign lets a chunk of another protocol arrive, of the peer's next number.
func (e *end) injectForeign() { e.injectMessage(0, 99, wire.FlagU, []byte{0, 1, 0, 0}) }

// bringInto brings a session on stream 0 into a state, by messages and calls. handed says whether
// what it says at first has been handed over, where there is the choice.
func bringInto(b *end, st sessionState, handed bool) *Session {
	call := func() *Session {
		s, _ := b.Open(0, 0, b.newStream(4).Stream, nil)
		return s
	}
	ask := func() *Session {
		b.injectLines(0, "0 initiate")
		return b.sessionOn(0)
	}
	said := func() {
		if handed {
			b.pullPackets()
		}
	}
	opened := func() *Session {
		s := ask()
		s.Accept(0, b.newStream(4).Stream, nil)
		if said(); handed {
			b.deliverAll()
		}
		return s
	}
	var s *Session
	switch st {
	case stateInitiateQueued:
		s = call()
	case stateInitiateSent, stateCanceled:
		s = call()
		b.pullPackets()
		if st == stateCanceled {
			s.Abort()
		}
	case stateInitiateReceived:
		s = ask()
	case stateOpen:
		s = opened()
	case stateClosing:
		s = opened()
		s.Terminate(0)
		said()
	case statePeerClosed:
		s = opened()
		b.injectLines(0, "1 terminate")
	case stateBothClosing:
		s = opened()
		b.injectLines(0, "1 terminate")
		s.Terminate(0)
		said()
	case stateEnding:
		s = opened()
		s.Abort()
		said()
	case stateCounting:
		s = opened()
		b.injectForeign()
		said()
	case stateDone, stateReused, stateEnded:
		s = ask()
		s.Reject(0, nil)
		said()
		if st == stateReused {
			b.injectLines(0, "0 initiate")
		} else if st == stateEnded {
			b.deliverAll()
		}
	case stateRejecting:
		b.injectLines(0, "0 segment x")
		s = b.sessionOn(0)
		said()
	}
	return s
}

// What the table has not is a contradiction, which ends the association and says where it was seen.
// (What the table has, TestConductIsAsWrittenDown plays.)
func TestATriggerThatAStateDoesNotHaveIsAContradiction(t *testing.T) {
	for st := stateInitiateQueued; st < numStates; st++ {
		for by := trigger(0); by < numTriggers; by++ {
			if transitions[st][by] != stateNone {
				continue
			}
			_, b := newPair(t)
			s := bringInto(b, st, true)
			must.That(t, s != nil && s.state == st, "in state %v, not %v", s.state, st)
			restore := invariant.TolerateInTest()
			ok := s.changeState(by, nil)
			restore()
			err := b.a.broken
			check.That(t, !ok && s.state == st && err != nil && err.Where == "ddpadapt.Session.changeState" &&
				strings.HasPrefix(err.What, fmt.Sprintf("%q in state %q; stream 0", by, st)),
				"%v in state %v: it goes to %v, and breaks the association: %v", by, st, s.state, err)
		}
	}
}

// The table in the package comment is the one that the code goes by.
func TestTableIsThatOfTheComment(t *testing.T) {
	for st := stateInitiateQueued; st < numStates; st++ {
		var list []string
		for by, to := range transitions[st] {
			if to != stateNone {
				list = append(list, fmt.Sprintf("%v: %v", trigger(by), to))
			}
		}
		check.Documented(t, strings.TrimRight(fmt.Sprintf("\t%-17s %s", st, strings.Join(list, ", ")), " ")+"\n")
	}
}

// Each way in which a session can end has an error that no other has.
func TestEverySessionEndHasAnErrorOfItsOwn(t *testing.T) {
	down := errors.New("of the association")
	byPeer := func(err error) bool {
		var e *llp.TerminatedError
		return errors.As(err, &e) && e.ByPeer && e.Cause == nil
	}
	broken := func(err error) bool {
		var e *SequenceError
		return errors.As(err, new(*llp.TerminatedError)) && errors.As(err, &e) && e.Fault == FaultControl
	}
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	ends := []struct {
		name  string
		from  sessionState
		match func(error) bool
		drive func(b *end, s *Session)
	}{
		{"both sides are done", statePeerClosed, func(err error) bool { return err == nil }, func(b *end, s *Session) { s.Terminate(0) }},
		{"the peer rejects", stateInitiateSent, func(err error) bool { return errors.As(err, new(*llp.RejectedError)) }, func(b *end, _ *Session) { b.injectLines(0, "0 reject") }},
		{"the peer ends it in place of an answer", stateInitiateSent, byPeer, func(b *end, _ *Session) { b.injectLines(0, "0 terminate") }},
		{"the peer breaks the sequence", stateOpen, broken, func(b *end, _ *Session) { b.injectLines(0, "1 initiate", "2 terminate") }},
		{"the peer restarts", stateOpen, is(ErrRestarted), func(b *end, _ *Session) {
			b.a.life++
			b.HandleEvent(0, assoc.Event{Kind: assoc.EventRestart})
		}},
		{"the association ends", stateOpen, is(down), func(b *end, _ *Session) { b.HandleEvent(0, assoc.Event{Kind: assoc.EventDown, Err: down}) }},
	}
	for i, end := range ends {
		t.Run(end.name, func(t *testing.T) {
			_, b := newPair(t)
			s := bringInto(b, end.from, true)
			end.drive(b, s)
			b.deliverAll()
			must.Equal(t, "state", s.State(), Ended)
			for j, other := range ends {
				check.That(t, other.match(s.Err()) == (i == j), "%v taken for %q: %v", s.Err(), other.name, i != j)
			}
		})
	}
}
