package sctp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/sctp/wire"
)

// unsettledAccounts says what the accounts of a Transport have that no association holds any more,
// "" where all are zero.
func (t *Transport) unsettledAccounts() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	used, own := t.memory.budget.total.Used(), t.memory.own.Drawn()
	if used != own || len(t.memory.orphans) > 0 || len(t.conns) > 0 || t.memory.budget.numUnderPressure.Load() != 0 {
		return fmt.Sprintf("%d octets are counted, %d of them of no peer; %d have ended and hold something, %d "+
			"live, %d are squeezed",
			used, own, len(t.memory.orphans), len(t.conns), t.memory.budget.numUnderPressure.Load())
	}
	return ""
}

// A backlog that was counted when its association ended is given back when nobody has the Conn any
// more: else 74 of these fill 4 MiB for good.
func TestBacklogOfAConnThatNobodyHasIsGivenBack(t *testing.T) {
	b := newBesieged(t, 4<<20, nil)
	for i := range 200 {
		a := b.newAttacker(netip.AddrFrom4([4]byte{10, 0, 1, byte(i)}), 1)
		must.That(t, a != nil, "association %d is refused, with %d octets counted", i, b.Memory().Used)
		a.b = &besieged{Transport: b.Transport, spare: make([]byte, 64<<10)} // which is garbage with the Conn
		a.c.lock()
		a.sendChunks(a.dataChunk(0, 0, 0, whole, 40_000))
		a.sendChunks(a.dataChunk(0, 0, 1, whole, 40_000))
		a.c.unlock()
		a.sendChunks(wire.AppendAbort(nil, false))
		<-a.c.Done()
		a.c = nil
		if i%20 == 19 {
			what := ""
			done := becomesTrue(t, func() bool { runtime.GC(); what = b.unsettledAccounts(); return what == "" })
			must.That(t, done, "behind %d associations: %s", i, what)
		}
	}
}

// A backlog counts what it keeps, not what it has kept: any timer of the association is an
// occasion.
func TestBacklogIsTrimmedWithItsAssociation(t *testing.T) {
	b := newBesieged(t, 4<<20, nil)
	a := b.newAttacker(netip.MustParseAddr("10.0.1.1"), 1)
	a.c.lock()
	a.sendChunks(a.dataChunk(0, 0, 0, whole, 40_000))
	check.That(t, a.c.backlog.account.Drawn() > 60_000, "%d octets wait", a.c.backlog.account.Drawn())
	a.c.unlock()
	a.c.handleTimeout()
	check.That(t, a.c.backlog.account.Drawn() <= 8192, "%d octets are counted with nothing left that waits",
		a.c.backlog.account.Drawn())
	a.c.Abort("")
}

// Associations live and end in every way there is. When nothing is left every account is zero, of
// both hosts.
func TestEveryAccountIsZeroWhenNothingIsLeft(t *testing.T) {
	race.Alone(t)
	seeds := uint64(12)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		p := newPair(t)
		rnd := rand.New(rand.NewPCG(seed, 1))
		ctx := deadlineCtx(t)
		small := &Config{RecvBuffer: 8000 + rnd.IntN(60_000), SendBuffer: 1 << 16, Backlog: 8, Events: rnd.IntN(3)}
		l := must.Get(p.b.Listen(5000, small))(t)
		many := must.Get(p.b.OpenSocket(5001, small))(t)
		var all []*Conn
		for range 40 {
			port := uint16(5000 + rnd.IntN(3)) // nobody is at the last
			to := netip.AddrPortFrom(p.bAddr, port)
			if rnd.IntN(8) == 0 { // cancelled at any time
				ctx, cancel := context.WithCancel(ctx)
				go func() { runtime.Gosched(); cancel() }()
				if c, err := p.a.Dial(ctx, to, small); err == nil {
					c.Abort("")
				}
				cancel()
				continue
			}
			c, err := p.a.Dial(ctx, to, small)
			if err != nil {
				continue
			}
			var s *Conn
			if port == 5000 && rnd.IntN(4) > 0 { // others are never accepted
				s = must.Get(l.Accept(ctx))(t)
			}
			all = append(all, c)
			ends := []*Conn{c}
			if s != nil {
				ends, all = append(ends, s), append(all, s)
			}
			for range rnd.IntN(12) {
				e := ends[rnd.IntN(len(ends))]
				switch rnd.IntN(5) {
				case 0, 1: // without waiting for room
					if e.Stats().Queued == 0 {
						_, _ = e.WriteMsg(make([]byte, 1+rnd.IntN(6000)),
							SendInfo{Stream: uint16(rnd.IntN(4)), Unordered: rnd.IntN(2) == 0})
					}
				case 2: // a part of a message, or all
					e.lock()
					left := e.recv.inbox.first() != nil
					e.unlock()
					if left {
						_, _, _ = e.ReadMsg(make([]byte, 1+rnd.IntN(3000)))
					}
				case 3:
					e.Stream(uint16(rnd.IntN(4)))
				case 4:
					runtime.Gosched()
				}
			}
			for _, e := range ends {
				switch rnd.IntN(4) {
				case 0:
					go e.Close()
				case 1:
					e.Abort("over")
				case 2: // the other end has to
				case 3:
					e.Stream(1).Close()
					e.Abort("")
				}
			}
			if rnd.IntN(2) == 0 {
				c.Abort("")
			}
		}
		l.Close() // with some that nobody has accepted
		many.Close()
		for _, c := range all { // what is unread is given back
			c.Abort("")
		}
		for _, tr := range []*Transport{p.a, p.b} {
			for _, c := range tr.liveConns() {
				c.Abort("")
			}
		}
		what := ""
		for i, tr := range []*Transport{p.a, p.b} {
			done := becomesTrue(t, func() bool { what = tr.unsettledAccounts(); return what == "" })
			must.That(t, done, "seed %d, host %d: %s", seed, i, what)
		}
		p.a.Close()
		p.b.Close()
		for i, tr := range []*Transport{p.a, p.b} {
			check.Equal(t, fmt.Sprintf("seed %d: octets that host %d counts when it is closed", seed, i),
				tr.Memory().Used, 0)
		}
	}
}
