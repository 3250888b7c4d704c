package rdmap

import "github.com/rddp-go/rddp/ddp"

// recvQueue is untagged queue 0: buffers for the peer's Sends and Immediate Data, of the QP's own
// or from an SRQ.
type recvQueue struct {
	queue           *ddp.Queue
	host            Host
	srq             SRQ
	inbox           inbox  // own queue: receives on their way to queue
	status          Status // of the first buffer, when the stream fails for it
	heldCompletions []WC   // wait for invalidated memory to be copied; nil: none is
	imm             immediateBuffers

	highWaterMark int // of buffers in process; negative: not asked for
}

func (r *recvQueue) init(cfg *Config) {
	r.imm.init(cfg.MaxRecv)
	r.highWaterMark, r.host = -1, cfg.Host
	if r.srq = cfg.SRQ; r.srq != nil {
		r.queue = ddp.NewSharedQueue(cfg.SRQ, cfg.MaxRecv)
		return
	}
	r.queue = ddp.NewQueue(cfg.MaxRecv)
	r.inbox.init(cfg)
}

// lookupBuffer returns the buffer that serves message msn.
func (r *recvQueue) lookupBuffer(msn uint32) (*ddp.RecvBuffer, uint8) {
	b, code := r.queue.Lookup(msn)
	if code == ddp.CodeNoBuffer && r.srq == nil && r.fetchPosted() {
		b, code = r.queue.Lookup(msn)
	}
	return b, code
}

// fetchPosted takes what the program has posted, and reports whether there was anything.
func (r *recvQueue) fetchPosted() bool {
	any, err := r.inbox.moveTo(r.queue)
	if err != nil {
		r.host.Broken(err)
	}
	return any
}

// releaseBuffer gives back a buffer and returns the ID of its work request.
func (r *recvQueue) releaseBuffer(b ddp.RecvBuffer) uint64 {
	if r.srq != nil {
		return r.srq.ReleaseBuffer(b.Token)
	}
	r.inbox.freePlace()
	return b.Token
}

// PostRecv queues a buffer for one Send of the peer. It may be called before Start. It takes
// Config.RecvLock, so another goroutine may hold the connection lock. Errors: ErrSharedRecv,
// ErrState, ErrQueueFull, ErrSGECount, ErrTooLong, *SGEError.
func (q *QP) PostRecv(wr *RecvWR) error {
	if q.rq.srq != nil {
		return ErrSharedRecv
	}
	return q.rq.inbox.postRecv(q.stream, wr)
}

// InProcess returns how many receive buffers have begun to be filled and are not complete. A peer
// raises it by withholding part of each message (RFC 5042 section 6.4.3.1).
func (q *QP) InProcess() int { return q.rq.queue.InProcess() }

// SetHighWater asks for one Host.HighWater when more than n receive buffers are in process. It
// comes at once if there are more already. A negative n asks for none.
func (q *QP) SetHighWater(n int) {
	q.rq.highWaterMark = n
	q.checkHighWater()
}

func (q *QP) checkHighWater() {
	if r := &q.rq; r.highWaterMark >= 0 && r.queue.InProcess() > r.highWaterMark {
		r.highWaterMark = -1
		q.cfg.Host.HighWater()
	}
}

// receiveSend takes a Send or Immediate Data in its turn (section 5.3).
func (q *QP) receiveSend(rsvd [5]byte, length uint32) {
	op, f := checkControl(rsvd[0], q.cfg.sendQueueOpcodes())
	if f != nil {
		q.rejectMessage(f)
		return
	}
	if op == OpImmediate || op == OpImmediateSE {
		q.receiveImmediate(op, length)
		return
	}
	wc := WC{Opcode: WCRecv, QPNum: q.cfg.QPNum, ByteLen: length, Solicited: op == OpSendSE || op == OpSendSEInv}
	if op == OpSendInv || op == OpSendSEInv {
		wc.InvalidatedSTag, wc.Invalidated = parseInvalidateSTag(rsvd), true
		if !q.invalidateRegion(wc.InvalidatedSTag) {
			q.rq.status = StatusMWBindErr
			q.rejectMessage(errInvalidate)
			return
		}
	}
	q.completeReceive(wc)
}

// completeReceive completes the first receive with wc.
func (q *QP) completeReceive(wc WC) {
	b, _ := q.rq.queue.Pop()
	q.rq.imm.poppedBuffers++
	wc.ID = q.rq.releaseBuffer(b)
	if q.rq.heldCompletions != nil {
		q.rq.heldCompletions = append(q.rq.heldCompletions, wc)
		return
	}
	q.cfg.RecvCQ.Push(wc)
}

// completeHeld completes the receives that have waited.
func (q *QP) completeHeld() {
	for _, wc := range q.rq.heldCompletions {
		q.cfg.RecvCQ.Push(wc)
	}
	q.rq.heldCompletions = nil
}

// invalidateRegion carries out the Invalidate of a Send, at delivery and before the user sees the
// Send (section 5.3). It reports whether the peer may invalidate the STag. The STag must be valid,
// and associated with this stream and no other (sections 7.2 and 8.1.1 item 7). It must be enabled
// for remote access. So the peer may not end one that was never advertised, such as the sink of a
// Read.
//
// Much of the region may be in flight if the peer acknowledges nothing. Then this receive and those
// behind it complete when all is copied, in parts.
func (q *QP) invalidateRegion(tag ddp.STag) bool {
	r, err := q.stream.CheckSTag(tag)
	if err != nil || r.Scope() == 0 && q.cfg.Host.SharedRegion(r) {
		return false
	}
	if !q.hasRight(tag, ddp.RemoteRead) && !q.hasRight(tag, ddp.RemoteWrite) && !q.hasRight(tag, ddp.RemoteAtomic) {
		return false
	}
	r.Invalidate()
	if q.rq.heldCompletions == nil && (q.sq.referencesRegion(r) || q.resp.referencesRegion(r)) && q.detachInFlight() {
		q.rq.heldCompletions = make([]WC, 0, 4)
	}
	return true
}

// hasRight reports whether tag has a right. Rights are checked before bounds, so the offset asked
// about need not be inside the region.
func (q *QP) hasRight(tag ddp.STag, a ddp.Access) bool {
	_, err := q.stream.Resolve(tag, 0, 1, a)
	return err == nil || err.Code != ddp.CodeInvalidSTag
}

// flushReceives completes all receives in error. No more can be posted.
func (q *QP) flushReceives() {
	q.completeHeld()
	st := q.rq.status
	if st == StatusSuccess {
		st = StatusWRFlushErr
	}
	if q.rq.srq == nil {
		q.rq.inbox.close()
		q.rq.fetchPosted()
	}
	for {
		b, ok := q.rq.queue.Flush()
		if !ok && q.rq.srq == nil {
			b, ok = q.rq.inbox.takeLeftover()
		}
		if !ok {
			return
		}
		q.cfg.RecvCQ.Push(WC{ID: q.rq.releaseBuffer(b), Status: st, Opcode: WCRecv, QPNum: q.cfg.QPNum})
		st = StatusWRFlushErr
	}
}
