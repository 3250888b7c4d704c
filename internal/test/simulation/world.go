package simulation

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// World is two hosts that work with one another, and the oracle for it.
type World struct {
	*Env
	hostAddrs hostAddrs
	rand      *simnet.Rand // operations, secrets
	mtu       int          // of the hosts' own links, SCTP-level
	a, b      *Host

	conn      *conn // of A; another one after a loss
	slots     []*sessionSlot
	workloads []*workload // of the sessions that there are

	port, local, udp uint16 // SCTP ports of B and A, UDP port of both or 0

	ops       int        // still to be posted
	sessions  int        // still to be opened
	opened    uint16     // sessions so far
	waiting   int        // what after has yet to do
	finishing bool       // lanes stay as they are
	hash      uint64     // of every completion
	err       *Violation // the first violation

	mtuChanges   mtuChanges
	assocKiller  assocKiller
	linkFailures *linkFailures
	joined       *joinedState             // on a ground that is shared, else nil
	tcp          *tcpWorld                // of sessions over TCP; nil: over the association
	keys         *keyWorld                // of encrypted associations; nil: all is in the clear
	chooseQP     func(private []byte) *qp // what serve does, where it is set
	coverage     Coverage
}

// Coverage counts what has come to pass in a world, so that a test knows what its worlds have told.
type Coverage struct {
	Sessions int // that are over
	Rejected int // of these, without having begun
	Gracious int // ended gracefully by one side
	Violated int // ended by an access that is forbidden
	Revoked  int // ended by an access to a window that was closed
	CutOff   int // with requests that failed
	Windows  int // that were closed with the session going on
	Losses   int // of associations
	Droughts int // receives used up
	Retried  int // associations set up again that had no keys in time
	Rekeys   int // handshakes of encrypted associations behind their first
	Restarts int // crashes of a host, whose association was restarted by the keys that it had kept
	MTUs     int // changes of the network's MTU
	Done     int // requests completed with success

	Ops  [rdmap.WRAtomic + 1]int // requests posted, by opcode
	Adds int                     // of the atomics, FetchAdd with whatever mask
}

// Add adds what another world has told.
func (t *Coverage) Add(o *Coverage) {
	t.Sessions += o.Sessions
	t.Rejected += o.Rejected
	t.Gracious += o.Gracious
	t.Violated += o.Violated
	t.Revoked += o.Revoked
	t.CutOff += o.CutOff
	t.Windows += o.Windows
	t.Losses += o.Losses
	t.Retried += o.Retried
	t.Rekeys += o.Rekeys
	t.Restarts += o.Restarts
	t.MTUs += o.MTUs
	t.Droughts += o.Droughts
	t.Done += o.Done
	t.Adds += o.Adds
	for i, n := range o.Ops {
		t.Ops[i] += n
	}
}

// scheduleAfter has do called when d has passed.
func (w *World) scheduleAfter(d time.Duration, do func()) {
	w.waiting++
	w.After(d, func() {
		w.waiting--
		do()
	})
}

// The limits of a run: beyond them it has stalled.
const (
	maxVirtual = 3 * time.Hour
	maxEvents  = 3_000_000
)

const firstHash = 14695981039346656037

// hostAddrs is where the hosts of a world live: the addresses of both in the first network, and in
// the second if there is one.
type hostAddrs struct{ first, second [2]netip.Addr }

// homes are of IPv4, of IPv6, and of both. Seeds take turns.
var homes = func() (list [3]hostAddrs) {
	two := func(a string) (of [2]netip.Addr) {
		of[0] = netip.MustParseAddr(a)
		of[1] = of[0].Next()
		return of
	}
	v4, v6 := two("10.0.0.1"), two("2001:db8::1")
	return [3]hostAddrs{{v4, two("172.16.0.1")}, {v6, two("2001:db8:1::1")}, {v4, two("2001:db8:2::1")}}
}()

// leastMTU is the MTU of a way to an address for which one was drawn: those of IPv6 carry 1280
// octets.
func leastMTU(to netip.Addr, mtu int) int {
	if to.Is6() {
		return max(mtu, 1280)
	}
	return mtu
}

// extraHeader is how much longer the IP header is than that of IPv4.
func extraHeader(to netip.Addr) int {
	if to.Is6() {
		return 20
	}
	return 0
}

// New makes a world from a seed, on a ground of its own.
func New(seed uint64) *World {
	w := &World{Env: NewEnv(seed ^ 0x6e6574), rand: simnet.NewRand(seed), hash: firstHash, port: port,
		local: localPort}
	w.hostAddrs = homes[seed%uint64(len(homes))]
	addrA, addrB := w.hostAddrs.first[0], w.hostAddrs.first[1]
	mtuOf := func(_, remote netip.Addr) int { return leastMTU(remote, w.mtu+20) - 20 - extraHeader(remote) }
	w.a = newHost(w, w.NewNode("A", w.rand, mtuOf, addrA))
	w.b = newHost(w, w.NewNode("B", w.rand, mtuOf, addrB))
	if addrB.Is4() != w.hostAddrs.second[1].Is4() { // B is a dual-stack host, and tells so; A has one address
		w.b.node.AddAddr(w.hostAddrs.second[1])
		w.b.cfg.LocalAddrs = w.b.node.Addrs
	}
	w.b.node.Accept = w.acceptAssoc
	mtu := mtus[w.rand.IntN(len(mtus))]
	w.mtu = mtu - 20
	if w.rand.IntN(3) == 0 { // the hosts' links take more than the network
		w.mtu = max(mtu, mtus[w.rand.IntN(len(mtus))]) - 20
	}
	w.mtuChanges = newWeather(w)
	w.assocKiller.at = rawio.Never
	w.net.SetLink(addrA, addrB, w.drawPath(leastMTU(addrA, mtu)))
	w.net.SetLink(addrB, addrA, w.drawPath(leastMTU(addrA, mtu)))
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

// drawPath draws the faults of one direction.
func (w *World) drawPath(mtu int) simnet.Params {
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

// mixIntoHash mixes v into the trace hash.
func (w *World) mixIntoHash(v ...uint64) {
	for _, x := range v {
		w.hash = (w.hash ^ x) * 1099511628211
	}
}

// Hash stands for everything that happened: packets and completions.
func (w *World) Hash() uint64 { return w.hash ^ w.net.Hash() }

// acceptAssoc makes the Conn of an association that A has set up.
func (w *World) acceptAssoc(a *assoc.Assoc, _ *rawio.Packet) Conn { return w.b.addConn(a, false) }

// nextEventAt is when there is something to do that no timer of a node tells of.
func (w *World) nextEventAt() rawio.Time {
	t := min(w.linkFailures.nextAt(), w.assocKiller.at, w.mtuChanges.next, w.tcp.nextAt())
	for _, l := range w.workloads {
		t = min(t, l.next)
	}
	for _, n := range w.slots {
		t = min(t, n.endAt)
	}
	return t
}

// actDue does what is due.
func (w *World) actDue() {
	w.mtuChanges.changeMTU(w)
	w.linkFailures.actDue(w)
	w.assocKiller.actDue(w)
	w.tcp.actDue()
	for _, l := range w.workloads {
		if l.next <= w.now {
			l.actDue(w.now)
		}
	}
	for _, n := range w.slots {
		n.advanceState()
	}
}

// runUntil steps until done or a violation. what names the phase.
func (w *World) runUntil(what string, done func() bool) {
	for w.err == nil && !done() {
		if !w.Step(w.nextEventAt()) {
			w.failf("%s: nothing left to happen, and not done; %s", what, w.pendingWork())
			return
		}
		w.actDue()
		if time.Duration(w.now) > maxVirtual || w.events > maxEvents {
			w.failf("%s: stalled after %d events; %s", what, w.events, w.pendingWork())
		}
	}
}

// pendingWork says what each side still waits for.
func (w *World) pendingWork() (s string) {
	for i, l := range w.workloads {
		s += fmt.Sprintf("[%s %d: %d posted, %d writes to cover, %d messages expected, %v] ",
			l.q.h.name, i/2, len(l.posted), len(l.uncovered), len(l.expect), l.q.core.State())
	}
	return s + w.tcp.pending() + fmt.Sprintf("%d operations and %d sessions to come", w.ops, w.sessions)
}

// Run plays the world to its end and returns the first violation.
func (w *World) Run() error {
	if w.tcp == nil {
		if err := w.b.node.EP.Listen(port, &w.b.cfg); err != nil {
			return err
		}
		w.connectHosts()
		w.runUntil("setup", func() bool { return w.conn.up })
		if w.err != nil {
			return w.err
		}
		w.assocKiller.drawKill(w)
	}
	w.openLanes()
	w.runUntil("operations", func() bool { return !w.hasWork() })
	w.assocKiller.at = rawio.Never
	w.finishing = true
	if w.err == nil && w.rand.IntN(3) == 0 {
		w.injectViolation()
	}
	w.finishSessions()
	if n := w.net.Stats().Unrouted; n > 0 && w.linkFailures == nil {
		w.failf("%d packets have gone between addresses that do not know each other", n)
	}
	return w.firstViolation()
}

// firstViolation is the first violation as an error.
func (w *World) firstViolation() error {
	if w.err == nil {
		return nil
	}
	return w.err
}

// hasWork reports whether there is something left to do.
func (w *World) hasWork() bool {
	busy := w.ops > 0 || w.sessions > 0 || w.waiting > 0 || w.assocKiller.on || !w.bothConnected()
	for _, n := range w.slots {
		busy = busy || !n.isIdle()
	}
	return busy
}

func (w *World) connectHosts() {
	if w.conn = w.a.startAssoc(w.b); w.conn != nil {
		w.conn.Pump()
	}
}

// finishSessions ends everything gracefully and looks for what is left over.
func (w *World) finishSessions() {
	if w.err != nil {
		return
	}
	w.closeSessions()
	w.runUntil("sessions' end", func() bool {
		for _, l := range w.workloads {
			if !l.q.over {
				return false
			}
		}
		return true
	})
	if w.err != nil {
		return
	}
	for _, l := range w.workloads {
		l.checkAllDone()
	}
	if w.tcp != nil {
		w.runUntil("end of all connections", func() bool { return len(w.tcp.conns) == 0 })
		w.checkEnd()
		return
	}
	if err := w.conn.a.Shutdown(w.a.node.Time()); err != nil {
		w.failf("shutdown: %v", err)
	}
	w.conn.Pump()
	w.runUntil("shutdown", func() bool { return w.conn.down != nil && w.b.currentConn().down != nil })
	w.checkEnd()
	w.net.Discard()
	if n := w.net.Outstanding(); n != 0 && w.err == nil {
		w.failf("%d packet buffers were never released", n)
	}
}

// closeSessions has A end them all.
func (w *World) closeSessions() {
	for _, l := range w.workloads {
		l.next, l.closing, l.end.begun = rawio.Never, true, true
	}
	for _, q := range w.qpsOf(w.a) {
		q.core.Close()
		if w.tcp != nil && q.conn != nil {
			q.conn.Pump()
		}
	}
	if w.tcp == nil {
		w.conn.Pump()
	}
}

// checkEnd looks for what is left over when everything has ended.
func (w *World) checkEnd() {
	for _, h := range []*Host{w.a, w.b} {
		h.mem.checkMemory("at the end")
		h.sharedCounter.checkCount()
		if n := h.table.Len(); n != 1 && w.err == nil { // the tally's
			w.failf("%s: %d regions are left", h.name, n)
		}
	}
}

// Elapsed returns the virtual time that has passed.
func (w *World) Elapsed() time.Duration { return time.Duration(w.now) }
