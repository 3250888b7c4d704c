package sctp

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/concurrent"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp/internal/account"
	"github.com/rddp-go/rddp/sctp/wire"
)

// watchTransport looks at all that a Transport tells, again and again until the test is over.
func watchTransport(t *testing.T, tr *Transport) {
	t.Cleanup(concurrent.RunUntilStopped(func() {
		s, n, m := tr.Stats(), tr.Associations(), tr.Memory()
		total := tr.Totals()
		check.That(t, s.RxDropped <= 1<<40 && n <= 1<<20 && m.Used <= 1<<40 && total.PacketsIn <= 1<<40,
			"%+v, %+v, %d associations, %+v", s, total, n, m)
	}))
}

// Each part of the shell may be used by many goroutines at once. In the end nothing is left of what
// they did.
func TestPartsMayBeUsedAtOnce(t *testing.T) {
	const rounds = 60
	p := newPair(t)
	c, _ := p.connect(t, nil, nil)
	t.Run("deadline", func(t *testing.T) {
		d := deadline{t: p.a}
		set := func(after time.Duration) func(int) { return func(int) { d.set(time.Now().Add(after)) } }
		concurrent.RunTogether(rounds, set(time.Hour), set(-1), set(20*time.Microsecond), func(int) {
			d.set(time.Time{})
		},
			func(int) { d.expiredChan() }, func(int) { d.expiredChan() })
		d.set(time.Now().Add(-1))
		check.That(t, isClosed(d.expiredChan()), "a deadline in the past has not passed")
	})
	t.Run("timers", func(t *testing.T) {
		start := time.Now()
		now := func() rawio.Time { return rawio.Time(time.Since(start)) }
		h := newTimers(now, func(*Conn) {}, func() {})
		conns := make([]Conn, 3)
		for i := range conns {
			conns[i].timer.dueAt.Store(rawio.Never)
		}
		set := func(after time.Duration) func(int) {
			return func(i int) { h.setDeadline(&conns[i%len(conns)], now().Add(after), 0) }
		}
		concurrent.RunTogether(rounds, set(time.Hour), set(10*time.Microsecond), set(0), func(i int) {
			h.remove(&conns[i%len(conns)])
		},
			func(int) { h.runExpired() }, func(i int) { _ = conns[i%len(conns)].timer.dueAt.Load() },
			func(i int) {
				if i == rounds-1 {
					h.close()
				}
			})
		h.close()
		h.runExpired()
		check.That(t, !h.timer.Stop(), "a closed heap has a timer")
	})
	t.Run("gate", func(t *testing.T) {
		for range rounds {
			g, posted := &backlog{account: new(account.Account)}, 0
			var owner sync.Mutex
			concurrent.RunTogether(4, func(int) {
				if g.enqueue(&rawio.Packet{Data: []byte("packet")}) != enqueueFull {
					posted++
				}
			}, func(int) { g.enqueue(&rawio.Packet{Data: []byte("another")}) }, func(int) {
				owner.Lock()
				g.recycle(g.take())
				owner.Unlock()
			}, func(i int) {
				if i == 3 {
					g.close()
				}
			})
			check.That(t, g.count.Load() == 0 && posted == 4, "%d wait in a closed gate, of %d",
				g.count.Load(), posted)
		}
	})
	t.Run("journal", func(t *testing.T) {
		j := newEventLog(slog.New(slog.NewTextHandler(io.Discard, nil)), false)
		write := func(int) { j.writeLine(slog.LevelInfo, netip.Addr{}, "line") }
		reached := func(i int) { j.logLimit(limitKind(i%int(numLimits)), 1) }
		concurrent.RunTogether(4*maxLogLines, write, write, reached, reached)
		left, _ := j.lineLimiter.Allow(time.Now().Add(time.Second), netip.Addr{})
		check.That(t, left != 0, "everything was written")
	})
	t.Run("threads", func(t *testing.T) {
		before := pinnedThreads.Load()
		turn := func(int) {
			var h threadPin
			h.setPinned(true)
			h.unpinThread()
		}
		concurrent.RunTogether(rounds, turn, turn, turn)
		check.Equal(t, "threads held", pinnedThreads.Load()-before, 0)
	})
	t.Run("signals", func(t *testing.T) {
		wakes := func() uint64 { return p.a.signals.wakes.Load() + p.b.signals.wakes.Load() }
		s, before := p.a.newSignal(), wakes()
		closed := make(chan struct{})
		close(closed)
		set := func(int) { s.Set() }
		concurrent.RunTogether(rounds, set, set, func(int) { s.Wait(closed, nil) },
			func(int) { p.b.newSignal().Set() }, func(int) { p.a.wakeLinkReader() })
		check.That(t, wakes() >= before+rounds, "%d wake-ups of %d", wakes()-before, rounds)
	})
	t.Run("ports", func(t *testing.T) {
		release := func(port uint16, d time.Duration) func(int) {
			return func(int) {
				p.a.mu.Lock()
				defer p.a.mu.Unlock()
				if port, err := p.a.bindListenPort(port); err == nil {
					p.a.releasePort(port, d)
				}
			}
		}
		listen := func(int) {
			if l, err := p.a.Listen(7001, nil); err == nil {
				l.Close()
			}
		}
		concurrent.RunTogether(rounds, release(7001, time.Nanosecond), release(7002, 30*time.Microsecond),
			release(7003, time.Nanosecond), listen, listen)
		until(t, "the end of all ports", func() bool { return p.a.link.(*mem.Link).BindPort(7001) == nil })
	})
	t.Run("conn", func(t *testing.T) {
		concurrent.RunTogether(rounds, func(int) { c.Stats() }, func(int) { c.RemoteAddr(); c.LocalAddr() },
			func(i int) { c.Stream(uint16(i % 3)) },
			func(int) { c.SetDeadline(time.Now().Add(time.Hour)) }, func(i int) {
				_, _ = c.WriteMsg([]byte("x"), SendInfo{Stream: uint16(i % 3)})
			})
	})
}

// A Transport is asked for everything at once, by programs and by peers.
func TestTransportMayBeUsedAtOnce(t *testing.T) {
	la, lb := mempair.New(t, mem.Options{MTU: 1500})
	p := joinPair(t, la, lb, la, lb)
	watchTransport(t, p.a)
	watchTransport(t, p.b)
	brief := &Config{Events: 1, RTOInitial: 20 * time.Millisecond, RTOMin: time.Millisecond,
		RTOMax: 20 * time.Millisecond}
	l := must.Get(p.b.Listen(7000, &Config{Backlog: 2}))(t)
	a := must.Get(p.a.OpenSocket(0, brief))(t)
	b := must.Get(p.b.OpenSocket(7, brief))(t)
	ctx := deadlineCtx(t)
	var readers sync.WaitGroup
	for _, s := range []*Socket{a, b, b} {
		readers.Go(func() {
			for {
				if _, _, _, err := s.ReadMsg(make([]byte, 100)); err != nil {
					return
				}
			}
		})
	}
	readers.Go(func() {
		for c, err := l.Accept(ctx); err == nil; c, err = l.Accept(ctx) {
			readers.Go(func() { echoAll(c) })
		}
	})
	dial := func(i int) {
		c, err := p.a.Dial(ctx, netip.AddrPortFrom(p.bAddr, 7000), brief)
		if err != nil {
			return // others were first
		}
		for range 3 {
			if _, err := c.WriteMsg([]byte("message"), SendInfo{Lifetime: time.Nanosecond}); err != nil {
				break
			}
		}
		if i%2 == 0 {
			c.Abort("enough")
		}
		c.Close()
	}
	write := func(int) { _, _ = a.WriteMsg([]byte("message"), netip.AddrPortFrom(p.bAddr, 7), SendInfo{}) }
	init := wire.CloseChunk(wire.AppendInit(nil, wire.ChunkInit,
		wire.InitFields{Tag: 1, ARwnd: 1 << 20, OutStreams: 1, InStreams: 1, TSN: 1}), 0)
	stray := func(i int) {
		givePackets(p.b, p.bAddr, p.bAddr, rawPacket(1, 7000, 0, init), 1)
		givePackets(p.b, p.bAddr, p.bAddr, rawPacket(1, 2, 3, wire.AppendCookieAck(nil)), 1)
		givePackets(p.b, p.bAddr, p.bAddr, []byte(fmt.Sprintf("bad checksum %d", i)), 1)
		givePackets(p.b, p.bAddr, p.bAddr, []byte("short"), 1)
	}
	peers := netip.AddrPortFrom(p.bAddr, 7)
	concurrent.RunTogether(20, dial, dial, write, write, stray, stray, func(int) {
		if l, err := p.b.Listen(0, nil); err == nil {
			l.Close()
		}
	}, func(int) {
		if c, err := a.Conn(peers); err == nil {
			c.Abort("")
		}
	}, func(int) { p.a.memory.budget.reclaimMemory(); p.b.memory.budget.reclaimMemory() }, func(i int) {
		if i%5 == 0 {
			runtime.GC()
		}
	})
	for _, s := range []*Socket{a, b} {
		concurrent.RunTogether(2, func(int) { s.Close() }, func(int) { _, _ = s.Conn(peers) })
	}
	l.Close()
	wait, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	concurrent.RunTogether(1, func(int) { p.b.Close() }, func(int) { p.a.Close() }, func(int) { p.a.Close() })
	err := p.a.Wait(wait)
	check.That(t, err == nil, "%d associations are left: %v", p.a.Associations(), err)
	readers.Wait()
}
