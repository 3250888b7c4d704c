package simulation

import (
	"bytes"
	"slices"
	"time"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// exposeArea opens an area to the peer, by a region or by a window of one.
func (l *workload) exposeArea(a area) *ddp.Region {
	id := l.q.core.Stream().ID()
	if l.w.rand.IntN(2) == 0 {
		return l.registerArea(a, ddp.RemoteWrite, 7, id)
	}
	all := l.buffers.target.all
	return l.keepRegion(l.q.h.table.Bind(l.targetR, ddp.Window{PD: 1, Stream: id, Off: uint64(a.off - all.off),
		Len:  uint64(a.n),
		Base: 7, Access: ddp.RemoteWrite}))
}

// gambleOnWindow has the peer open a window, writes to it and reads from it, and has the peer close
// it at any moment: before, while or after that happens. The stream fails for it or does not; the
// memory changes no more.
func (l *workload) gambleOnWindow() bool {
	p := l.peer
	n := 1 + l.w.rand.IntN(3)
	if !l.canRead(n+1) || len(l.buffers.src.free) < n {
		return false
	}
	slot, ok := p.buffers.win.takeSlot()
	if !ok {
		return false
	}
	g := &randomWindow{l: p, slot: slot}
	g.region = p.registerArea(slot, ddp.LocalWrite, 0, 0)
	part := slot.n / (n + 1)
	g.window = p.keepRegion(p.q.h.table.Bind(g.region,
		ddp.Window{PD: 1, Stream: p.q.core.Stream().ID(), Len: uint64(slot.n),
			Base: l.w.rand.Uint64() >> 1, Access: ddp.RemoteRead | ddp.RemoteWrite}))
	at := regionAt{g.window, slot}
	for i := range n {
		wr, o := l.newRequest(rdmap.WRWrite), postedOp{}
		x := l.writeTo(wr, &o, at, slot.subArea(i*part, part))
		l.effects, g.writes = append(l.effects, x), append(g.writes, x)
		l.submitOp(wr, o)
	}
	wr, o := l.newRequest(rdmap.WRRead), postedOp{}
	unwritten := slot.subArea(n*part, slot.n-n*part)
	l.readFrom(wr, &o, at, unwritten, unwritten.expectedBytes())
	l.submitOp(wr, o)
	l.w.scheduleAfter(time.Duration(l.w.rand.IntN(400_000))*time.Microsecond, g.closeWindow)
	return true
}

// randomWindow is a window until its end.
type randomWindow struct {
	l              *workload // whose memory it is
	slot           area
	region, window *ddp.Region
	writes         []*pendingWrite
}

// closeWindow closes the window in one of the ways that there are, and gives the memory to the user
// again.
func (g *randomWindow) closeWindow() {
	l := g.l
	if l.q.over || l.peer.q.over {
		return // the end of the session has been first
	}
	l.end.revoked = true
	l.w.coverage.Windows++
	table := l.q.h.table
	var err error
	switch l.w.rand.IntN(5) {
	case 0:
		g.window.Invalidate()
	case 1:
		g.region.Invalidate()
	case 2:
		err = table.Deregister(g.window)
	case 3:
		err = table.Deregister(g.region)
	default:
		err = table.Rebind(g.region, ddp.Bytes(bytes.Clone(g.slot.actualBytes())), 0, ddp.LocalWrite)
	}
	if err != nil {
		l.w.failf("%s: the end of a window: %v", l.q.h.name, err)
	}
	for l.q.session.Detach(g.slot.actualBytes()) {
		l.q.conn.interruptWrite()
	}
	for _, x := range g.writes {
		x.to.acceptEither(x.want, nil, "write to a window that has ended")
		x.settled = true
	}
	l.peer.effects = slices.DeleteFunc(l.peer.effects, func(x *pendingWrite) bool { return x.settled })
	g.slot.fillRandom()
	l.buffers.win.giveBack(g.slot)
}
