package assoc

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Abort ends the association at once: the peer gets an ABORT that carries reason (section 9.1) if
// its tag is known, and EventDown reports an *AbortError.
func (a *Assoc) Abort(now rawio.Time, reason []byte) {
	a.abortWithCause(refusal{code: wire.CauseUserAbort, info: reason})
}

// Fail ends the association at once for a reason that lies below it, such as a link that has
// failed: EventDown reports err. The peer gets an ABORT with its text, in case it can still be
// reached.
func (a *Assoc) Fail(err error) {
	if a.state == Closed {
		return
	}
	a.queueAbort(refusal{code: wire.CauseUserAbort, info: []byte(err.Error())})
	a.endAssoc(onEnd, err)
}

// abortWithCause ends the association for a cause that the peer is told.
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

// Break ends the association because a layer above has contradicted itself. It may be called from
// within a Placer or Source too: the chunk, row or message under way is the last.
func (a *Assoc) Break(err *InternalError) { a.internalErr = cmp.Or(a.internalErr, err) }

// isConsistent says that this side has not contradicted itself.
func (a *Assoc) isConsistent() bool {
	return a.internalErr == nil && (a.IsIdle() || a.sender().Fault() == nil)
}

// endIfInconsistent ends the association if this side has contradicted itself, and says so. Nothing
// is received, placed or sent any more, so that all memory is safe before anybody hears of it. The
// peer is not told the details.
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
	if !ok || a.peerTag == 0 {
		return
	}
	p := a.dataPath()
	start := len(b)
	room := p.MTU() - headerRoom - 2*wire.ChunkHeaderLen - 3 // chunk and cause header, padding
	b = wire.AppendCause(wire.AppendAbort(b, false), why.code, why.info[:min(len(why.info), room)])
	a.outbox.queuePacket(a.finalPacket(p, p.Local), wire.CloseChunk(b, start))
}

// finalPacket is one that may outlive the association.
func (a *Assoc) finalPacket(p *path, local netip.AddrPort) outPacket {
	if !local.IsValid() {
		local = p.Local
	}
	return outPacket{src: a.localPort, dst: a.peerPort, tag: a.peerTag, local: local, remote: p.Remote, mark: p.mark}
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

// endAssoc enters CLOSED: nothing but last words is sent any more, and every message that is not
// acknowledged is reported before EventDown. Of a message that was received in part, Receive tells
// that it is cut off.
func (a *Assoc) endAssoc(by trigger, err error) {
	if !a.changeState(by) {
		return
	}
	a.control.clear()
	a.failMessages()
	if a.recv != nil {
		a.recv.CutOff()
	}
	a.events.push(Event{Kind: EventDown, Err: err})
}

// failMessages reports every message that was accepted and is not acknowledged, one by one as
// PollEvent asks: the program may have queued very many.
func (a *Assoc) failMessages() {
	a.sender().Stop()
	a.events.push(Event{Kind: eventSenderFailed})
	a.failedSenders = append(a.failedSenders, a.sender())
	a.hasUnackedSends = false
}
