//go:build linux

package main

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/forge"
	"golang.org/x/sys/unix"
)

// options say how long and how hard.
type options struct {
	rate          int           // packets a second of the attacker
	quiet, window time.Duration // of the quiet phase at that rate, and of each throughput window
	rounds        int           // of throughput windows; 0 measures no times at all
	verbose       bool
}

const (
	keepsPercent = 80               // of the honest client's throughput, at least
	commonMass   = 32 << 20         // octets that the victim may hold because of one attack, unless it says otherwise
	leave        = 20 * time.Second // that what has to come may take: others want the processors too
	stands       = time.Second      // without an association that ends, until those that are left are taken to stay
	leastSteps   = 16               // of an attack, however late it is
	moreRounds   = 6                // times options.rounds, while the throughput verdict is a failure
)

// row is what became of an attack.
type row struct {
	Name     string  `json:"attack"`
	RFC      string  `json:"rfc"`
	UDP      bool    `json:"udp"`
	Packets  uint64  `json:"packets"`  // of the attacker in the quiet phase
	Reaction string  `json:"reaction"` // seen on the wire
	PeakRSS  uint64  `json:"peak_rss"` // octets
	Cost     cost    `json:"cost"`
	Echo     float64 `json:"echo"`  // octets of answers for each octet of the attack, IP headers included
	Third    float64 `json:"third"` // and of those to third parties and to the client
	Rate     float64 `json:"rate"`  // packets a second beside the transfer

	Flow    string  `json:"flow"`
	Base    float64 `json:"base"`    // octets a second of the honest client, undisturbed
	Control float64 `json:"control"` // its throughput beside packets for nobody, as a share of Base
	Attack  float64 `json:"beside"`  // and beside the attack

	Failures []string `json:"failures"`
	Refused  string   `json:"refused,omitempty"` // by limits of the victim, where something failed
}

// arena is the network with everything in it, for one kind of link.
type arena struct {
	options
	*family
	net            *network
	victim, friend *agent
	w              *wireTap
	seen           *reactionLog
	x              *attackEnv
	idle           float64 // processor seconds a second that the victim takes without an attack
	mtu            int
	late           uint64 // retransmission timers of the honest client's that had expired
	served, assocs int    // of the honest client, or what does not go away
	done           chan struct{}
	fences         int
}

// measuresTimes says whether times are measured. On a machine that does other things too, or in a
// measurement as short as the gate's, they say nothing.
func (a *arena) measuresTimes() bool { return a.rounds > 0 }

// newArena starts the victim and the honest client and warms them up.
func newArena(f *family, o options, udp bool) (*arena, error) { return startArena(f, o, udp, 0) }

// startArena does so with a victim whose peers may have so much memory, and whose runtime is to
// keep to twice as much; 0 is the default of both.
func startArena(f *family, o options, udp bool, memory int64) (*arena, error) {
	kind := "raw"
	if udp {
		kind = "udp"
	}
	a := &arena{options: o, family: f, seen: newRecord(f), done: make(chan struct{})}
	a.seen.rows = new(rowTracker)
	args := []string{"--link", kind, fmt.Sprintf("-6=%v", f == &ipv6)}
	var err error
	if a.net, err = newNetwork(f); err != nil {
		return nil, err
	}
	if a.victim, err = startAgent(a.net.victim, roleVictim,
		append(args, fmt.Sprintf("-memory=%d", memory))...); err != nil {
		return nil, err
	}
	if a.friend, err = startAgent(a.net.friend, roleFriend, args...); err != nil {
		return nil, err
	}
	if a.w, err = newWireTap(f, a.net.attacker, devAttacker, a.net.gateway, udp, a.seen); err != nil {
		return nil, err
	}
	go a.w.readPackets(a.done)
	a.x = &attackEnv{family: f, w: a.w, victim: a.victim, friend: a.friend}
	if err := a.victim.callAgent("regions", nil, &a.x.regions); err != nil {
		return nil, err
	}
	if err := a.friend.callAgent("start", nil, nil); err != nil {
		return nil, err
	}
	for _, flow := range []string{flowSCTP, flowRDMA, silence} {
		if err := a.friend.callAgent("load", flow, nil); err != nil {
			return nil, err
		}
		time.Sleep(a.quiet)
	}
	if err := a.warmPools(); err != nil {
		return nil, err
	}
	return a, a.measureIdle()
}

// warmPools has the victim's link fill its pools of buffers, which it keeps: long packets, and many
// short ones.
func (a *arena) warmPools() error {
	for range 20 {
		from := a.x.freshAddr()
		if err := a.w.sendFragments(from.Addr(), a.victimAddr,
			forge.Packet(from.Port(), 9, 1, make([]byte, 60_000))); err !=
			nil {
			return err
		}
	}
	for range 200 {
		if err := a.w.sendSCTP(a.x.freshAddr(), a.victimPort(9), 1, make([]byte, 1400)); err != nil {
			return err
		}
	}
	return nil
}

// measureIdle measures what the victim costs when nobody attacks.
func (a *arena) measureIdle() error {
	before, err := a.victimStats(false)
	if err != nil {
		return err
	}
	start := time.Now()
	time.Sleep(a.quiet)
	after, err := a.victimStats(false)
	if err != nil {
		return err
	}
	a.idle = (after.CPU - before.CPU).Seconds() / time.Since(start).Seconds()
	a.mtu, a.late = after.FriendMTU, after.FriendLate
	a.served, a.assocs = after.Served, after.Assocs
	return nil
}

// awaitVacated waits until the victim is rid of the last attack: what it serves still would be
// refused to the next.
func (a *arena) awaitVacated() error {
	if err := a.awaitVictimRead(); err != nil { // it has read the ABORTs
		return err
	}
	if err := a.victim.callAgent("vacate", nil, nil); err != nil {
		return err
	}
	least, end := math.MaxInt, time.Time{}
	for ; ; time.Sleep(5 * time.Millisecond) {
		s, err := a.victimStats(false)
		if err != nil || s.Served <= a.served && s.Assocs <= a.assocs {
			return err
		}
		if n := s.Served + s.Assocs; n < least { // it goes on
			least, end = n, time.Now().Add(stands)
		}
		if time.Now().After(end) {
			a.served, a.assocs = s.Served, s.Assocs
			return nil
		}
	}
}

func (a *arena) victimStats(settled bool) (*victimStats, error) {
	s, what := new(victimStats), "stats"
	if settled {
		what = "settled"
	}
	return s, a.victim.callAgent(what, nil, s)
}

func (a *arena) closeArena() {
	close(a.done)
	for _, g := range []*agent{a.victim, a.friend} {
		if g != nil {
			g.stopAgent()
		}
	}
	if a.w != nil {
		unix.Close(a.w.fd)
	}
	a.net.removeNamespaces()
}

// awaitVictimRead waits until the victim has read all that was sent to it so far: it answers an
// INIT that was sent behind.
func (a *arena) awaitVictimRead() error {
	a.fences++
	p := a.w.newPeer(netip.AddrPortFrom(hostAddr(a.attackers, 5000+a.fences%5000), a.x.freshAddr().Port()),
		a.victimPort(portSCTP))
	defer p.stopReceiving()
	for end := time.Now().Add(leave); time.Now().Before(end); {
		b := a.w.carrySCTP(p.src.Addr(), a.victimAddr, encapPort, forge.Packet(p.src.Port(), portSCTP, 0, p.init()))
		a.seen.rows.ignorePort(p.src.Port())
		if err := a.w.sendIP(b); err != nil {
			return err
		}
		// the victim may have no budget for it yet
		if _, err := p.waitFor(wire.ChunkInitAck, 20*time.Millisecond); err != errSilence {
			return err
		}
	}
	return errors.New("the victim answers no INIT")
}

// runAtRate calls step at a rate of packets for a time, but leastSteps at least. It stops early
// after most packets, if that is not 0.
func (a *arena) runAtRate(rate int, d time.Duration, most int, step func(i int) error, from int) (next int, err error) {
	start, sent := time.Now(), a.w.sent.Load()
	for i := from; ; i++ {
		var elapsed time.Duration
		for {
			elapsed = time.Since(start)
			due := uint64(elapsed.Seconds() * float64(rate))
			if elapsed >= d && i-from >= leastSteps || a.w.sent.Load()-sent <= due {
				break
			}
			time.Sleep(200 * time.Microsecond)
		}
		if elapsed >= d && i-from >= leastSteps || most > 0 && a.w.sent.Load()-sent >= uint64(most) {
			return i, nil
		}
		if err := step(i); err != nil {
			return i, fmt.Errorf("step %d: %w", i, err)
		}
	}
}

// hurry is how much faster an attack is when nothing else is done than beside a transfer. Processor
// time is then what packets take, and not what it takes to wake the victim for each.
const hurry = 20

// most is how many packets the quiet phase has.
func (t *attack) numPackets(o options) int {
	n := int(float64(o.rate) * o.quiet.Seconds())
	if t.most > 0 {
		n = min(n, t.most)
	}
	return max(n, t.least)
}

// heldLimit is how much the victim may hold because of it, octets.
func (t *attack) heldLimit() int64 {
	if t.mass > 0 {
		return int64(t.mass)
	}
	return commonMass
}

func (t *attack) packetRate(o options) int {
	if t.rate > 0 {
		return t.rate
	}
	return o.rate
}

// runAttack makes one row.
func (a *arena) runAttack(t *attack) (*row, error) {
	r := &row{Name: t.name, RFC: t.rfc, UDP: t.udp, Flow: t.flow}
	fail := func(format string, args ...any) { r.Failures = append(r.Failures, fmt.Sprintf(format, args...)) }
	before, err := a.victimStats(false)
	if err != nil {
		return nil, err
	}
	if err := a.attackQuietly(t, r, fail); err != nil {
		return nil, err
	}
	if a.measuresTimes() && len(r.Failures) == 0 {
		if err := a.measureFlows(t, r, fail); err != nil {
			return nil, err
		}
	}
	if len(r.Failures) > 0 { // perhaps it is a limit of the victim's that has refused something
		after, err := a.victimStats(false)
		if err != nil {
			return nil, err
		}
		r.Refused = refusedLimits(before, after)
	}
	return r, a.restartFlows()
}

// refusedLimits names the limits of the victim that have refused something in between, and how
// often.
func refusedLimits(before, after *victimStats) string {
	var s []string
	was, is := &before.Transport, &after.Transport
	for _, c := range []struct {
		name   string
		before uint64
		after  uint64
	}{
		{"RateLimited", was.Endpoint.RateLimited, is.Endpoint.RateLimited}, {"OverBudget", was.Endpoint.OverBudget, is.Endpoint.OverBudget},
		{"AnswersDropped", was.Endpoint.AnswersDropped, is.Endpoint.AnswersDropped}, {"AssocsRefused", was.Endpoint.AssocsRefused, is.Endpoint.AssocsRefused},
		{"AcceptRefused", was.AcceptRefused, is.AcceptRefused}, {"BacklogDropped", was.BacklogDropped, is.BacklogDropped},
		{"MemoryRefused", was.MemoryRefused, is.MemoryRefused}, {"MemoryAborted", was.MemoryAborted, is.MemoryAborted}, {"TxFailed", was.TxFailed, is.TxFailed},
	} {
		if c.after > c.before {
			s = append(s, fmt.Sprintf("%s %d", c.name, c.after-c.before))
		}
	}
	return strings.Join(s, ", ")
}

// attackQuietly attacks while the honest client says nothing, and looks at reaction, memory and
// time, set-up included.
func (a *arena) attackQuietly(t *attack, r *row, fail func(string, ...any)) error {
	if err := a.awaitVacated(); err != nil {
		return err
	}
	a.seen.rows.beginRow()
	listen, err := a.listenAtClient()
	if err != nil {
		return err
	}
	defer listen.stopListening()
	defer a.friend.callAgent("load", flowNone, nil)
	if err := a.friend.callAgent("load", silence, nil); err != nil {
		return err
	}
	time.Sleep(2 * slowPace)
	defer a.x.clearAttack()
	var list []cost
	for {
		c, ok, err := a.attackOnce(t, r, listen.seen, len(list) == 0, fail)
		if err != nil || !ok {
			return err
		}
		list = append(list, c)
		if len(list) == costRounds || c.timeRatio() <= mostRatio && c.Hold.Time <= mostHold && len(list) == 1 &&
			c.undecodableRatio() <= t.undecodable ||
			!a.measuresTimes() || len(r.Failures) > 0 {
			break
		}
		a.x.clearAttack()
	}
	r.Cost = medianCost(list)
	r.Cost.judgeCost(t.idle, a.measuresTimes(), fail)
	if v := r.Cost.undecodableRatio(); v > t.undecodable {
		fail("%.2f times the processor time of what nobody can decode, %.1f are allowed", v, t.undecodable)
	}
	if t.finish != nil {
		if err := t.finish(a.x); err != nil {
			fail("%v", err)
		}
	}
	if err := a.friend.callAgent("load", flowNone, nil); err != nil {
		return err
	}
	return a.checkUnhurt(fail)
}

// attackOnce is one measurement; the first is judged by what was seen too. It leaves the attack
// standing. ok says that it could begin.
func (a *arena) attackOnce(t *attack, r *row, toClient *reactionLog, first bool, fail func(string, ...any)) (c cost,
	ok bool, err error) {
	before, err := a.victimStats(true)
	if err != nil {
		return c, false, err
	}
	if err := a.victim.callAgent("reset", nil, nil); err != nil {
		return c, false, err
	}
	var sent, octets uint64
	a.w.sentAs = make([]sentPacket, 0, 4096)
	var step func(int) error
	next, rate, limit := 0, hurry*a.rate, 4*a.quiet
	if t.rate > 0 {
		rate, limit = t.rate, a.quiet
	}
	var packets []sentPacket
	if !a.measuresTimes() { // what it takes to watch matters to times alone
		if err := a.victim.callAgent("watch", true, nil); err != nil {
			return c, false, err
		}
	}
	c.Attack, err = a.victimTime(func() (err error) {
		defer func() {
			r.Packets, octets = a.w.sent.Load()-sent, a.w.octets.Load()-octets
			packets, a.w.sentAs = a.w.sentAs, nil
		}()
		if step, err = t.start(a.x); err != nil {
			fail("it cannot begin: %v", err)
			return nil
		}
		ok = true
		if err := a.awaitVictimRead(); err != nil { // the answers to what begins it have come
			return err
		}
		a.seen.resetLog()
		toClient.resetLog()
		sent, octets = a.w.sent.Load(), a.w.octets.Load()
		if next, err = a.runAtRate(rate, limit, t.numPackets(a.options), step, 0); err != nil && first {
			fail("%v", err)
		}
		return nil
	})
	if err != nil || !ok {
		return c, false, err
	}
	var after *victimStats
	// what it is about to give up is not what it holds
	for end := time.Now().Add(leave / 4); ; time.Sleep(lastAnswersIn) {
		if after, err = a.victimStats(true); err != nil {
			return c, false, err
		}
		c.Packets, c.Heap, c.Account, c.Associations = len(packets), int64(after.Heap)-int64(before.Heap),
			after.Account, after.Assocs
		if c.Heap <= min(c.heapAllowed(t.idle), t.heldLimit()) || time.Now().After(end) {
			break
		}
	}
	r.PeakRSS = after.PeakRSS
	if first {
		a.awaitReactions(t.must, toClient)
		a.judgeReaction(t, r, toClient, octets, c.Heap, fail)
	}
	if !a.measuresTimes() {
		c.Hold, err = a.longestHold()
		return c, true, err
	}
	if sctp.MeasuresHolds && len(r.Failures) == 0 {
		c.Hold, err = a.watchHolds(func() error {
			_, err := a.runAtRate(rate, limit, t.numPackets(a.options), step, next)
			return err
		})
		if err != nil && first {
			fail("%v", err)
		}
	}
	if t.undecodable > 0 {
		if c.Undecodable, err = a.costOfUndecodable(packets); err != nil {
			return c, true, err
		}
	}
	c.Honest, err = a.costOfHonest(packets)
	return c, true, err
}

// awaitReactions waits for reactions that have to come: a victim without a processor looks as if it
// were at rest.
func (a *arena) awaitReactions(must []string, toClient *reactionLog) {
	for end := time.Now().Add(leave); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		heard := append(a.seen.kindsSeen(nil), toClient.kindsSeen(nil)...)
		if !slices.ContainsFunc(must, func(k string) bool { return !slices.Contains(heard, k) }) {
			return
		}
	}
}

// judgeReaction compares what was seen on the wire with what was to be seen.
func (a *arena) judgeReaction(t *attack, r *row, toClient *reactionLog, octets uint64, held int64,
	fail func(string, ...any)) {
	heard := append(a.seen.kindsSeen(nil), toClient.kindsSeen(nil)...)
	show := slices.DeleteFunc(slices.Clone(heard), func(k string) bool {
		return slices.Contains(t.may, k) && !slices.Contains(t.must, k)
	})
	switch {
	case len(heard) == 0:
		r.Reaction = "silently dropped"
	case len(show) == 0:
		r.Reaction = "nothing but " + strings.Join(heard, ", ")
	default:
		r.Reaction = strings.Join(show[:min(len(show), 3)], ", ")
	}
	for _, k := range t.must {
		if !slices.Contains(heard, k) {
			fail("no %s", k)
		}
	}
	for _, k := range heard {
		if !slices.Contains(t.must, k) && !slices.Contains(t.may, k) &&
			!(t.any && !strings.HasSuffix(k, third) && !strings.HasSuffix(k, client)) {
			fail("%s", k)
		}
	}
	if a.seen.leaked {
		fail("octets that were never exposed left the victim")
	}
	_, back := a.seen.volumeTo(false)
	packets, away := a.seen.volumeTo(true)
	_, astray := toClient.volumeTo(false)
	r.Echo = float64(back+away+astray) / float64(max(octets, 1))
	r.Third = float64(away+astray) / float64(max(octets, 1))
	if packets > r.Packets || float64(away) > t.echo*float64(octets) {
		fail("%d packets, %.2f octets to third parties for each octet sent", packets,
			float64(away)/float64(max(octets, 1)))
	}
	if held > t.heldLimit() {
		fail("%d MiB held", held>>20)
	}
}

// checkUnhurt looks whether the honest client's flows go on, and whether the victim is what it was.
func (a *arena) checkUnhurt(fail func(string, ...any)) error {
	if err := a.victim.callAgent("memory", nil, nil); err != nil {
		fail("%v", err)
	}
	v, err := a.victimStats(false)
	if err != nil {
		return err
	}
	if v.Bad > 0 {
		fail("%d messages of the honest client were changed", v.Bad)
	}
	// A path whose timers expire twice looks like a black hole (RFC 8899 section 4.3). On a machine
	// that is busy they may, and it is found to be none.
	for end := time.Now().Add(leave); v.FriendMTU < a.mtu && v.FriendLate > a.late &&
		time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if v, err = a.victimStats(false); err != nil {
			return err
		}
	}
	a.late = v.FriendLate
	if v.FriendMTU < a.mtu {
		fail("the path MTU to the honest client fell from %d to %d", a.mtu, v.FriendMTU)
	}
	var first, last honestStats
	if err := a.friend.callAgent("stats", nil, &first); err != nil {
		return err
	}
	for end := time.Now().Add(leave); time.Now().Before(end); time.Sleep(slowPace) {
		last = honestStats{}
		if err := a.friend.callAgent("stats", nil, &last); err != nil {
			return err
		}
		if last.Octets[flowSCTP] > first.Octets[flowSCTP] && last.Octets[flowRDMA] > first.Octets[flowRDMA] {
			break
		}
	}
	for _, flow := range []string{flowSCTP, flowRDMA} {
		if last.Octets[flow] == first.Octets[flow] {
			fail("the honest client's %s stands still", flow)
		}
	}
	for _, e := range last.Errs {
		fail("the honest client lost its association: %s", e)
	}
	return nil
}

// restartFlows starts the honest client's flows anew when they have been hurt.
func (a *arena) restartFlows() error {
	var s honestStats
	if err := a.friend.callAgent("stats", nil, &s); err != nil || len(s.Errs) == 0 {
		return err
	}
	return a.friend.callAgent("start", nil, nil)
}

// measureFlows measures the honest client under load, beside nothing, beside packets for nobody,
// and beside the attack, in turns.
func (a *arena) measureFlows(t *attack, r *row, fail func(string, ...any)) error {
	if err := a.friend.callAgent("load", t.flow, nil); err != nil {
		return err
	}
	defer a.friend.callAgent("load", flowNone, nil)
	defer a.x.clearAttack()
	step, err := t.start(a.x)
	if err != nil {
		fail("it cannot begin anew: %v", err)
		return nil
	}
	size := max(int(a.w.octets.Load()/max(a.w.sent.Load(), 1))-32, 0)
	nobody := a.stepsToNobody(size)
	time.Sleep(200 * time.Millisecond)
	var v []float64 // base, control, base, attack, and so on; base in the end
	next, packets, under := 0, uint64(0), time.Duration(0)
	window := func(step func(int) error, attack bool) error {
		sent, start := a.w.sent.Load(), time.Now()
		octets, err := a.flowDuring(t.flow, func() error {
			if step == nil {
				time.Sleep(a.window)
				return nil
			}
			i, err := a.runAtRate(t.packetRate(a.options), a.window, 0, step, next)
			if attack {
				next = i
			}
			return err
		})
		if attack {
			packets, under = packets+a.w.sent.Load()-sent, under+time.Since(start)
		}
		v = append(v, octets)
		return err
	}
	if err := window(nil, false); err != nil {
		return err
	}
	for round := 1; ; round++ {
		for _, w := range []func(int) error{nobody, nil, step, nil} {
			attack := len(v)%4 == 3
			if err := window(w, attack); err != nil && !attack {
				return err
			} else if err != nil { // a packet was lost in the crowd: begin anew
				a.x.clearAttack()
				if step, err = t.start(a.x); err != nil {
					fail("beside a transfer: %v", err)
					return nil
				}
			}
		}
		if round < a.rounds {
			continue
		}
		r.Rate = float64(packets) / under.Seconds()
		r.Base, r.Control, r.Attack = flowShares(v)
		if a.keepsThroughput(r) || round >= moreRounds*a.rounds {
			break
		}
	}
	if !a.keepsThroughput(r) {
		fail("%.0f%% of the throughput is left, %.0f%% beside packets for nobody", 100*r.Attack, 100*r.Control)
	}
	if t.any { // it may have sent what fits a receive
		if err := a.awaitVictimRead(); err != nil {
			return err
		}
		if err := a.victim.callAgent("renew", nil, nil); err != nil {
			return err
		}
	}
	return a.checkUnhurt(fail)
}

// keepsThroughput is the throughput verdict. Where packets that concern nobody cost as much, it is
// not the victim's stack that the attack takes its toll of.
func (a *arena) keepsThroughput(r *row) bool {
	return r.Attack*100 >= keepsPercent || r.Attack*100 >= keepsPercent*r.Control && r.Control*100 < keepsPercent
}

// stepsToNobody makes steps of packets like those of the attack that are for a port that nobody
// has.
func (a *arena) stepsToNobody(size int) func(int) error {
	payload := make([]byte, size)
	from, to := netip.AddrPortFrom(hostAddr(a.attackers, 7), 7), a.victimPort(9)
	return func(int) error { return a.w.sendSCTP(from, to, 1, payload) }
}

// flowDuring is the honest client's throughput while f runs, in octets a second.
func (a *arena) flowDuring(flow string, f func() error) (float64, error) {
	var first, last honestStats
	if err := a.friend.callAgent("stats", nil, &first); err != nil {
		return 0, err
	}
	start := time.Now()
	if err := f(); err != nil {
		return 0, err
	}
	if err := a.friend.callAgent("stats", nil, &last); err != nil {
		return 0, err
	}
	return float64(last.Octets[flow]-first.Octets[flow]) / time.Since(start).Seconds(), nil
}

// flowShares makes of windows, every second of them undisturbed, the median of those and the shares
// of it that the first and the second kind of the others are: medians too, each window being
// compared with its neighbours.
func flowShares(v []float64) (base, control, attack float64) {
	var bases []float64
	var of [2][]float64
	for i, x := range v {
		if i%2 == 0 {
			bases = append(bases, x)
			continue
		}
		of[i/2%2] = append(of[i/2%2], x/max((v[i-1]+v[i+1])/2, 1))
	}
	return medianOf(bases), medianOf(of[0]), medianOf(of[1])
}

func medianOf(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// listener sees what the victim sends to the honest client, but for its own traffic.
type listener struct {
	seen *reactionLog
	fd   int
	done chan struct{}
	over chan struct{}
}

func (a *arena) listenAtClient() (*listener, error) {
	fd, _, err := packetSocket(a.family, a.net.friend, devFriend)
	if err != nil {
		return nil, err
	}
	l := &listener{seen: newRecord(a.family), fd: fd, done: make(chan struct{}), over: make(chan struct{})}
	l.seen.rows = a.seen.rows
	l.seen.suffix = client
	l.seen.ignore = map[string]bool{"DATA": true, "SACK": true, "HEARTBEAT": true, "HEARTBEAT ACK": true,
		"Accept": true, "COOKIE ECHO": true, "DTLS": true}
	go func() {
		defer close(l.over)
		forEachPacket(fd, l.done, func(ip []byte) { l.seen.noteIPPacket(ip, a.w.udp) })
	}()
	return l, nil
}

func (l *listener) stopListening() {
	close(l.done)
	<-l.over
	unix.Close(l.fd)
}
