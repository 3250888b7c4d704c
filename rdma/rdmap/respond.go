package rdmap

import (
	"errors"

	"github.com/rddp-go/rddp/ddp"
)

// responder serves the RDMA Reads of the peer: untagged queue 1 (section 5.2.1).
//
// A request holds its buffer of queue 1 until the last segment of its response has been cut, so that
// no more than IRD requests are ever pending: one too many finds no buffer, a DDP error (section 6.1).
type responder struct {
	q       *ddp.Queue
	buffers [][ReadRequestLen]byte
	pieces  []ddp.Piece

	ring       []request // IRD places
	head, tail uint64    // [head, tail) are pending; head is being answered when cut is cutResponse
	body       [1]ddp.Piece

	// sources of the responses that ddp has not completed: [acked, sent). Twice IRD places; a response
	// waits for one.
	sources     []*ddp.Region
	acked, sent uint64
}

// request is a Read Request that was delivered and found valid.
type request struct {
	ReadRequest
	src  ddp.Piece
	rsvd [5]byte // of its DDP header, for a Terminate
	msn  uint32
}

func (r *responder) init(cfg *Config) error {
	r.q = ddp.NewQueue(cfg.IRD)
	r.buffers = make([][ReadRequestLen]byte, cfg.IRD)
	r.pieces = make([]ddp.Piece, cfg.IRD)
	r.ring = make([]request, cfg.IRD)
	r.sources = make([]*ddp.Region, 2*cfg.IRD)
	for i := range r.buffers {
		r.pieces[i] = ddp.Piece{Mem: ddp.Bytes(r.buffers[i][:]), Len: ReadRequestLen}
		b, err := ddp.MakeRecvBuffer(r.pieces[i:i+1:i+1], uint64(i))
		if err != nil {
			return err
		}
		if err := r.q.Post(b); err != nil {
			return err
		}
	}
	return nil
}

func (r *responder) at(i uint64) *request { return &r.ring[i%uint64(len(r.ring))] }

// ready reports whether a response may be handed to ddp.
func (r *responder) ready() bool { return r.head < r.tail && r.sent-r.acked < uint64(len(r.sources)) }

// completed: ddp has completed the oldest response.
func (r *responder) completed() {
	r.sources[r.acked%uint64(len(r.sources))] = nil
	r.acked++
}

// references reports whether a response that ddp may still send again reads from reg.
func (r *responder) references(reg *ddp.Region) bool {
	for i := r.acked; i < r.sent; i++ {
		if r.sources[i%uint64(len(r.sources))] == reg {
			return true
		}
	}
	return false
}

// QueuedReads returns the number of the peer's RDMA Reads whose responses have not been sent.
func (q *QP) QueuedReads() int { return int(q.resp.tail - q.resp.head) }

// requested takes a Read Request in its turn. Nothing of it was processed before, so that the response
// holds what earlier messages of the peer wrote (section 5.5 rules 12 and 17).
func (q *QP) requested(msn uint32, rsvd [5]byte, length uint32, token uint64) {
	if _, f := checkControl(rsvd[0], onReadQueue); f != nil {
		q.reject(f)
		return
	}
	if length != ReadRequestLen {
		q.reject(errUnspecified)
		return
	}
	octets := &q.resp.buffers[token]
	r := request{ReadRequest: ParseReadRequest(octets), rsvd: rsvd, msn: msn}
	// Section 5.2.1: the source of a zero-length read is not validated; Resolve knows that.
	var err *ddp.Error
	if r.Size > 0 && r.SinkTO+uint64(r.Size) < r.SinkTO {
		err = &ddp.Error{Type: ddp.TypeTagged, Code: ddp.CodeTOWrap} // no response can be sent there
	} else {
		r.src, err = q.stream.Resolve(r.SrcSTag, r.SrcTO, uint64(r.Size), ddp.RemoteRead)
	}
	if err != nil {
		f := &fault{RemoteProtection, q.sourceCode(r.SrcSTag, err)}
		t := Terminate{Layer: LayerRDMA, EType: f.etype, Code: f.code, HasRDMA: true, RDMA: *octets}
		t.quote(q.stream.Fail(ddp.TypeLocal, 0, f))
		q.terminate(t, f)
		return
	}
	*q.resp.at(q.resp.tail) = r
	q.resp.tail++
	q.pump()
}

// sourceCode translates the refusal of a read source into a code of Figure 9 (section 7.2 item 4).
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

// sendResponse hands the oldest response to ddp: SinkSTag and SinkTO go back uninterpreted (section 4.4).
func (q *QP) sendResponse() {
	r := &q.resp
	req := r.at(r.head)
	var g ddp.Gather
	if req.Size > 0 {
		r.body[0] = req.src
		g = r.body[:]
	}
	r.sources[r.sent%uint64(len(r.sources))] = req.src.Region
	r.sent++
	q.cut = cutResponse
	err := q.stream.SendTagged(req.SinkSTag, req.SinkTO, Control(OpReadResponse), g, tokenResponse)
	if err != nil { // the source was revoked since the request, or SinkTO wraps
		q.cut = cutNothing
		q.fail(q.failedResponse(0, err), err)
	}
}

// retire frees the buffer of a request whose response has been cut to its end.
func (r *responder) retire() {
	r.at(r.head).src = ddp.Piece{}
	r.head++
	if b, ok := r.q.Pop(); ok {
		_ = r.q.Post(b) // there is room: a buffer has just been taken out
	}
}

// failedResponse is the Terminate for a response that broke off after n octets: it quotes the Read
// Request advanced by what was sent (section 4.8).
func (q *QP) failedResponse(n uint32, cause error) Terminate {
	t := Terminate{Layer: LayerRDMA, EType: RemoteProtection,
		HasLength: true, HasDDP: true, HasRDMA: true, SegLength: ddp.UntaggedHeaderLen + ReadRequestLen}
	switch {
	case errors.Is(cause, ddp.ErrRevoked):
		t.Code = CodeInvalidSTag
	case errors.Is(cause, ddp.ErrRange): // the region has been bound to less memory
		t.Code = CodeBounds
	default: // the device behind the region failed
		t.EType, t.Code, t.HasRDMA = RemoteOperation, CodeCatastrophic, false
	}
	req := q.resp.at(q.resp.head)
	ddp.Untagged{Last: true, Rsvd: req.rsvd, QN: QueueReadRequest, MSN: req.msn}.Put(t.DDP[:])
	if t.HasRDMA {
		at := req.advance(n)
		at.Put(&t.RDMA)
	}
	return t
}
