package attack

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// victimQP is a QP of the victim's, and a program that receives, sends and reads on it for as long
// as it lasts.
type victimQP struct {
	s       *Simulation
	h       *victimConn
	core    *rdmap.QP
	session *ddpadapt.Session
	stream  ddp.StreamID
	open    [3]registeredPage // to the peer: to write, to read, for atomics
	private registeredPage    // for reads' answers
	lent    map[uint64]registeredPage
	id      uint64
	done    bool
}

// registeredPage is a page that is registered.
type registeredPage struct {
	page   page
	region *ddp.Region
}

func (s *Simulation) newQueue(h *victimConn) *victimQP {
	s.nextStream++
	q := &victimQP{s: s, h: h, stream: s.nextStream, lent: make(map[uint64]registeredPage)}
	core, err := rdmap.NewQP(rdmap.Config{Table: s.table, PD: 1, Stream: q.stream, QPNum: uint32(q.stream),
		SendCQ: (*sendCQ)(q), RecvCQ: (*recvCQ)(q), Host: (*host)(q), MaxSend: 8, MaxRecv: 8, MaxSGE: 1,
		MaxInline: 64, IRD: 4, ORD: 4})
	if err != nil {
		s.recordFailure("a QP is refused: %v", err)
		return nil
	}
	q.core = core
	for i, access := range [...]ddp.Access{ddp.RemoteWrite | ddp.LocalWrite, ddp.RemoteRead,
		ddp.RemoteAtomic | ddp.LocalWrite} {
		if q.open[i] = q.lendPage(granted, access); q.open[i].region == nil {
			q.releaseAll()
			return nil
		}
	}
	if q.private = q.lendPage(granted, ddp.LocalWrite); q.private.region == nil {
		q.releaseAll()
		return nil
	}
	for range 8 {
		q.postReceive()
	}
	return q
}

// lendPage registers a page full of one octet. Without one there is no region.
func (q *victimQP) lendPage(octet byte, access ddp.Access) registeredPage {
	p, ok := q.s.memory.takePage(octet)
	if !ok {
		return registeredPage{}
	}
	return registeredPage{p, p.registerPage(access, q.stream)}
}

// takeBack ends the loan of a request that has completed: by then nothing reads or writes there.
func (q *victimQP) takeBack(l registeredPage) {
	if l.region == nil {
		return
	}
	q.s.table.Deregister(l.region) // unless the peer has invalidated it
	l.page.fillWithSecret()
}

// withdrawPage ends the loan of memory that was open to the peer, as rdma.MR.Deregister does.
func (q *victimQP) withdrawPage(l registeredPage) {
	if l.region != nil && q.session != nil {
		for q.session.Detach(l.page.pageBytes()) {
		}
	}
	q.takeBack(l)
}

// knownSTags are the STags that the peer is told.
func (q *victimQP) knownSTags() (b []byte) {
	for _, l := range q.open {
		b = binary.BigEndian.AppendUint32(b, uint32(l.region.STag()))
	}
	return b
}

func (q *victimQP) postReceive() {
	l := q.lendPage(unsent, ddp.LocalWrite)
	if l.region == nil {
		return
	}
	q.id++
	if err := q.core.PostRecv(&rdmap.RecvWR{ID: q.id,
		SGL: []rdmap.SGE{{LKey: l.region.STag(), Len: pageLen}}}); err != nil {
		q.takeBack(l)
		return
	}
	q.lent[q.id] = l
}

func (q *victimQP) startQP() {
	q.core.Start()
	q.doWork()
}

// doWork sends, and reads from the peer, as far as there is room.
func (q *victimQP) doWork() {
	for range 3 {
		q.postSend()
	}
	if q.s.c.One(3) {
		q.id++
		wr := rdmap.SendWR{ID: q.id, Op: rdmap.WRRead, RemoteSTag: 0xABCD_0123,
			SGL: []rdmap.SGE{{LKey: q.private.region.STag(), Len: 512}}}
		q.core.PostSend(&wr) // refused when the queue is full
	}
}

func (q *victimQP) postSend() {
	l := q.lendPage(granted, 0)
	if l.region == nil {
		return
	}
	q.id++
	if err := q.core.PostSend(&rdmap.SendWR{ID: q.id, Op: rdmap.WRSend,
		SGL: []rdmap.SGE{{LKey: l.region.STag(), Len: pageLen}}}); err != nil {
		q.takeBack(l)
		return
	}
	q.lent[q.id] = l
}

// releaseAll gives back all that the queue has, when its session is over.
func (q *victimQP) releaseAll() {
	if q.done {
		return
	}
	q.done = true
	for _, l := range q.open {
		q.withdrawPage(l)
	}
	q.withdrawPage(q.private)
	ids := make([]uint64, 0, len(q.lent))
	for id := range q.lent {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids { // receives that no session came to use
		q.takeBack(q.lent[id])
	}
	q.lent = nil
}

// sendCQ, recvCQ and host are what the QP needs of its surroundings.
type (
	sendCQ victimQP
	recvCQ victimQP
	host   victimQP
)

func (c *sendCQ) Push(wc rdmap.WC) {
	q := (*victimQP)(c)
	if wc.Opcode == rdmap.WCRead {
		q.s.stats.Reads++
	} else {
		q.s.stats.Sends++
	}
	if l, ok := q.lent[wc.ID]; ok {
		delete(q.lent, wc.ID)
		q.takeBack(l)
	}
	if !q.done && wc.Status == rdmap.StatusSuccess {
		q.s.ground.After(0, func() {
			if !q.done && !q.h.gone {
				q.doWork()
				q.h.Pump()
			}
		})
	}
}

func (c *recvCQ) Push(wc rdmap.WC) {
	q := (*victimQP)(c)
	q.s.stats.Receives++
	l, ok := q.lent[wc.ID]
	if !ok {
		return
	}
	if wc.Status == rdmap.StatusSuccess && wc.Opcode == rdmap.WCRecv {
		if b := l.page.pageBytes()[:wc.ByteLen]; bytes.Contains(b, bytes.Repeat([]byte{unsent}, 8)) {
			q.s.recordFailure("the program is handed %d octets, of which its peer did not send all", wc.ByteLen)
		}
	}
	delete(q.lent, wc.ID)
	q.takeBack(l)
	if !q.done && wc.Status == rdmap.StatusSuccess {
		q.postReceive()
	}
}

func (h *host) SharedRegion(r *ddp.Region) bool { return r.Scope() == 0 }
func (h *host) FlushLater()                     { h.h.flushing = append(h.h.flushing, (*victimQP)(h)) }
func (h *host) HighWater()                      {}
func (h *host) Failed(*rdmap.StreamError)       { h.s.stats.Violations++ }
func (h *host) Broken(err *rdmap.InternalError) { h.s.recordFailure("%v", err) }
func (h *host) PeerClosed()                     { h.h.closing = append(h.h.closing, (*victimQP)(h)) }
func (h *host) Detach() (more bool) {
	return h.session != nil && h.session.Detach(nil)
}
