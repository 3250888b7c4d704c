package assoc

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Abort ends the association at once, and EventDown reports an *AbortError. If the peer's tag is
// known, the peer gets an ABORT that carries reason (section 9.1).
func (a *Assoc) Abort(now rawio.Time, reason []byte) {
	a.abortWithCause(refusal{code: wire.CauseUserAbort, info: reason})
}

// Fail ends the association at once because something below it has failed, such as a link.
// EventDown reports err. The peer gets an ABORT with its text, in case it can still be reached.
func (a *Assoc) Fail(err error) {
	if a.state == Closed {
		return
	}
	a.queueAbort(refusal{code: wire.CauseUserAbort, info: []byte(err.Error())})
	a.endAssoc(onEnd, err)
}

// abortWithCause ends the association and sends the peer the cause.
func (a *Assoc) abortWithCause(why refusal) {
	if a.state == Closed {
		return
	}
	a.queueAbort(why)
	a.endAssoc(onEnd, &AbortError{Causes: []Cause{{Code: why.code, Info: slices.Clone(why.info)}}})
}

// abortForViolation ends the association because the peer has broken the protocol.
func (a *Assoc) abortForViolation(err error) {
	a.rareCounters().Violations++
	a.abortWithCause(violationCause(err))
}

// Break ends the association because a layer above has contradicted itself. A Placer or Source may
// call it too: the current chunk, row or message is the last.
func (a *Assoc) Break(err *InternalError) { a.internalErr = cmp.Or(a.internalErr, err) }

// isConsistent says whether this side has not contradicted itself.
func (a *Assoc) isConsistent() bool {
	return a.internalErr == nil && (a.IsIdle() || a.sender().Fault() == nil)
}

// endIfInconsistent ends the association, and returns true, if this side has contradicted itself.
// Nothing is received, placed or sent any more, so all memory is safe before anybody hears of it.
// The peer does not learn the details.
func (a *Assoc) endIfInconsistent() bool {
	if a.isConsistent() || a.state == Closed {
		return false
	}
	err := a.internalErr
	if err == nil {
		err = a.sender().Fault()
	}
	a.rareCounters().Contradictions++
	a.queueAbort(refusal{code: wire.CauseUserAbort, info: []byte("internal error")})
	a.endAssoc(onEnd, err)
	return true
}

// queueAbort queues the ABORT packet.
func (a *Assoc) queueAbort(why refusal) {
	b, ok := a.outbox.openPacket()
	if !ok || a.id.peerTag == 0 {
		return
	}
	p := a.dataPath()
	start := len(b)
	room := p.MTU() - headerRoom - 2*wire.ChunkHeaderLen - 3 // chunk and cause header, padding
	b = wire.AppendCause(wire.AppendAbort(b, false), why.code, why.info[:min(len(why.info), room)])
	a.outbox.queuePacket(a.finalPacket(p, p.Local), wire.CloseChunk(b, start))
}

// finalPacket returns a packet that may outlive the association.
func (a *Assoc) finalPacket(p *path, local netip.AddrPort) outPacket {
	if !local.IsValid() {
		local = p.Local
	}
	return outPacket{src: a.id.localPort, dst: a.id.peerPort, tag: a.id.peerTag, local: local, remote: p.Remote,
		mark: p.mark, sealer: a.sealer()}
}

// handleAbort takes an ABORT whose tag is right.
func (a *Assoc) handleAbort(c wire.Chunk) {
	ab, err := wire.AsAbort(c)
	if err != nil {
		a.rareCounters().Malformed++ // section 3.3.7: silently discarded
		return
	}
	a.endAssoc(onEnd, &AbortError{ByPeer: true, Setup: setupStates.has(a.state), Causes: copyCauses(ab.Causes())})
}

// endAssoc enters CLOSED. Nothing but a last packet is sent any more. Every message that is not
// acknowledged is reported before EventDown. Receive reports a message that was received in part as
// cut off.
func (a *Assoc) endAssoc(by trigger, err error) {
	if !a.changeState(by, nil) {
		return
	}
	if f := a.keyFailure(); f != nil { // the peer may have heard of it first
		err = f
	}
	a.leaveRemains(by, err)
	a.closeKeys()
	a.control.clear()
	a.abandonStreamResets(err)
	a.abandonAsconf(err)
	a.failMessages()
	if a.recv != nil {
		a.recv.CutOff()
	}
	a.events.push(Event{Kind: EventDown, Err: err})
}

// failMessages reports every message that was accepted and is not acknowledged. It goes one by one,
// as PollEvent asks: the program may have queued very many.
func (a *Assoc) failMessages() {
	a.reportAbandoned()
	a.sender().Stop()
	a.events.push(Event{Kind: eventSenderFailed})
	rare := a.ensureRareState()
	rare.failedSenders = append(rare.failedSenders, a.sender())
	a.send.hasUnackedSends = false
}
