package rdmap

import (
	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rawio"
)

// sendSlot is a posted request until its completion.
type sendSlot struct {
	id         uint64
	op         WROpcode // WRWriteImm takes two slots: WRWrite with leads, and itself
	flags      Flags
	finished   bool   // finished; completes when all earlier ones have
	status     Status // of a request at fault
	length     uint32
	msn        uint32 // of its untagged message, once handed to ddp
	remoteSTag ddp.STag
	remoteTO   uint64
	invSTag    ddp.STag
	sink       SGE        // Read: where the response goes
	pieces     ddp.Gather // Send and Write: length 0 to MaxSGE, capacity MaxSGE
	inline     []byte     // capacity MaxInline

	postedAt      rawio.Time
	atomicOp      AtomicOp
	originalValue uint64 // Atomic: what the response says
	imm           [ImmediateLen]byte
}

// queueNumber is the untagged queue of the slot's message, which is no RDMA Write.
func (w *sendSlot) queueNumber() uint32 {
	if w.op.needsResponse() {
		return QueueReadRequest
	}
	return QueueSend
}

// sendQueue holds requests from posting to completion: [completed, handedOver) are with ddp,
// [handedOver, posted) wait. The counters never wrap in practice (64 bits).
type sendQueue struct {
	slots                         []sendSlot // one more than MaxSend, for a hidden request
	completed, handedOver, posted uint64
	hiddenRequests                int // hidden requests not completed

	// RDMA Reads and atomics with ddp or the peer: the slots of [readsAnswered, readsSent),
	// oldest first. The peer answers in this order (section 5.5 rule 20, RFC 7306 section 5.2.2).
	readRequests             []uint64 // ORD places
	readsSent, readsAnswered uint64
	// readHeaders hold the requests until they are acknowledged, which may be after the response
	// came. There are twice as many as ORD; a request waits for one too.
	readHeaders      []readHeader
	readHeadersAcked uint64 // of readsSent

	sendMSN, readMSN uint32 // of the next message on queue 0 and 1; the first is 1

	now     *rawio.Time // set with latency
	latency *Latency    // of requests; may be nil
}

type readHeader struct {
	octets [AtomicRequestLen]byte
	piece  [1]ddp.Piece
}

func (s *sendQueue) init(cfg *Config) {
	n := cfg.MaxSend + 1
	s.slots = make([]sendSlot, n)
	pieces := make(ddp.Gather, n*cfg.MaxSGE)
	inline := make([]byte, n*cfg.MaxInline)
	for i := range s.slots {
		p, n := i*cfg.MaxSGE, i*cfg.MaxInline
		s.slots[i].pieces = pieces[p : p : p+cfg.MaxSGE]
		s.slots[i].inline = inline[n : n : n+cfg.MaxInline]
	}
	s.readRequests = make([]uint64, cfg.ORD)
	s.readHeaders = make([]readHeader, 2*cfg.ORD)
	s.sendMSN, s.readMSN = 1, 1
}

func (s *sendQueue) at(i uint64) *sendSlot { return &s.slots[i%uint64(len(s.slots))] }

func (s *sendQueue) isEmpty() bool { return s.completed == s.posted }

// freePlaces is the number of places for further requests of the user.
func (s *sendQueue) freePlaces() int {
	return len(s.slots) - 1 + s.hiddenRequests - int(s.posted-s.completed)
}

// outstandingReads is the number of requests that count against ORD.
func (s *sendQueue) outstandingReads() int { return int(s.readsSent - s.readsAnswered) }

// readAt returns the i-th oldest unanswered request.
func (s *sendQueue) readAt(i int) *sendSlot {
	return s.at(s.readRequests[(s.readsAnswered+uint64(i))%uint64(len(s.readRequests))])
}

// canHandOver reports whether the next request may be handed to ddp. Requests go in the order of
// submission (section 5.5 rule 13): one that waits holds up all behind it. What goes beyond ORD
// waits (section 6.1).
func (s *sendQueue) canHandOver() bool {
	if s.handedOver == s.posted {
		return false
	}
	w := s.at(s.handedOver)
	if w.flags&Fence != 0 && s.outstandingReads() > 0 {
		return false
	}
	return !w.op.needsResponse() ||
		s.outstandingReads() < len(s.readRequests) && s.readsSent-s.readHeadersAcked < uint64(len(s.readHeaders))
}

// markFinished marks a Send or RDMA Write as finished by ddp. It completes afterwards, unless it
// was flushed and nobody looks any more.
func (s *sendQueue) markFinished(i uint64) { s.at(i).finished = true }

// markFault marks the request that the stream fails for.
func (s *sendQueue) markFault(i uint64, st Status) { s.at(i).status = st }

// referencesRegion reports whether a message that ddp may still send again reads from r.
func (s *sendQueue) referencesRegion(r *ddp.Region) bool {
	for i := s.completed; i < s.handedOver; i++ {
		if w := s.at(i); !w.finished {
			for _, p := range w.pieces {
				if p.Region.Within(r) {
					return true
				}
			}
		}
	}
	return false
}

// PostSend queues a request, or refuses it with nothing queued. ErrState: the state is not
// StateRTS, or the peer has closed its half and cannot answer an RDMA Read or Atomic. Other errors:
// the queue is full, or one of the reasons listed at ErrQueueFull.
func (q *QP) PostSend(wr *SendWR) error {
	places := 1
	if wr.Op == WRWriteImm || wr.Op == WRWriteImmSE {
		places = 2
	}
	switch {
	case q.state != StateRTS || q.peerClosed && wr.Op.needsResponse():
		return ErrState
	case wr.Op >= numWROpcodes:
		return ErrOpcode
	case wr.Op == WRAtomic && q.cfg.NoAtomics, wr.Op.sendsImmediate() && q.cfg.NoImmediate:
		return ErrDisabled
	case q.sq.freePlaces() < places:
		return ErrQueueFull
	case wr.Op.invalidates() && wr.InvalidateSTag == 0:
		return ErrInvalidate
	}
	if err := q.enqueueRequest(wr, wr.Flags&(Unsignaled|Fence)); err != nil {
		return err
	}
	q.sendNext()
	return nil
}

// enqueueRequest takes a request into the next slot, or slots.
func (q *QP) enqueueRequest(wr *SendWR, flags Flags) error {
	s := &q.sq
	w := s.fillSlot(wr, flags)
	var err error
	switch {
	case wr.Op == WRRead:
		err = q.checkSink(w, wr)
	case wr.Op == WRAtomic:
		w.atomicOp, w.length = wr.Atomic, ddp.AtomicLen
		if err = checkNoPayload(wr); err == nil && len(s.readRequests) == 0 {
			err = ErrNoReads
		}
	case wr.Op == WRImm || wr.Op == WRImmSE:
		w.setImmediate(wr.Immediate)
		err = checkNoPayload(wr)
	default:
		err = q.resolveSource(w, wr)
	}
	if err != nil {
		return err
	}
	if (wr.Op.startsWithWrite() || wr.Op.needsResponse()) && w.remoteTO+uint64(w.length) < w.remoteTO {
		return ErrRemoteRange
	}
	s.posted++
	if wr.Op.startsWithWrite() && wr.Op.sendsImmediate() {
		w.op, w.flags = WRWrite, w.flags|Unsignaled|leadsImmediate
		s.fillSlot(wr, flags&^Fence).setImmediate(wr.Immediate)
		s.posted++
	}
	return nil
}

// fillSlot makes the next slot one for wr.
func (s *sendQueue) fillSlot(wr *SendWR, flags Flags) *sendSlot {
	w := s.at(s.posted)
	pieces, inline := w.pieces[:0], w.inline[:0]
	*w = sendSlot{}
	w.id, w.op, w.flags, w.remoteSTag, w.remoteTO, w.pieces, w.inline = wr.ID, wr.Op, flags, wr.RemoteSTag,
		wr.RemoteTO, pieces, inline
	if s.latency != nil {
		w.postedAt = *s.now
	}
	if wr.Op.invalidates() {
		w.invSTag = wr.InvalidateSTag
	}
	return w
}

// checkNoPayload refuses memory for an operation that takes none.
func checkNoPayload(wr *SendWR) error {
	switch {
	case len(wr.Inline) > 0:
		return ErrInline
	case len(wr.SGL) > 0:
		return ErrSGECount
	}
	return nil
}

// resolveSource takes the memory of a Send or RDMA Write into w.
func (q *QP) resolveSource(w *sendSlot, wr *SendWR) error {
	if len(wr.Inline) > 0 {
		if len(wr.Inline) > cap(w.inline) || len(wr.SGL) > 0 {
			return ErrInline
		}
		w.inline = append(w.inline, wr.Inline...)
		w.length = uint32(len(wr.Inline))
		w.pieces = append(w.pieces, ddp.Piece{Mem: ddp.Bytes(w.inline), Len: uint64(w.length)})
		return nil
	}
	pieces, n, err := resolveSGL(q.stream, w.pieces, q.cfg.MaxSGE, wr.SGL, 0)
	w.pieces, w.length = pieces, n
	return err
}

// checkSink checks where the response to an RDMA Read goes: one tagged buffer (section 5.2.2).
func (q *QP) checkSink(w *sendSlot, wr *SendWR) error {
	switch {
	case len(q.sq.readRequests) == 0:
		return ErrNoReads
	case len(wr.Inline) > 0:
		return ErrInline
	case len(wr.SGL) != 1:
		return ErrSGECount
	}
	w.sink = wr.SGL[0]
	w.length = w.sink.Len
	_, err := q.stream.Resolve(w.sink.LKey, w.sink.Addr, uint64(w.sink.Len), ddp.LocalWrite)
	if err != nil {
		return &SGEError{0, localReason(q.stream, w.sink.LKey, err)}
	}
	return nil
}

// sendRequest hands the next request to ddp.
func (q *QP) sendRequest() {
	s := &q.sq
	i := s.handedOver
	w := s.at(i)
	s.handedOver++
	q.cutNow = cutRequest
	var err error
	switch w.op {
	case WRRead, WRAtomic:
		err = q.sendReadRequest(i, w)
	case WRWrite:
		err = q.stream.SendTagged(w.remoteSTag, w.remoteTO, Control(OpWrite), w.pieces, i<<tokenBits|tokenRequest)
	default:
		w.msn = s.sendMSN
		s.sendMSN++
		err = q.stream.SendUntagged(QueueSend, untaggedRsvd(w.op.wireOpcode(), w.invSTag), w.pieces,
			i<<tokenBits|tokenRequest)
	}
	if err != nil { // the memory was deregistered or changed since posting
		q.cutNow = cutNothing
		w.status = StatusLocProtErr
		q.failStream(Terminate{Layer: LayerRDMA, EType: LocalCatastrophic}, err)
	}
}

// sendReadRequest hands over a Read Request (section 4.4) or an Atomic Request (RFC 7306 section
// 5.2.1). Both go to queue 1, in one sequence of MSNs.
func (q *QP) sendReadRequest(i uint64, w *sendSlot) error {
	s := &q.sq
	h := &s.readHeaders[s.readsSent%uint64(len(s.readHeaders))]
	n := ReadRequestLen
	if w.op == WRAtomic {
		n = AtomicRequestLen
		w.putAtomic(&h.octets, i)
	} else {
		r := ReadRequest{SinkSTag: w.sink.LKey, SinkTO: w.sink.Addr, Size: w.length, SrcSTag: w.remoteSTag,
			SrcTO: w.remoteTO}
		r.Put((*[ReadRequestLen]byte)(h.octets[:]))
	}
	h.piece[0] = ddp.Piece{Mem: ddp.Bytes(h.octets[:n]), Len: uint64(n)}
	s.readRequests[s.readsSent%uint64(len(s.readRequests))] = i
	s.readsSent++
	w.msn = s.readMSN
	s.readMSN++
	return q.stream.SendUntagged(QueueReadRequest, untaggedRsvd(w.op.wireOpcode(), 0), h.piece[:],
		i<<tokenBits|tokenRead)
}

// completeRequests reports what has finished, in the order of submission (section 5.5 rule 15). A
// Send behind an unanswered Read waits for it.
func (q *QP) completeRequests() {
	s := &q.sq
	for s.completed < s.handedOver {
		w := s.at(s.completed)
		if !w.finished {
			return
		}
		s.completed++
		if w.flags&hiddenRequest != 0 {
			s.hiddenRequests--
		}
		if w.flags&Unsignaled == 0 {
			wc := WC{ID: w.id, Opcode: w.op.completionOpcode(), QPNum: q.cfg.QPNum, Original: w.originalValue}
			if w.op == WRRead {
				wc.ByteLen = w.length
			}
			if s.latency != nil {
				s.latency.histogramFor(w.op).Observe(s.now.Sub(w.postedAt))
			}
			q.cfg.SendCQ.Push(wc)
		}
	}
}
