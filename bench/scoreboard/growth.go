package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/bench/machine"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/rddp-go/rddp/sctp"
)

// Shapes of many associations in one process.
const (
	growth = "growth" // set up, idle, round trips spread over all of them, and a restart of the server
	idle   = "idle"   // set up, idle
)

const (
	controlPort = sctpPort + 1
	// associations to one of the server's ports: each has a port of the client's for itself, and
	// there are 16,384 of those
	perPort      = 10_000
	underWay     = 256 // round trips at a time, over however many associations
	growthOctets = 100 // of a request and of its answer

	settled = time.Second // after set-up: the search for the MTU of the path is over
)

// growthResult is what many associations cost.
type growthResult struct {
	Setups float64 `json:"setups_a_second"`
	Heap   float64 `json:"heap_octets_each"`     // of one end of an association that is idle
	Stack  float64 `json:"stack_octets_each"`    // of the goroutines that serve it, apart
	Idle   float64 `json:"idle_cpu_ms_a_second"` // of one process, the one that has more
	Beats  float64 `json:"heartbeats_a_second"`  // that one process sends
	// all processor time that one process takes for each that it sends
	BeatCPU float64 `json:"cpu_us_a_heartbeat,omitempty"`
	// of the server, until a round trip was made on each association again
	Restart float64 `json:"restart_seconds,omitempty"`
}

// state is what an end tells of itself.
type state struct {
	Born        int64            // when the process began
	CPU         [2]time.Duration // before and after it has counted its heartbeats
	Heap, Stack uint64
	Beats       uint64
}

var born = time.Now().UnixNano()

// collectState collects garbage only if the memory counts.
func collectState(list []*sctp.Transport, order byte, c *cost) (s state) {
	s.Born = born
	if order == orderName {
		return s
	}
	if order == orderMemory {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // pools need two
		runtime.ReadMemStats(&m)
		s.Heap, s.Stack = m.HeapAlloc, m.StackInuse
	}
	s.CPU[0] = c.processTime()
	for _, t := range list {
		s.Beats += t.Totals().HeartbeatsOut
	}
	s.CPU[1] = c.processTime()
	return s
}

// assocConfig is that of the associations.
func (e *end) assocConfig() *sctp.Config {
	cfg := &sctp.Config{Backlog: e.numConns()}
	cfg.HeartbeatInterval = e.Beat
	return cfg
}

// playGrowth is one of two processes, or over memory both in one.
func playGrowth(e *end, out io.Writer) error {
	if e.Server {
		return e.serveGrowth(out)
	}
	g := grower{end: e, cost: newCost(false), cfg: e.assocConfig()}
	if err := g.openTransports(); err != nil {
		return err
	}
	var r report
	if err := g.runGrowth(&r); err != nil {
		return err
	}
	return r.printJSON(out)
}

// serveGrowth is a server that the client tells over an association of its own what to do.
func (e *end) serveGrowth(out io.Writer) error {
	if e.Link == "mem" {
		if err := sayReady(out); err != nil {
			return err
		}
		select {}
	}
	link, err := e.openLink()
	if err != nil {
		return err
	}
	t, err := sctp.NewTransport(link, manyPeers())
	if err != nil {
		return err
	}
	if err := e.servePorts(t); err != nil {
		return err
	}
	l, err := t.Listen(controlPort, nil)
	if err != nil {
		return err
	}
	if err := sayReady(out); err != nil {
		return err
	}
	for {
		c, err := l.Accept(context.Background())
		if err != nil {
			return err
		}
		if err := serveCommands(c, t); err != nil {
			return err
		}
	}
}

// serveCommands does what a client wants until it has gone.
func serveCommands(c *sctp.Conn, t *sctp.Transport) error {
	own, order := newCost(false), make([]byte, 1)
	for {
		if _, _, err := c.ReadMsg(order); err != nil {
			return nil
		}
		if order[0] == orderRestart { // nobody is told, as when a process is killed
			self, err := os.Executable()
			if err != nil {
				return err
			}
			return syscall.Exec(self, os.Args, os.Environ())
		}
		b, err := json.Marshal(collectState([]*sctp.Transport{t}, order[0], own))
		if err != nil {
			return err
		}
		if _, err := c.WriteMsg(b, sctp.SendInfo{}); err != nil {
			return nil
		}
	}
}

// Orders to a server.
const (
	orderName = iota
	orderLook
	orderMemory
	orderRestart
)

// numPorts returns how many the server has, and port which the k-th is.
func (e *end) numPorts() int { return (e.numConns() + perPort - 1) / perPort }

func sctpPortOf(k int) uint16 {
	if k == 0 {
		return sctpPort
	}
	return controlPort + uint16(k)
}

// servePorts answers each message of each association at each port.
func (e *end) servePorts(t *sctp.Transport) error {
	for k := range e.numPorts() {
		var err error
		if e.Socket {
			err = e.serveSocket(t, sctpPortOf(k))
		} else {
			err = e.serveConns(t, sctpPortOf(k))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// serveSocket has a goroutine for each processor, or one where there are more ports.
func (e *end) serveSocket(t *sctp.Transport, port uint16) error {
	s, err := t.OpenSocket(port, e.assocConfig())
	if err != nil {
		return err
	}
	for range max(1, runtime.GOMAXPROCS(0)/e.numPorts()) {
		go func() {
			b := make([]byte, growthOctets)
			for {
				n, from, _, err := s.ReadMsg(b)
				if errors.Is(err, net.ErrClosed) {
					return
				}
				if err == nil {
					from.WriteMsg(b[:n], sctp.SendInfo{}) // one that has ended takes nothing
				}
			}
		}()
	}
	return nil
}

// serveConns has a goroutine for each association.
func (e *end) serveConns(t *sctp.Transport, port uint16) error {
	l, err := t.Listen(port, e.assocConfig())
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			go func() {
				b := make([]byte, growthOctets)
				for {
					n, _, err := c.ReadMsg(b)
					if err != nil {
						return
					}
					if _, err := c.WriteMsg(b[:n], sctp.SendInfo{}); err != nil {
						return
					}
				}
			}()
		}
	}()
	return nil
}

// grower is the client.
type grower struct {
	*end
	cost    *cost
	near    *sctp.Transport
	far     *sctp.Transport // over memory, the server's
	control *sctp.Conn      // otherwise
	conns   []*sctp.Conn
	server  int64 // when it was born
	cfg     *sctp.Config
}

func (g *grower) openTransports() error {
	link, err := g.openClientLink()
	if err != nil {
		return err
	}
	if g.near, err = sctp.NewTransport(link, manyPeers()); err != nil {
		return err
	}
	return g.dialControl()
}

// openClientLink opens the client's, and over memory a server at its other end.
func (g *grower) openClientLink() (rawio.Link, error) {
	if g.Link != "mem" {
		return udp.Open(udp.Config{Local: g.Local, Port: udp.AnyPort})
	}
	a, b, err := mem.Pair(mem.Options{})
	if err != nil {
		return nil, err
	}
	if g.far, err = sctp.NewTransport(b, manyPeers()); err != nil {
		return nil, err
	}
	g.Remote = b.LocalAddrs()[0].Addr()
	return a, g.servePorts(g.far)
}

func (g *grower) dialControl() (err error) {
	if g.Link == "mem" {
		return nil
	}
	// To a server that is not there yet an INIT is lost, and the next would follow a second later;
	// or ICMP refuses it.
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if err = g.tryControl(); err == nil || time.Now().After(end) {
			return err
		}
	}
}

// tryControl fails if what answers is the server of before.
func (g *grower) tryControl() (err error) {
	const short = 100 * time.Millisecond
	ctx, cancel := context.WithTimeout(context.Background(), short)
	defer cancel()
	if g.control, err = g.near.Dial(ctx, netip.AddrPortFrom(g.Remote, controlPort), nil); err != nil {
		return err
	}
	g.control.SetDeadline(time.Now().Add(short))
	ends, err := g.bothStates(orderName)
	g.control.SetDeadline(time.Time{})
	if err == nil && ends[1].Born == g.server {
		err = errors.New("the server has not gone yet")
	}
	if err != nil {
		g.control.Abort("")
		return err
	}
	g.server = ends[1].Born
	return nil
}

// bothStates is the state of both ends, the client's first. Over memory one process is both, half
// each.
func (g *grower) bothStates(order byte) (ends [2]state, err error) {
	list := []*sctp.Transport{g.near}
	if g.far != nil {
		list = append(list, g.far)
	}
	ends[0] = collectState(list, order, g.cost)
	if g.control == nil {
		s := &ends[0]
		*s = state{born, [2]time.Duration{s.CPU[0] / 2, s.CPU[1] / 2}, s.Heap / 2, s.Stack / 2, s.Beats / 2}
		ends[1] = *s
		return ends, nil
	}
	if _, err := g.control.WriteMsg([]byte{order}, sctp.SendInfo{}); err != nil {
		return ends, err
	}
	b := make([]byte, 4<<10)
	n, _, err := g.control.ReadMsg(b)
	if err != nil {
		return ends, err
	}
	return ends, json.Unmarshal(b[:n], &ends[1])
}

func (g *grower) dialAssoc(i int) (*sctp.Conn, error) {
	return g.near.Dial(context.Background(), netip.AddrPortFrom(g.Remote, sctpPortOf(i/perPort)), g.cfg)
}

func (g *grower) runGrowth(r *report) error {
	var got growthResult
	r.Growth = &got
	g.conns = make([]*sctp.Conn, g.Conns)
	// What the first half leaves in pools of buffers is not counted as the second half's.
	first := g.Conns / 2
	took, err := g.setUp(0, first)
	if err != nil {
		return err
	}
	before, err := g.bothStates(orderMemory)
	if err != nil {
		return err
	}
	more, err := g.setUp(first, g.Conns)
	if err != nil {
		return err
	}
	got.Setups = float64(g.Conns) / (took + more).Seconds()
	if err := g.measureIdle(&got); err != nil {
		return err
	}
	full, err := g.bothStates(orderMemory)
	if err != nil {
		return err
	}
	each := func(of func(s state) uint64) float64 {
		return (float64(of(full[0])) + float64(of(full[1])) - float64(of(before[0])) - float64(of(before[1]))) /
			float64(2*(g.Conns-first))
	}
	if first > 0 { // one alone says nothing
		got.Heap, got.Stack = each(func(s state) uint64 { return s.Heap }),
			each(func(s state) uint64 { return s.Stack })
	}
	if g.Shape == idle {
		return nil
	}
	if err := g.tripsOnAll(r); err != nil || g.Link == "mem" {
		return err
	}
	return g.restartServer(&got)
}

// setUp sets up associations from i to below j, and waits until they have settled.
func (g *grower) setUp(i, j int) (time.Duration, error) {
	began := time.Now()
	err := g.forEachAssoc(dialers, i, j, func(i int) (err error) { g.conns[i], err = g.dialAssoc(i); return err })
	took := time.Since(began)
	time.Sleep(min(settled, g.runTime()))
	return took, err
}

// forEachAssoc calls f for the associations from first to below last, at most n at a time.
func (g *grower) forEachAssoc(n, first, last int, f func(i int) error) error {
	n = min(n, last-first)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for w := range n {
		wg.Go(func() {
			for i := first + w; i < last && errs[w] == nil; i += n {
				errs[w] = f(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// measureIdle does nothing for a while. If heartbeats are the matter, these are two rounds of them:
// they come every HB.interval and an RTO of a second.
func (g *grower) measureIdle(got *growthResult) error {
	long := g.runTime()
	if g.Beat > 0 {
		long = 2 * (g.Beat + time.Second)
	}
	before, err := g.bothStates(orderLook)
	if err != nil {
		return err
	}
	began := time.Now()
	time.Sleep(long)
	after, err := g.bothStates(orderLook)
	if err != nil {
		return err
	}
	took := time.Since(began).Seconds()
	cpu := cpuBetween(before, after)
	var beats uint64
	for i := range before {
		beats += after[i].Beats - before[i].Beats
	}
	got.Idle = max(cpu[0], cpu[1]).Seconds() * 1e3 / took
	got.Beats = float64(beats) / 2 / took
	if g.Beat > 0 && beats > 0 {
		got.BeatCPU = (cpu[0] + cpu[1]).Seconds() * 1e6 / float64(beats)
	}
	return nil
}

// cpuBetween is the processor time of both ends between two looks.
func cpuBetween(before, after [2]state) (cpu [2]time.Duration) {
	for i := range cpu {
		cpu[i] = after[i].CPU[0] - before[i].CPU[1]
	}
	return cpu
}

// tripsOnAll makes round trips on all associations in turn, underWay at a time. The first one of
// each does not count.
func (g *grower) tripsOnAll(r *report) error {
	n := min(underWay, g.Conns)
	if err := g.forEachAssoc(n, 0, g.Conns,
		func(i int) error { return g.roundTrip(i, make([]byte, growthOctets)) }); err != nil {
		return err
	}
	errs := make([]error, n)
	r.Line[0] = machine.Line()
	before, err := g.bothStates(orderLook)
	if err != nil {
		return err
	}
	began := time.Now()
	list := g.newTrips(n)
	var wg sync.WaitGroup
	for w := range n {
		wg.Go(func() {
			b, t := make([]byte, growthOctets), &list[w]
			for i, now := w, time.Now(); t.wantsMore(now, t.n); {
				if errs[w] = g.roundTrip(i, b); errs[w] != nil {
					return
				}
				after := time.Now()
				t.addTrip(after.Sub(now))
				now = after
				if i += n; i >= g.Conns {
					i = w
				}
			}
		})
	}
	wg.Wait()
	r.sumTrips(list, time.Since(began))
	after, err := g.bothStates(orderLook)
	cpu := cpuBetween(before, after)
	r.CPU = (cpu[0] + cpu[1]).Seconds()
	r.Line[1] = machine.Line()
	return errors.Join(append(errs, err)...)
}

func (g *grower) roundTrip(i int, b []byte) error {
	c := g.conns[i]
	if _, err := c.WriteMsg(b, sctp.SendInfo{}); err != nil {
		return err
	}
	_, _, err := c.ReadMsg(b)
	return err
}

// restartServer has the server's process start anew. Its peers learn of it when they send
// something, and set their associations up again.
func (g *grower) restartServer(got *growthResult) error {
	began := time.Now()
	if _, err := g.control.WriteMsg([]byte{orderRestart}, sctp.SendInfo{}); err != nil {
		return err
	}
	// Its association ends when the new server does not know it: ended here, the order might be
	// dropped with it before it is read.
	if err := g.dialControl(); err != nil {
		return fmt.Errorf("the server did not come back: %w", err)
	}
	err := g.forEachAssoc(underWay, 0, g.Conns, func(i int) error {
		b := make([]byte, growthOctets)
		err := g.roundTrip(i, b)
		if err != nil {
			if g.conns[i], err = g.dialAssoc(i); err == nil {
				err = g.roundTrip(i, b)
			}
		}
		return err
	})
	got.Restart = time.Since(began).Seconds()
	return err
}
