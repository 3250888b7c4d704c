package rdmapeer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp"
)

// attack is a row: what is done to a fresh queue pair of the victim, and what must come of it.
type attack struct {
	name string
	with setup
	do   func(*target)
	want outcome
	good int // receives and reads of the victim's program that complete well
}

// setup is what a row wants otherwise than usual: an open session on the common association, one
// receive posted, and an IRD of 2.
type setup struct {
	state  state
	recvs  int                  // receives posted; none for -1
	qp     func(*rdma.QPConfig) // changes the attacked queue pair
	own    *sctp.Config         // the attack comes from an association of its own
	depth  int                  // of own: messages of a stream that are read ahead
	memory func(x *target)      // prepares memory before the session is open
}

type state int

const (
	open    state = iota // the session is accepted
	pending              // the program has not answered the Initiate yet
	closed               // nothing was sent on the stream
)

// anyOf stands for a culprit that depends on timing; its payload is 8 octets.
var anyOf = []byte{}

const recvLen = 64 // octets of each receive, from the beginning of pageLocal on

// target is the queue pair that a row attacks, with all that belongs to it.
type target struct {
	*attackLab
	*session
	t testing.TB

	pd    *rdma.PD
	cq    *rdma.CQ
	qp    *rdma.QP
	other *rdma.QP // in the same Protection Domain
	req   *rdma.Request
	want  []byte // what the arena must hold in the end

	rw, ro, wo, local, atomic, top, foreign, scoped, mine, revoked, gone, big *rdma.MR

	posted  int    // requests of the program that complete one way or another
	culprit []byte // segment that a Terminate must quote; nil: the last one sent; anyOf: one of those sent
}

// runAttacks carries the rows out, one after the other, on the same victim.
func runAttacks(t *testing.T, rows []attack) {
	l := newLab(t)
	for i := range rows {
		a := &rows[i]
		t.Run(a.name, func(t *testing.T) {
			x := l.newTarget(t, &a.with)
			a.do(x)
			a.want.checkOutcome(x, a.good)
			l.checkUnhurt(t, x.want)
		})
	}
}

// newTarget prepares a target.
func (l *attackLab) newTarget(t testing.TB, with *setup) *target {
	t.Helper()
	copy(l.arena, l.pattern)
	x := &target{attackLab: l, t: t, want: bytes.Clone(l.pattern), pd: l.b.AllocPD(), cq: must(l.b.CreateCQ(256))}
	cfg := rdma.QPConfig{PD: x.pd, SendCQ: x.cq, RecvCQ: x.cq, MaxSend: 16, MaxRecv: 16, IRD: 2}
	x.other = must(l.b.CreateQP(&cfg))
	if with.qp != nil {
		with.qp(&cfg)
	}
	x.qp, x.cq = must(l.b.CreateQP(&cfg)), cfg.RecvCQ
	x.registerRegions()
	if with.memory != nil {
		with.memory(x)
	}
	for i := range max(with.recvs, 0) + boolToInt(with.recvs == 0) {
		x.postReceive(uint64(i))
	}
	c := l.c
	if with.own != nil {
		c = must(l.dialVictim(t, *with.own, max(with.depth, 1024*boolToInt(with.depth == 0))))
		t.Cleanup(func() { c.conn.Abort("") })
	}
	x.session = c.freshSession(t)
	t.Cleanup(func() {
		x.qp.Close()
		x.other.Close()
		for _, mr := range []*rdma.MR{x.rw, x.ro, x.wo, x.local, x.atomic, x.top, x.foreign, x.scoped, x.mine,
			x.revoked, x.big} {
			mr.Deregister()
		}
	})
	if with.state < closed {
		l.requests++
		id := binary.BigEndian.AppendUint32(nil, l.requests)
		x.sendControl(fnInitiate, id)
		x.req = l.awaitRequest(t, id)
	}
	if with.state == open {
		x.acceptSession()
	}
	return x
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// registerRegions makes the regions.
func (x *target) registerRegions() {
	const all = rdma.RemoteRead | rdma.RemoteWrite | rdma.RemoteAtomic
	reg := func(pd *rdma.PD, page int, access rdma.Access, opts rdma.RegionOptions) *rdma.MR {
		if opts.Base == 0 {
			opts.Base = base
		}
		return must(pd.Register(x.arenaPage(page), access, &opts))
	}
	x.rw = reg(x.pd, pageRW, rdma.RemoteRead|rdma.RemoteWrite, rdma.RegionOptions{})
	x.ro = reg(x.pd, pageRO, rdma.RemoteRead, rdma.RegionOptions{})
	x.wo = reg(x.pd, pageWO, rdma.RemoteWrite, rdma.RegionOptions{})
	x.local = reg(x.pd, pageLocal, rdma.LocalWrite, rdma.RegionOptions{})
	x.atomic = reg(x.pd, pageAtomic, rdma.RemoteAtomic, rdma.RegionOptions{})
	x.top = reg(x.pd, pageTop, all, rdma.RegionOptions{Base: topBase})
	x.foreign = reg(x.b.AllocPD(), pageForeign, all, rdma.RegionOptions{})
	x.scoped = reg(x.pd, pageScoped, all, rdma.RegionOptions{QP: x.other})
	x.mine = reg(x.pd, pageMine, all, rdma.RegionOptions{QP: x.qp})
	x.revoked = reg(x.pd, pageRevoked, all, rdma.RegionOptions{})
	x.revoked.Invalidate()
	x.gone = reg(x.pd, pageGone, all, rdma.RegionOptions{})
	if err := x.gone.Deregister(); err != nil {
		x.t.Fatal(err)
	}
	x.big = must(x.pd.Register(x.arena[pageBig*pageLen:], rdma.RemoteRead, &rdma.RegionOptions{Base: base}))
}

// postReceive posts the i-th receive.
func (x *target) postReceive(i uint64) {
	x.t.Helper()
	wr := &rdma.RecvWR{ID: i, SGL: []rdma.SGE{x.local.SGE(int(i)*recvLen, recvLen)}}
	if err := x.qp.PostRecv(wr); err != nil {
		x.t.Fatal(err)
	}
	x.posted++
}

// acceptSession has the program answer the Initiate.
func (x *target) acceptSession() {
	x.t.Helper()
	if err := x.req.Accept(x.qp, nil); err != nil {
		x.t.Fatal(err)
	}
	if m := x.victimMessage(); !m.isControl(fnAccept) || len(m.data) != 4 {
		x.t.Fatalf("the Initiate is answered by %v", m)
	}
}

// victimMessage returns the victim's next message.
func (x *target) victimMessage() message {
	x.t.Helper()
	m, ok := x.nextMessage(deadlineCtx(x.t))
	if !ok {
		x.t.Fatalf("the association is gone: %v", x.session.c.conn.Err())
	}
	return m
}

// readMemory asks for n octets and returns what comes, as a well-behaved peer.
func (x *target) readMemory(stag ddp.STag, to uint64, n uint32) []byte {
	x.t.Helper()
	const sink, sinkTO = 0x51, 77
	x.sendSegment(readRequest(x.msn[1], rdmap.ReadRequest{SinkSTag: sink, SinkTO: sinkTO, Size: n, SrcSTag: stag,
		SrcTO: to}))
	x.msn[1]++
	return x.readResponse(sink, sinkTO)
}

// readResponse collects one Read Response.
func (x *target) readResponse(sink ddp.STag, to uint64) []byte {
	x.t.Helper()
	var got []byte
	for {
		m := x.victimMessage()
		if m.ppid != ddpadapt.PPIDSegment || len(m.data) < 2+ddp.TaggedHeaderLen ||
			m.data[3] != rdmap.Control(rdmap.OpReadResponse) {
			x.t.Fatalf("a Read is answered by %v", m)
		}
		v := ddp.TaggedView(m.data[2:])
		if v.STag() != sink || v.TO() != to+uint64(len(got)) {
			x.t.Fatalf("a Read Response for STag %#x, TO %d; want %#x, %d", v.STag(), v.TO(), sink, to+uint64(len(got)))
		}
		if got = append(got, v.Payload()...); v.Control().Last() {
			return got
		}
	}
}

// awaitCompletions waits for all requests of the program to complete; good of them well.
func (x *target) awaitCompletions(good int) {
	x.t.Helper()
	wcs := make([]rdma.WC, 1)
	for n := 0; n < x.posted; {
		got, err := x.cq.Poll(wcs)
		if err == nil && got == 0 {
			err = x.cq.Wait(deadlineCtx(x.t))
		}
		if err != nil {
			x.t.Fatalf("%d of %d requests completed: %v", n, x.posted, err)
		}
		if n += got; got > 0 && wcs[0].Status == rdmap.StatusSuccess {
			good--
		}
	}
	if good != 0 {
		x.t.Errorf("of the program's requests %d too few completed well", good)
	}
	if n, _ := x.cq.Poll(wcs); n != 0 {
		x.t.Errorf("a completion of nothing: %+v", wcs[0])
	}
}

// outcome is what must come of an attack.
type outcome interface{ checkOutcome(x *target, good int) }

// terminated: the stream ends with this Terminate Message (RFC 5040 Figure 9, RFC 5041 section
// 7.2), which quotes the segment as Figure 10 says.
type terminated struct {
	layer rdmap.Layer
	etype rdmap.EType
	code  uint8
	rdma  bool // the Read Request is quoted too
	bare  bool // there was no header to quote
}

func taggedError(code uint8) terminated {
	return terminated{layer: rdmap.LayerDDP, etype: rdmap.EType(ddp.TypeTagged), code: code}
}
func untaggedError(code uint8) terminated {
	return terminated{layer: rdmap.LayerDDP, etype: rdmap.EType(ddp.TypeUntagged), code: code}
}
func operationError(code uint8) terminated {
	return terminated{layer: rdmap.LayerRDMA, etype: rdmap.RemoteOperation, code: code}
}
func protectionError(code uint8) terminated {
	return terminated{layer: rdmap.LayerRDMA, etype: rdmap.RemoteProtection, code: code}
}

// readError is the same for a Read Request.
func readError(code uint8) terminated {
	o := protectionError(code)
	o.rdma = true
	return o
}

func (o terminated) checkOutcome(x *target, good int) {
	x.t.Helper()
	culprit := x.culprit
	if culprit == nil {
		culprit = x.last
	}
	m := x.untilTerminate()
	term, err := rdmap.ParseTerminate(ddp.UntaggedView(m.data[2:]).Payload())
	if len(culprit) == 0 { // which one is a matter of chance
		culprit = append(bytes.Clone(term.DDP[:ddp.Control(term.DDP[0]).HeaderLen()]), evil(8)...)
	}
	want := rdmap.Terminate{Layer: o.layer, EType: o.etype, Code: o.code, HasLength: !o.bare, HasDDP: !o.bare,
		HasRDMA: o.rdma}
	if !o.bare {
		want.SegLength = uint16(len(culprit))
		n := copy(want.DDP[:ddp.Control(culprit[0]).HeaderLen()], culprit)
		if o.rdma {
			copy(want.RDMA[:], culprit[n:])
		}
	}
	if err != nil || term != want {
		x.t.Errorf("Terminate: %v, %v, %+v\nwant %v, %+v", err, &term, term, &want, want)
	}
	x.finishSession(good)
	var e *rdmap.StreamError
	if err := x.qp.Err(); !errors.As(err, &e) || e.Remote || e.Terminate == nil || *e.Terminate != want {
		x.t.Errorf("the program learns %v", err)
	}
	o.checkCounted(x)
}

// untilTerminate returns the Terminate Message, which is the last segment that the victim sends,
// and sees the session end behind it (RFC 5043 section 6.2).
func (x *target) untilTerminate() message {
	x.t.Helper()
	var last message
	for {
		m := x.victimMessage()
		if m.isControl(fnTerminate) {
			if len(m.data) != 4 {
				x.t.Errorf("a Session Terminate of %d octets", len(m.data))
			}
			break
		}
		if m.ppid != ddpadapt.PPIDSegment || isTerminate(last) {
			x.t.Fatalf("the victim went on with %v", m)
		}
		last = m
	}
	if !isTerminate(last) {
		x.t.Fatalf("the session ends without a Terminate Message; before it %v", last)
	}
	return last
}

func isTerminate(m message) bool {
	if m.ppid != ddpadapt.PPIDSegment || len(m.data) < 2+ddp.UntaggedHeaderLen {
		return false
	}
	var want [ddp.UntaggedHeaderLen]byte
	ddp.Untagged{Last: true, Rsvd: [5]byte{rdmap.Control(rdmap.OpTerminate)}, QN: rdmap.QueueTerminate,
		MSN: 1}.Put(want[:])
	return bytes.Equal(m.data[2:2+ddp.UntaggedHeaderLen], want[:])
}

// finishSession finishes a session that the victim has ended: the hostile side sends its Terminate,
// and then nothing of the session is left.
func (x *target) finishSession(good int) {
	x.t.Helper()
	x.awaitCompletions(good)
	if st := x.qp.State(); st != rdmap.StateError {
		x.t.Errorf("the queue pair is in state %v", st)
	}
	x.sendControl(fnTerminate, nil)
	select {
	case <-x.qp.Done():
	case <-deadlineCtx(x.t).Done():
		x.t.Error("the session does not end")
	}
	x.checkQuiet()
}

// checkQuiet checks that the victim has sent nothing more on the stream.
func (x *target) checkQuiet() {
	x.t.Helper()
	select {
	case m := <-x.session.c.streamBox(x.stream):
		x.t.Errorf("the victim sent %v after its end", m)
	default:
	}
}

// ended: the session leaves the legal sequences of RFC 5043 section 6 and the victim ends it by a
// Session Terminate alone. The program learns the fault.
type ended struct{ fault ddpadapt.Fault }

func (o ended) checkOutcome(x *target, good int) {
	x.t.Helper()
	if m := x.victimMessage(); !m.isControl(fnTerminate) || len(m.data) != 4 {
		x.t.Fatalf("the session goes on with %v", m)
	}
	x.awaitCompletions(good)
	var e *ddpadapt.SequenceError
	if err := x.qp.Err(); !errors.As(err, &e) || e.Fault != o.fault {
		x.t.Errorf("the program learns %v, want that %v", err, o.fault)
	}
	x.checkQuiet()
}

// usable: the session ends by a Session Terminate, of which the program learns the fault, if it is
// one; again: what came behind it on the stream gets one too. The peer ends it as well, and then
// both can use the stream again.
type usable struct {
	fault ddpadapt.Fault
	again bool
}

func (o usable) checkOutcome(x *target, good int) {
	x.t.Helper()
	if o.fault != 0 {
		if m := x.victimMessage(); !m.isControl(fnTerminate) || len(m.data) != 4 {
			x.t.Fatalf("the session goes on with %v", m)
		}
		x.awaitCompletions(good)
		var e *ddpadapt.SequenceError
		if err := x.qp.Err(); !errors.As(err, &e) || e.Fault != o.fault {
			x.t.Errorf("the program learns %v, want that %v", err, o.fault)
		}
		select {
		case <-x.qp.Done():
		case <-deadlineCtx(x.t).Done():
			x.t.Fatal("the session does not end")
		}
	}
	if x.in = 0; o.again {
		if m := x.victimMessage(); !m.isControl(fnTerminate) || m.ddpSSN() != 0 {
			x.t.Fatalf("what follows is answered by %v", m)
		}
	}
	x.ssn, x.in = 0, 0
	x.sendControl(fnInitiate, evil(5))
	if err := x.awaitRequest(x.t, evil(5)).Reject(nil); err != nil {
		x.t.Fatal(err)
	}
	if m := x.victimMessage(); !m.isControl(fnReject) {
		x.t.Fatalf("the next Initiate is answered by %v", m)
	}
	x.checkQuiet()
}

// refused: on a stream without a session the victim answers by a Session Terminate as its only
// message, and the program never hears of it.
type refused struct{}

func (refused) checkOutcome(x *target, _ int) {
	x.t.Helper()
	if m := x.victimMessage(); !m.isRefusal() {
		x.t.Fatalf("the answer is %v", m)
	}
	x.checkQuiet()
}

// unharmed: nothing is wrong with it. The session goes on, and ends when the peer wants it to.
type unharmed struct{}

func (unharmed) checkOutcome(x *target, good int) {
	x.t.Helper()
	if got := x.readMemory(x.ro.STag(), base+100, 50); !bytes.Equal(got, x.arenaPage(pageRO)[100:150]) {
		x.t.Errorf("a Read of 50 octets returns %x", got)
	}
	x.sendControl(fnTerminate, nil)
	if m := x.victimMessage(); !m.isControl(fnTerminate) {
		x.t.Fatalf("a Session Terminate is answered by %v", m)
	}
	x.awaitCompletions(good)
	if err := x.qp.Err(); err != nil {
		x.t.Errorf("the program learns %v", err)
	}
}

// torndown: the peer's own Terminate ends the stream at once, without one of the victim's.
type torndown struct{}

func (torndown) checkOutcome(x *target, good int) {
	x.t.Helper()
	if m := x.victimMessage(); !m.isControl(fnTerminate) {
		x.t.Fatalf("a Terminate Message is answered by %v", m)
	}
	x.finishSession(good)
	var e *rdmap.StreamError
	if err := x.qp.Err(); !errors.As(err, &e) || !e.Remote || e.Terminate == nil {
		x.t.Errorf("the program learns %v", err)
	}
}

// lost: the association ends by an ABORT of the victim.
type lost struct{}

func (lost) checkOutcome(x *target, _ int) {
	x.t.Helper()
	select {
	case <-x.session.c.conn.Done():
	case <-deadlineCtx(x.t).Done():
		x.t.Fatal("the association lives")
	}
	if err := x.session.c.conn.Err(); !wasAborted(err) {
		x.t.Errorf("the association ended with %v", err)
	}
}

// closing: the victim's half ends, since the peer's has. The session is cleaned up abortively or
// not. late: what came behind the end may find the stream free, and is refused then (RFC 5043
// section 6.6).
type closing struct{ late bool }

func (o closing) checkOutcome(x *target, good int) {
	x.t.Helper()
	if m := x.victimMessage(); !m.isControl(fnTerminate) {
		x.t.Fatalf("the session goes on with %v", m)
	}
	x.awaitCompletions(good)
	select {
	case <-x.qp.Done():
	case <-deadlineCtx(x.t).Done():
		x.t.Error("the session does not end")
	}
	select {
	case m := <-x.session.c.streamBox(x.stream):
		if !o.late || !m.isRefusal() {
			x.t.Errorf("the victim sent %v after its end", m)
		}
	default:
	}
}

// undecided: the session is over before the program has answered, which the answer then tells.
type undecided struct{}

func (undecided) checkOutcome(x *target, _ int) {
	x.t.Helper()
	refused{}.checkOutcome(x, 0)
	if err := x.req.Accept(x.qp, nil); err == nil {
		x.t.Error("the program could accept a session that is over")
	}
}
