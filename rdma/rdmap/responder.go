package rdmap

import (
	"errors"

	"github.com/rddp-go/rddp/ddp"
)

// responder serves the RDMA Reads and atomics of the peer: untagged queue 1 (section 5.2.1, RFC
// 7306 section 5.2).
//
// A request holds its buffer of queue 1 until the last segment of its response has been cut. So no
// more than IRD requests are ever pending: one too many finds no buffer, a DDP error (section 6.1).
// RFC 6581 section 4.1 would hold the buffer until the response is acknowledged. But a peer that
// has the response asks for more at once, and its request may come before the acknowledgement.
//
// An atomic is carried out when its request is delivered. Its response takes its turn among the
// others.
type responder struct {
	requestQueue fixedQueue

	requests   []inboundRequest // IRD places
	head, tail uint64           // [head, tail) are pending; head is being answered when cut is cutResponse
	body       [1]ddp.Piece

	// sources of the responses that ddp has not completed: [ackedResponses,
	// sentResponses). Twice IRD places; a response waits for one.
	sources                       []responseSource
	ackedResponses, sentResponses uint64
}

// responseSource is what ddp may still read for a response.
type responseSource struct {
	region         *ddp.Region             // of a Read
	atomicResponse [AtomicResponseLen]byte // the response to an atomic
}

// inboundRequest is a Read or Atomic Request that was delivered and found valid.
type inboundRequest struct {
	ReadRequest
	rsvd     [5]byte // of its DDP header, for a Terminate
	msn      uint32
	isAtomic bool // it was carried out, with this result
	result   AtomicResponse
}

func (r *responder) init(cfg *Config) {
	r.requests = make([]inboundRequest, cfg.IRD)
	r.sources = make([]responseSource, 2*cfg.IRD)
	r.requestQueue.init(cfg.IRD, AtomicRequestLen) // long enough for either request
}

func (r *responder) at(i uint64) *inboundRequest { return &r.requests[i%uint64(len(r.requests))] }

// canRespond reports whether a response may be handed to ddp.
func (r *responder) canRespond() bool {
	return r.head < r.tail && r.sentResponses-r.ackedResponses < uint64(len(r.sources))
}

// completeOldest: ddp has completed the oldest response.
func (r *responder) completeOldest() {
	r.sources[r.ackedResponses%uint64(len(r.sources))] = responseSource{}
	r.ackedResponses++
}

// referencesRegion reports whether a response that ddp may still send again reads from reg.
func (r *responder) referencesRegion(reg *ddp.Region) bool {
	for i := r.ackedResponses; i < r.sentResponses; i++ {
		if r.sources[i%uint64(len(r.sources))].region.Within(reg) {
			return true
		}
	}
	return false
}

// QueuedReads returns the number of the peer's RDMA Reads and atomics whose responses have not been
// sent.
func (q *QP) QueuedReads() int { return int(q.resp.tail - q.resp.head) }

// receiveReadRequest takes a Read or Atomic Request in its turn. Nothing of it was processed
// before. So the response holds what earlier messages of the peer wrote (section 5.5 rules 12 and
// 17, RFC 7306 section 5.4 rules 3 and 5).
func (q *QP) receiveReadRequest(msn uint32, rsvd [5]byte, length uint32, token uint64) {
	op, f := checkControl(rsvd[0], q.cfg.readQueueOpcodes())
	want := uint32(ReadRequestLen)
	if op == OpAtomicRequest {
		want = AtomicRequestLen
	}
	if f == nil && length != want {
		f = errUnspecified
	}
	if f != nil {
		q.rejectMessage(f)
		return
	}
	r := inboundRequest{rsvd: rsvd, msn: msn}
	if op == OpAtomicRequest {
		if f := q.executeAtomic(&r, (*[AtomicRequestLen]byte)(q.resp.requestQueue.bufferAt(token))); f != nil {
			q.rejectMessage(f) // without the RDMA header: RFC 7306 section 8.1 rule 2
			return
		}
	} else if !q.acceptRead(&r, (*[ReadRequestLen]byte)(q.resp.requestQueue.bufferAt(token))) {
		return
	}
	*q.resp.at(q.resp.tail) = r
	q.resp.tail++
	q.sendNext()
}

// executeAtomic carries out an atomic (RFC 7306 section 5.1) and leaves its result in r.
func (q *QP) executeAtomic(r *inboundRequest, octets *[AtomicRequestLen]byte) *fault {
	req, ok := ParseAtomicRequest(octets)
	if !ok {
		return errOpcode
	}
	old, err := q.stream.Atomic(req.STag, req.TO, &req.Op)
	switch {
	case err == nil:
		r.isAtomic, r.result = true, AtomicResponse{ID: req.ID, Original: old}
		return nil
	case err.Type == ddp.TypeTagged:
		return &fault{RemoteProtection, q.sourceCode(req.STag, err)}
	}
	return errCatastrophic // not aligned (section 8.2), or the device behind the region failed
}

// acceptRead checks a Read Request (section 7.2 item 4) and takes it into r.
func (q *QP) acceptRead(r *inboundRequest, octets *[ReadRequestLen]byte) bool {
	r.ReadRequest = ParseReadRequest(octets)
	// Section 5.2.1: the source of a zero-length read is not validated; Resolve knows that, and its
	// sink never wraps.
	var err *ddp.Error
	if r.SinkTO+uint64(r.Size) < r.SinkTO {
		err = &ddp.Error{Type: ddp.TypeTagged, Code: ddp.CodeTOWrap} // no response can be sent there
	} else {
		_, err = q.stream.Resolve(r.SrcSTag, r.SrcTO, uint64(r.Size), ddp.RemoteRead)
	}
	if err != nil {
		f := &fault{RemoteProtection, q.sourceCode(r.SrcSTag, err)}
		t := Terminate{Layer: LayerRDMA, EType: f.etype, Code: f.code, HasRDMA: true, RDMA: *octets}
		t.quoteSegment(q.stream.Fail(ddp.TypeLocal, 0, f))
		q.startTerminate(t, f)
	}
	return err == nil
}

// sourceCode translates the refusal of a read source, or of the target of an atomic, into a code of
// Figure 9 (section 7.2 item 4).
func (q *QP) sourceCode(tag ddp.STag, err *ddp.Error) uint8 {
	switch err.Code {
	case ddp.CodeNotAssociated:
		return CodeNotAssociated
	case ddp.CodeBaseBounds:
		return CodeBounds
	case ddp.CodeTOWrap:
		return CodeTOWrap
	}
	if r := q.cfg.Table.Lookup(tag); r != nil && r.Valid() {
		return CodeAccess
	}
	return CodeInvalidSTag
}

// sendResponse hands the oldest response to ddp. SinkSTag and SinkTO of a Read go back
// uninterpreted (section 4.4).
func (q *QP) sendResponse() {
	r := &q.resp
	req := r.at(r.head)
	src := &r.sources[r.sentResponses%uint64(len(r.sources))]
	r.sentResponses++
	q.cutNow = cutResponse
	var err error
	if req.isAtomic {
		req.result.Put(&src.atomicResponse)
		r.body[0] = ddp.Piece{Mem: ddp.Bytes(src.atomicResponse[:]), Len: AtomicResponseLen}
		err = q.stream.SendUntagged(QueueAtomicResponse, untaggedRsvd(OpAtomicResponse, 0), r.body[:], tokenResponse)
	} else if piece, e := q.stream.Resolve(req.SrcSTag, req.SrcTO, uint64(req.Size), ddp.RemoteRead); e != nil {
		q.cutNow = cutNothing // the region has changed since the request was checked
		q.failStream(q.refusedRead(0, q.sourceCode(req.SrcSTag, e)), e)
	} else {
		var g ddp.Gather
		if req.Size > 0 {
			r.body[0], src.region = piece, piece.Region
			g = r.body[:]
		}
		err = q.stream.SendTagged(req.SinkSTag, req.SinkTO, Control(OpReadResponse), g, tokenResponse)
	}
	if err != nil { // the source has just been revoked
		q.cutNow = cutNothing
		q.failStream(q.failedResponse(0, err), err)
	}
}

// retireRequest frees the buffer of a request whose response has been cut to its end.
func (r *responder) retireRequest() {
	r.head++
	r.requestQueue.repostFirst()
}

// failedResponse is the Terminate for a response that broke off after n octets.
func (q *QP) failedResponse(n uint32, cause error) Terminate {
	if errors.Is(cause, ddp.ErrRevoked) { // the region, or the right to read from it
		tag := q.resp.at(q.resp.head).SrcSTag
		return q.refusedRead(n, q.sourceCode(tag, &ddp.Error{Type: ddp.TypeTagged, Code: ddp.CodeInvalidSTag}))
	}
	t := q.refusedRead(n, CodeCatastrophic) // the device behind the region failed
	t.EType, t.HasRDMA = RemoteOperation, false
	return t
}

// refusedRead is the Terminate for a Read whose source is refused after n octets of the response.
// It quotes the Read Request advanced by what was sent (section 4.8).
func (q *QP) refusedRead(n uint32, code uint8) Terminate {
	req := q.resp.at(q.resp.head)
	t := Terminate{Layer: LayerRDMA, EType: RemoteProtection, Code: code,
		HasLength: true, HasDDP: true, HasRDMA: true, SegLength: ddp.UntaggedHeaderLen + ReadRequestLen}
	ddp.Untagged{Last: true, Rsvd: req.rsvd, QN: QueueReadRequest, MSN: req.msn}.Put(t.DDP[:])
	at := req.advanceBy(n)
	at.Put(&t.RDMA)
	return t
}
