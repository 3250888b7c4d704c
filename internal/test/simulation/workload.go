package simulation

import (
	"slices"
	"time"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// workload is the workload of one QP, from the session's setup to its end, and the oracle for it.
// It knows both ends, and uses nothing of the stack but the QP's public calls.
type workload struct {
	w       *World
	q       *qp
	peer    *workload
	buffers *sessionBuffers
	end     *sessionEnd // shared with the peer
	next    rawio.Time  // when act is called

	working bool // it posts operations

	words                                         *atomicWords
	srcR, targetR, sinkR, readableR, recvR, echoR *ddp.Region
	regions                                       []*ddp.Region // all that the load has made

	posted     []postedOp      // the send queue, oldest first
	flushed    bool            // requests have begun to complete in error
	lost       []postedOp      // those that did
	uncovered  []*pendingWrite // writes that no later Send of ours has covered yet
	effects    []*pendingWrite // other writes to the peer's memory that are not settled
	expect     []*message      // what the peer has sent us, in order
	recvs      []uint64        // receives posted and not completed, in order
	cut        []uint64        // of these, those that completed in error
	credits    int             // receives posted here that no Send has been posted for
	held       [recvs]int
	repost     []uint64      // receives to be posted again
	dry        bool          // it posts no receives any more
	closing    bool          // its own user has asked for a graceful end: nothing new is posted
	seq        uint64        // work request ids
	finished   []area        // source slots to be reused
	staleSTags []*ddp.Region // regions whose invalidation was seen
	fault      *rdmap.StreamError
}

// sessionEnd is what both sides of a session know of its end. Before it has begun no request may
// fail.
type sessionEnd struct {
	begun     bool
	gracious  *workload  // who has asked for a graceful end, as the only one
	violation *violation // an access that the stream must fail for
	revoked   bool       // memory that is being accessed has been revoked: the stream may fail for it
}

// postedOp is a posted send request.
type postedOp struct {
	id       uint64
	opcode   rdmap.WCOpcode
	signaled bool
	src      area // n < 0: none
	sink     area
	want     []byte        // RDMA Read: what must have arrived
	write    *pendingWrite // RDMA Write
	sent     *message
	places   int    // in the send queue; 0 stands for 1
	then     func() // called when it has completed

	// Atomic: one of them.
	words    *atomicWords
	tally    *sharedCounter
	original uint64 // what it must meet, but for a tally
}

// pendingWrite is an RDMA Write that the peer has not looked at yet.
type pendingWrite struct {
	to      area
	want    []byte
	later   []byte // what an atomic makes of it, if one follows
	slot    area   // that to lies in
	settled bool   // the peer has looked at it, or it is void
}

// message is a Send under way, with the writes that must be in place when it is delivered.
type message struct {
	want      []byte
	solicited bool
	inv       *ddp.Region
	writes    []*pendingWrite
	imm       bool // Immediate Data
	value     uint64

	into      area // the receive that it must take: they are taken in order
	delivered bool
}

func newLoad(w *World, q *qp, r *sessionBuffers, e *sessionEnd) *workload {
	l := &workload{w: w, q: q, buffers: r, end: e, next: rawio.Never}
	q.onSent, q.onReceived, q.onFailed, q.onIndicate = l.sendCompleted, l.recvCompleted, l.streamFailed,
		l.expectIndication
	r.clearBuffers()
	id := q.core.Stream().ID()
	base := func() uint64 { return w.rand.Uint64() >> 1 }
	l.srcR = l.registerArea(r.src.all, 0, base(), 0)
	l.targetR = l.registerArea(r.target.all, ddp.LocalWrite|ddp.RemoteWrite, base(), 0)
	l.sinkR = l.registerArea(r.sink.all, ddp.LocalWrite, base(), id)
	l.readableR = l.registerArea(r.readable, ddp.RemoteRead, base(), 0)
	l.echoR = l.registerArea(r.echo.all, ddp.RemoteRead|ddp.RemoteWrite|ddp.RemoteAtomic, base()&^7, 0)
	l.recvR = l.registerArea(r.recvArea(), ddp.LocalWrite|ddp.RemoteRead, base(), id)
	l.words = newWords(l)
	for i := range r.recv {
		l.postRecv(uint64(i))
	}
	return l
}

// registerArea makes a region of a for as long as the load lives.
func (l *workload) registerArea(a area, access ddp.Access, base uint64, scope ddp.StreamID) *ddp.Region {
	return l.keepRegion(a.newRegion(access, base, scope), nil)
}

// keepRegion keeps a region that was made.
func (l *workload) keepRegion(r *ddp.Region, err error) *ddp.Region {
	if err != nil {
		l.w.failf("%s: a region is refused: %v", l.q.h.name, err)
		return l.srcR
	}
	l.regions = append(l.regions, r)
	return r
}

// regionAt is a region and where it begins.
type regionAt struct {
	r     *ddp.Region
	start area
}

// tagAt names the first octet of an area within the region.
func (r regionAt) tagAt(a area) (ddp.STag, uint64) {
	return r.r.STag(), r.r.Base() + uint64(a.off-r.start.off)
}

func (l *workload) isReady() bool { return l.q.core.State() == rdmap.StateRTS }
func (l *workload) isIdle() bool {
	return len(l.posted) == 0 && len(l.uncovered) == 0 && len(l.effects) == 0 && len(l.expect) == 0 &&
		len(l.repost) == 0 && len(l.finished) == 0
}

// actDue does what the callbacks left to do and posts new operations.
func (l *workload) actDue(now rawio.Time) {
	l.next = rawio.Never
	if l.q.over {
		return
	}
	for _, a := range l.finished {
		a.fillRandom() // a completed request's memory is the user's again
		l.buffers.src.giveBack(a)
	}
	l.finished = l.finished[:0]
	for _, r := range l.staleSTags {
		if err := l.q.h.table.Deregister(r); err != nil {
			l.w.failf("deregister: %v", err)
		}
	}
	l.staleSTags = l.staleSTags[:0]
	for _, i := range l.repost {
		if !l.dry {
			l.postRecv(i)
		}
	}
	l.repost = l.repost[:0]
	if l.closing || !l.isReady() {
		return
	}
	for range 1 + l.w.rand.IntN(3) {
		if l.w.ops > 0 && l.postRandom() {
			l.w.ops--
		}
	}
	if l.w.ops > 0 {
		l.next = now.Add(time.Duration(l.w.rand.IntN(20_000)) * time.Microsecond)
	} else if l.needsSend() && !l.postSend(false) {
		l.next = now.Add(10 * time.Millisecond)
	}
	l.q.conn.Pump()
}

// needsSend reports whether a last Send is needed: to cover writes, or to complete unsignalled
// requests.
func (l *workload) needsSend() bool {
	n := len(l.posted)
	return len(l.uncovered) > 0 || n > 0 && !l.posted[n-1].signaled
}

func (l *workload) postRecv(i uint64) {
	a := l.buffers.recv[i]
	sgl := l.scatterList(regionAt{l.recvR, l.buffers.recvArea()}, a, a.n)
	if err := l.q.core.PostRecv(&rdmap.RecvWR{ID: i, SGL: sgl}); err != nil {
		if !l.end.begun || err != rdmap.ErrState {
			l.w.failf("%s: post receive: %v", l.q.h.name, err)
		}
		return
	}
	a.allowWrites()
	l.recvs = append(l.recvs, i)
	l.credits++
}

// scatterList covers the first n octets of a by one to three pieces.
func (l *workload) scatterList(r regionAt, a area, n int) []rdmap.SGE {
	tag, base := r.tagAt(a)
	var list []rdmap.SGE
	for at := 0; at < n; {
		k := n - at
		if len(list) < 2 {
			k = 1 + l.w.rand.IntN(k)
		}
		list = append(list, rdmap.SGE{LKey: tag, Addr: base + uint64(at), Len: uint32(k)})
		at += k
	}
	return list
}

func (l *workload) newRequest(code rdmap.WROpcode) *rdmap.SendWR {
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

// submitOp posts wr. An unsignalled request must be followed by a signalled one to be seen
// complete, so the last one always is. Once the end has begun a request may be refused; its memory
// is then that of a request that was never carried out.
func (l *workload) submitOp(wr *rdmap.SendWR, o postedOp) bool {
	if l.w.ops <= 8 || len(l.posted) >= 12 {
		wr.Flags &^= rdmap.Unsignaled
	}
	o.id, o.signaled = wr.ID, wr.Flags&rdmap.Unsignaled == 0
	err := l.q.core.PostSend(wr)
	switch {
	case err == nil:
		l.posted = append(l.posted, o)
		l.w.coverage.Ops[wr.Op]++
		if wr.Op == rdmap.WRAtomic && !wr.Atomic.Swap {
			l.w.coverage.Adds++
		}
	case l.end.begun && err == rdmap.ErrState:
		l.failOp(o)
	default:
		l.w.failf("%s: post %v: %v", l.q.h.name, o.opcode, err)
		return false
	}
	return true
}

// hasRoomFor reports whether the send queue has n places left.
func (l *workload) hasRoomFor(n int) bool {
	for i := range l.posted {
		n += max(1, l.posted[i].places)
	}
	return n <= sendDepth
}

const sendDepth = 16

// expectMessage tells the peer's oracle of a message that is about to be posted, and which receive
// it must take.
func (l *workload) expectMessage(msg *message) {
	p := l.peer
	msg.writes, l.uncovered = l.uncovered, nil
	msg.into = p.buffers.recv[p.recvs[len(p.expect)]]
	p.credits--
	p.expect = append(p.expect, msg)
}

// settleWrite is called when an effect on the peer's memory is known to be complete.
func (l *workload) settleWrite(x *pendingWrite, what string) {
	if x.later != nil {
		x.want = x.later
	}
	x.to.expectExactly(x.want, what)
	x.settled = true
	l.effects = slices.DeleteFunc(l.effects, func(e *pendingWrite) bool { return e == x })
}

func (w *World) qpsOf(h *Host) []*qp {
	var list []*qp
	for _, l := range w.workloads {
		if l.q.h == h {
			list = append(list, l.q)
		}
	}
	return list
}
