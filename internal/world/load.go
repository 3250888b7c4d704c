package world

import (
	"bytes"
	"errors"
	"time"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// load is the workload of one QP and the oracle for it. It knows both ends, and uses nothing of the
// stack but the QP's public calls.
type load struct {
	w    *World
	q    *qp
	peer *load
	next rawio.Time // when act is called

	// What this side owns. Slots are handed out whole and come back when nothing refers to them.
	src, target, sink *slots
	readable          area
	recv              []area
	words             *words

	srcR, targetR, sinkR, readableR, recvR *ddp.Region

	posted    []op      // the send queue, oldest first
	uncovered []*write  // writes that no later Send of ours has covered yet
	expect    []message // what the peer has sent us, in order
	credits   int       // receives posted here that no Send has been posted for
	repost    []uint64  // receives to be posted again
	stopped   bool
	doomed    *violation         // this QP is about to fail, and how
	fault     *rdmap.StreamError // it has failed
	seq       uint64             // work request ids
	finished  []area             // source slots to be reused
	stale     []*ddp.Region      // regions whose invalidation was seen
}

// op is a posted send request.
type op struct {
	id       uint64
	opcode   rdmap.WCOpcode
	signaled bool
	src      area // n < 0: none
	sink     area
	want     []byte // RDMA Read: what must have arrived
	write    *write // RDMA Write
	places   int    // in the send queue; 0 stands for 1

	// Atomic: one of both.
	words    *words
	tally    *tally
	original uint64 // what it must meet in words
}

// write is an RDMA Write of which no covering Send has been delivered yet.
type write struct {
	to   area
	want []byte
	slot area // that to lies in
	done bool // the covering Send was delivered
}

// message is a Send under way, with the writes that must be in place when it is delivered.
type message struct {
	want      []byte
	solicited bool
	inv       *ddp.Region
	writes    []*write
	imm       bool // Immediate Data
	value     uint64
}

// slots are equal parts of one area.
type slots struct {
	all  area
	size int
	free []int
}

func newSlots(m *memory, count, size int) *slots {
	s := &slots{all: m.alloc(count * size), size: size}
	for i := range count {
		s.free = append(s.free, i)
	}
	return s
}

func (s *slots) take() (area, bool) {
	if len(s.free) == 0 {
		return area{n: -1}, false
	}
	i := s.free[0]
	s.free = s.free[1:]
	return s.all.sub(i*s.size, s.size), true
}

func (s *slots) give(a area) { s.free = append(s.free, (a.off-s.all.off)/s.size) }

const recvs = 8

func newLoad(w *World, q *qp, slot int) *load {
	m := q.h.mem
	l := &load{w: w, q: q, next: rawio.Never}
	q.onSent, q.onReceived, q.onFailed, q.onIndicate = l.sent, l.received, l.failed, l.indicate
	l.src, l.target, l.sink = newSlots(m, 8, slot), newSlots(m, 6, slot), newSlots(m, 4, slot)
	l.readable = m.alloc(slot)
	id := q.core.Stream().ID()
	l.srcR = l.src.all.register(0, w.rand.Uint64()>>1, 0)
	l.targetR = l.target.all.register(ddp.RemoteWrite, w.rand.Uint64()>>1, 0)
	l.sinkR = l.sink.all.register(ddp.LocalWrite, w.rand.Uint64()>>1, id)
	l.readableR = l.readable.register(ddp.RemoteRead, w.rand.Uint64()>>1, 0)
	for range recvs {
		l.recv = append(l.recv, m.alloc(slot))
	}
	whole := area{m, l.recv[0].off, l.recv[recvs-1].off + slot - l.recv[0].off}
	l.recvR = whole.register(ddp.LocalWrite, 0, id)
	l.words = newWords(q)
	for i := range l.recv {
		l.postRecv(uint64(i))
	}
	return l
}

func (w *World) openSessions(c *conn) {
	n := 1 + w.rand.IntN(3)
	slot := []int{256, 2000, 8192, 12000}[w.rand.IntN(4)]
	bs := make([]*qp, n)
	w.b.accept = func(private []byte) *qp { return bs[private[0]] }
	w.a.tally, w.b.tally = newTally(w.a), newTally(w.b)
	for i := range n {
		s := w.newSetup()
		qa := w.a.newQP(16, recvs, int(s.asked.IRD), int(s.asked.ORD))
		qb := w.b.newQP(16, recvs, int(s.own.IRD), int(s.own.ORD))
		qa.setup, qb.setup = s, s
		bs[i] = qb
		la, lb := newLoad(w, qa, slot), newLoad(w, qb, slot)
		la.peer, lb.peer = lb, la
		w.loads = append(w.loads, la, lb)
		if _, err := c.open(w.now, qa, []byte{byte(i)}); err != nil {
			w.failf("open: %v", err)
			return
		}
	}
	c.pump(w.now)
}

func (w *World) qps(h *Host) []*qp {
	var list []*qp
	for _, l := range w.loads {
		if l.q.h == h {
			list = append(list, l.q)
		}
	}
	return list
}

func graceful(err error) bool { return errors.Is(err, assoc.ErrShutdown) }

func (l *load) ready() bool          { return l.q.core.State() == rdmap.StateRTS }
func (l *load) start(now rawio.Time) { l.next = now }
func (l *load) stop()                { l.next, l.stopped = rawio.Never, true }
func (l *load) idle() bool {
	return len(l.posted) == 0 && len(l.uncovered) == 0 && len(l.expect) == 0 && len(l.repost) == 0 && len(l.finished) == 0
}

// act does what the callbacks left to do and posts new operations.
func (l *load) act(now rawio.Time) {
	l.next = rawio.Never
	for _, a := range l.finished {
		a.fill() // a completed request's memory is the user's again
		l.src.give(a)
	}
	l.finished = l.finished[:0]
	for _, r := range l.stale {
		if err := l.q.h.table.Deregister(r); err != nil {
			l.w.failf("deregister: %v", err)
		}
	}
	l.stale = l.stale[:0]
	for _, i := range l.repost {
		l.postRecv(i)
	}
	l.repost = l.repost[:0]
	for range 1 + l.w.rand.IntN(3) {
		if l.w.ops > 0 && l.post() {
			l.w.ops--
		}
	}
	if l.w.ops > 0 {
		l.next = now.Add(time.Duration(l.w.rand.IntN(20_000)) * time.Microsecond)
	} else if l.needsSend() && !l.send(false) {
		l.next = now.Add(10 * time.Millisecond)
	}
	l.q.conn.pump(now)
}

// needsSend reports whether a last Send is needed: to cover writes, or to complete unsignalled requests.
func (l *load) needsSend() bool {
	n := len(l.posted)
	return len(l.uncovered) > 0 || n > 0 && !l.posted[n-1].signaled
}

func (l *load) postRecv(i uint64) {
	a := l.recv[i]
	sgl := l.sgl(l.recvR, a, a.n)
	a.open()
	if err := l.q.core.PostRecv(&rdmap.RecvWR{ID: i, SGL: sgl}); err != nil {
		l.w.failf("%s: post receive: %v", l.q.h.name, err)
	}
	l.credits++
}

// sgl covers the first n octets of a by one to three pieces.
func (l *load) sgl(r *ddp.Region, a area, n int) []rdmap.SGE {
	base := r.Base() + uint64(a.off-l.regionStart(r))
	var list []rdmap.SGE
	for at := 0; at < n; {
		k := n - at
		if len(list) < 2 {
			k = 1 + l.w.rand.IntN(k)
		}
		list = append(list, rdmap.SGE{LKey: r.STag(), Addr: base + uint64(at), Len: uint32(k)})
		at += k
	}
	return list
}

func (l *load) regionStart(r *ddp.Region) int {
	switch r {
	case l.srcR:
		return l.src.all.off
	case l.sinkR:
		return l.sink.all.off
	}
	return l.recv[0].off
}

// post starts a random operation. It returns false when resources for it are taken.
func (l *load) post() bool {
	switch k := l.w.rand.IntN(14); {
	case k < 4:
		return l.write()
	case k < 7:
		return l.send(false)
	case k < 8:
		return l.send(true)
	case k < 10:
		return l.read()
	case k < 12:
		return l.atomic()
	default:
		return l.immediate()
	}
}

func (l *load) size(max int) int {
	switch l.w.rand.IntN(6) {
	case 0:
		return 0
	case 1:
		return max
	case 2:
		return l.w.rand.IntN(min(max, 100))
	}
	return l.w.rand.IntN(max + 1)
}

func (l *load) wr(code rdmap.WROpcode) *rdmap.SendWR {
	l.seq++
	wr := &rdmap.SendWR{ID: l.seq, Op: code}
	if l.w.rand.IntN(4) == 0 {
		wr.Flags |= rdmap.Unsignaled
	}
	if l.w.rand.IntN(8) == 0 {
		wr.Flags |= rdmap.Fence
	}
	return wr
}

// submit posts wr. An unsignalled request must be followed by a signalled one to be seen complete, so
// the last one always is.
func (l *load) submit(wr *rdmap.SendWR, o op) bool {
	if l.w.ops <= 8 || len(l.posted) >= 12 {
		wr.Flags &^= rdmap.Unsignaled
	}
	o.id, o.signaled = wr.ID, wr.Flags&rdmap.Unsignaled == 0
	err := l.q.core.PostSend(wr)
	if err != nil {
		l.w.failf("%s: post %v: %v", l.q.h.name, o.opcode, err)
		return false
	}
	l.posted = append(l.posted, o)
	return true
}

func (l *load) full() bool { return !l.room(1) }

// room reports whether the send queue has n places left.
func (l *load) room(n int) bool {
	for i := range l.posted {
		n += max(1, l.posted[i].places)
	}
	return n <= 16
}

func (l *load) write() bool {
	wr, o := l.wr(rdmap.WRWrite), op{}
	return !l.full() && l.prepareWrite(wr, &o) && l.submit(wr, o)
}

// prepareWrite makes wr write some of the own memory to some of the peer's.
func (l *load) prepareWrite(wr *rdmap.SendWR, o *op) bool {
	if len(l.src.free) == 0 || len(l.peer.target.free) == 0 {
		return false
	}
	src, _ := l.src.take()
	to, _ := l.peer.target.take()
	n := l.size(src.n)
	off := l.w.rand.IntN(to.n - n + 1)
	part := to.sub(off, n)
	part.open()
	wr.SGL = l.sgl(l.srcR, src, n)
	wr.RemoteSTag = l.peer.targetR.STag()
	wr.RemoteTO = l.peer.targetR.Base() + uint64(part.off-l.peer.target.all.off)
	x := &write{to: part, want: bytes.Clone(src.bytes()[:n]), slot: to}
	l.uncovered = append(l.uncovered, x)
	o.opcode, o.src, o.write = rdmap.WCWrite, src, x
	return true
}

// send posts a Send, with Invalidate on inv: then a region of the peer is made for the occasion, and
// a Write to it goes before.
func (l *load) send(inv bool) bool {
	need := 1
	if inv {
		need = 2
	}
	if !l.room(need) || len(l.src.free) < need || l.peer.credits == 0 {
		return false
	}
	msg := message{}
	code := rdmap.WRSend
	if l.w.rand.IntN(3) == 0 {
		code, msg.solicited = rdmap.WRSendSE, true
	}
	var tag ddp.STag
	if inv {
		to, ok := l.peer.target.take()
		if !ok {
			return false
		}
		r := to.register(ddp.RemoteWrite, 7, l.peer.q.core.Stream().ID())
		src, _ := l.src.take()
		wr := l.wr(rdmap.WRWrite)
		wr.SGL, wr.RemoteSTag, wr.RemoteTO = l.sgl(l.srcR, src, src.n), r.STag(), 7
		to.open()
		x := &write{to: to, want: bytes.Clone(src.bytes()), slot: to}
		l.uncovered = append(l.uncovered, x)
		if !l.submit(wr, op{opcode: rdmap.WCWrite, src: src, write: x}) {
			return false
		}
		msg.inv, tag = r, r.STag()
		if code == rdmap.WRSendSE {
			code = rdmap.WRSendSEInv
		} else {
			code = rdmap.WRSendInv
		}
	}
	src, _ := l.src.take()
	n := l.size(src.n)
	msg.want = bytes.Clone(src.bytes()[:n])
	wr := l.wr(code)
	wr.InvalidateSTag = tag
	o := op{opcode: rdmap.WCSend, src: src}
	if n <= 128 && n > 0 && l.w.rand.IntN(2) == 0 {
		wr.Inline = msg.want
	} else {
		wr.SGL = l.sgl(l.srcR, src, n)
	}
	msg.writes, l.uncovered = l.uncovered, nil
	l.peer.credits--
	l.peer.expect = append(l.peer.expect, msg)
	return l.submit(wr, o)
}

func (l *load) read() bool {
	if l.full() || len(l.sink.free) == 0 || l.q.core.ORD() == 0 {
		return false
	}
	sink, _ := l.sink.take()
	n := l.size(sink.n)
	off := l.w.rand.IntN(l.peer.readable.n - n + 1)
	from := l.peer.readable.sub(off, n)
	wr := l.wr(rdmap.WRRead)
	wr.SGL = []rdmap.SGE{{LKey: l.sinkR.STag(), Addr: l.sinkR.Base() + uint64(sink.off-l.sink.all.off), Len: uint32(n)}}
	wr.RemoteSTag = l.peer.readableR.STag()
	wr.RemoteTO = l.peer.readableR.Base() + uint64(off)
	sink.open()
	return l.submit(wr, op{opcode: rdmap.WCRead, src: area{n: -1}, sink: sink, want: bytes.Clone(from.expected())})
}

// sent judges a completion of the send queue: in order, each signalled request once.
func (l *load) sent(wc rdmap.WC) {
	l.w.note(uint64(l.w.now), wc.ID, uint64(wc.Status), uint64(wc.Opcode))
	if wc.Status != rdmap.StatusSuccess {
		if !l.stopped && l.doomed == nil {
			l.w.failf("%s: %v %d completed with %v", l.q.h.name, wc.Opcode, wc.ID, wc.Status)
		}
		return
	}
	if l.doomed != nil {
		return // acknowledged before the peer had judged it
	}
	for len(l.posted) > 0 {
		o := l.posted[0]
		l.posted = l.posted[1:]
		if o.opcode == rdmap.WCRead {
			o.sink.settle(o.want, "read")
			l.sink.give(o.sink)
		}
		if o.opcode == rdmap.WCAtomic {
			if o.id == wc.ID {
				o.answered(&wc)
			} else {
				o.answered(nil)
			}
		}
		if x := o.write; x != nil && !x.done && !bytes.Equal(x.to.bytes(), x.want) {
			l.w.failf("%s: write %d is complete, so acknowledged, but not in place", l.q.h.name, o.id)
		}
		if o.src.n >= 0 {
			l.finished = append(l.finished, o.src)
		}
		if o.id == wc.ID {
			if o.opcode != wc.Opcode || !o.signaled {
				l.w.failf("%s: completion %d is a %v, posted was a %v", l.q.h.name, wc.ID, wc.Opcode, o.opcode)
			}
			l.next = l.w.now
			return
		}
		if o.signaled {
			break
		}
	}
	l.w.failf("%s: completion of request %d out of order or twice", l.q.h.name, wc.ID)
}

// received judges a completion of the receive queue: messages in order, once, whole, and everything
// written before them in place.
func (l *load) received(wc rdmap.WC) {
	l.w.note(uint64(l.w.now), wc.ID, uint64(wc.Status), uint64(wc.ByteLen))
	if wc.Status != rdmap.StatusSuccess {
		if !l.stopped && l.doomed == nil {
			l.w.failf("%s: receive completed with %v", l.q.h.name, wc.Status)
		}
		return
	}
	if len(l.expect) == 0 {
		l.w.failf("%s: a message that was not sent", l.q.h.name)
		return
	}
	msg := l.expect[0]
	l.expect = l.expect[1:]
	if (wc.Opcode == rdmap.WCRecvImm) != msg.imm || wc.Immediate != msg.value {
		l.w.failf("%s: received %+v, want Immediate Data %v %#x", l.q.h.name, wc, msg.imm, msg.value)
		return
	}
	if int(wc.ByteLen) != len(msg.want) || wc.Solicited != msg.solicited || wc.Invalidated != (msg.inv != nil) {
		l.w.failf("%s: received %+v, want %d octets, solicited %v, invalidation %v",
			l.q.h.name, wc, len(msg.want), msg.solicited, msg.inv != nil)
		return
	}
	l.recv[wc.ID].settle(msg.want, "receive")
	for _, wr := range msg.writes {
		wr.to.settle(wr.want, "write")
		wr.done = true
		l.target.give(wr.slot)
	}
	if msg.inv != nil {
		if wc.InvalidatedSTag != msg.inv.STag() || msg.inv.Valid() {
			l.w.failf("%s: Send with Invalidate delivered, STag still valid or another named", l.q.h.name)
		}
		l.stale = append(l.stale, msg.inv)
	}
	l.repost = append(l.repost, wc.ID)
	l.next = l.w.now
}
