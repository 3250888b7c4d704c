package sctp

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/upper"
	"github.com/rddp-go/rddp/sctp/wire"
)

// above is a protocol that notes what is asked of it.
type above struct {
	received int
	settled  atomic.Int32
	held     int
	at       rawio.Time // when it was asked last
	left     int        // how often there is more
	work     uint64
	events   []EventKind
}

func (*above) Place(rawio.Time, wire.Data, *rawio.Buf) assoc.Verdict { return assoc.Queue }
func (*above) Next(rawio.Time, int, *assoc.Message) bool             { return false }
func (*above) Idle() bool                                            { return true }
func (*above) Acked(rawio.Time, wire.StreamID, uint64)               {}
func (u *above) HandleEvent(_ rawio.Time, ev assoc.Event)            { u.events = append(u.events, ev.Kind) }
func (u *above) HandleReceived(now rawio.Time) bool {
	u.received++
	u.left--
	u.at = now
	return u.left >= 0
}
func (u *above) Settled()      { u.settled.Add(1) }
func (u *above) Held() int     { return u.held }
func (u *above) Steps() uint64 { return u.work }

// A protocol looks once at what a turn has brought, and is told when the lock is free; its memory
// is its peer's, and its work the owner's.
func TestUpperIsAskedOnceATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, u := newPair(t), new(above)
		l := must.Get(p.b.Listen(0, quiet))(t)
		c := must.Get(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, l.Port()),
			&Config{DisablePMTUD: true, HeartbeatInterval: -1,
				NewUpper: func(*Conn, *assoc.Assoc) upper.Protocol { return u }}))(t)
		synctest.Wait()
		check.That(t, len(u.events) != 0 && u.events[0] == EventUp, "events %v", u.events)
		for _, answers := range []uint64{0, 1} {
			packets, pkt := c.Stats().PacketsOut, heartbeatTo(c, "x")
			synctest.Wait()
			received, settled := u.received, u.settled.Load()
			c.lock()
			if answers > 0 {
				c.backlog.enqueue(&pkt)
			}
			c.unlock()
			received, settled = u.received-received, u.settled.Load()-settled
			check.That(t, received == 1 && settled == 1, "with %d answers: asked %d times, told %d times", answers,
				received, settled)
			check.Equal(t, "packets sent", c.Stats().PacketsOut-packets, answers)
		}
		used, steps := p.a.Memory().Used, c.workSteps()
		u.held, u.work = 1<<20, 7
		check.Equal(t, "its work does not count", c.workSteps(), steps+7)
		pkt := heartbeatTo(c, "x")
		c.backlog.enqueue(&pkt)
		c.lockAndFlush()
		check.That(t, p.a.Memory().Used >= used+1<<20, "its memory does not count")
		a, now := c.lock()
		a.Abort(now, nil)
		u.left = maxBatchesPerHold
		more := c.flushPending(now)
		check.That(t, more && c.end.ended && !c.end.memoryFreed, "what it has not taken is given up at the end")
		c.unlock()
		last := u.events[len(u.events)-1]
		check.That(t, last == EventDown && p.a.Memory().Used == 0, "events %v, %d octets are held in the end",
			u.events, p.a.Memory().Used)
	})
}
