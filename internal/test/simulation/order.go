package simulation

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// The rules of RFC 5040 section 5.5 that take two operations to see, and what RFC 7306 section 5.4
// adds. The others hold for every operation and are judged in judge.go. Messages are delivered in
// order (rules 10 and 16), and what was written before is in place then (10). Requests complete in
// order (15), and not before they are acknowledged (14) or answered (19, 20). Rule 3 leaves
// overlapping Writes without an order, so none overlap here.

// ordered posts one of the stories.
func (l *load) ordered() bool {
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

func (l *load) echo() regionAt { return regionAt{l.echoR, l.room.echo.all} }

// writeThenRead: a Read finds what a Write before it has written (rule 12).
func (l *load) writeThenRead() bool {
	p := l.peer
	if !l.canRead(2) || len(l.room.src.free) == 0 {
		return false
	}
	slot, ok := p.room.echo.take()
	if !ok {
		return false
	}
	to := slot.sub(0, l.size(l.room.src.size))
	wr, o := l.wr(rdmap.WRWrite), op{}
	x := l.writeTo(wr, &o, p.echo(), to)
	l.effects = append(l.effects, x)
	l.submit(wr, o)

	wr, o = l.wr(rdmap.WRRead), op{}
	l.readFrom(wr, &o, p.echo(), to, x.want)
	o.then = func() {
		l.settle(x, "write that was read back")
		p.room.echo.give(slot)
	}
	l.submit(wr, o)
	return true
}

// readThenWrite: a Write that is fenced does not change what a Read before it finds; unfenced it
// might (rule 12). A Read behind both finds what was written.
func (l *load) readThenWrite() bool {
	p := l.peer
	if !l.canRead(3) || len(l.room.src.free) == 0 || len(l.room.sink.free) < 2 {
		return false
	}
	slot, ok := p.room.echo.take()
	if !ok {
		return false
	}
	to := slot.sub(0, l.size(l.room.src.size))
	wr, o := l.wr(rdmap.WRRead), op{}
	l.readFrom(wr, &o, p.echo(), to, to.expected())
	l.submit(wr, o)

	wr, o = l.wr(rdmap.WRWrite), op{}
	x := l.writeTo(wr, &o, p.echo(), to)
	wr.Flags |= rdmap.Fence
	l.effects = append(l.effects, x)
	l.submit(wr, o)

	wr, o = l.wr(rdmap.WRRead), op{}
	l.readFrom(wr, &o, p.echo(), to, x.want)
	o.then = func() {
		l.settle(x, "fenced write that was read back")
		p.room.echo.give(slot)
	}
	l.submit(wr, o)
	return true
}

// writeThenAtomic: an atomic meets what a Write before it has written, and a Read finds what the
// atomic has made of it (RFC 7306 section 5.4).
func (l *load) writeThenAtomic() bool {
	p := l.peer
	if !l.canRead(3) || len(l.room.src.free) == 0 {
		return false
	}
	slot, ok := p.room.echo.take()
	if !ok {
		return false
	}
	to := slot.sub(0, ddp.AtomicLen)
	wr, o := l.wr(rdmap.WRWrite), op{}
	x := l.writeTo(wr, &o, p.echo(), to)
	l.effects = append(l.effects, x)
	l.submit(wr, o)

	before := binary.NativeEndian.Uint64(x.want)
	wr, o = l.wr(rdmap.WRAtomic), op{opcode: rdmap.WCAtomic, src: area{n: -1}, original: before}
	wr.Atomic = ddp.FetchAdd(l.w.rand.Uint64())
	wr.RemoteSTag, wr.RemoteTO = p.echo().tag(to)
	x.later = binary.NativeEndian.AppendUint64(nil, before+wr.Atomic.Data)
	l.submit(wr, o)

	wr, o = l.wr(rdmap.WRRead), op{}
	l.readFrom(wr, &o, p.echo(), to, x.later)
	o.then = func() {
		l.settle(x, "atomic that was read back")
		p.room.echo.give(slot)
	}
	l.submit(wr, o)
	return true
}

// sendThenRead: a Read finds what a Send before it has brought (rule 12). The peer's user leaves
// the receive as it is until then.
func (l *load) sendThenRead() bool {
	p := l.peer
	if !l.canRead(2) || len(l.room.src.free) == 0 || p.credits == 0 {
		return false
	}
	wr, o, msg := l.wr(rdmap.WRSend), op{opcode: rdmap.WCSend}, new(message)
	l.payload(wr, &o, msg)
	id := p.recvs[len(p.expect)]
	l.announce(msg)
	p.held[id]++
	l.submit(wr, o)

	wr, o = l.wr(rdmap.WRRead), op{}
	l.readFrom(wr, &o, regionAt{p.recvR, p.room.receives()}, p.room.recv[id].sub(0, len(msg.want)), msg.want)
	o.then = func() {
		if p.held[id]--; p.held[id] == 0 {
			p.repost = append(p.repost, id) // it was delivered: its completion came before this one's cause
			p.next = l.w.now
		}
	}
	l.submit(wr, o)
	return true
}
