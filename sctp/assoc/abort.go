package assoc

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Abort ends the association at once: the peer gets an ABORT that carries reason (section 9.1) if its
// tag is known, and EventDown reports an *AbortError.
func (a *Assoc) Abort(now rawio.Time, reason []byte) {
	a.abort(refusal{code: wire.CauseUserAbort, info: reason})
}

// Fail ends the association at once for a reason that lies below it, such as a link that has failed: EventDown reports err. The peer gets an
// ABORT with its text, in case it can still be reached.
func (a *Assoc) Fail(err error) {
	if a.state == Closed {
		return
	}
	a.lastWords(refusal{code: wire.CauseUserAbort, info: []byte(err.Error())})
	a.down(onEnd, err)
}

// abort ends the association for a cause that the peer is told.
func (a *Assoc) abort(why refusal) {
	if a.state == Closed {
		return
	}
	a.lastWords(why)
	a.down(onEnd, &AbortError{Causes: []Cause{{Code: why.code, Info: slices.Clone(why.info)}}})
}

// violated ends the association because the peer has broken the protocol.
func (a *Assoc) violated(err error) {
	a.rare().Violations++
	a.abort(violation(err))
}

// Break ends the association because a layer above has contradicted itself. It may be called from within a Placer or
// Source too: the chunk, row or message under way is the last.
func (a *Assoc) Break(err *InternalError) { a.fault = cmp.Or(a.fault, err) }

// sound says that this side has not contradicted itself.
func (a *Assoc) sound() bool { return a.fault == nil && (a.Rests() || a.sender().Fault() == nil) }

// unsound ends the association if this side has contradicted itself, and says so. Nothing is received, placed or sent
// any more, so that all memory is safe before anybody hears of it. The peer is not told the details.
func (a *Assoc) unsound() bool {
	if a.sound() || a.state == Closed {
		return false
	}
	err := a.fault
	if err == nil {
		err = a.sender().Fault()
	}
	a.rare().Contradictions++
	a.lastWords(refusal{code: wire.CauseUserAbort, info: []byte("internal error")})
	a.down(onEnd, err)
	return true
}

// lastWords queues the ABORT packet.
func (a *Assoc) lastWords(why refusal) {
	b, ok := a.outbox.open()
	if !ok || a.peerTag == 0 {
		return
	}
	p := a.dataPath()
	start := len(b)
	room := p.MTU() - headerRoom - 2*wire.ChunkHeaderLen - 3 // chunk and cause header, padding
	b = wire.AppendCause(wire.AppendAbort(b, false), why.code, why.info[:min(len(why.info), room)])
	a.outbox.commit(a.lastPacket(p, p.Local), wire.CloseChunk(b, start))
}

// lastPacket is one that may outlive the association.
func (a *Assoc) lastPacket(p *path, local netip.AddrPort) outPacket {
	if !local.IsValid() {
		local = p.Local
	}
	return outPacket{src: a.localPort, dst: a.peerPort, tag: a.peerTag, local: local, remote: p.Remote, mark: p.mark}
}

// handleAbort takes an ABORT whose tag is right.
func (a *Assoc) handleAbort(c wire.Chunk) {
	ab, err := wire.AsAbort(c)
	if err != nil {
		a.rare().Malformed++ // section 3.3.7: silently discarded
		return
	}
	a.down(onEnd, &AbortError{ByPeer: true, Setup: setupStates.has(a.state), Causes: copyCauses(ab.Causes())})
}

// down enters CLOSED: nothing but last words is sent any more, and every message that is not
// acknowledged is reported before EventDown. Of a message that was received in part, Receive tells that it is cut off.
func (a *Assoc) down(by trigger, err error) {
	if !a.enter(by) {
		return
	}
	a.control.clear()
	a.failMessages()
	if a.recv != nil {
		a.recv.CutOff()
	}
	a.events.push(Event{Kind: EventDown, Err: err})
}

// failMessages reports every message that was accepted and is not acknowledged, one by one as PollEvent asks: the program may have
// queued very many.
func (a *Assoc) failMessages() {
	a.sender().Stop()
	a.events.push(Event{Kind: eventFailing})
	a.failing = append(a.failing, a.sender())
	a.unsettled = false
}
