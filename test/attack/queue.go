package attack

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// queue is a QP of the victim's, and a program that receives, sends and reads on it for as long as
// it lasts.
type queue struct {
	s       *Siege
	h       *hold
	core    *rdmap.QP
	session *ddpadapt.Session
	stream  ddp.StreamID
	open    [3]loan // to the peer: to write, to read, for atomics
	private loan    // for reads' answers
	lent    map[uint64]loan
	id      uint64
	done    bool
}

// loan is a page that is registered.
type loan struct {
	page   page
	region *ddp.Region
}

func (s *Siege) newQueue(h *hold) *queue {
	s.nextStream++
	q := &queue{s: s, h: h, stream: s.nextStream, lent: make(map[uint64]loan)}
	core, err := rdmap.NewQP(rdmap.Config{Table: s.table, PD: 1, Stream: q.stream, QPNum: uint32(q.stream),
		SendCQ: (*sendCQ)(q), RecvCQ: (*recvCQ)(q), Host: (*host)(q), MaxSend: 8, MaxRecv: 8, MaxSGE: 1,
		MaxInline: 64, IRD: 4, ORD: 4})
	if err != nil {
		s.fail("a QP is refused: %v", err)
		return nil
	}
	q.core = core
	for i, access := range [...]ddp.Access{ddp.RemoteWrite | ddp.LocalWrite, ddp.RemoteRead,
		ddp.RemoteAtomic | ddp.LocalWrite} {
		if q.open[i] = q.lend(granted, access); q.open[i].region == nil {
			q.release()
			return nil
		}
	}
	if q.private = q.lend(granted, ddp.LocalWrite); q.private.region == nil {
		q.release()
		return nil
	}
	for range 8 {
		q.receive()
	}
	return q
}

// lend registers a page full of one octet. Without one there is no region.
func (q *queue) lend(octet byte, access ddp.Access) loan {
	p, ok := q.s.memory.take(octet)
	if !ok {
		return loan{}
	}
	return loan{p, p.register(access, q.stream)}
}

// back ends the loan of a request that has completed: by then nothing reads or writes there.
func (q *queue) back(l loan) {
	if l.region == nil {
		return
	}
	q.s.table.Deregister(l.region) // unless the peer has invalidated it
	l.page.give()
}

// withdraw ends the loan of memory that was open to the peer, as rdma.MR.Deregister does.
func (q *queue) withdraw(l loan) {
	if l.region != nil && q.session != nil {
		for q.session.Detach(l.page.bytes()) {
		}
	}
	q.back(l)
}

// tags are the STags that the peer is told.
func (q *queue) tags() (b []byte) {
	for _, l := range q.open {
		b = binary.BigEndian.AppendUint32(b, uint32(l.region.STag()))
	}
	return b
}

func (q *queue) receive() {
	l := q.lend(unsent, ddp.LocalWrite)
	if l.region == nil {
		return
	}
	q.id++
	if err := q.core.PostRecv(&rdmap.RecvWR{ID: q.id,
		SGL: []rdmap.SGE{{LKey: l.region.STag(), Len: pageLen}}}); err != nil {
		q.back(l)
		return
	}
	q.lent[q.id] = l
}

func (q *queue) start() {
	q.core.Start()
	q.work()
}

// work sends, and reads from the peer, as far as there is room.
func (q *queue) work() {
	for range 3 {
		q.send()
	}
	if q.s.c.One(3) {
		q.id++
		wr := rdmap.SendWR{ID: q.id, Op: rdmap.WRRead, RemoteSTag: 0xABCD_0123,
			SGL: []rdmap.SGE{{LKey: q.private.region.STag(), Len: 512}}}
		q.core.PostSend(&wr) // refused when the queue is full
	}
}

func (q *queue) send() {
	l := q.lend(granted, 0)
	if l.region == nil {
		return
	}
	q.id++
	if err := q.core.PostSend(&rdmap.SendWR{ID: q.id, Op: rdmap.WRSend,
		SGL: []rdmap.SGE{{LKey: l.region.STag(), Len: pageLen}}}); err != nil {
		q.back(l)
		return
	}
	q.lent[q.id] = l
}

// release gives back all that the queue has, when its session is over.
func (q *queue) release() {
	if q.done {
		return
	}
	q.done = true
	for _, l := range q.open {
		q.withdraw(l)
	}
	q.withdraw(q.private)
	ids := make([]uint64, 0, len(q.lent))
	for id := range q.lent {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids { // receives that no session came to use
		q.back(q.lent[id])
	}
	q.lent = nil
}

// sendCQ, recvCQ and host are what the QP needs of its surroundings.
type (
	sendCQ queue
	recvCQ queue
	host   queue
)

func (c *sendCQ) Push(wc rdmap.WC) {
	q := (*queue)(c)
	if wc.Opcode == rdmap.WCRead {
		q.s.stats.Reads++
	} else {
		q.s.stats.Sends++
	}
	if l, ok := q.lent[wc.ID]; ok {
		delete(q.lent, wc.ID)
		q.back(l)
	}
	if !q.done && wc.Status == rdmap.StatusSuccess {
		q.s.ground.After(0, func() {
			if !q.done && !q.h.gone {
				q.work()
				q.h.Pump()
			}
		})
	}
}

func (c *recvCQ) Push(wc rdmap.WC) {
	q := (*queue)(c)
	q.s.stats.Receives++
	l, ok := q.lent[wc.ID]
	if !ok {
		return
	}
	if wc.Status == rdmap.StatusSuccess && wc.Opcode == rdmap.WCRecv {
		if b := l.page.bytes()[:wc.ByteLen]; bytes.Contains(b, bytes.Repeat([]byte{unsent}, 8)) {
			q.s.fail("the program is handed %d octets, of which its peer did not send all", wc.ByteLen)
		}
	}
	delete(q.lent, wc.ID)
	q.back(l)
	if !q.done && wc.Status == rdmap.StatusSuccess {
		q.receive()
	}
}

func (h *host) SharedRegion(r *ddp.Region) bool { return r.Scope() == 0 }
func (h *host) FlushLater()                     { h.h.flushing = append(h.h.flushing, (*queue)(h)) }
func (h *host) HighWater()                      {}
func (h *host) Failed(*rdmap.StreamError)       { h.s.stats.Violations++ }
func (h *host) Broken(err *rdmap.InternalError) { h.s.fail("%v", err) }
func (h *host) PeerClosed()                     { h.h.closing = append(h.h.closing, (*queue)(h)) }
func (h *host) Detach() (more bool) {
	return h.session != nil && h.session.Detach(nil)
}
