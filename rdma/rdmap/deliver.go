package rdmap

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/ddp"
)

// The receiving half of ddp.ULP: what may be placed, and what a delivered message means.

// AdmitTagged is asked before a tagged payload is placed (section 7.2). An RDMA Write needs a
// region that grants remote write. A Read Response must fall into the sink of an outstanding RDMA
// Read (section 5.2.2). That takes local rights only: it is our own request.
func (q *QP) AdmitTagged(rsvd uint8, _ *ddp.Region, tag ddp.STag, to uint64, n int) (ddp.Access, *ddp.Error) {
	op, f := checkControl(rsvd, taggedOpcodes)
	switch {
	case f != nil:
		return 0, &ddp.Error{Type: ddp.TypeLocal, Cause: f}
	case op == OpWrite:
		return ddp.RemoteWrite, nil
	}
	return ddp.LocalWrite, q.admitResponse(tag, to, uint64(n))
}

// admitResponse looks for the read that a segment of a Read Response answers. Segments of the
// oldest one come first unless the network reordered them.
func (q *QP) admitResponse(tag ddp.STag, to, n uint64) *ddp.Error {
	s := &q.sq
	known := false
	reads := false
	for i := range s.outstandingReads() {
		w := s.readAt(i)
		if w.op != WRRead {
			continue
		}
		reads = true
		sink := &w.sink
		if sink.LKey != tag {
			continue
		}
		if off := to - sink.Addr; to >= sink.Addr && off <= uint64(sink.Len) && n <= uint64(sink.Len)-off {
			return nil
		}
		known = true
	}
	switch {
	case known:
		return &ddp.Error{Type: ddp.TypeTagged, Code: ddp.CodeBaseBounds}
	case reads:
		return &ddp.Error{Type: ddp.TypeTagged, Code: ddp.CodeInvalidSTag}
	}
	return &ddp.Error{Cause: errOpcode}
}

// Buffer returns the buffer that serves an untagged message.
func (q *QP) Buffer(qn, msn uint32, rsvd [5]byte) (*ddp.RecvBuffer, uint8) {
	switch qn {
	case QueueSend:
		b, code := q.rq.bufferFor(msn, rsvd[0])
		q.checkHighWater()
		return b, code
	case QueueReadRequest:
		return q.resp.requestQueue.Lookup(msn)
	case QueueTerminate:
		return q.terminateQueue.Lookup(msn)
	case QueueAtomicResponse:
		return q.atomicResponses.Lookup(msn)
	}
	return nil, ddp.CodeInvalidQN
}

// DeliverTagged takes an RDMA Write or a Read Response in its turn.
func (q *QP) DeliverTagged(rsvd uint8, tag ddp.STag, to uint64, length uint64) {
	op, f := checkControl(rsvd, taggedOpcodes)
	if f != nil {
		q.rejectMessage(f)
		return
	}
	if op == OpReadResponse {
		q.receiveReadResponse(tag, to, length)
	} // A valid RDMA Write is not delivered to the user (section 5.1): its data is in place.
}

// receiveReadResponse completes the oldest outstanding request. It must be an RDMA Read (section
// 5.5 rules 19 and 20), and the response must be what was asked for (section 5.2.2).
func (q *QP) receiveReadResponse(tag ddp.STag, to, length uint64) {
	s := &q.sq
	if s.outstandingReads() == 0 || s.readAt(0).op != WRRead {
		q.rejectMessage(errOpcode)
		return
	}
	w := s.readAt(0)
	// STag and TO of a zero-length message mean nothing.
	if length != uint64(w.length) || length > 0 && (tag != w.sink.LKey || to != w.sink.Addr) {
		w.status = StatusBadRespErr
		q.rejectMessage(errUnspecified)
		return
	}
	q.finishRead(w)
}

// finishRead completes the oldest request that awaits an answer.
func (q *QP) finishRead(w *sendSlot) {
	w.finished = true
	q.sq.readsAnswered++
	q.completeRequests()
	q.sendNext()
}

// DeliverUntagged takes an untagged message in its turn.
func (q *QP) DeliverUntagged(qn, msn uint32, rsvd [5]byte, length uint32, buf *ddp.RecvBuffer) {
	switch qn {
	case QueueSend:
		q.receiveSend(rsvd, length)
	case QueueReadRequest:
		q.receiveReadRequest(msn, rsvd, length, buf.Token)
	case QueueTerminate:
		q.receiveTerminate(rsvd, length)
	case QueueAtomicResponse:
		q.receiveAtomicResponse(rsvd, length, buf.Token)
	}
}

func parseInvalidateSTag(rsvd [5]byte) ddp.STag { return ddp.STag(binary.BigEndian.Uint32(rsvd[1:])) }

// rejectMessage ends the stream for a fault in the message that is being delivered (section 7.1
// rule 2). The Terminate quotes the DDP header of its last segment.
func (q *QP) rejectMessage(f *fault) {
	t := Terminate{Layer: LayerRDMA, EType: f.etype, Code: f.code}
	t.quoteSegment(q.stream.Fail(ddp.TypeLocal, 0, f))
	q.startTerminate(t, f)
}

// Fatal takes an error that ddp found, in its turn (sections 6.2 and 7.1).
func (q *QP) Fatal(e *ddp.Error) {
	if e.Type == ddp.TypeLLP && e.Code == 0 {
		q.failWithoutTerminate(&StreamError{Cause: e.Cause})
		return
	}
	q.blameRequest(e)
	q.startTerminate(terminateFor(e), e)
}

// blameRequest gives a status to the request that the error of an incoming segment is about. This
// is the receive that the segment was for, or the request that it was to answer.
func (q *QP) blameRequest(e *ddp.Error) {
	if e.HeaderLen == 0 {
		return
	}
	if e.HeaderLen == ddp.TaggedHeaderLen {
		if _, op := SplitControl(ddp.TaggedView(e.Header[:]).RsvdULP()); op == OpReadResponse &&
			q.sq.outstandingReads() > 0 {
			q.sq.readAt(0).status = StatusBadRespErr
		}
		return
	}
	v := ddp.UntaggedView(e.Header[:])
	if v.QN() == QueueAtomicResponse && q.sq.outstandingReads() > 0 {
		q.sq.readAt(0).status = StatusBadRespErr
		return
	}
	if v.QN() != QueueSend || v.MSN() != q.rq.queue.First() {
		return
	}
	switch {
	case e.Type == ddp.TypeLocal:
		q.rq.status = StatusLocProtErr
	case e.Type == ddp.TypeUntagged && (e.Code == ddp.CodeTooLong || e.Code == ddp.CodeInvalidMO):
		q.rq.status = StatusLocLenErr
	}
}

// PeerClosed: the peer sends nothing more (section 6.2). Receives can no longer be served. What
// this end has to send still goes out, unless it waits for a response that will not come.
func (q *QP) PeerClosed() {
	if q.state > StateClosing {
		return
	}
	q.peerClosed = true
	if q.sq.awaitsResponse() {
		q.failWithoutTerminate(&StreamError{Cause: ErrPeerClosed})
		return
	}
	q.flushReceives()
	q.cfg.Host.PeerClosed()
}
