package simulation

import (
	"bytes"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// postRandom starts a random operation. It returns false when resources for it are taken.
func (l *workload) postRandom() bool {
	switch k := l.w.rand.IntN(20); {
	case k < 4:
		return l.postWrite()
	case k < 7:
		return l.postSend(false)
	case k < 8:
		return l.postSend(true)
	case k < 10:
		return l.postRead()
	case k < 12:
		return l.postAtomic()
	case k < 14:
		return l.postImmediate()
	case k < 19:
		return l.postOrdered()
	default:
		return l.gambleOnWindow()
	}
}

func (l *workload) drawSize(max int) int {
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

func (l *workload) postWrite() bool {
	wr, o := l.newRequest(rdmap.WRWrite), postedOp{}
	return l.hasRoomFor(1) && l.prepareWrite(wr, &o) && l.submitOp(wr, o)
}

// prepareWrite makes wr write some of the own memory to some of the peer's.
func (l *workload) prepareWrite(wr *rdmap.SendWR, o *postedOp) bool {
	if len(l.buffers.src.free) == 0 || len(l.peer.buffers.target.free) == 0 {
		return false
	}
	to, _ := l.peer.buffers.target.takeSlot()
	n := l.drawSize(to.n)
	x := l.writeTo(wr, o, regionAt{l.peer.targetR, l.peer.buffers.target.all}, to.subArea(l.w.rand.IntN(to.n-n+1), n))
	x.slot = to
	l.uncovered = append(l.uncovered, x)
	return true
}

// writeTo makes wr a Write of as many octets as to has.
func (l *workload) writeTo(wr *rdmap.SendWR, o *postedOp, r regionAt, to area) *pendingWrite {
	src, _ := l.buffers.src.takeSlot()
	to.allowWrites()
	wr.SGL = l.scatterList(regionAt{l.srcR, l.buffers.src.all}, src, to.n)
	wr.RemoteSTag, wr.RemoteTO = r.tagAt(to)
	x := &pendingWrite{to: to, want: bytes.Clone(src.actualBytes()[:to.n])}
	o.opcode, o.src, o.write = rdmap.WCWrite, src, x
	return x
}

// postSend posts a Send, with Invalidate on inv: then a region or a window of the peer is made for
// the occasion, and a Write to it goes before.
func (l *workload) postSend(inv bool) bool {
	need := 1
	if inv {
		need = 2
	}
	if !l.hasRoomFor(need) || len(l.buffers.src.free) < need || l.peer.credits == 0 {
		return false
	}
	msg := new(message)
	code := rdmap.WRSend
	if l.w.rand.IntN(3) == 0 {
		code, msg.solicited = rdmap.WRSendSE, true
	}
	var tag ddp.STag
	if inv {
		to, ok := l.peer.buffers.target.takeSlot()
		if !ok {
			return false
		}
		r := l.peer.exposeArea(to)
		wr, o := l.newRequest(rdmap.WRWrite), postedOp{}
		x := l.writeTo(wr, &o, regionAt{r, to}, to)
		x.slot = to
		l.uncovered = append(l.uncovered, x)
		if !l.submitOp(wr, o) {
			return false
		}
		msg.inv, tag = r, r.STag()
		if code == rdmap.WRSendSE {
			code = rdmap.WRSendSEInv
		} else {
			code = rdmap.WRSendInv
		}
	}
	wr, o := l.newRequest(code), postedOp{opcode: rdmap.WCSend}
	wr.InvalidateSTag = tag
	l.fillPayload(wr, &o, msg)
	l.expectMessage(msg)
	return l.submitOp(wr, o)
}

// fillPayload gives a Send something to say.
func (l *workload) fillPayload(wr *rdmap.SendWR, o *postedOp, msg *message) {
	src, _ := l.buffers.src.takeSlot()
	n := l.drawSize(src.n)
	msg.want, o.sent = bytes.Clone(src.actualBytes()[:n]), msg
	if o.src = src; n <= 128 && n > 0 && l.w.rand.IntN(2) == 0 {
		wr.Inline = msg.want
	} else {
		wr.SGL = l.scatterList(regionAt{l.srcR, l.buffers.src.all}, src, n)
	}
}

func (l *workload) postRead() bool {
	if !l.canRead(1) {
		return false
	}
	p := l.peer
	n := l.drawSize(p.buffers.readable.n)
	from := p.buffers.readable.subArea(l.w.rand.IntN(p.buffers.readable.n-n+1), n)
	wr, o := l.newRequest(rdmap.WRRead), postedOp{}
	l.readFrom(wr, &o, regionAt{p.readableR, p.buffers.readable}, from, from.expectedBytes())
	return l.submitOp(wr, o)
}

// canRead reports whether there are places for n requests, one of them a Read.
func (l *workload) canRead(n int) bool {
	return l.hasRoomFor(n) && len(l.buffers.sink.free) > 0 && l.q.core.ORD() > 0
}

// readFrom makes wr a Read that must find want.
func (l *workload) readFrom(wr *rdmap.SendWR, o *postedOp, r regionAt, from area, want []byte) {
	sink, _ := l.buffers.sink.takeSlot()
	sink.allowWrites()
	tag, base := (regionAt{l.sinkR, l.buffers.sink.all}).tagAt(sink)
	wr.SGL = []rdmap.SGE{{LKey: tag, Addr: base, Len: uint32(from.n)}}
	wr.RemoteSTag, wr.RemoteTO = r.tagAt(from)
	o.opcode, o.src, o.sink, o.want = rdmap.WCRead, area{n: -1}, sink, bytes.Clone(want)
}
