package rdmap

import "github.com/rddp-go/rddp/ddp"

// recvQueue is untagged queue 0: buffers for the peer's Sends and Immediate Data, of the QP's own or
// from an SRQ.
type recvQueue struct {
	q      *ddp.Queue
	host   Host
	srq    SRQ
	inbox  inbox  // own queue: receives on their way to q
	status Status // of the first buffer, when the stream fails for it
	behind []WC   // of receives, until the memory that the peer has invalidated is copied; nil: nothing is being copied
	imm    immediates

	highWater int // of buffers in process; negative: nobody wants to know
}

func (r *recvQueue) init(cfg *Config) {
	r.imm.init(cfg.MaxRecv)
	r.highWater, r.host = -1, cfg.Host
	if r.srq = cfg.SRQ; r.srq != nil {
		r.q = ddp.NewSharedQueue(cfg.SRQ, cfg.MaxRecv)
		return
	}
	r.q = ddp.NewQueue(cfg.MaxRecv)
	r.inbox.init(cfg)
}

// lookup returns the buffer that serves message msn.
func (r *recvQueue) lookup(msn uint32) (*ddp.RecvBuffer, uint8) {
	b, code := r.q.Lookup(msn)
	if code == ddp.CodeNoBuffer && r.srq == nil && r.fetch() {
		b, code = r.q.Lookup(msn)
	}
	return b, code
}

// fetch takes what the program has posted, and reports whether there was anything.
func (r *recvQueue) fetch() bool {
	any, err := r.inbox.empty(r.q)
	if err != nil {
		r.host.Broken(err)
	}
	return any
}

// id gives back a buffer and returns the ID of its work request.
func (r *recvQueue) id(b ddp.RecvBuffer) uint64 {
	if r.srq != nil {
		return r.srq.ReleaseBuffer(b.Token)
	}
	r.inbox.completed()
	return b.Token
}

// PostRecv queues a buffer for one Send of the peer. It may be called before Start, and while another goroutine has
// the gate: it takes Config.RecvLock. Errors: ErrSharedRecv, ErrState, ErrQueueFull, ErrSGECount, ErrTooLong, *SGEError.
func (q *QP) PostRecv(wr *RecvWR) error {
	if q.rq.srq != nil {
		return ErrSharedRecv
	}
	return q.rq.inbox.post(q.stream, wr)
}

// InProcess returns how many receive buffers have begun to be filled and are not complete, as the peer
// can bring about by withholding part of each message (RFC 5042 section 6.4.3.1).
func (q *QP) InProcess() int { return q.rq.q.InProcess() }

// SetHighWater asks for one Host.HighWater when more than n receive buffers are in process; a negative n
// asks for none. It comes at once if there are more already.
func (q *QP) SetHighWater(n int) {
	q.rq.highWater = n
	q.checkHighWater()
}

func (q *QP) checkHighWater() {
	if r := &q.rq; r.highWater >= 0 && r.q.InProcess() > r.highWater {
		r.highWater = -1
		q.cfg.Host.HighWater()
	}
}

// received takes a Send or Immediate Data in its turn (section 5.3).
func (q *QP) received(rsvd [5]byte, length uint32) {
	op, f := checkControl(rsvd[0], q.cfg.onSendQueue())
	if f != nil {
		q.reject(f)
		return
	}
	if op == OpImmediate || op == OpImmediateSE {
		q.receivedImmediate(op, length)
		return
	}
	wc := WC{Opcode: WCRecv, QPNum: q.cfg.QPNum, ByteLen: length, Solicited: op == OpSendSE || op == OpSendSEInv}
	if op == OpSendInv || op == OpSendSEInv {
		wc.InvalidatedSTag, wc.Invalidated = invalidateSTag(rsvd), true
		if !q.invalidate(wc.InvalidatedSTag) {
			q.rq.status = StatusMWBindErr
			q.reject(errInvalidate)
			return
		}
	}
	q.consume(wc)
}

// consume completes the first receive with wc.
func (q *QP) consume(wc WC) {
	b, _ := q.rq.q.Pop()
	q.rq.imm.popped++
	wc.ID = q.rq.id(b)
	if q.rq.behind != nil {
		q.rq.behind = append(q.rq.behind, wc)
		return
	}
	q.cfg.RecvCQ.Push(wc)
}

// handOver completes the receives that have waited.
func (q *QP) handOver() {
	for _, wc := range q.rq.behind {
		q.cfg.RecvCQ.Push(wc)
	}
	q.rq.behind = nil
}

// invalidate carries out the Invalidate of a Send, at delivery and before the user sees the Send
// (section 5.3). It reports whether the peer may invalidate the STag: it must be valid, associated with
// this stream and no other (sections 7.2 and 8.1.1 item 7), and enabled for remote access: an STag
// that was never advertised, such as the sink of a Read, is not the peer's to end. Where much of the region is in flight, which a peer that
// acknowledges nothing can bring about, this receive and those behind it complete when all is copied, in parts.
func (q *QP) invalidate(tag ddp.STag) bool {
	r, err := q.stream.CheckSTag(tag)
	if err != nil || r.Scope() == 0 && q.cfg.Host.SharedRegion(r) {
		return false
	}
	if !q.grants(tag, ddp.RemoteRead) && !q.grants(tag, ddp.RemoteWrite) && !q.grants(tag, ddp.RemoteAtomic) {
		return false
	}
	r.Invalidate()
	if q.rq.behind == nil && (q.sq.references(r) || q.resp.references(r)) && q.detach() {
		q.rq.behind = make([]WC, 0, 4)
	}
	return true
}

// grants reports whether tag has a right. Rights are checked before bounds, so the offset asked about
// need not be inside the region.
func (q *QP) grants(tag ddp.STag, a ddp.Access) bool {
	_, err := q.stream.Resolve(tag, 0, 1, a)
	return err == nil || err.Code != ddp.CodeInvalidSTag
}

// flushReceives completes all receives in error. No more can be posted.
func (q *QP) flushReceives() {
	q.handOver()
	st := q.rq.status
	if st == StatusSuccess {
		st = StatusWRFlushErr
	}
	if q.rq.srq == nil {
		q.rq.inbox.close()
		q.rq.fetch()
	}
	for {
		b, ok := q.rq.q.Flush()
		if !ok && q.rq.srq == nil {
			b, ok = q.rq.inbox.rest()
		}
		if !ok {
			return
		}
		q.cfg.RecvCQ.Push(WC{ID: q.rq.id(b), Status: st, Opcode: WCRecv, QPNum: q.cfg.QPNum})
		st = StatusWRFlushErr
	}
}
