package rdmap

import (
	"unsafe"

	"github.com/rddp-go/rddp/ddp"
)

// sendRing is the least that a stream takes to send.
const sendRing = 1 << 10

// Held returns the octets of memory that the QP keeps, most of which is there from the beginning, without the program's memory.
func (q *QP) Held() int {
	const piece = int(unsafe.Sizeof(ddp.Piece{}))
	n := int(unsafe.Sizeof(*q)) + q.stream.Held() + sendRing + q.termQ.Held() + q.answers.held() + q.resp.in.held()
	s := &q.sq
	n += len(s.slots)*(int(unsafe.Sizeof(sendSlot{}))+q.cfg.MaxSGE*piece+q.cfg.MaxInline) + 8*len(s.asks) + len(s.headers)*int(unsafe.Sizeof(askHeader{}))
	n += len(q.resp.ring)*int(unsafe.Sizeof(request{})) + len(q.resp.sources)*int(unsafe.Sizeof(source{}))
	r := &q.rq
	return n + r.q.Held() + len(r.imm.octets)*ImmediateLen + len(r.inbox.pieces)*piece + r.inbox.most*int(unsafe.Sizeof(ddp.RecvBuffer{}))
}

func (f *fixedQueue) held() int {
	if f.Queue == nil {
		return 0
	}
	return f.Queue.Held() + len(f.octets) + len(f.octets)/f.size*int(unsafe.Sizeof(ddp.Piece{}))
}
