package rdmap

import "github.com/rddp-go/rddp/ddp"

// Abortive termination, section 6.2.1, and error surfacing, section 7.1.

// startTerminate ends the stream with a Terminate Message. Only the first error counts (section 7.1
// rule 4). The Terminate follows the message that is being cut, ahead of all that waits (rules 2
// and 3: at the earliest opportunity). Requests are flushed when it has been handed over. Until
// then the message being cut still reads the user's memory.
func (q *QP) startTerminate(t Terminate, cause error) {
	if q.state > StateClosing {
		return
	}
	q.state = StateTerminate
	q.term = t
	q.err = &StreamError{Terminate: &q.term, Cause: cause}
	q.cfg.Host.Failed(q.err)
	if q.cutNow == cutNothing {
		q.sendTerminate()
	}
}

// sendTerminate hands the Terminate to ddp as the last message (section 5.4) and flushes all
// requests. The lower layer is closed gracefully behind it, so that the Terminate arrives (section
// 6.2.1).
func (q *QP) sendTerminate() {
	b := q.term.Append(make([]byte, 0, MaxTerminateLen))
	q.termOut[0] = ddp.Piece{Mem: ddp.Bytes(b), Len: uint64(len(b))}
	q.state = StateError
	err := q.stream.SendUntagged(QueueTerminate, untaggedRsvd(OpTerminate, 0), q.termOut[:], tokenTerminate)
	if err != nil { // closing had begun: no message can follow
		q.stream.Abort()
	} else {
		q.stream.CloseSend()
	}
	q.flushRequests()
}

// receiveTerminate takes the Terminate of the peer (section 5.4). The stream is torn down at once.
func (q *QP) receiveTerminate(rsvd [5]byte, length uint32) {
	_, f := checkControl(rsvd[0], terminateQueueOpcodes)
	if f != nil {
		q.rejectMessage(f)
		return
	}
	t, err := ParseTerminate(q.terminateQueue.bufferAt(0)[:length])
	if err != nil {
		q.rejectMessage(errUnspecified)
		return
	}
	if w := q.sq.findQuoted(&t); w != nil {
		w.status = remoteStatus(&t)
	}
	q.failWithoutTerminate(&StreamError{Terminate: &t, Remote: true})
}

// Flush does what Host.FlushLater asked for, or a part of it: then it asks again.
func (q *QP) Flush() {
	switch {
	case q.state == StateError:
		q.flushRequests()
	case q.rq.heldCompletions != nil && !q.detachInFlight():
		q.completeHeld()
	}
}

// detachInFlight has a part of what is in flight copied. more says that there is more, and that
// Flush is to come for it.
func (q *QP) detachInFlight() (more bool) {
	if more = q.cfg.Host.Detach(); more {
		q.cfg.Host.FlushLater()
	}
	return more
}

// flushRequests completes all outstanding requests in error (sections 5.4 and 6.2.1). The one that
// the stream failed for says so, the others are flushed; unsignalled ones complete too. In the
// middle of a transmission it waits: packets that are ready to leave still refer to the memory. If
// there is much to detach, it goes on after others.
func (q *QP) flushRequests() {
	if q.stream.Cutting() {
		q.cfg.Host.FlushLater()
		return
	}
	if (q.sq.handedOver > q.sq.completed || q.resp.sentResponses > q.resp.ackedResponses) && q.detachInFlight() {
		return
	}
	lead := StatusSuccess // of the Write before Immediate Data
	for s := &q.sq; s.completed < s.posted; s.completed++ {
		w := s.at(s.completed)
		st := w.status
		switch {
		case w.flags&hiddenRequest != 0:
			continue
		case w.flags&leadsImmediate != 0:
			lead = st
			continue
		case st == StatusSuccess && lead != StatusSuccess:
			st = lead
		case st == StatusSuccess:
			st = StatusWRFlushErr
		}
		lead = StatusSuccess
		q.cfg.SendCQ.Push(WC{ID: w.id, Status: st, Opcode: w.op.completionOpcode(), QPNum: q.cfg.QPNum})
	}
	q.sq.handedOver, q.sq.hiddenRequests = q.sq.posted, 0
	q.flushReceives()
}

// findQuoted finds the request whose message a Terminate quotes. A Send or RDMA Write that
// completed before is not found: its completion says nothing about the peer (section 5.5 rule 9).
func (s *sendQueue) findQuoted(t *Terminate) *sendSlot {
	if !t.HasDDP {
		return nil
	}
	for i := s.completed; i < s.handedOver; i++ {
		if w := s.at(i); w.matchesQuoted(t) {
			return w
		}
	}
	return nil
}

// matchesQuoted reports whether the DDP header that t quotes is one of w.
func (w *sendSlot) matchesQuoted(t *Terminate) bool {
	if ddp.Control(t.DDP[0]).Tagged() {
		v := ddp.TaggedView(t.DDP[:])
		_, op := SplitControl(v.RsvdULP())
		return op == OpWrite && w.op == WRWrite && v.STag() == w.remoteSTag &&
			v.TO() >= w.remoteTO && v.TO()-w.remoteTO < max(uint64(w.length), 1) // An empty Write has one segment too.
	}
	v := ddp.UntaggedView(t.DDP[:])
	if v.MSN() != w.msn {
		return false
	}
	return w.op != WRWrite && v.QN() == w.queueNumber()
}

// awaitsResponse reports whether a request cannot complete without a response.
func (s *sendQueue) awaitsResponse() bool {
	for i := s.completed; i < s.posted; i++ {
		if w := s.at(i); w.op.needsResponse() && !w.finished {
			return true
		}
	}
	return false
}
