package assoc

import (
	"errors"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// closing is what exists in SHUTDOWN-SENT and SHUTDOWN-ACK-SENT only.
type closing struct {
	path  *path      // where SHUTDOWN or SHUTDOWN ACK goes
	due   bool       // it waits to be sent
	t2    rawio.Time // T2-shutdown
	guard rawio.Time // T5-shutdown-guard
}

// Shutdown starts a graceful shutdown: queued data is still delivered, then the association ends with
// ErrShutdown (section 9.2). It is a no-op when one is under way, and fails with ErrNotUp before
// EventUp and ErrClosing after EventDown.
func (a *Assoc) Shutdown(now rawio.Time) error {
	switch {
	case setupStates.has(a.state):
		return ErrNotUp
	case a.state == Closed:
		return ErrClosing
	case a.state == Established:
		a.enter(onShutdown)
		a.sender().SetSackNow(true)
		a.progress(now)
	}
	return nil
}

// sendShutdown enters SHUTDOWN-SENT: all own data is acknowledged.
func (a *Assoc) sendShutdown(now rawio.Time) {
	a.enter(onDrained)
	a.errors = 0
	a.closing = &closing{path: a.dataPath(), due: true, guard: now.Add(5 * a.cfg.RTOMax)}
	a.startT2(now)
}

// sendShutdownAck enters SHUTDOWN-ACK-SENT: the peer shuts down and all own data is acknowledged.
func (a *Assoc) sendShutdownAck(now rawio.Time, by trigger) {
	a.enter(by)
	a.errors = 0
	if a.closing == nil {
		a.closing = &closing{path: a.dataPath(), guard: rawio.Never}
	}
	a.closing.due = true
	a.startT2(now)
}

// startT2 starts T2-shutdown afresh.
func (a *Assoc) startT2(now rawio.Time) {
	a.closing.t2 = now.Add(a.closing.path.RTO())
}

// closingTimeout is the expiry of T2-shutdown or T5-shutdown-guard.
func (a *Assoc) closingTimeout(now rawio.Time) {
	if now >= a.closing.guard {
		a.lastWords(refusal{code: wire.CauseProtocolViolation, info: []byte("shutdown takes too long")})
		a.down(onEnd, ErrShutdownTimeout)
		return
	}
	p := a.closing.path
	p.Backoff()
	a.pathError(now, p, true)
	if a.state != Closed {
		a.closing.path, a.closing.due = a.paths[a.sender().Alternate(&p.Path).Index()], true
		a.startT2(now)
	}
}

// appendClosing adds SHUTDOWN or SHUTDOWN ACK to the open packet. SHUTDOWN acknowledges what came in
// sequence; gaps and duplicates need a SACK with it.
func (a *Assoc) appendClosing(now rawio.Time, out *TxBatch) {
	a.closing.due = false
	if a.state == ShutdownAckSent {
		out.Commit(wire.AppendShutdownAck(out.Tail()))
		return
	}
	out.Commit(wire.AppendShutdown(out.Tail(), a.recv.CumTSN()))
	if a.recv.Gaps() || a.recv.Dups() {
		a.appendSack(out)
	} else {
		a.recv.AckSent()
	}
}

// handleShutdown takes the peer's SHUTDOWN.
func (a *Assoc) handleShutdown(now rawio.Time, c wire.Chunk) {
	s, err := wire.AsShutdown(c)
	if err != nil {
		a.rare().Malformed++
		return
	}
	switch a.state {
	case Established, ShutdownPending, ShutdownReceived:
		if !a.hasAll() {
			return
		}
		res, err := a.sender().HandleCumAck(now, s.CumTSN())
		if err != nil {
			a.violated(err)
			return
		}
		a.acknowledged(now, res)
		if a.state != ShutdownReceived {
			a.enter(onPeerShutdown) // progress goes on from here
			a.events.push(Event{Kind: EventPeerShutdown})
		}
	case ShutdownSent:
		if a.hasAll() {
			a.sendShutdownAck(now, onPeerShutdown)
		}
	case ShutdownAckSent:
		a.closing.due = true // our SHUTDOWN ACK was lost
	default:
		a.rare().Unexpected++
	}
}

var errMissing = errors.New("shutdown although DATA is missing")

// hasAll says whether everything that the peer has sent is here, when its SHUTDOWN or SHUTDOWN ACK says so: it sends neither before
// all of its DATA is acknowledged (section 9.2), however late the packet comes. Else the peer has broken the protocol, and an end
// that looks graceful would hide from readers that messages are lost.
func (a *Assoc) hasAll() bool {
	a.sender() // it rests no longer
	if !a.recv.Missing() {
		return true
	}
	a.rare().Violations++
	why := violation(errMissing)
	a.lastWords(why)
	a.down(onEnd, &AbortError{Missing: true, Causes: []Cause{{Code: why.code, Info: why.info}}})
	return false
}

// handleShutdownAck completes a shutdown on the side that sent SHUTDOWN.
func (a *Assoc) handleShutdownAck(in *inbound, c wire.Chunk) {
	if _, err := wire.AsShutdownAck(c); err != nil || (a.state != ShutdownSent && a.state != ShutdownAckSent) {
		a.rare().Unexpected++
		return
	}
	if !a.hasAll() {
		return
	}
	if b, ok := a.outbox.open(); ok {
		p, local := a.replyPath(in)
		a.outbox.commit(a.lastPacket(p, local), wire.AppendShutdownComplete(b, false))
	}
	a.down(onShutdownAck, ErrShutdown)
}

// handleShutdownComplete ends the association on the other side; in other states it is ignored.
func (a *Assoc) handleShutdownComplete() {
	if a.state == ShutdownAckSent {
		a.down(onComplete, ErrShutdown)
		return
	}
	a.rare().Unexpected++
}
