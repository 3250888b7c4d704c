//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/attacker"
	"golang.org/x/sys/unix"
)

// crowdOptions say how large a crowd is, and how long.
type crowdOptions struct {
	size   int
	memory int64         // TransportConfig.MaxMemory of the victim; GOMEMLIMIT is twice that
	window time.Duration // of one kind of crowd at a time
	rounds int           // of both kinds
	seed   uint64
}

// What a hostile crowd may do to who stands beside it, compared with an honest one.
const (
	mostMedian  = 2        // times
	mostTail    = 3        // times, at the 99th percentile
	heapBeyond  = 64 << 20 // octets of live heap beyond MaxMemory
	mostCollect = 0.25     // of the time
	crowdHosts  = 100
)

// crowdMember is one association of a crowd.
type crowdMember interface {
	sendNext() error // what it sends next, if anything
}

// crowdResult is what one kind of it has brought about.
type crowdResult struct {
	rtts      []time.Duration // of the bystander
	heap      uint64          // live, at most
	collected float64         // of the victim's processor time
	cpu       float64         // processors, of the victim and the crowd
	victim    float64         // of the victim alone
	octets    float64         // a second
	packets   float64         // a second
	aborted   uint64
}

// besideCrowds does what runCrowd does, and says so.
func besideCrowds(f *family, o crowdOptions) error {
	if o.memory == 0 {
		o.memory = 128 << 20
	}
	failures, err := runCrowd(f, o, os.Stdout)
	if len(failures) > 0 && err == nil {
		err = errors.New("FAILS: " + strings.Join(failures, "; "))
	}
	return err
}

// runCrowd measures a bystander beside honest and beside hostile crowds that send as many octets a
// second, in turns, and says what exceeds its limit.
func runCrowd(f *family, o crowdOptions, out io.Writer) (failures []string, err error) {
	a, err := startArena(f, options{quiet: 200 * time.Millisecond, rate: 2000}, false, o.memory)
	if err != nil {
		return nil, err
	}
	defer a.closeArena()
	if err := a.friend.callAgent("load", silence, nil); err != nil {
		return nil, err
	}
	if err := a.friend.callAgent("ping", true, nil); err != nil {
		return nil, err
	}
	// Crowd and bystander stand for other hosts, with processors of their own: they leave the
	// victim what it wants, or do not wait for it.
	if err := errors.Join(setNice(os.Getpid(), 19), setNice(a.friend.cmd.Process.Pid, -15)); err != nil {
		return nil, err
	}
	rate, err := a.findHalfLoad(o)
	if err != nil {
		return nil, err
	}
	var honest, hostile crowdResult
	for round := range o.rounds {
		for _, k := range []struct {
			sum  *crowdResult
			join func(i int) (crowdMember, error)
		}{{&honest, a.honestMember},
			{&hostile, func(i int) (crowdMember, error) { return a.hostileMember(o.seed+uint64(round*o.size), i) }}} {
			if err := a.runCrowd(o, k.join, rate, k.sum); err != nil {
				return nil, err
			}
		}
	}
	fail := func(format string, args ...any) { failures = append(failures, fmt.Sprintf(format, args...)) }
	fmt.Fprintf(out, "%d associations, %.1f MB/s, %d windows of %v of each kind, MaxMemory %d MiB, GOMEMLIMIT %d MiB\n",
		o.size, rate/1e6, o.rounds, o.window, o.memory>>20, o.memory>>19)
	for _, k := range []struct {
		name string
		c    *crowdResult
	}{{"honest", &honest}, {"hostile", &hostile}} {
		c := k.c
		slices.Sort(c.rtts)
		fmt.Fprintf(out, "%-8s p50 %v, p99 %v of %d round trips; %.2f processors, the victim %.2f, %.1f MB/s in "+
			"%.0f packets a second; live heap %d MiB at most, collecting %.1f%% of its time; %d aborted for memory\n",
			k.name, percentileOf(c.rtts, 50), percentileOf(c.rtts, 99), len(c.rtts), c.cpu, c.victim, c.octets/1e6,
			c.packets, c.heap>>20,
			100*c.collected, c.aborted)
		if c.heap > uint64(o.memory)+heapBeyond {
			fail("live heap of %d MiB beside the %s", c.heap>>20, k.name)
		}
		if c.collected > mostCollect {
			fail("%.0f%% of the time goes to collecting beside the %s", 100*c.collected, k.name)
		}
	}
	if x, y := percentileOf(hostile.rtts, 50), percentileOf(honest.rtts, 50); x > mostMedian*y {
		fail("half of the round trips take more than %v beside the hostile, %v beside the honest", x, y)
	}
	if x, y := percentileOf(hostile.rtts, 99), percentileOf(honest.rtts, 99); x > mostTail*y {
		fail("1%% of the round trips take more than %v beside the hostile, %v beside the honest", x, y)
	}
	return failures, nil
}

func percentileOf(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)*percent/100]
}

// ownTime is the processor time of this process.
func ownTime() time.Duration {
	var ru unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &ru)
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

// setNice gives all threads of a process their priority, and so those that they begin.
func setNice(pid, value int) error {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := os.ReadDir(dir)
	for _, t := range threads {
		id, _ := strconv.Atoi(t.Name())
		if e := unix.Setpriority(unix.PRIO_PROCESS, id, value); e != nil && err == nil {
			err = fmt.Errorf("the priority of a thread: %w", e)
		}
	}
	return err
}

// findHalfLoad finds the octets a second of an honest crowd, with which it and the victim take one
// of two processors.
func (a *arena) findHalfLoad(o crowdOptions) (float64, error) {
	rate := 4e6
	o.window /= 2
	for range 6 {
		var c crowdResult
		if err := a.runCrowd(o, a.honestMember, rate, &c); err != nil {
			return 0, err
		}
		rate = min(c.octets/max(c.cpu, 0.01), 4*rate)
	}
	return rate, nil
}

// A crowd that was kept from sending makes up for it by and by: a burst would show how this process
// was scheduled.
const (
	most    = 2 * time.Millisecond // of octets at once
	catchUp = 2                    // times its rate
)

// runCrowd sets one up, has it send for a window, and ends it.
func (a *arena) runCrowd(o crowdOptions, join func(i int) (crowdMember, error), rate float64, sum *crowdResult) error {
	defer a.x.clearAttack()
	list := []crowdMember{}
	for i := range o.size {
		m, err := join(i)
		if err != nil {
			return fmt.Errorf("association %d: %w", i, err)
		}
		list = append(list, m)
	}
	before, err := a.victimStats(false)
	if err != nil {
		return err
	}
	if err := a.friend.callAgent("pings", nil, nil); err != nil { // those of before
		return err
	}
	start, own, octets, packets := time.Now(), ownTime(), a.w.octets.Load(), a.w.sent.Load()
	last, budget := start, 0.0
	for i, idle := 0, 0; ; {
		now := time.Now()
		elapsed := now.Sub(start)
		if elapsed >= o.window {
			break
		}
		budget = min(budget+catchUp*rate*now.Sub(last).Seconds(), rate*most.Seconds())
		last = now
		sent := a.w.octets.Load()
		if float64(sent-octets) > rate*elapsed.Seconds() || budget < 0 || idle > len(list) {
			time.Sleep(200 * time.Microsecond)
			idle = 0
			continue
		}
		if err := list[i%len(list)].sendNext(); err != nil {
			return err
		}
		i++
		if idle++; a.w.octets.Load() > sent {
			budget -= float64(a.w.octets.Load() - sent)
			idle = 0
		}
	}
	took := time.Since(start).Seconds()
	sum.octets, sum.packets = float64(a.w.octets.Load()-octets)/took, float64(a.w.sent.Load()-packets)/took
	var rtts []time.Duration
	if err := a.friend.callAgent("pings", nil, &rtts); err != nil {
		return err
	}
	sum.rtts = append(sum.rtts, rtts...)
	after, err := a.victimStats(false)
	if err != nil {
		return err
	}
	busy := after.CPU - before.CPU
	sum.cpu, sum.victim = (busy+ownTime()-own).Seconds()/took, busy.Seconds()/took
	sum.collected = max(sum.collected, (after.Collecting-before.Collecting)/max(after.Processors-before.Processors,
		1e-3))
	sum.aborted += after.Transport.MemoryAborted - before.Transport.MemoryAborted
	settled, err := a.victimStats(true)
	if err != nil {
		return err
	}
	sum.heap = max(sum.heap, settled.Heap)
	return nil
}

// memberAddr is where an association of the crowd comes from.
func (a *arena) memberAddr(i int) netip.AddrPort {
	a.x.used++
	return netip.AddrPortFrom(hostAddr(a.attackers, 1000+i%crowdHosts), uint16(10000+a.x.used%50000))
}

// honestLen makes the packets of the honest as long as those of the hostile are on average, 740
// octets with the IP header. So packets are compared, and not how many of them the octets make.
const honestLen = 690

// honestMember sends messages to a program that reads them, within a window, and again what was
// lost.
type honestMember struct {
	*peer
	acked   wire.TSN
	payload []byte
}

func (a *arena) honestMember(i int) (crowdMember, error) {
	p := a.w.newPeer(a.memberAddr(i), a.x.victimPort(portSCTP))
	a.x.peers = append(a.x.peers, p)
	if err := p.connectAssoc(); err != nil {
		return nil, err
	}
	if err := p.sendMessage("hello"); err != nil {
		return nil, err
	}
	return &honestMember{peer: p, acked: p.next - 2, payload: make([]byte, honestLen)}, nil
}

func (h *honestMember) sendNext() error {
	for {
		select {
		case b := <-h.in:
			c, err := h.findChunk(b, wire.ChunkSack)
			if err != nil {
				return err
			}
			s, err := wire.AsSack(c)
			if c == nil || err != nil {
				continue
			}
			if h.acked = s.CumTSN(); s.NumGaps() > 0 {
				lost := h.acked + 1
				return h.peer.sendChunks(dataChunk(nil, lost, whole|wire.FlagU, 0, 0, 0, h.payload))
			}
			continue
		default:
		}
		break
	}
	if int32(h.next-h.acked) > 64 {
		return nil
	}
	return h.peer.sendChunks(h.appendData(nil, whole|wire.FlagU, 0, 0, 0, h.payload))
}

// randomAttacker is a hostile peer of package attacker.
type randomAttacker struct {
	w        *wireTap
	src, dst netip.AddrPort
	in       chan []byte
	peer     *attacker.Peer
}

func (g *randomAttacker) sendNext() error {
	for {
		select {
		case b := <-g.in:
			g.peer.Take(b)
			continue
		default:
		}
		break
	}
	b := g.peer.Packet()
	if len(b) < wire.CommonHeaderLen {
		return nil
	}
	return g.w.sendIP(g.w.carrySCTP(g.src.Addr(), g.dst.Addr(), encapPort, b))
}

// hoardingMember has an association whose program does not read, or sends without end, and makes it
// hold what it can.
type hoardingMember struct {
	*peer
	a     *arena
	i, n  int
	begun chan struct{} // closed when the association is set up, or not
}

func (a *arena) hostileMember(seed uint64, i int) (crowdMember, error) {
	if i%2 == 0 {
		return a.newRandomAttacker(seed, i), nil
	}
	h := &hoardingMember{a: a, i: i}
	h.setUpAssoc()
	<-h.begun
	return h, nil
}

func (a *arena) newRandomAttacker(seed uint64, i int) *randomAttacker {
	port := portSCTP
	if i%4 == 0 {
		port = portRDMA
	}
	p := a.w.newPeer(a.memberAddr(i), a.x.victimPort(uint16(port)))
	a.x.peers = append(a.x.peers, p)
	return newGremlin(p, seed+uint64(i), i%4 == 0, i%8 < 6)
}

// setUpAssoc sets an association up, for one that has ended too, while the others go on. The victim
// may refuse it.
func (h *hoardingMember) setUpAssoc() {
	p := h.a.w.newPeer(h.a.memberAddr(h.i), h.a.x.victimPort(portSCTP))
	h.a.x.peers = append(h.a.x.peers, p)
	h.peer, h.begun = p, make(chan struct{})
	go func() {
		defer close(h.begun)
		if p.requestCookie() != nil || p.sendChunks(wire.AppendCookieEcho(nil, p.cookie)) != nil {
			return
		}
		first := askStall
		if h.i%8 == 7 {
			first, p.silent = askSource, true
		}
		_ = p.sendMessage(first) // nor may there be an association
	}()
}

func (h *hoardingMember) sendNext() error {
	select {
	case <-h.begun:
	default:
		return nil
	}
	for {
		select {
		case b := <-h.in:
			cum := h.cum
			_, err := h.findChunk(b, wire.ChunkSack)
			if h.cum = cum; err == errAborted { // the rest
				h.stopReceiving()
				h.setUpAssoc()
				return nil
			}
			continue
		default:
		}
		break
	}
	var b []byte
	h.n++
	switch h.i % 8 {
	case 1: // every second TSN
		for range 60 {
			h.next++
			b = h.appendData(b, whole|wire.FlagU, 0, 0, 0, []byte{1})
		}
	case 3: // messages that never end
		for k := range 40 {
			h.next++
			b = h.appendData(b, wire.FlagB, uint16((h.n*40+k)%1024), 0, 0, []byte{1, 2, 3, 4})
		}
	case 5: // what nobody reads
		b = h.appendData(nil, whole, 1, uint16(h.n), 0, make([]byte, 1400))
	default: // what was acknowledged is taken back
		for k := range 20 {
			b = wire.AppendSack(b, wire.SackFields{CumTSN: h.cum, ARwnd: 1 << 20,
				Gaps: []wire.GapBlock{{Start: 2, End: uint16(3 + k)}}})
			b = wire.AppendSack(b, wire.SackFields{CumTSN: h.cum, ARwnd: 1 << 20})
		}
	}
	return h.peer.sendChunks(b)
}
