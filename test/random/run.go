package random

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/internal/test/simulation"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// run is a schedule being played.
type run struct {
	s     *Schedule
	g     *simulation.Env
	hosts []*host
	ids   map[*simulation.Node]int
	atNAT map[netip.Addr]*host
	users []assocUser // of the associations, in the schedule's order
	keys  *simulation.Keys

	ways     []*networkLink
	faults   []*Act // of ways, that are under way
	undos    []func()
	troubles map[[2]int]*faultCount
	watches  map[*assoc.Assoc]*assocMonitor
	buffers  map[*assoc.Assoc]int // their receive buffers

	buf           []byte // for a message
	closing, over bool
	tally         Tally
	second        rawio.Time // the last one that counts as one with traffic
	bad           *Violation
}

// assocUser is those who make use of an association of the schedule.
type assocUser interface {
	carryOut(a *Act)
	bootHost(h *host)  // a host that has a part in it is there, or there again
	crashHost(h *host) // a host is about to forget everything
	acceptAssoc(h *host, a *assoc.Assoc) simulation.Conn
	nextEventAt() rawio.Time
	actDue()
	checkMemory()                         // looks at memory
	isIdle() bool                         // nothing is left to be done
	hasEnded() bool                       // nothing is left beside associations
	closeAll()                            // is to end gracefully
	judgeEnd()                            // judges what is left
	endWasAsked(a *assoc.Assoc) bool      // the end of the association was asked for
	mutedUntil(a *assoc.Assoc) rawio.Time // until when its user reads nothing
	String() string
}

// SCTP ports: that of the listener, and that of the side that connects.
const portB, portA = 5000, 6000

// The limits of a run's end: what is to be done when all is well takes no longer.
const (
	drain = 24 * time.Hour // Max.Burst 1, SACK.Delay 500 ms and an MTU of 576 make 900 octets a second
	bye   = 30 * time.Minute
	most  = 30_000_000 // events
)

// Result is what came of a run.
type Result struct {
	Violation *Violation
	Tally     Tally
	Hash      uint64 // two runs of one schedule agree in it
}

// Run plays the schedule to its end, or to the first violation.
func (s *Schedule) Run() (res Result) {
	r := newRun(s)
	r.playSchedule()
	r.tally.readCounters(r)
	return Result{r.bad, r.tally, r.g.Net().Hash()}
}

func newRun(s *Schedule) *run {
	r := &run{s: s, g: simulation.NewEnv(s.Seed), ids: make(map[*simulation.Node]int),
		atNAT:    make(map[netip.Addr]*host),
		troubles: make(map[[2]int]*faultCount), watches: make(map[*assoc.Assoc]*assocMonitor),
		buffers: make(map[*assoc.Assoc]int), second: -1}
	r.keys = simulation.NewKeys(r.g, simnet.NewRand(mixSeed(s.Seed, 9)))
	r.g.Net().Separate()
	r.g.Arrive = r.deliverPacket
	for i := range s.Hosts {
		r.addHost(i)
	}
	joined := make(map[[2]int]bool)
	for i := range s.Assocs {
		a := &s.Assocs[i]
		if a.UDP {
			r.hosts[a.A].udp, r.hosts[a.B].udp = true, true
		}
		if p := pairOf(a.A, a.B); !joined[p] {
			joined[p] = true
			r.joinHosts(a.A, a.B)
		}
		switch a.Use {
		case RDMA, RDMAOverTCP:
			r.users = append(r.users, newPair(r, i))
		default:
			r.users = append(r.users, newTalk(r, i))
		}
	}
	for i := range s.Acts {
		a := &s.Acts[i]
		r.g.After(a.At, func() { r.carryOut(a) })
	}
	return r
}

func (r *run) addHost(i int) {
	h := &host{r: r, id: i, spec: r.s.Hosts[i], rand: simnet.NewRand(mixSeed(r.s.Seed, 3, uint64(i)))}
	var addrs []netip.Addr
	for _, k := range h.netIDs() {
		addrs = append(addrs, addrOf(i, k))
	}
	h.node = r.g.NewNode(fmt.Sprint(i), secrets{h.rand}, h.linkMTU, addrs...)
	h.node.Skew = time.Duration(mixSeed(r.s.Seed, 4, uint64(i)) % uint64(24*time.Hour))
	h.node.Out = h.sendPacket
	h.node.Passed = func(p *rawio.Packet) { r.checkPacket(h, p) }
	h.node.Handled = func(c simulation.Conn) { r.checkAssoc(h, c) }
	h.node.Accept = func(a *assoc.Assoc, _ *rawio.Packet) simulation.Conn { return r.userOf(a).acceptAssoc(h, a) }
	r.hosts = append(r.hosts, h)
	r.ids[h.node] = i
	if h.spec.NAT {
		h.nat = &nat{inside: netip.AddrPortFrom(addrs[0], encap)}
		h.renewNAT(true)
	}
}

// secrets are what an endpoint draws its secrets from. Of the eight octets of a tag and an Initial
// TSN the latter are often such that TSNs soon begin at 0 again.
type secrets struct{ *simnet.Rand }

func (s secrets) Read(b []byte) (int, error) {
	n, err := s.Rand.Read(b)
	if len(b) == 8 && b[0]%4 == 0 {
		b[4], b[5], b[6] = 0xff, 0xff, 0xff
	}
	return n, err
}

func (h *host) nominalMTU() int {
	if h.spec.MTU == 0 {
		return 1500
	}
	return h.spec.MTU
}

// linkMTU is what the host believes that its links carry of SCTP.
func (h *host) linkMTU(_, remote netip.Addr) int {
	n := h.nominalMTU() - rawio.Overhead(netip.AddrPortFrom(remote, 0))
	if h.udp {
		n -= 8
	}
	return n
}

// userOf finds the association of the schedule by its ports.
func (r *run) userOf(a *assoc.Assoc) assocUser { return r.users[int(a.LocalPort())%1000] }

func (r *run) peerOf(h *host, a *assoc.Assoc) *host {
	spec := &r.s.Assocs[int(a.LocalPort())%1000]
	if h.id == spec.A {
		return r.hosts[spec.B]
	}
	return r.hosts[spec.A]
}

func (r *run) mutedUntil(a *assoc.Assoc) rawio.Time {
	if a == nil {
		return 0
	}
	return r.userOf(a).mutedUntil(a)
}

// carryOut carries out what the schedule has.
func (r *run) carryOut(a *Act) {
	if r.closing || a.At >= r.s.Length {
		return
	}
	r.tally.Acts[a.Kind]++
	if a.Kind < Crash {
		r.users[a.A].carryOut(a)
	} else {
		r.beginFault(a)
	}
}

// playSchedule has the world live, heal and end.
func (r *run) playSchedule() {
	for _, u := range r.users {
		for _, h := range r.hosts {
			u.bootHost(h)
		}
	}
	r.g.After(tick, r.checkIdle)
	r.runUntil("", rawio.Time(r.s.Length), func() bool { return false })
	for i := range r.undos {
		if r.undos[i] != nil {
			r.undos[i]()
		}
	}
	r.runUntil("what was to be done is not done", r.g.Now().Add(drain), func() bool {
		for _, u := range r.users {
			if !u.isIdle() {
				return false
			}
		}
		return true
	})
	r.closing = true
	for _, u := range r.users {
		u.closeAll()
	}
	r.runUntil("associations that do not end", r.g.Now().Add(bye), func() bool {
		for _, h := range r.hosts {
			if len(h.node.Conns()) > 0 {
				return false
			}
		}
		for _, u := range r.users {
			if !u.hasEnded() {
				return false
			}
		}
		return true
	})
	r.checkLeftovers()
}

// runUntil lets the world go on until done, which is to be so by a time: else it is a stall, if
// that has a name.
func (r *run) runUntil(stall string, by rawio.Time, done func() bool) {
	for r.bad == nil && !done() {
		next := by
		for _, u := range r.users {
			next = min(next, u.nextEventAt())
		}
		r.g.Step(next)
		for _, u := range r.users {
			u.actDue()
		}
		if r.g.Now() >= by || r.g.Events() > most {
			if stall != "" || r.g.Events() > most {
				r.recordViolation(Progress, "-", "%s: %v", stall, r.users)
			}
			return
		}
	}
}

// checkLeftovers looks for what is left over.
func (r *run) checkLeftovers() {
	r.over = true
	if r.bad != nil {
		return
	}
	for _, u := range r.users {
		u.judgeEnd()
	}
	for _, h := range r.hosts {
		if n := h.node.EP.Len(); n != 0 {
			r.recordViolation(CleanEnd, h.node.Name, "%d associations are left", n)
		}
	}
	net := r.g.Net()
	net.Discard()
	if n := net.Outstanding(); n != 0 {
		r.recordViolation(CleanEnd, "-", "%d packet buffers were never released", n)
	}
}

// noteTraffic notes that something of a user has got through.
func (r *run) noteTraffic() {
	if s := r.g.Now() / rawio.Time(time.Second); s != r.second {
		r.second = s
		r.tally.Busy += time.Second
	}
}

// drawConfig draws the limits and timers of one end.
func drawConfig(seed uint64, h *host) (c assoc.Config) {
	if h.nat == nil && h.spec.Nets > 1 {
		c.LocalAddrs = h.node.Addrs
	}
	if seed == 0 {
		return c
	}
	d := drawer{Rand: simnet.NewRand(mixSeed(seed, uint64(h.id)))}
	pick := func(v ...int) int { return v[d.n(len(v))] }
	c.OutStreams, c.InStreams = uint16(pick(1, 4, 10, 300)), uint16(pick(10, 65535))
	c.RecvBuffer = pick(1500, 3000, 10_000, 65536, 1<<20, 1<<20)
	c.SendBuffer = pick(2000, 10_000, 65536, 1<<20, 1<<20)
	c.RTOMin = time.Duration(pick(10, 200, 1000)) * time.Millisecond
	c.RTOInitial = time.Duration(pick(1000, 3000)) * time.Millisecond
	c.RTOMax = time.Duration(pick(10, 60, 60)) * time.Second
	c.SackDelay = time.Duration(pick(1, 200, 500)) * time.Millisecond
	c.HeartbeatInterval = time.Duration(pick(1, 5, 30, 30, 30)) * time.Second
	c.MaxBurst = pick(1, 4, 4, -1)
	c.HBMaxBurst = pick(1, 1, 3)
	c.PathMaxRetrans = pick(1, 5, 5)
	c.PotentiallyFailedMaxRetrans = pick(0, 0, 1, 3)
	if limit := min(c.PotentiallyFailedMaxRetrans, c.PathMaxRetrans) + d.n(3); d.n(3) == 0 {
		c.PrimarySwitchoverMaxRetrans = &limit
	}
	c.HidePotentiallyFailed = d.n(4) == 0
	c.DisablePMTUD, c.DisableECN = d.n(6) == 0, d.n(4) == 0
	c.NewController = controllers[d.n(len(controllers))]
	return c
}
