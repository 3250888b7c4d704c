//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
)

// order is what a process is told at its start, as JSON.
type order struct {
	Server   bool
	Name     string
	Number   uint32 // of the incarnation, unique in a run
	Link     string // raw, udp or conn
	Ledger   string // file
	Local    []netip.Addr
	Serve    []service // of a server: itself, or over conn one service for each client
	Servers  []service // of a client
	Rate     float64   // of a client: operations a second
	OwnPorts uint16    // of a client: how far its fixed SCTP ports are from the servers'
	Seed     uint64

	Certificate string // file; empty: all goes in the clear
}

// service is where a server is found.
type service struct {
	Name     string
	Addr     netip.Addr // at a server over conn: where the client is
	UDPPort  uint16     // over conn that of both ends
	RDMAPort uint16
	SCTPPort uint16
}

// forClient is the service over the connection with a client, which has a port of its own at both
// ends. peer is the address of the other end.
func (s service) forClient(i int, peer netip.Addr) service {
	s.Name, s.Addr = fmt.Sprintf("%s %d", s.Name, i), peer
	s.UDPPort += uint16(i)
	return s
}

// answer is what a process says to each command.
type answer struct {
	Err  string `json:",omitempty"`
	Heap uint64 // octets of live objects after a collection
	// octets that the runtime has from the system and uses: objects and what lies between them,
	// stacks, its own
	Used       uint64
	RSS        uint64 // octets of the resident set, without what the runtime has free
	Goroutines int
	FDs        int
	Left       string `json:",omitempty"` // what was not at rest
	Goodbye    bool   `json:",omitempty"`
}

// child is one process: a server or a client.
type child struct {
	order
	ctx     context.Context
	book    *ledger
	arenas  chan []byte // memory of sessions that have ended
	working atomic.Int64
	devices []*rdma.Device
	keys    *keyRing

	mu      sync.Mutex
	resting bool
	turn    *sync.Cond // resting has changed
	parked  int        // lanes at rest
	lanes   int
}

const (
	restLimit = 50 * time.Second // for all sessions to end
	stuckFor  = 25 * time.Second // no wait of a session is longer
)

// serveOrders is the life of a process: commands come on standard input, answers go to standard
// output.
func serveOrders(text string) error {
	c := &child{arenas: make(chan []byte, 256)}
	c.turn = sync.NewCond(&c.mu)
	if err := json.Unmarshal([]byte(text), &c.order); err != nil {
		return err
	}
	var err error
	if c.book, err = openLedger(c.Ledger); err != nil {
		return err
	}
	if c.keys, err = openKeys(c.Certificate); err != nil {
		return err
	}
	var cancel context.CancelFunc
	c.ctx, cancel = context.WithCancel(context.Background())
	defer cancel()
	c.resting = true
	if c.Server {
		err = c.startServer()
	} else {
		err = c.startClient()
	}
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	out.Encode(answer{})
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var a answer
		switch in.Text() {
		case "clear":
			c.book.reuseEntries()
		case "go":
			c.setResting(false)
		case "rest":
			c.setResting(true)
			a.Left = c.awaitRest()
		case "sample":
			c.dropArenas()
			a = sampleProcess()
		case "stacks":
			buf := make([]byte, 1<<20)
			os.Stderr.Write(buf[:runtime.Stack(buf, true)])
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
	for _, d := range c.devices {
		d.Close()
	}
	return nil
}

func (c *child) setResting(on bool) {
	c.mu.Lock()
	c.resting = on
	c.mu.Unlock()
	c.turn.Broadcast()
}

// wantRest reports whether sessions are to come to their end.
func (c *child) wantRest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resting
}

// awaitWork parks a lane while there is rest.
func (c *child) awaitWork() {
	c.mu.Lock()
	c.parked++
	for c.resting {
		c.turn.Wait()
	}
	c.parked--
	c.mu.Unlock()
}

// awaitRest waits until no session and no association is left, and says what is, if it takes too
// long.
func (c *child) awaitRest() string {
	ctx, cancel := context.WithTimeout(c.ctx, restLimit)
	defer cancel()
	for {
		c.mu.Lock()
		idle := c.parked == c.lanes
		c.mu.Unlock()
		if idle && c.working.Load() == 0 {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Sprintf("%d sessions and %d of %d lanes are at work after %v", c.working.Load(),
				c.lanes-c.parked, c.lanes, restLimit)
		case <-time.After(20 * time.Millisecond):
		}
	}
	for _, d := range c.devices {
		if err := d.Transport().Wait(ctx); err != nil {
			return fmt.Sprintf("associations are left after %v", restLimit)
		}
	}
	return ""
}

// openDevice makes the device for one server, or of one. Only a server has ports that others know.
func (c *child) openDevice(s service) (*rdma.Device, error) {
	var link rawio.Link
	var err error
	switch c.Link {
	case "conn":
		link, err = openConn(netip.AddrPortFrom(c.Local[0], s.UDPPort), netip.AddrPortFrom(s.Addr, s.UDPPort))
	case "udp":
		port := udp.AnyPort
		if c.Server {
			port = int(s.UDPPort)
		}
		link, err = udp.Open(udp.Config{Port: port})
	default:
		link, err = raw.Open(raw.Config{})
	}
	if err != nil {
		return nil, err
	}
	cfg := rdma.Config{TLS: c.keys.tls, SCTP: c.sctpConfig(s)}
	if cfg.SCTP.RestartStore, err = c.keys.storeFor(s.Name); err != nil {
		link.Close()
		return nil, err
	}
	d, err := rdma.NewDevice(link, &cfg)
	if err != nil {
		link.Close()
		return nil, err
	}
	c.devices = append(c.devices, d)
	go func() { // an event that nobody reads keeps its QP, and the QP its memory
		for {
			if _, err := d.NextEvent(c.ctx); err != nil {
				return
			}
		}
	}()
	return d, nil
}

// sctpConfig has the timers of a short path, so that a dead peer is noticed within some ten
// seconds.
func (c *child) sctpConfig(s service) sctp.Config {
	var cfg sctp.Config
	if c.Link != "conn" { // which has one address a side, and no port of its own
		cfg.EncapPort, cfg.LocalAddrs = s.UDPPort, c.Local
	}
	cfg.RTOInitial, cfg.RTOMin, cfg.RTOMax = 500*time.Millisecond, 200*time.Millisecond, time.Second
	cfg.HeartbeatInterval = 500 * time.Millisecond
	return cfg
}

// plainConfig is that of associations without RDMA: encrypted, if all is.
func (c *child) plainConfig(s service) sctp.Config {
	cfg := c.sctpConfig(s)
	cfg.TLS = c.keys.tls
	if cfg.TLS != nil {
		cfg.RestartStore = c.keys.stores[s.Name]
	}
	cfg.Events, cfg.RecvBuffer, cfg.SendBuffer = sctpEvents, sctpRecvBuffer, sctpSendBuffer
	return cfg
}

// newArena returns memory for a session, with nothing of the one before in it.
func (c *child) newArena(size int) []byte {
	var b []byte
	select {
	case b = <-c.arenas:
	default:
		b = make([]byte, size)
	}
	fillPoison(b)
	return b
}

func (c *child) putArena(b []byte) {
	select {
	case c.arenas <- b:
	default:
	}
}

// dropArenas gives up the memory of sessions, of which there is as much as there were sessions at
// the same time: it would hide what leaks.
func (c *child) dropArenas() {
	for {
		select {
		case <-c.arenas:
		default:
			return
		}
	}
}

// logFault says what is wrong, beside the count in the ledger.
func (c *child) logFault(e *entry, format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s (%d): session %#x: %s\n", c.Name, c.Number, e.id, fmt.Sprintf(format, args...))
}

// sampleProcess measures this process, after everything that can be freed was.
func sampleProcess() answer {
	runtime.GC() // twice: pools are emptied by the second
	runtime.GC()
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	a := answer{Heap: m.HeapAlloc, Used: m.Sys - m.HeapIdle, Goroutines: runtime.NumGoroutine()}
	fds, _ := os.ReadDir("/proc/self/fd")
	a.FDs = len(fds)
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		var kb uint64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kb); n == 1 {
			// FreeOSMemory passes over parts of the heap, up to 3 MB at random: its search stops
			// where that of the runtime's own scavenger has.
			a.RSS = kb<<10 - (m.HeapIdle - m.HeapReleased)
		}
	}
	return a
}
