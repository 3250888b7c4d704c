package rdmap

import (
	"unsafe"

	"github.com/rddp-go/rddp/ddp"
)

// minSendMemory is the least that a stream takes to send.
const minSendMemory = 1 << 10

// Held returns the octets of memory that the QP keeps, without the program's memory. Most of it is
// there from the beginning.
func (q *QP) Held() int {
	const piece = int(unsafe.Sizeof(ddp.Piece{}))
	n := int(unsafe.Sizeof(*q)) + q.stream.Held() + minSendMemory + q.terminateQueue.Held() +
		q.atomicResponses.heldOctets() + q.resp.requestQueue.heldOctets()
	s := &q.sq
	n += len(s.slots)*(int(unsafe.Sizeof(sendSlot{}))+q.cfg.MaxSGE*piece+q.cfg.MaxInline) + 8*len(s.readRequests) +
		len(s.readHeaders)*int(unsafe.Sizeof(readHeader{}))
	n += len(q.resp.requests)*int(unsafe.Sizeof(inboundRequest{})) +
		len(q.resp.sources)*int(unsafe.Sizeof(responseSource{}))
	r := &q.rq
	return n + r.queue.Held() + len(r.imm.values)*ImmediateLen + len(r.inbox.pieces)*piece +
		r.inbox.maxOutstanding*int(unsafe.Sizeof(ddp.RecvBuffer{}))
}

func (f *fixedQueue) heldOctets() int {
	if f.Queue == nil {
		return 0
	}
	return f.Queue.Held() + len(f.memory) + len(f.memory)/f.bufferSize*int(unsafe.Sizeof(ddp.Piece{}))
}
