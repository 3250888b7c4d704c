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

// member is one association of a crowd.
type member interface {
	send() error // what it sends next, if anything
}

// crowd is what one kind of it has brought about.
type crowd struct {
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
	defer a.close()
	if err := a.friend.ask("load", silence, nil); err != nil {
		return nil, err
	}
	if err := a.friend.ask("ping", true, nil); err != nil {
		return nil, err
	}
	// Crowd and bystander stand for other hosts, with processors of their own: they leave the
	// victim what it wants, or do not wait for it.
	if err := errors.Join(nice(os.Getpid(), 19), nice(a.friend.cmd.Process.Pid, -15)); err != nil {
		return nil, err
	}
	rate, err := a.half(o)
	if err != nil {
		return nil, err
	}
	var honest, hostile crowd
	for round := range o.rounds {
		for _, k := range []struct {
			sum  *crowd
			join func(i int) (member, error)
		}{{&honest, a.honestMember},
			{&hostile, func(i int) (member, error) { return a.hostileMember(o.seed+uint64(round*o.size), i) }}} {
			if err := a.crowd(o, k.join, rate, k.sum); err != nil {
				return nil, err
			}
		}
	}
	fail := func(format string, args ...any) { failures = append(failures, fmt.Sprintf(format, args...)) }
	fmt.Fprintf(out, "%d associations, %.1f MB/s, %d windows of %v of each kind, MaxMemory %d MiB, GOMEMLIMIT %d MiB\n",
		o.size, rate/1e6, o.rounds, o.window, o.memory>>20, o.memory>>19)
	for _, k := range []struct {
		name string
		c    *crowd
	}{{"honest", &honest}, {"hostile", &hostile}} {
		c := k.c
		slices.Sort(c.rtts)
		fmt.Fprintf(out, "%-8s p50 %v, p99 %v of %d round trips; %.2f processors, the victim %.2f, %.1f MB/s in "+
			"%.0f packets a second; live heap %d MiB at most, collecting %.1f%% of its time; %d aborted for memory\n",
			k.name, at(c.rtts, 50), at(c.rtts, 99), len(c.rtts), c.cpu, c.victim, c.octets/1e6, c.packets, c.heap>>20,
			100*c.collected, c.aborted)
		if c.heap > uint64(o.memory)+heapBeyond {
			fail("live heap of %d MiB beside the %s", c.heap>>20, k.name)
		}
		if c.collected > mostCollect {
			fail("%.0f%% of the time goes to collecting beside the %s", 100*c.collected, k.name)
		}
	}
	if x, y := at(hostile.rtts, 50), at(honest.rtts, 50); x > mostMedian*y {
		fail("half of the round trips take more than %v beside the hostile, %v beside the honest", x, y)
	}
	if x, y := at(hostile.rtts, 99), at(honest.rtts, 99); x > mostTail*y {
		fail("1%% of the round trips take more than %v beside the hostile, %v beside the honest", x, y)
	}
	return failures, nil
}

func at(sorted []time.Duration, percent int) time.Duration {
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

// nice gives all threads of a process their priority, and so those that they begin.
func nice(pid, value int) error {
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

// half finds the octets a second of an honest crowd, with which it and the victim take one of two
// processors.
func (a *arena) half(o crowdOptions) (float64, error) {
	rate := 4e6
	o.window /= 2
	for range 6 {
		var c crowd
		if err := a.crowd(o, a.honestMember, rate, &c); err != nil {
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

// crowd sets one up, has it send for a window, and ends it.
func (a *arena) crowd(o crowdOptions, join func(i int) (member, error), rate float64, sum *crowd) error {
	defer a.x.clear()
	list := []member{}
	for i := range o.size {
		m, err := join(i)
		if err != nil {
			return fmt.Errorf("association %d: %w", i, err)
		}
		list = append(list, m)
	}
	before, err := a.stats(false)
	if err != nil {
		return err
	}
	if err := a.friend.ask("pings", nil, nil); err != nil { // those of before
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
		if err := list[i%len(list)].send(); err != nil {
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
	if err := a.friend.ask("pings", nil, &rtts); err != nil {
		return err
	}
	sum.rtts = append(sum.rtts, rtts...)
	after, err := a.stats(false)
	if err != nil {
		return err
	}
	busy := after.CPU - before.CPU
	sum.cpu, sum.victim = (busy+ownTime()-own).Seconds()/took, busy.Seconds()/took
	sum.collected = max(sum.collected, (after.Collecting-before.Collecting)/max(after.Processors-before.Processors,
		1e-3))
	sum.aborted += after.Transport.MemoryAborted - before.Transport.MemoryAborted
	settled, err := a.stats(true)
	if err != nil {
		return err
	}
	sum.heap = max(sum.heap, settled.Heap)
	return nil
}

// place is where an association of the crowd comes from.
func (a *arena) place(i int) netip.AddrPort {
	a.x.used++
	return netip.AddrPortFrom(host(a.attackers, 1000+i%crowdHosts), uint16(10000+a.x.used%50000))
}

// honestLen makes the packets of the honest as long as those of the hostile are on average, 740
// octets with the IP header. So packets are compared, and not how many of them the octets make.
const honestLen = 690

// honest sends messages to a program that reads them, within a window, and again what was lost.
type honest struct {
	*peer
	acked   wire.TSN
	payload []byte
}

func (a *arena) honestMember(i int) (member, error) {
	p := a.w.peer(a.place(i), a.x.to(portSCTP))
	a.x.peers = append(a.x.peers, p)
	if err := p.connect(); err != nil {
		return nil, err
	}
	if err := p.say("hello"); err != nil {
		return nil, err
	}
	return &honest{peer: p, acked: p.next - 2, payload: make([]byte, honestLen)}, nil
}

func (h *honest) send() error {
	for {
		select {
		case b := <-h.in:
			c, err := h.look(b, wire.ChunkSack)
			if err != nil {
				return err
			}
			s, err := wire.AsSack(c)
			if c == nil || err != nil {
				continue
			}
			if h.acked = s.CumTSN(); s.NumGaps() > 0 {
				lost := h.acked + 1
				return h.peer.send(dataChunk(nil, lost, whole|wire.FlagU, 0, 0, 0, h.payload))
			}
			continue
		default:
		}
		break
	}
	if int32(h.next-h.acked) > 64 {
		return nil
	}
	return h.peer.send(h.data(nil, whole|wire.FlagU, 0, 0, 0, h.payload))
}

// gremlin is a hostile peer of package attacker.
type gremlin struct {
	w        *wireTap
	src, dst netip.AddrPort
	in       chan []byte
	peer     *attacker.Peer
}

func (g *gremlin) send() error {
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
	return g.w.transmit(g.w.carry(g.src.Addr(), g.dst.Addr(), encapPort, b))
}

// hoarder has an association whose program does not read, or sends without end, and makes it hold
// what it can.
type hoarder struct {
	*peer
	a     *arena
	i, n  int
	begun chan struct{} // closed when the association is set up, or not
}

func (a *arena) hostileMember(seed uint64, i int) (member, error) {
	if i%2 == 0 {
		return a.gremlin(seed, i), nil
	}
	h := &hoarder{a: a, i: i}
	h.begin()
	<-h.begun
	return h, nil
}

func (a *arena) gremlin(seed uint64, i int) *gremlin {
	port := portSCTP
	if i%4 == 0 {
		port = portRDMA
	}
	p := a.w.peer(a.place(i), a.x.to(uint16(port)))
	a.x.peers = append(a.x.peers, p)
	return newGremlin(p, seed+uint64(i), i%4 == 0, i%8 < 6)
}

// begin sets an association up, for one that has ended too, while the others go on. The victim may
// refuse it.
func (h *hoarder) begin() {
	p := h.a.w.peer(h.a.place(h.i), h.a.x.to(portSCTP))
	h.a.x.peers = append(h.a.x.peers, p)
	h.peer, h.begun = p, make(chan struct{})
	go func() {
		defer close(h.begun)
		if p.ask() != nil || p.send(wire.AppendCookieEcho(nil, p.cookie)) != nil {
			return
		}
		first := askStall
		if h.i%8 == 7 {
			first, p.silent = askSource, true
		}
		_ = p.say(first) // nor may there be an association
	}()
}

func (h *hoarder) send() error {
	select {
	case <-h.begun:
	default:
		return nil
	}
	for {
		select {
		case b := <-h.in:
			cum := h.cum
			_, err := h.look(b, wire.ChunkSack)
			if h.cum = cum; err == errAborted { // the rest
				h.forget()
				h.begin()
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
			b = h.data(b, whole|wire.FlagU, 0, 0, 0, []byte{1})
		}
	case 3: // messages that never end
		for k := range 40 {
			h.next++
			b = h.data(b, wire.FlagB, uint16((h.n*40+k)%1024), 0, 0, []byte{1, 2, 3, 4})
		}
	case 5: // what nobody reads
		b = h.data(nil, whole, 1, uint16(h.n), 0, make([]byte, 1400))
	default: // what was acknowledged is taken back
		for k := range 20 {
			b = wire.AppendSack(b, wire.SackFields{CumTSN: h.cum, ARwnd: 1 << 20,
				Gaps: []wire.GapBlock{{Start: 2, End: uint16(3 + k)}}})
			b = wire.AppendSack(b, wire.SackFields{CumTSN: h.cum, ARwnd: 1 << 20})
		}
	}
	return h.peer.send(b)
}
