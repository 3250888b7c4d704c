package relay

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// MaxFlows is how many flows a road can carry: flow i has address i of both sides.
const MaxFlows = 256

// Sides of a road: packets go up from the client to the server, and down.
const (
	Up = iota
	Down
)

var sides = [2]netip.Prefix{netip.MustParsePrefix("10.77.1.0/24"), netip.MustParsePrefix("10.77.2.0/24")}

// Client and Server return the addresses of a flow's ends.
func Client(flow int) netip.Addr { return addrOf(0, flow) }
func Server(flow int) netip.Addr { return addrOf(1, flow) }

func addrOf(side, flow int) netip.Addr {
	b := sides[side].Addr().As4()
	b[3] = byte(flow)
	return netip.AddrFrom4(b)
}

// Counts are what became of the packets of one direction of a flow.
type Counts struct {
	Packets, Octets           uint64 // that came
	Full, Lost, Marked, Twice uint64
	Waited                    Hist    // in the queue
	Drops                     []int64 // when, in ns of CLOCK_MONOTONIC
}

// Relay carries packets between two namespaces, each flow over the two Ways that are set for it, on
// a thread of its own.
type Relay struct {
	Dev  [2]*Device // of the client, of the server
	ways [2][MaxFlows]*Way

	// Restless is a relay that never sleeps, as waking takes too long. It has a processor to itself
	// where there are two.
	Restless bool

	Counts  [2][MaxFlows]Counts
	Late    Hist   // how much later packets left than they should
	TooLong uint64 // packets above the MTU
	Foreign uint64 // packets of no flow
	Refused uint64 // packets that a device did not take

	stop atomic.Bool
	done chan error
	heap []event
	seq  uint64
	idle []*packet
	fds  [2]unix.PollFd
}

type packet struct {
	b    [2 * MTU]byte
	n    int
	uses int
}

type event struct {
	at  int64
	seq uint64
	out int // device
	pkt *packet
}

// New makes a road between two namespaces.
func New() (*Relay, error) {
	r := &Relay{done: make(chan error, 1)}
	for i := range r.Dev {
		d, err := NewDevice(sides[i], sides[1-i])
		if err != nil {
			r.Close()
			return nil, err
		}
		r.Dev[i] = d
		r.fds[i] = unix.PollFd{Fd: int32(d.fd), Events: unix.POLLIN}
	}
	return r, nil
}

// Set decides by which way a direction of a flow goes. Flows may share one, and its queue.
func (r *Relay) Set(direction, flow int, w *Way) { r.ways[direction][flow] = w }

// Start begins to carry packets.
func (r *Relay) Start() {
	go func() { r.done <- r.runLoop() }()
	if r.hasOwnCPU() {
		r.stayAwake()
	}
}

// Stop ends that. It fails where the relay was no fair road: where a packet was too long, belonged
// to nobody or was refused, or a device has dropped one.
func (r *Relay) Stop() error {
	r.stop.Store(true)
	if err := <-r.done; err != nil {
		return err
	}
	if r.TooLong+r.Foreign+r.Refused > 0 {
		return fmt.Errorf("the relay saw %d packets above the MTU, %d of no flow, and %d were refused", r.TooLong,
			r.Foreign, r.Refused)
	}
	for _, d := range r.Dev {
		if n, err := d.numDropped(); n > 0 || err != nil {
			return fmt.Errorf("a device has dropped %d packets itself (%v)", n, err)
		}
	}
	return nil
}

// Close gives the namespaces up.
func (r *Relay) Close() {
	for _, d := range r.Dev {
		if d != nil {
			d.Close()
		}
	}
}

// epoch is what Now counts from, in ns of CLOCK_MONOTONIC, which all processes share.
var epoch, epochNs = time.Now(), monotonicNow()

func monotonicNow() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // every Linux has that clock
	}
	return t.Nano()
}

// Now is the time in ns of CLOCK_MONOTONIC.
func Now() int64 { return epochNs + int64(time.Since(epoch)) }

// idlePoll is how long the relay sleeps when nothing is under way; it looks whether it shall stop.
const idlePoll = 10 * time.Millisecond

// train is how many packets are read between two looks at what is due.
const train = 4

func (r *Relay) runLoop() error {
	runtime.LockOSThread() // and the thread ends with this goroutine, since its priority is not the program's
	if err := r.raisePriority(); err != nil {
		return err
	}
	for !r.stop.Load() {
		now := Now()
		r.deliverDue(now)
		if r.readPackets(Up, now)+r.readPackets(Down, now) > 0 || r.Restless {
			continue
		}
		wait := idlePoll
		if len(r.heap) > 0 {
			wait = min(wait, time.Duration(r.heap[0].at-Now()))
		}
		if wait <= 0 {
			continue
		}
		ts := unix.NsecToTimespec(int64(wait))
		if _, err := unix.Ppoll(r.fds[:], &ts, nil); err != nil && err != unix.EINTR {
			return err
		}
	}
	return nil
}

// deliverDue writes what is due.
func (r *Relay) deliverDue(now int64) {
	for len(r.heap) > 0 && r.heap[0].at <= now {
		e := r.popEvent()
		r.Late.Add(time.Duration(now - e.at)) // what comes now is the receiver's own work: its stack runs in this call
		if _, err := unix.Write(r.Dev[e.out].fd, e.pkt.b[:e.pkt.n]); err != nil {
			r.Refused++
		}
		now = Now()
		r.releasePacket(e.pkt)
	}
}

// readPackets takes packets that go in a direction and says how many there were.
func (r *Relay) readPackets(direction int, now int64) (n int) {
	for ; n < train; n++ {
		p := r.takePacket()
		k, err := unix.Read(r.Dev[direction].fd, p.b[:])
		if err != nil || k <= 0 {
			r.releasePacket(p)
			break
		}
		p.n = k
		r.passPacket(direction, now, p)
		r.releasePacket(p)
	}
	return n
}

// passPacket lets a packet go its way.
func (r *Relay) passPacket(direction int, now int64, p *packet) {
	b := p.b[:p.n]
	if len(b) < 20 || b[0]>>4 != 4 {
		return // not of IPv4, which is all that these roads carry
	}
	if p.n > MTU {
		r.TooLong++
		return
	}
	flow := b[19] // of the destination
	w := r.ways[direction][flow]
	if w == nil || b[15] != flow {
		r.Foreign++
		return
	}
	ecn := b[1] & 3
	f := w.Pass(now, p.n, ecn == 1 || ecn == 2)
	c := &r.Counts[direction][flow]
	c.Packets++
	c.Octets += uint64(p.n)
	switch {
	case f.Full:
		c.Full++
	case f.Lost:
		c.Lost++
	}
	if f.Copies == 0 {
		c.Drops = append(c.Drops, now)
		return
	}
	c.Waited.Add(f.Waited)
	if f.Mark {
		c.Marked++
		markCE(b)
	}
	c.Twice += uint64(f.Copies - 1)
	for _, at := range f.At[:f.Copies] {
		p.uses++
		r.pushEvent(event{at: at, seq: r.seq, out: 1 - direction, pkt: p})
		r.seq++
	}
}

// markCE sets CE in an IPv4 header and brings its checksum up to date (RFC 1624).
func markCE(b []byte) {
	old := uint32(binary.BigEndian.Uint16(b))
	b[1] |= 3
	sum := uint32(^binary.BigEndian.Uint16(b[10:])) + (^old & 0xffff) + uint32(binary.BigEndian.Uint16(b))
	sum = sum&0xffff + sum>>16
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(b[10:], ^uint16(sum))
}

func (r *Relay) takePacket() *packet {
	if n := len(r.idle); n > 0 {
		p := r.idle[n-1]
		r.idle = r.idle[:n-1]
		p.uses = 1
		return p
	}
	return &packet{uses: 1}
}

func (r *Relay) releasePacket(p *packet) {
	if p.uses--; p.uses == 0 {
		r.idle = append(r.idle, p)
	}
}

func (e *event) isBefore(f *event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

func (r *Relay) pushEvent(e event) {
	r.heap = append(r.heap, e)
	h := r.heap
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].isBefore(&h[up]) {
			break
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (r *Relay) popEvent() event {
	h := r.heap
	first, n := h[0], len(h)-1
	h[0], h[n] = h[n], event{}
	h = h[:n]
	r.heap = h
	for i := 0; ; {
		down := 2*i + 1
		if down >= n {
			return first
		}
		if down+1 < n && h[down+1].isBefore(&h[down]) {
			down++
		}
		if !h[down].isBefore(&h[i]) {
			return first
		}
		h[i], h[down] = h[down], h[i]
		i = down
	}
}
