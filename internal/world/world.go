package world

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
)

// World is two hosts and the network between them.
type World struct {
	rand *simnet.Rand // operations, secrets
	net  *simnet.Net  // faults
	mtu  int          // of the hosts' own links, SCTP-level
	now  rawio.Time
	pkt  rawio.Packet // being handled
	a, b *Host

	ops   int    // still to be posted
	hash  uint64 // of every completion
	err   error  // the first violation
	loads []*load

	weather weather
	fate    *fate
	events  uint64
}

// The limits of a run: beyond them it has stalled.
const (
	maxVirtual = 30 * time.Minute
	maxEvents  = 3_000_000
)

// New makes a world from a seed.
func New(seed uint64) *World {
	w := &World{rand: simnet.NewRand(seed), net: simnet.New(seed ^ 0x6e6574), hash: 14695981039346656037}
	addrA, addrB := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	w.a = newHost(w, "A", addrA)
	w.b = newHost(w, "B", addrB)
	mtu := mtus[w.rand.IntN(len(mtus))]
	w.mtu = mtu - 20
	if w.rand.IntN(3) == 0 { // the hosts' links take more than the network
		w.mtu = max(mtu, mtus[w.rand.IntN(len(mtus))]) - 20
	}
	w.weather = newWeather(w)
	w.net.SetLink(addrA, addrB, w.path(mtu))
	w.net.SetLink(addrB, addrA, w.path(mtu))
	w.ops = 40 + w.rand.IntN(160)
	return w
}

// path draws the faults of one direction.
func (w *World) path(mtu int) simnet.Params {
	chance := func(p, max float64) float64 { // 0 with probability 1-p, else up to max
		if w.rand.Float64() >= p {
			return 0
		}
		return w.rand.Float64() * max
	}
	p := simnet.Params{
		MTU:       mtu,
		Delay:     time.Duration(w.rand.IntN(80_000)) * time.Microsecond,
		Jitter:    time.Duration(chance(0.5, 20e6)),
		Loss:      chance(0.6, 0.08),
		Duplicate: chance(0.4, 0.1),
		Reorder:   chance(0.5, 0.2),
		Corrupt:   chance(0.3, 0.03),
		Mark:      chance(0.3, 0.1),
		Quote:     w.rand.IntN(2) * 64,
	}
	p.ReorderDelay = time.Duration(w.rand.IntN(60_000)) * time.Microsecond
	if w.rand.IntN(3) == 0 {
		p.Rate = int64(200_000 + w.rand.IntN(20_000_000))
		p.Queue = mtu*4 + w.rand.IntN(200_000)
		p.MarkQueue = w.rand.IntN(2) * p.Queue / 2
	}
	if w.rand.IntN(4) == 0 {
		p.Burst = simnet.Burst{Enter: 0.01, Leave: 0.3, Loss: 0.7}
	}
	return p
}

// failf records the first violation.
func (w *World) failf(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("at %v: %s", time.Duration(w.now), fmt.Sprintf(format, args...))
	}
}

// note mixes v into the trace hash.
func (w *World) note(v ...uint64) {
	for _, x := range v {
		w.hash = (w.hash ^ x) * 1099511628211
	}
}

// Hash stands for everything that happened: packets and completions.
func (w *World) Hash() uint64 { return w.hash ^ w.net.Hash() }

// step advances to the next thing that happens and does it. It returns false when nothing ever will.
func (w *World) step(until rawio.Time) bool {
	next := min(w.net.NextArrival(), w.a.nextTimeout(), w.b.nextTimeout(), w.weather.next, until)
	if next == rawio.Never {
		return false
	}
	w.now = max(w.now, next)
	w.weather.blow(w)
	w.events++
	for {
		to, p, ok := w.net.Deliver(w.now)
		if !ok {
			break
		}
		w.pkt = p
		h := w.a
		if slices.Contains(w.b.addrs, to) {
			h = w.b
		}
		h.receive(w.now, &w.pkt)
		w.pkt.Release()
	}
	w.a.timeouts(w.now)
	w.b.timeouts(w.now)
	return true
}

// run steps until done or a violation. what names the phase.
func (w *World) run(what string, done func() bool) {
	for w.err == nil && !done() {
		until := w.fate.next()
		for _, l := range w.loads {
			until = min(until, l.next)
		}
		if !w.step(until) {
			w.failf("%s: nothing left to happen, and not done", what)
			return
		}
		w.fate.act(w)
		for _, l := range w.loads {
			if l.next <= w.now {
				l.act(w.now)
			}
		}
		if time.Duration(w.now) > maxVirtual || w.events > maxEvents {
			w.failf("%s: stalled after %d events; %s", what, w.events, w.pending())
		}
	}
}

// pending says what each side still waits for.
func (w *World) pending() (s string) {
	for i, l := range w.loads {
		s += fmt.Sprintf("[%s %d: %d posted, %d writes to cover, %d messages expected, %v] ",
			l.q.h.name, i/2, len(l.posted), len(l.uncovered), len(l.expect), l.q.core.State())
	}
	return s
}

// Run plays the world to its end and returns the first violation.
func (w *World) Run() error {
	if err := w.b.ep.Listen(port, &w.b.cfg); err != nil {
		return err
	}
	c := w.a.connect(w.now, w.b)
	c.pump(w.now)
	w.run("setup", func() bool { return c.up || c.down != nil })
	if c.down != nil {
		w.failf("setup: %v", c.down)
	}
	w.openSessions(c)
	w.run("sessions", func() bool {
		for _, l := range w.loads {
			if !l.ready() {
				return false
			}
		}
		return true
	})
	for _, l := range w.loads {
		l.checkDepths()
		l.start(w.now)
	}
	w.run("operations", func() bool {
		if w.ops > 0 {
			return false
		}
		for _, l := range w.loads {
			if !l.idle() {
				return false
			}
		}
		return true
	})
	if w.err == nil && w.rand.IntN(3) == 0 {
		w.violate()
	}
	w.finish(c)
	return w.err
}

// finish ends everything gracefully and looks for what is left over.
func (w *World) finish(c *conn) {
	if w.err != nil {
		return
	}
	for _, l := range w.loads {
		l.stop()
	}
	for _, q := range w.qps(w.a) {
		q.core.Close()
	}
	c.pump(w.now)
	w.run("sessions' end", func() bool {
		for _, l := range w.loads {
			if !l.q.over {
				return false
			}
		}
		return true
	})
	if w.err != nil {
		return
	}
	if err := c.a.Shutdown(w.now); err != nil {
		w.failf("shutdown: %v", err)
	}
	c.pump(w.now)
	w.run("shutdown", func() bool { return c.down != nil && w.b.conns[0].down != nil })
	for _, h := range []*Host{w.a, w.b} {
		for _, c := range h.conns {
			if c.down != nil && !graceful(c.down) && !w.fate.excuses(c.down) {
				w.failf("%s: association ended by %v", h.name, c.down)
			}
		}
		h.mem.check("at the end")
		h.tally.check()
	}
	w.net.Discard()
	if n := w.net.Outstanding(); n != 0 && w.err == nil {
		w.failf("%d packet buffers were never released", n)
	}
}

// Elapsed returns the virtual time that has passed.
func (w *World) Elapsed() time.Duration { return time.Duration(w.now) }
