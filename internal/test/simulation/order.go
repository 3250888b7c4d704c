package simulation

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// The rules of RFC 5040 section 5.5 that take two operations to see, and what RFC 7306 section 5.4
// adds. The others hold for every operation and are judged in completions.go. Messages are
// delivered in order (rules 10 and 16), and what was written before is in place then (10). Requests
// complete in order (15), and not before they are acknowledged (14) or answered (19, 20). Rule 3
// leaves overlapping Writes without an order, so none overlap here.

// postOrdered posts one of the stories.
func (l *workload) postOrdered() bool {
	switch l.w.rand.IntN(4) {
	case 0:
		return l.writeThenRead()
	case 1:
		return l.readThenWrite()
	case 2:
		return l.writeThenAtomic()
	default:
		return l.sendThenRead()
	}
}

func (l *workload) echoRegion() regionAt { return regionAt{l.echoR, l.buffers.echo.all} }

// writeThenRead: a Read finds what a Write before it has written (rule 12).
func (l *workload) writeThenRead() bool {
	p := l.peer
	if !l.canRead(2) || len(l.buffers.src.free) == 0 {
		return false
	}
	slot, ok := p.buffers.echo.takeSlot()
	if !ok {
		return false
	}
	to := slot.subArea(0, l.drawSize(l.buffers.src.size))
	wr, o := l.newRequest(rdmap.WRWrite), postedOp{}
	x := l.writeTo(wr, &o, p.echoRegion(), to)
	l.effects = append(l.effects, x)
	l.submitOp(wr, o)

	wr, o = l.newRequest(rdmap.WRRead), postedOp{}
	l.readFrom(wr, &o, p.echoRegion(), to, x.want)
	o.then = func() {
		l.settleWrite(x, "write that was read back")
		p.buffers.echo.giveBack(slot)
	}
	l.submitOp(wr, o)
	return true
}

// readThenWrite: a Write that is fenced does not change what a Read before it finds; unfenced it
// might (rule 12). A Read behind both finds what was written.
func (l *workload) readThenWrite() bool {
	p := l.peer
	if !l.canRead(3) || len(l.buffers.src.free) == 0 || len(l.buffers.sink.free) < 2 {
		return false
	}
	slot, ok := p.buffers.echo.takeSlot()
	if !ok {
		return false
	}
	to := slot.subArea(0, l.drawSize(l.buffers.src.size))
	wr, o := l.newRequest(rdmap.WRRead), postedOp{}
	l.readFrom(wr, &o, p.echoRegion(), to, to.expectedBytes())
	l.submitOp(wr, o)

	wr, o = l.newRequest(rdmap.WRWrite), postedOp{}
	x := l.writeTo(wr, &o, p.echoRegion(), to)
	wr.Flags |= rdmap.Fence
	l.effects = append(l.effects, x)
	l.submitOp(wr, o)

	wr, o = l.newRequest(rdmap.WRRead), postedOp{}
	l.readFrom(wr, &o, p.echoRegion(), to, x.want)
	o.then = func() {
		l.settleWrite(x, "fenced write that was read back")
		p.buffers.echo.giveBack(slot)
	}
	l.submitOp(wr, o)
	return true
}

// writeThenAtomic: an atomic meets what a Write before it has written, and a Read finds what the
// atomic has made of it (RFC 7306 section 5.4).
func (l *workload) writeThenAtomic() bool {
	p := l.peer
	if !l.canRead(3) || len(l.buffers.src.free) == 0 {
		return false
	}
	slot, ok := p.buffers.echo.takeSlot()
	if !ok {
		return false
	}
	to := slot.subArea(0, ddp.AtomicLen)
	wr, o := l.newRequest(rdmap.WRWrite), postedOp{}
	x := l.writeTo(wr, &o, p.echoRegion(), to)
	l.effects = append(l.effects, x)
	l.submitOp(wr, o)

	before := binary.NativeEndian.Uint64(x.want)
	wr, o = l.newRequest(rdmap.WRAtomic), postedOp{opcode: rdmap.WCAtomic, src: area{n: -1}, original: before}
	wr.Atomic = ddp.FetchAdd(l.w.rand.Uint64())
	wr.RemoteSTag, wr.RemoteTO = p.echoRegion().tagAt(to)
	x.later = binary.NativeEndian.AppendUint64(nil, before+wr.Atomic.Data)
	l.submitOp(wr, o)

	wr, o = l.newRequest(rdmap.WRRead), postedOp{}
	l.readFrom(wr, &o, p.echoRegion(), to, x.later)
	o.then = func() {
		l.settleWrite(x, "atomic that was read back")
		p.buffers.echo.giveBack(slot)
	}
	l.submitOp(wr, o)
	return true
}

// sendThenRead: a Read finds what a Send before it has brought (rule 12). The peer's user leaves
// the receive as it is until then.
func (l *workload) sendThenRead() bool {
	p := l.peer
	if !l.canRead(2) || len(l.buffers.src.free) == 0 || p.credits == 0 {
		return false
	}
	wr, o, msg := l.newRequest(rdmap.WRSend), postedOp{opcode: rdmap.WCSend}, new(message)
	l.fillPayload(wr, &o, msg)
	id := p.recvs[len(p.expect)]
	l.expectMessage(msg)
	p.held[id]++
	l.submitOp(wr, o)

	wr, o = l.newRequest(rdmap.WRRead), postedOp{}
	l.readFrom(wr, &o, regionAt{p.recvR, p.buffers.recvArea()}, p.buffers.recv[id].subArea(0, len(msg.want)), msg.want)
	o.then = func() {
		if p.held[id]--; p.held[id] == 0 {
			p.repost = append(p.repost, id) // it was delivered: its completion came before this one's cause
			p.next = l.w.now
		}
	}
	l.submitOp(wr, o)
	return true
}
