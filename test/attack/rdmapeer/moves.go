package rdmapeer

import (
	"bytes"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp"
)

// readOnce is an attack by one Read Request of 64 octets.
func readOnce(f func(x *target, r *rdmap.ReadRequest)) func(*target) {
	return func(x *target) {
		r := rdmap.ReadRequest{SinkSTag: 0x51, Size: 64, SrcSTag: x.ro.STag(), SrcTO: base}
		f(x, &r)
		x.sendSegment(readRequest(1, r))
	}
}

// readFrom is asks with another source.
func readFrom(mr func(x *target) *rdma.MR) func(*target) {
	return readOnce(func(x *target, r *rdmap.ReadRequest) { r.SrcSTag = mr(x).STag() })
}

// slowConfig is an association with so small a receive window that responses get stuck.
func slowConfig() *sctp.Config { return &sctp.Config{RecvBuffer: 16 << 10} }

// drainResponse reads what comes of a Read until it is whole or the session ends, and leaves the
// rest.
func (x *target) drainResponse() {
	x.t.Helper()
	var to uint64
	for {
		m := x.victimMessage()
		if m.ppid != ddpadapt.PPIDSegment || isTerminate(m) {
			x.unreadMessage(m)
			return
		}
		v := ddp.TaggedView(m.data[2:])
		if n := uint64(len(v.Payload())); v.TO() != to ||
			!bytes.Equal(v.Payload(), x.pattern[pageBig*pageLen+to:pageBig*pageLen+to+n]) {
			x.t.Fatalf("at offset %d of the response comes offset %d: %v", to, v.TO(), m)
		}
		if to += uint64(len(v.Payload())); v.Control().Last() {
			to = 0
		}
	}
}

// doRead has the victim's program read 64 octets into its memory, and returns the request.
func (x *target) doRead() rdmap.ReadRequest {
	x.t.Helper()
	wr := &rdma.SendWR{Op: rdma.OpRead, SGL: []rdma.SGE{x.local.SGE(1024, 64)}, RemoteSTag: 0x52, RemoteTO: 5}
	if err := x.qp.PostSend(wr); err != nil {
		x.t.Fatal(err)
	}
	x.posted++
	m := x.victimMessage()
	if len(m.data) != 2+ddp.UntaggedHeaderLen+rdmap.ReadRequestLen || m.data[3] != rdmap.Control(rdmap.OpReadRequest) {
		x.t.Fatalf("the victim reads by %v", m)
	}
	return rdmap.ParseReadRequest((*[rdmap.ReadRequestLen]byte)(m.data[2+ddp.UntaggedHeaderLen:]))
}

// readResponse is an attack by a response to a Read of the victim.
func readResponse(f func(x *target, r rdmap.ReadRequest)) func(*target) {
	return func(x *target) { f(x, x.doRead()) }
}

// fetchAdd is an attack by one FetchAdd of 1.
func fetchAdd(f func(x *target, r *rdmap.AtomicRequest)) func(*target) {
	return func(x *target) {
		r := rdmap.AtomicRequest{ID: 9, STag: x.atomic.STag(), TO: base, Op: rdmap.FetchAdd(1)}
		f(x, &r)
		x.sendSegment(atomicRequest(1, r))
	}
}

// addTo is adds with another target.
func addTo(mr func(x *target) *rdma.MR) func(*target) {
	return fetchAdd(func(x *target, r *rdmap.AtomicRequest) { r.STag = mr(x).STag() })
}

// fetchAdd is a good request.
func (x *target) fetchAdd(msn uint32) []byte {
	return atomicRequest(msn, rdmap.AtomicRequest{STag: x.atomic.STag(), TO: base, Op: rdmap.FetchAdd(1)})
}

// atomicOp is an attack by an Atomic Request of this operation.
func atomicOp(code byte) func(*target) {
	return func(x *target) { x.sendSegment(with(x.fetchAdd(1), ddp.UntaggedHeaderLen+3, code)) }
}

// doAtomic has the victim's program do an atomic, and returns the identifier of the request.
func (x *target) doAtomic() uint32 {
	x.t.Helper()
	if err := x.qp.PostSend(&rdma.SendWR{Op: rdma.OpAtomic, RemoteSTag: 0x52, Atomic: rdma.FetchAdd(1)}); err != nil {
		x.t.Fatal(err)
	}
	x.posted++
	m := x.victimMessage()
	if len(m.data) != 2+ddp.UntaggedHeaderLen+rdmap.AtomicRequestLen {
		x.t.Fatalf("the victim asks for an atomic by %v", m)
	}
	r, ok := rdmap.ParseAtomicRequest((*[rdmap.AtomicRequestLen]byte)(m.data[2+ddp.UntaggedHeaderLen:]))
	if !ok {
		x.t.Fatalf("the victim asks for an atomic by %v", m)
	}
	return r.ID
}

// oneSegment is an attack by one segment.
func oneSegment(f func(x *target) []byte) func(*target) {
	return func(x *target) { x.sendSegment(f(x)) }
}

// sendSegment is a Send of one segment.
func sendSegment(msn, mo uint32, n int) []byte {
	return untagged(rdmap.OpSend, rdmap.QueueSend, msn, mo, evil(n))
}

// invalidateRefused is an attack by a Send with Invalidate of a region that must stay as it is.
func invalidateRefused(mr func(x *target) *rdma.MR) func(*target) {
	return func(x *target) {
		x.sendSegment(invalidating(rdmap.OpSendInv, 1, mr(x).STag()))
		x.awaitCompletions(0) // it has been judged
		x.posted = 0
		if op := rdma.FetchAdd(0); mr(x) != x.local {
			if _, err := mr(x).Atomic(0, op); err != nil {
				x.t.Errorf("the region was invalidated: %v", err)
			}
		}
	}
}

// controlMessage is an attack by one session control message.
func controlMessage(fn uint16, private int) func(*target) {
	return func(x *target) { x.sendControl(fn, evil(private)) }
}

// goodWrite is a Write that would be placed if the session were in order.
func goodWrite(x *target) []byte { return write(x.rw.STag(), base, evil(64)) }

// onWindow is an attack on a window of 64 octets in the middle of memory that is not open itself.
func onWindow(f func(x *target, w *rdma.MW)) func(*target) {
	return func(x *target) { f(x, must(x.local.Bind(x.qp, 2048, 64, rdma.RemoteWrite))) }
}

func badVersion(dv byte) func(*target) {
	return func(x *target) {
		seg := write(x.rw.STag(), base, evil(8))
		x.sendSegment(with(seg, 0, seg[0]&^3|dv))
	}
}

func reservedOpcode(op rdmap.Opcode) func(*target) {
	return func(x *target) { x.sendSegment(tagged(op, x.rw.STag(), base, evil(8))) }
}
