package world

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// World is two hosts and the network between them.
type World struct {
	rand *simnet.Rand // operations, secrets
	net  *simnet.Net  // faults
	mtu  int          // of the hosts' own links, SCTP-level
	now  rawio.Time
	pkt  rawio.Packet // being handled
	a, b *Host

	conn  *conn // of A; another one after a loss
	lanes []*lane
	loads []*load // of the sessions that there are
	later []timer // sorted by time

	ops       int    // still to be posted
	sessions  int    // still to be opened
	finishing bool   // lanes stay as they are
	hash      uint64 // of every completion
	err       error  // the first violation

	weather weather
	doom    doom
	fate    *fate
	events  uint64
	seen    tales
}

// tales counts what has come to pass in a world, so that a test knows what its worlds have told.
type tales struct {
	sessions int                     // that are over
	rejected int                     // of these, without having begun
	gracious int                     // ended gracefully by one side
	violated int                     // ended by an access that is forbidden
	revoked  int                     // ended by an access to a window that was closed
	cutOff   int                     // with requests that failed
	windows  int                     // that were closed with the session going on
	losses   int                     // of associations
	mtus     int                     // changes of the network's MTU
	ops      [rdmap.WRAtomic + 1]int // requests posted, by opcode
	adds     int                     // of the atomics, FetchAdd with whatever mask
}

func (t *tales) add(o *tales) {
	t.sessions += o.sessions
	t.rejected += o.rejected
	t.gracious += o.gracious
	t.violated += o.violated
	t.revoked += o.revoked
	t.cutOff += o.cutOff
	t.windows += o.windows
	t.losses += o.losses
	t.mtus += o.mtus
	for i, n := range o.ops {
		t.ops[i] += n
	}
	t.adds += o.adds
}

// timer is something to be done at a time.
type timer struct {
	at rawio.Time
	do func()
}

// after has do called when d has passed.
func (w *World) after(d time.Duration, do func()) {
	t := timer{w.now.Add(d), do}
	i := len(w.later)
	for i > 0 && w.later[i-1].at > t.at {
		i--
	}
	w.later = slices.Insert(w.later, i, t)
}

// The limits of a run: beyond them it has stalled.
const (
	maxVirtual = 3 * time.Hour
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
	w.doom.at = rawio.Never
	w.net.SetLink(addrA, addrB, w.path(mtu))
	w.net.SetLink(addrB, addrA, w.path(mtu))
	w.ops = 40 + w.rand.IntN(160)
	switch w.rand.IntN(40) { // half of all worlds have a single session on each lane
	case 0:
		w.sessions = 100 + w.rand.IntN(200)
	default:
		w.sessions = w.rand.IntN(12) * w.rand.IntN(2)
	}
	w.ops += 4 * w.sessions
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
		until := min(w.fate.next(), w.doom.at)
		for _, l := range w.loads {
			until = min(until, l.next)
		}
		for _, n := range w.lanes {
			until = min(until, n.endAt)
		}
		if len(w.later) > 0 {
			until = min(until, w.later[0].at)
		}
		if !w.step(until) {
			w.failf("%s: nothing left to happen, and not done; %s", what, w.pending())
			return
		}
		w.fate.act(w)
		w.doom.act(w)
		for len(w.later) > 0 && w.later[0].at <= w.now {
			do := w.later[0].do
			w.later = w.later[1:]
			do()
		}
		for _, l := range w.loads {
			if l.next <= w.now {
				l.act(w.now)
			}
		}
		for _, n := range w.lanes {
			n.advance()
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
	return s + fmt.Sprintf("%d operations and %d sessions to come", w.ops, w.sessions)
}

// Run plays the world to its end and returns the first violation.
func (w *World) Run() error {
	w.a.accept, w.b.accept = w.serve, w.serve
	if err := w.b.ep.Listen(port, &w.b.cfg); err != nil {
		return err
	}
	w.connect()
	w.run("setup", func() bool { return w.conn.up })
	if w.err != nil {
		return w.err
	}
	w.doom.begin(w)
	w.openLanes()
	w.run("operations", func() bool {
		busy := w.ops > 0 || w.sessions > 0 || len(w.later) > 0 || w.doom.on || !w.linked()
		for _, n := range w.lanes {
			busy = busy || !n.idle()
		}
		return !busy
	})
	w.doom.at = rawio.Never
	w.finishing = true
	if w.err == nil && w.rand.IntN(3) == 0 {
		w.violate()
	}
	w.finish()
	return w.err
}

func (w *World) connect() {
	w.conn = w.a.connect(w.now, w.b)
	w.conn.pump(w.now)
}

// finish ends everything gracefully and looks for what is left over.
func (w *World) finish() {
	if w.err != nil {
		return
	}
	for _, l := range w.loads {
		l.next, l.closing, l.end.begun = rawio.Never, true, true
	}
	for _, q := range w.qps(w.a) {
		q.core.Close()
	}
	w.conn.pump(w.now)
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
	for _, l := range w.loads {
		l.retire()
	}
	if err := w.conn.a.Shutdown(w.now); err != nil {
		w.failf("shutdown: %v", err)
	}
	w.conn.pump(w.now)
	w.run("shutdown", func() bool { return w.conn.down != nil && w.b.conn().down != nil })
	for _, h := range []*Host{w.a, w.b} {
		h.mem.check("at the end")
		h.tally.check()
		if n := h.table.Len(); n != 1 && w.err == nil { // the tally's
			w.failf("%s: %d regions are left", h.name, n)
		}
	}
	w.net.Discard()
	if n := w.net.Outstanding(); n != 0 && w.err == nil {
		w.failf("%d packet buffers were never released", n)
	}
}

// Elapsed returns the virtual time that has passed.
func (w *World) Elapsed() time.Duration { return time.Duration(w.now) }
