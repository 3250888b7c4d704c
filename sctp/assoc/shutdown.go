package assoc

import (
	"errors"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// shutdownState is what SHUTDOWN-SENT and SHUTDOWN-ACK-SENT have in common: SHUTDOWN or SHUTDOWN
// ACK waits for its answer.
type shutdownState struct {
	path        *path      // where SHUTDOWN or SHUTDOWN ACK goes
	sendDue     bool       // it waits to be sent
	t2ExpiresAt rawio.Time // T2-shutdown
	t5ExpiresAt rawio.Time // T5-shutdown-guard
}

type (
	// shutdownSent is what exists in SHUTDOWN-SENT.
	shutdownSent struct{ shutdownState }
	// shutdownAckSent is what exists in SHUTDOWN-ACK-SENT. T5-shutdown-guard runs if it ran before.
	shutdownAckSent struct{ shutdownState }
)

// Shutdown starts a graceful shutdown: queued data is still delivered, then the association ends
// with ErrShutdown (section 9.2). It is a no-op when one is under way. It fails with ErrNotUp
// before EventUp and ErrClosing after EventDown.
func (a *Assoc) Shutdown(now rawio.Time) error {
	switch {
	case setupStates.has(a.state):
		return ErrNotUp
	case a.state == Closed:
		return ErrClosing
	case a.state == Established:
		a.changeState(onShutdown, nil)
		a.sender().SetSackNow(true)
		a.advanceShutdown(now)
	}
	return nil
}

// advanceShutdown takes the steps that wait for all data to be acknowledged.
func (a *Assoc) advanceShutdown(now rawio.Time) {
	if a.freezesReceiving() {
		return // what the peer has sent cannot be put in order yet
	}
	switch a.state {
	case ShutdownPending:
		if a.sender().Idle(now) && !a.endIfInconsistent() {
			a.sendShutdown(now)
		}
	case ShutdownReceived:
		if a.sender().Idle(now) && !a.endIfInconsistent() {
			a.sendShutdownAck(now, onDrained)
		}
	}
}

// sendShutdown enters SHUTDOWN-SENT: all own data is acknowledged.
func (a *Assoc) sendShutdown(now rawio.Time) {
	a.changeState(onDrained, &shutdownSent{shutdownState{path: a.dataPath(), sendDue: true,
		t5ExpiresAt: now.Add(5 * a.cfg.RTOMax)}})
	a.health.errorCount = 0
	a.stopAskingForResets()
	a.startT2(now)
}

// sendShutdownAck enters SHUTDOWN-ACK-SENT: the peer shuts down and all own data is acknowledged.
func (a *Assoc) sendShutdownAck(now rawio.Time, by trigger) {
	s := a.shutdownState()
	if s == nil {
		s = &shutdownState{path: a.dataPath(), t5ExpiresAt: rawio.Never}
	}
	s.sendDue = true
	a.changeState(by, &shutdownAckSent{*s})
	a.health.errorCount = 0
	a.stopAskingForResets()
	a.startT2(now)
}

// startT2 starts T2-shutdown afresh.
func (a *Assoc) startT2(now rawio.Time) {
	a.shutdownState().t2ExpiresAt = now.Add(a.shutdownState().path.RTO())
}

// handleT5Timeout handles the expiry of T5-shutdown-guard (section 9.2).
func (a *Assoc) handleT5Timeout(rawio.Time) {
	a.queueAbort(refusal{code: wire.CauseProtocolViolation, info: []byte("shutdown takes too long")})
	a.endAssoc(onEnd, ErrShutdownTimeout)
}

// handleT2Timeout handles the expiry of T2-shutdown (section 9.2).
func (a *Assoc) handleT2Timeout(now rawio.Time) {
	p := a.shutdownState().path
	p.Backoff()
	a.countPathError(now, p, true)
	if a.state != Closed {
		a.shutdownState().path, a.shutdownState().sendDue = a.paths[a.sender().Alternate(&p.Path).Index()], true
		a.startT2(now)
	}
}

// appendShutdown adds SHUTDOWN or SHUTDOWN ACK to the open packet. SHUTDOWN acknowledges what came
// in sequence. Gaps and duplicates need a SACK with it.
func (a *Assoc) appendShutdown(now rawio.Time, out *TxBatch) {
	a.shutdownState().sendDue = false
	if a.state == ShutdownAckSent {
		out.Commit(wire.AppendShutdownAck(out.Tail()))
		return
	}
	out.Commit(wire.AppendShutdown(out.Tail(), a.recv.CumTSN()))
	if a.recv.HasGaps() || a.recv.HasDups() {
		a.appendSack(out)
	} else {
		a.recv.NoteCumAckSent()
	}
}

// handleShutdown takes the peer's SHUTDOWN.
func (a *Assoc) handleShutdown(now rawio.Time, c wire.Chunk) {
	s, err := wire.AsShutdown(c)
	if err != nil {
		a.rareCounters().Malformed++
		return
	}
	switch a.state {
	case Established, ShutdownPending, ShutdownReceived:
		if !a.requireAllReceived() {
			return
		}
		res, err := a.sender().HandleCumAck(now, s.CumTSN())
		if err != nil && a.isAckAcrossRestart(s.CumTSN()) {
			return
		}
		if err != nil {
			a.abortForViolation(err)
			return
		}
		a.handleNewlyAcked(now, res)
		if a.state != ShutdownReceived {
			a.changeState(onPeerShutdown, nil) // progress goes on from here
			a.events.push(Event{Kind: EventPeerShutdown})
		}
	case ShutdownSent:
		if a.requireAllReceived() {
			a.sendShutdownAck(now, onPeerShutdown)
		}
	case ShutdownAckSent:
		a.shutdownState().sendDue = true // our SHUTDOWN ACK was lost
	default:
		a.rareCounters().Unexpected++
	}
}

var errDataMissing = errors.New("shutdown although DATA is missing")

// requireAllReceived says whether everything that the peer has sent is here, when its SHUTDOWN or
// SHUTDOWN ACK says so. The peer sends neither before all of its DATA is acknowledged, however late
// the packet comes (section 9.2). Otherwise it has broken the protocol. An end that looks graceful
// would hide from readers that messages are lost. A peer that may give messages up has given up
// what is missing (RFC 3758 section 3.5).
func (a *Assoc) requireAllReceived() bool {
	a.sender() // it rests no longer
	if !a.recv.HasMissing() {
		return true
	}
	if a.peerSendsForwardTSN() { // what is missing it has given up: what says so may be lost
		a.recv.GiveUpMissing()
		return true
	}
	a.rareCounters().Violations++
	why := violationCause(errDataMissing)
	a.queueAbort(why)
	a.endAssoc(onEnd, &AbortError{Missing: true, Causes: []Cause{{Code: why.code, Info: why.info}}})
	return false
}

// handleShutdownAck completes a shutdown on the side that sent SHUTDOWN.
func (a *Assoc) handleShutdownAck(in *inbound, c wire.Chunk) {
	if _, err := wire.AsShutdownAck(c); err != nil || (a.state != ShutdownSent && a.state != ShutdownAckSent) {
		a.rareCounters().Unexpected++
		return
	}
	if !a.requireAllReceived() {
		return
	}
	if b, ok := a.outbox.openPacket(); ok {
		p, local := a.replyPath(in)
		a.outbox.queuePacket(a.finalPacket(p, local), wire.AppendShutdownComplete(b, false))
	}
	a.endAssoc(onShutdownAck, ErrShutdown)
}

// handleShutdownComplete ends the association on the other side. In other states it is ignored.
func (a *Assoc) handleShutdownComplete() {
	if a.state == ShutdownAckSent {
		a.endAssoc(onComplete, ErrShutdown)
		return
	}
	a.rareCounters().Unexpected++
}
