//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
	"golang.org/x/sys/unix"
)

// SCTP ports of the victim.
const (
	portSCTP  = 5000
	portStale = 5001 // its cookies live for staleLife
	portHasty = 5002 // it gives unconfirmed addresses up after hastyEnd
	portRDMA  = rdma.DefaultPort

	staleLife = 200 * time.Millisecond
	hastyRTO  = 50 * time.Millisecond
	hastyEnd  = 500 * time.Millisecond // two probes, in practice
)

// victim is the program under attack: servers on packages sctp and rdma over one link.
type victim struct {
	link   rawio.Link
	dev    *rdma.Device
	served atomic.Int64 // associations and sessions that its program holds
	bad    atomic.Int64 // messages of the honest client that were not what it had sent
	friend atomic.Pointer[sctp.Conn]
	memory *memory
	cq     *rdma.CQ // of all strangers

	mu    sync.Mutex
	conns map[*sctp.Conn]bool // guarded by mu: that it serves
	// guarded by mu: answers to HEARTBEATs that were taken for forged, on those that have ended
	badAnswers uint64
	release    chan struct{}    // guarded by mu: closed for gates that are held to be let go
	reached    *outgoingSession // guarded by mu; nil: it has connected to nobody
	held       chan struct{}    // gets a value for each gate that is held
}

// victimStats is what the victim tells of itself.
type victimStats struct {
	CPU        time.Duration // of all its threads, in user and kernel mode
	Heap       uint64        // octets of objects, after a garbage collection where one was asked for
	PeakRSS    uint64        // octets, since the last reset
	Goroutines int
	Served     int
	Bad        int
	FriendMTU  int    // largest SCTP packet on the path to the honest client, octets
	FriendLate uint64 // times that the retransmission timer of its association has expired
	BadAnswers uint64 // to HEARTBEATs, that were taken for forged
	Transport  sctp.TransportStats
	Account    int64 // octets that peers are charged for
	Assocs     int   // associations
	// seconds of processor time that have gone into collecting garbage, but for what nobody else
	// wanted
	Collecting float64
	Processors float64 // seconds that there were, of all processors
}

func openLink(kind string) (rawio.Link, error) {
	if kind == "udp" {
		return udp.Open(udp.Config{})
	}
	return raw.Open(raw.Config{})
}

func runVictim(f *family, kind string, memory int64) error {
	if memory > 0 {
		debug.SetMemoryLimit(2 * memory) // as GOMEMLIMIT does
	}
	link, err := openLink(kind)
	if err != nil {
		return err
	}
	v := &victim{link: link, conns: make(map[*sctp.Conn]bool), release: make(chan struct{}),
		held: make(chan struct{}, 1)}
	if v.dev, err = rdma.NewDevice(link, &rdma.Config{Transport: sctp.TransportConfig{MaxMemory: memory}}); err != nil {
		return err
	}
	defer v.dev.Close()
	if v.memory, err = newMemory(v.dev); err != nil {
		return err
	}
	for port, cfg := range map[uint16]*sctp.Config{
		portSCTP:  {},
		portStale: {CookieLife: staleLife},
		portHasty: {RTOInitial: hastyRTO, RTOMin: hastyRTO, RTOMax: hastyRTO, PathMaxRetrans: 1},
	} {
		l, err := v.dev.Transport().Listen(port, cfg)
		if err != nil {
			return err
		}
		go v.acceptAssocs(l)
	}
	if err := v.serveSealed(); err != nil {
		return err
	}
	if v.cq, err = v.dev.CreateCQ(2 * maxSessions * 2 * queueLen); err != nil {
		return err
	}
	go v.takeCompletions()
	l, err := v.dev.Listen(portRDMA)
	if err != nil {
		return err
	}
	go v.serveRDMA(l)
	return serveAgent(map[string]func(json.RawMessage) (any, error){
		"stats": func(json.RawMessage) (any, error) { return v.snapshotStats(false) },
		"settled": func(json.RawMessage) (any, error) {
			return v.snapshotStats(true)
		},
		"reset": func(json.RawMessage) (any, error) {
			debug.FreeOSMemory()
			return nil, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the peak is the present, from now on
		},
		"watch": func(arg json.RawMessage) (any, error) {
			var on bool
			err := json.Unmarshal(arg, &on)
			v.dev.Transport().LongestHold() // of before
			v.dev.Transport().WatchHolds(on)
			return nil, err
		},
		"holds":  func(json.RawMessage) (any, error) { return v.dev.Transport().LongestHold(), nil },
		"sealed": v.answerSealed,
		"memory": func(json.RawMessage) (any, error) { return nil, v.memory.checkMemory() },
		"mtu": func(arg json.RawMessage) (any, error) {
			var to netip.Addr
			err := json.Unmarshal(arg, &to)
			return v.link.MTU(f.victimAddr, to), err
		},
		"vacate":  func(json.RawMessage) (any, error) { v.dropAttackers(f); return nil, nil },
		"release": func(json.RawMessage) (any, error) { v.letGo(); return nil, nil },
		"held":    func(json.RawMessage) (any, error) { <-v.held; return nil, nil },
		"reach": func(arg json.RawMessage) (any, error) {
			var to netip.AddrPort
			if err := json.Unmarshal(arg, &to); err != nil {
				return nil, err
			}
			return nil, v.connectTo(to)
		},
		"post": func(arg json.RawMessage) (any, error) {
			var n int
			err := json.Unmarshal(arg, &n)
			v.reached.postMessages(n)
			return nil, err
		},
		"completed": func(json.RawMessage) (any, error) { return v.reached.takeCompletions() },
		"renew":     func(json.RawMessage) (any, error) { v.memory.renewReceive(); return nil, nil },
		"regions": func(json.RawMessage) (any, error) {
			return v.memory.knownSTags(), nil
		},
	})
}

// acceptAssocs serves the associations of one port.
func (v *victim) acceptAssocs(l *sctp.Listener) {
	for {
		c, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		v.served.Add(1)
		v.mu.Lock()
		v.conns[c] = true
		v.mu.Unlock()
		go func() {
			defer v.served.Add(-1)
			v.serveAssoc(c)
			<-c.Done()
			c.Close() // what was received and not read goes
			v.mu.Lock()
			defer v.mu.Unlock()
			delete(v.conns, c)
			v.badAnswers += c.Stats().BadHeartbeatAcks
		}()
	}
}

// dropAttackers ends what there is with everybody but the honest client.
func (v *victim) dropAttackers(f *family) {
	v.letGo()
	v.leaveOutgoing()
	v.mu.Lock()
	conns := slices.Collect(maps.Keys(v.conns))
	v.mu.Unlock()
	for _, c := range conns {
		if c != v.friend.Load() && !isSealed(c) {
			c.Abort("")
		}
	}
	for _, p := range v.dev.Peers() {
		if p.Remote().Addr() != f.friendAddr {
			p.Abort("")
		}
	}
}

// letGo opens all gates that are held.
func (v *victim) letGo() {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.release)
	v.release = make(chan struct{})
}

// holdGate keeps the gate of an association for as long as it may, as a program that computes under
// its Gate does.
func (v *victim) holdGate(c *sctp.Conn) {
	runtime.LockOSThread() // whose time nobody else uses meanwhile
	defer runtime.UnlockOSThread()
	v.mu.Lock()
	release := v.release
	v.mu.Unlock()
	c.Upper().Lock()
	defer c.Upper().Unlock()
	v.held <- struct{}{}
	<-release
}

// What the first message of an association may ask the server to be.
const (
	askFriend = "friend" // check what comes, and acknowledge each message
	askStall  = "stall"  // read no more
	askSource = "source" // send without end
	askHold   = "hold"   // keep the gate of the association
	askEcho   = "echo"   // send each message back
)

// plenty is what is sent without end.
var plenty = make([]byte, messageLen)

// serveAssoc reads until the association ends. Other first messages than those above are read like
// all that follow, and nothing is done with them.
func (v *victim) serveAssoc(c *sctp.Conn) {
	b := make([]byte, 2048) // strangers do not have the program hold much
	n, _, err := c.ReadMsg(b)
	if err != nil {
		return
	}
	switch string(b[:n]) {
	case askFriend:
		v.friend.Store(c)
		v.checkFriend(c)
		return
	case askStall:
		return
	case askHold:
		v.holdGate(c)
		return
	case askEcho:
		for err == nil {
			if n, _, err = c.ReadMsg(b); err == nil {
				_, err = c.WriteMsg(b[:n], sctp.SendInfo{})
			}
		}
		return
	case askSource:
		for err == nil {
			_, err = c.WriteMsg(plenty, sctp.SendInfo{})
		}
		return
	}
	for err == nil {
		_, _, err = c.ReadMsg(b)
	}
}

// checkFriend compares all messages of the honest client with what it sends, and answers each.
func (v *victim) checkFriend(c *sctp.Conn) {
	// here, not on the stack of every goroutine that serves
	want, b := flowPattern(messageLen), make([]byte, 2*messageLen)
	for seq := uint64(0); ; seq++ {
		n, _, err := c.ReadMsg(b)
		if err != nil {
			return
		}
		if stampSeq(want, seq); !bytes.Equal(b[:n], want) {
			v.bad.Add(1)
		}
		if _, err := c.WriteMsg(want[:8], sctp.SendInfo{}); err != nil {
			return
		}
	}
}

func (v *victim) snapshotStats(collect bool) (*victimStats, error) {
	if collect {
		runtime.GC()
		runtime.GC() // what sync.Pool kept through the first one
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s := &victimStats{
		Heap: m.HeapAlloc, Goroutines: runtime.NumGoroutine(), Served: int(v.served.Load()), Bad: int(v.bad.Load()),
		Transport: v.dev.Transport().Stats(), Account: v.dev.Transport().Memory().Used,
	}
	sample := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"},
		{Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"}}
	metrics.Read(sample)
	s.Collecting, s.Processors = sample[0].Value.Float64()-sample[1].Value.Float64(), sample[2].Value.Float64()
	t := &s.Transport
	s.Assocs = int(t.Established - t.EndShutdown - t.EndAborted - t.EndInternal - t.EndByPeer - t.EndTimeout -
		t.EndRefused)
	if c := v.friend.Load(); c != nil {
		s.FriendMTU, s.FriendLate = c.Paths()[0].MaxPacket, c.Stats().Timeouts
	}
	v.mu.Lock()
	s.BadAnswers = v.badAnswers
	v.mu.Unlock()
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return nil, err
	}
	s.CPU = time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
			kib, err := strconv.ParseUint(f[1], 10, 64)
			if err != nil {
				return nil, err
			}
			s.PeakRSS = kib << 10
		}
	}
	return s, nil
}

// queueLen is the depth of the queues of a QP.
const queueLen = 8

// takeCompletions takes what the strangers' QPs complete, and the Device's events: what nobody
// takes is kept, with what it is about.
func (v *victim) takeCompletions() {
	ctx := context.Background()
	go func() {
		for err := error(nil); err == nil; {
			_, err = v.dev.NextEvent(ctx)
		}
	}()
	wcs := make([]rdma.WC, 64)
	for err := error(nil); err == nil; err = v.cq.Wait(ctx) {
		for n := 1; n > 0 && err == nil; {
			n, err = v.cq.Poll(wcs)
		}
	}
}

// maxSessions is how many sessions of strangers the program serves at a time.
const maxSessions = 512

// serveRDMA serves the RDMA port.
func (v *victim) serveRDMA(l *rdma.Listener) {
	for {
		req, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		if v.served.Add(1) > maxSessions {
			v.served.Add(-1)
			_ = req.Reject(nil) // its association may be gone
			continue
		}
		go func() {
			defer v.served.Add(-1)
			if err := v.serveSession(req); err != nil {
				_ = req.Reject(nil) // unless it was accepted
				fmt.Fprintln(os.Stderr, "victim:", err)
			}
		}()
	}
}

// serveSession serves one session until it ends. A stranger gets one receive; a friend needs none.
func (v *victim) serveSession(req *rdma.Request) error {
	m := v.memory
	pd, advert := m.strangers, m.advert
	if string(req.PrivateData()) == askFriend {
		pd, advert = m.friends, uint32Octets(uint32(m.friend.STag()))
	}
	cq := v.cq
	if pd == m.friends {
		var err error
		if cq, err = v.dev.CreateCQ(2 * queueLen); err != nil {
			return err
		}
	}
	qp, err := v.dev.CreateQP(&rdma.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, MaxSend: queueLen, MaxRecv: queueLen,
		IRD: 2})
	if err != nil {
		return err
	}
	defer qp.Close()
	if pd == m.strangers {
		if err := qp.PostRecv(&rdma.RecvWR{SGL: []rdma.SGE{m.local.SGE(0, recvLen)}}); err != nil {
			return err
		}
	}
	if req.Accept(qp, advert) == nil { // else the peer is gone already
		<-qp.Done()
	}
	return nil
}
