package simulation

import (
	"bytes"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// post starts a random operation. It returns false when resources for it are taken.
func (l *load) post() bool {
	switch k := l.w.rand.IntN(20); {
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
	case k < 14:
		return l.immediate()
	case k < 19:
		return l.ordered()
	default:
		return l.gamble()
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

func (l *load) write() bool {
	wr, o := l.wr(rdmap.WRWrite), op{}
	return l.fits(1) && l.prepareWrite(wr, &o) && l.submit(wr, o)
}

// prepareWrite makes wr write some of the own memory to some of the peer's.
func (l *load) prepareWrite(wr *rdmap.SendWR, o *op) bool {
	if len(l.room.src.free) == 0 || len(l.peer.room.target.free) == 0 {
		return false
	}
	to, _ := l.peer.room.target.take()
	n := l.size(to.n)
	x := l.writeTo(wr, o, regionAt{l.peer.targetR, l.peer.room.target.all}, to.sub(l.w.rand.IntN(to.n-n+1), n))
	x.slot = to
	l.uncovered = append(l.uncovered, x)
	return true
}

// writeTo makes wr a Write of as many octets as to has.
func (l *load) writeTo(wr *rdmap.SendWR, o *op, r regionAt, to area) *write {
	src, _ := l.room.src.take()
	to.open()
	wr.SGL = l.sgl(regionAt{l.srcR, l.room.src.all}, src, to.n)
	wr.RemoteSTag, wr.RemoteTO = r.tag(to)
	x := &write{to: to, want: bytes.Clone(src.bytes()[:to.n])}
	o.opcode, o.src, o.write = rdmap.WCWrite, src, x
	return x
}

// send posts a Send, with Invalidate on inv: then a region or a window of the peer is made for the
// occasion, and a Write to it goes before.
func (l *load) send(inv bool) bool {
	need := 1
	if inv {
		need = 2
	}
	if !l.fits(need) || len(l.room.src.free) < need || l.peer.credits == 0 {
		return false
	}
	msg := new(message)
	code := rdmap.WRSend
	if l.w.rand.IntN(3) == 0 {
		code, msg.solicited = rdmap.WRSendSE, true
	}
	var tag ddp.STag
	if inv {
		to, ok := l.peer.room.target.take()
		if !ok {
			return false
		}
		r := l.peer.exposed(to)
		wr, o := l.wr(rdmap.WRWrite), op{}
		x := l.writeTo(wr, &o, regionAt{r, to}, to)
		x.slot = to
		l.uncovered = append(l.uncovered, x)
		if !l.submit(wr, o) {
			return false
		}
		msg.inv, tag = r, r.STag()
		if code == rdmap.WRSendSE {
			code = rdmap.WRSendSEInv
		} else {
			code = rdmap.WRSendInv
		}
	}
	wr, o := l.wr(code), op{opcode: rdmap.WCSend}
	wr.InvalidateSTag = tag
	l.payload(wr, &o, msg)
	l.announce(msg)
	return l.submit(wr, o)
}

// payload gives a Send something to say.
func (l *load) payload(wr *rdmap.SendWR, o *op, msg *message) {
	src, _ := l.room.src.take()
	n := l.size(src.n)
	msg.want, o.sent = bytes.Clone(src.bytes()[:n]), msg
	if o.src = src; n <= 128 && n > 0 && l.w.rand.IntN(2) == 0 {
		wr.Inline = msg.want
	} else {
		wr.SGL = l.sgl(regionAt{l.srcR, l.room.src.all}, src, n)
	}
}

func (l *load) read() bool {
	if !l.canRead(1) {
		return false
	}
	p := l.peer
	n := l.size(p.room.readable.n)
	from := p.room.readable.sub(l.w.rand.IntN(p.room.readable.n-n+1), n)
	wr, o := l.wr(rdmap.WRRead), op{}
	l.readFrom(wr, &o, regionAt{p.readableR, p.room.readable}, from, from.expected())
	return l.submit(wr, o)
}

// canRead reports whether there are places for n requests, one of them a Read.
func (l *load) canRead(n int) bool {
	return l.fits(n) && len(l.room.sink.free) > 0 && l.q.core.ORD() > 0
}

// readFrom makes wr a Read that must find want.
func (l *load) readFrom(wr *rdmap.SendWR, o *op, r regionAt, from area, want []byte) {
	sink, _ := l.room.sink.take()
	sink.open()
	tag, base := (regionAt{l.sinkR, l.room.sink.all}).tag(sink)
	wr.SGL = []rdmap.SGE{{LKey: tag, Addr: base, Len: uint32(from.n)}}
	wr.RemoteSTag, wr.RemoteTO = r.tag(from)
	o.opcode, o.src, o.sink, o.want = rdmap.WCRead, area{n: -1}, sink, bytes.Clone(want)
}
