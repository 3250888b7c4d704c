package simulation

import (
	"bytes"
	"errors"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// sendCompleted judges a completion of the send queue: in order, each signalled request once, and
// none in error before the end has begun; a success never behind an error.
func (l *workload) sendCompleted(wc rdmap.WC) {
	l.w.mixIntoHash(uint64(l.w.now), wc.ID, uint64(wc.Status), uint64(wc.Opcode))
	bad := wc.Status != rdmap.StatusSuccess
	if bad && !l.end.begun || !bad && l.flushed {
		l.w.failf("%s: %v %d completed with %v", l.q.h.name, wc.Opcode, wc.ID, wc.Status)
		return
	}
	l.flushed = bad
	for len(l.posted) > 0 {
		o := l.posted[0]
		l.posted = l.posted[1:]
		own := o.id == wc.ID
		switch {
		case own && o.opcode != wc.Opcode, own && !o.signaled && !bad:
			l.w.failf("%s: completion %d is a %v, posted was a %v, signalled %v", l.q.h.name, wc.ID, wc.Opcode,
				o.opcode, o.signaled)
		case own && bad:
			l.failOp(o)
		case own:
			l.completeOp(&o, &wc)
		case o.signaled:
			l.w.recordViolation(Order, l.q.h, "completion of request %d before that of %d", wc.ID, o.id)
		default:
			l.completeOp(&o, nil)
		}
		if own {
			l.next = l.w.now
			return
		}
	}
	l.w.recordViolation(Twice, l.q.h, "completion of request %d", wc.ID)
}

// completeOp judges what a request that succeeded has done. wc is its own completion, nil if it has
// none.
func (l *workload) completeOp(o *postedOp, wc *rdmap.WC) {
	l.w.coverage.Done++
	switch o.opcode {
	case rdmap.WCRead:
		o.sink.expectExactly(o.want, "read")
		l.buffers.sink.giveBack(o.sink)
	case rdmap.WCAtomic:
		o.checkAnswer(l.w, wc)
	}
	// A stream that ends acknowledges what it does not place any more.
	e := l.end
	placed := l.w.tcp == nil && !e.begun && !e.revoked && e.violation == nil // TCP tells of no acknowledgement
	if x := o.write; x != nil && placed && !x.settled && !bytes.Equal(x.to.actualBytes(), x.want) &&
		!bytes.Equal(x.to.actualBytes(), x.later) {
		l.w.recordViolation(Lost, l.q.h, "write %d is complete, so acknowledged, but not in place", o.id)
	}
	if m := o.sent; m != nil && placed && !m.delivered && !bytes.Equal(m.into.actualBytes()[:len(m.want)], m.want) {
		l.w.recordViolation(Lost, l.q.h, "send %d is complete, so acknowledged, but not in place", o.id)
	}
	if o.src.n >= 0 {
		l.finished = append(l.finished, o.src)
	}
	if o.then != nil {
		o.then()
	}
}

// failOp takes a request that ended with its session. Nobody knows whether it was carried out; but
// its memory is the user's again, who changes it at once.
func (l *workload) failOp(o postedOp) {
	if o.src.n >= 0 {
		o.src.fillRandom()
	}
	if o.tally != nil {
		o.tally.maybe++
	}
	l.lost = append(l.lost, o)
}

// recvCompleted judges a completion of the receive queue: receives in the order of posting,
// messages in the order of sending, once, whole, and everything written before them in place.
func (l *workload) recvCompleted(wc rdmap.WC) {
	l.w.mixIntoHash(uint64(l.w.now), wc.ID, uint64(wc.Status), uint64(wc.ByteLen))
	if len(l.recvs) == 0 || l.recvs[0] != wc.ID {
		l.w.recordViolation(Order, l.q.h, "receive %d completed, posted are %d", wc.ID, l.recvs)
		return
	}
	l.recvs = l.recvs[1:]
	if wc.Status != rdmap.StatusSuccess {
		if !l.end.begun {
			l.w.failf("%s: receive completed with %v", l.q.h.name, wc.Status)
		}
		l.credits = 0
		l.cut = append(l.cut, wc.ID)
		return
	}
	if len(l.expect) == 0 || len(l.cut) > 0 {
		l.w.recordViolation(Twice, l.q.h, "a message that was not sent, or comes late")
		return
	}
	msg := l.expect[0]
	l.expect = l.expect[1:]
	msg.delivered = true
	if (wc.Opcode == rdmap.WCRecvImm) != msg.imm || wc.Immediate != msg.value {
		l.w.failf("%s: received %+v, want Immediate Data %v %#x", l.q.h.name, wc, msg.imm, msg.value)
		return
	}
	if int(wc.ByteLen) != len(msg.want) || wc.Solicited != msg.solicited || wc.Invalidated != (msg.inv != nil) {
		l.w.failf("%s: received %+v, want %d octets, solicited %v, invalidation %v",
			l.q.h.name, wc, len(msg.want), msg.solicited, msg.inv != nil)
		return
	}
	l.buffers.recv[wc.ID].expectExactly(msg.want, "receive")
	for _, x := range msg.writes {
		x.to.expectExactly(x.want, "write")
		x.settled = true
		l.buffers.target.giveBack(x.slot)
	}
	if msg.inv != nil {
		if wc.InvalidatedSTag != msg.inv.STag() || msg.inv.Valid() {
			l.w.failf("%s: Send with Invalidate delivered, STag still valid or another named", l.q.h.name)
		}
		l.staleSTags = append(l.staleSTags, msg.inv)
	}
	if l.held[wc.ID] == 0 {
		l.repost = append(l.repost, wc.ID)
	}
	l.next = l.w.now
}

// streamFailed takes the end of a stream by an error: a Terminate must be the one that is due.
// Nothing is promised any more of a graceful end that wants for room, on either side, before it is
// done: all outstanding requests complete in error (RFC 5041 section 6.2.2).
func (l *workload) streamFailed(err *rdmap.StreamError) {
	l.fault = err
	t, e := err.Terminate, l.end
	wanting := t == nil && l.outOfRoom(err)
	ok := t == nil && e.begun || wanting
	if t != nil {
		ok = e.violation != nil && e.violation.isAnsweredBy(t) || e.revoked && isRevocation(t)
	}
	if !ok {
		l.w.failf("%s: stream failed: %v; expected was %+v", l.q.h.name, err, *e)
	}
	e.begun = true
	if wanting {
		e.gracious = nil
	}
}

// outOfRoom reports whether a stream has failed because a message found no room before its turn.
// The message came in fragments, and so it is acknowledged. That is how
// ddpadapt.Config.MaxOutOfOrder ends sessions over paths of a small MTU.
func (l *workload) outOfRoom(err *rdmap.StreamError) bool {
	var seq *ddpadapt.SequenceError
	return l.q.h.outOfOrder > 0 && errors.As(err.Cause, &seq) && seq.Fault == ddpadapt.FaultWindowSSN
}

// isRevocation reports whether a Terminate says that an STag is no longer valid.
func isRevocation(t *rdmap.Terminate) bool {
	return t.Layer == rdmap.LayerDDP && uint8(t.EType) == uint8(ddp.TypeTagged) && t.Code == ddp.CodeInvalidSTag ||
		t.Layer == rdmap.LayerRDMA && t.EType == rdmap.RemoteProtection && t.Code == rdmap.CodeInvalidSTag
}

// checkAllDone is called when the session is over on both sides. Every request has completed, once
// and in order. What was not completed was carried out or not, octet by octet, and changes no more.
func (l *workload) checkAllDone() {
	for _, o := range l.posted {
		if o.signaled || l.flushed {
			l.w.recordViolation(Lost, l.q.h, "the session is over, and request %d, a %v, has never completed", o.id,
				o.opcode)
		}
		l.completeOp(&o, nil) // only what fails completes without being asked
	}
	if len(l.recvs) > 0 {
		l.w.recordViolation(Lost, l.q.h, "the session is over, and receives %d have never completed", l.recvs)
	}
	if l.end.gracious == l && !l.end.revoked {
		// Section 6.2: what it had posted is carried out.
		if len(l.lost) > 0 || len(l.peer.expect) > 0 {
			l.w.recordViolation(Lost, l.q.h,
				"after a graceful end requests %v have failed, and %d messages are missing",
				l.lost, len(l.peer.expect))
		}
	}
	for i, id := range l.cut {
		var want []byte
		if i < len(l.expect) {
			want = l.expect[i].want
		}
		l.buffers.recv[id].acceptEither(want, nil, "receive that was cut off")
	}
	var writes []*pendingWrite
	for _, m := range l.expect {
		writes = append(writes, m.writes...)
	}
	for _, x := range append(append(writes, l.peer.uncovered...), l.peer.effects...) {
		if !x.settled {
			x.to.acceptEither(x.want, x.later, "write that was cut off")
		}
	}
	for _, o := range l.lost {
		if o.opcode == rdmap.WCRead {
			o.sink.acceptEither(o.want, nil, "read that was cut off")
		}
	}
	l.words.endSession()
	for _, r := range l.regions {
		if err := l.q.h.table.Deregister(r); err != nil && err != ddp.ErrNoSuchRegion {
			l.w.failf("deregister: %v", err)
		}
	}
	l.buffers.closeBuffers()
}
