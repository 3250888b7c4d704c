package rdmap

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/ddp"
)

// Immediate Data (RFC 7306 section 6).

// ImmediateLen is the length of Immediate Data in octets; it is the whole payload of its message.
const ImmediateLen = 8

// setImmediate makes v the payload of the message.
func (w *sendSlot) setImmediate(v uint64) {
	binary.BigEndian.PutUint64(w.imm[:], v)
	w.pieces = append(w.pieces[:0], ddp.Piece{Mem: ddp.Bytes(w.imm[:]), Len: ImmediateLen})
}

// immediateBuffers is where Immediate Data is placed. It consumes a buffer of queue 0, as the RFC
// asks, but is not put there. A receive of any length will do, and the user finds the 8 octets in
// the completion.
type immediateBuffers struct {
	values        [][ImmediateLen]byte // for each buffer of the queue
	poppedBuffers uint64               // buffers retired so far
	lastBuf       ddp.RecvBuffer       // what bufferFor returned last
	piece         [1]ddp.Piece
}

func (m *immediateBuffers) init(depth int) { m.values = make([][ImmediateLen]byte, depth) }

// at returns the place for the i-th message from the first available buffer on.
func (m *immediateBuffers) at(i uint32) *[ImmediateLen]byte {
	return &m.values[(m.poppedBuffers+uint64(i))%uint64(len(m.values))]
}

// bufferFor returns what serves message msn: the posted buffer, or for Immediate Data a place of
// its own.
func (r *recvQueue) bufferFor(msn uint32, control uint8) (*ddp.RecvBuffer, uint8) {
	b, code := r.lookupBuffer(msn)
	_, op := SplitControl(control)
	if code != 0 || op != OpImmediate && op != OpImmediateSE {
		return b, code
	}
	m := &r.imm
	m.piece[0] = ddp.Piece{Mem: ddp.Bytes(m.at(msn - r.queue.First())[:]), Len: ImmediateLen}
	m.lastBuf = ddp.RecvBuffer{Pieces: m.piece[:], Len: ImmediateLen}
	return &m.lastBuf, 0
}

// receiveImmediate takes Immediate Data in its turn (section 6.3).
func (q *QP) receiveImmediate(op Opcode, length uint32) {
	if length != ImmediateLen { // shorter: more did not fit
		q.rq.status = StatusLocLenErr
		q.rejectMessage(errUnspecified)
		return
	}
	q.completeReceive(WC{Opcode: WCRecvImm, QPNum: q.cfg.QPNum, Solicited: op == OpImmediateSE,
		Immediate: binary.BigEndian.Uint64(q.rq.imm.at(0)[:])})
}
