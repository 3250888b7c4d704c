package sctptest

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

const (
	MTU       = 1452 // of the paths in a World and a Lab, for SCTP
	PortA     = 5000 // of the host that connects
	PortB     = 6000 // of the one that listens
	Latency   = 10 * time.Millisecond
	RoundTrip = 2 * Latency
)

// World is two hosts and what joins them, in virtual time. Host 0 connects to host 1.
type World struct {
	testing.TB
	Now   rawio.Time
	Net   *simnet.Net
	Hosts [2]*Host
	Sent  []Capture
	Alarm rawio.Time // something else is to happen then
	// Filter decides about each packet: how many copies leave (0 drops it) and how much later.
	Filter func(from int, pkt wire.Packet) (copies int, delay time.Duration)
	held   []heldPacket
	onSend func(h *Host, s *Capture)
}

// heldPacket is a packet that the judge keeps for a time.
type heldPacket struct {
	at rawio.Time
	p  rawio.Packet
}

// Capture is a packet seen on the wire, lost ones included.
type Capture struct {
	At   rawio.Time
	From int
	Pkt  wire.Packet
	rawio.Packet
	MTU int // of the path that it takes, 0 if there was no association
}

func newWorld(t testing.TB, link int, features rawio.Features, addrs [2][]netip.AddrPort, path simnet.Params) *World {
	w := &World{TB: t, Now: rawio.Time(time.Hour), Net: simnet.New(1), Alarm: rawio.Never}
	for i := range w.Hosts {
		w.Hosts[i] = NewHost(i, int64(i+1), link, features, addrs[i]...)
	}
	countsUp(t, w.Hosts[:]...)
	path.Delay = Latency
	for k := range addrs[0] {
		w.Net.Connect(addrs[0][k].Addr(), addrs[1][k].Addr(), path)
	}
	return w
}

// NewWorld joins two hosts by a wire.
func NewWorld(t testing.TB) *World {
	return newWorld(t, MTU+rawio.Overhead(IPv4[0]), 0, [2][]netip.AddrPort{{IPv4[0]}, {IPv4[1]}}, simnet.Params{})
}

// Pair returns two associated ends.
func Pair(t testing.TB, ca, cb *assoc.Config) (w *World, a, b *assoc.Assoc) {
	t.Helper()
	w = NewWorld(t)
	w.Listen(cb)
	a = w.Connect(ca)
	w.Run(time.Second)
	b = w.Peer()
	if a.State() != assoc.Established || b.State() != assoc.Established {
		t.Fatalf("states %v and %v after the handshake", a.State(), b.State())
	}
	return w, a, b
}

// Listen lets host 1 take associations.
func (w *World) Listen(cfg *assoc.Config) {
	w.Helper()
	if err := w.Hosts[1].Endpoint.Listen(PortB, cfg); err != nil {
		w.Fatalf("listen: %v", err)
	}
}

// Connect starts an association from host 0 to host 1.
func (w *World) Connect(cfg *assoc.Config) *assoc.Assoc {
	w.Helper()
	return w.ConnectFrom(0, PortA, PortB, cfg)
}

// ConnectFrom starts an association of a host to the other's first address.
func (w *World) ConnectFrom(id int, local, remote uint16, cfg *assoc.Config) *assoc.Assoc {
	w.Helper()
	h, peer := w.Hosts[id], w.Hosts[1-id]
	from := h.Addr
	if len(h.Addrs) > 1 {
		from = netip.AddrPort{}
	}
	return w.connectHost(h, cfg, local, from, []netip.AddrPort{peer.Addr}, remote)
}

func (w *World) connectHost(h *Host, cfg *assoc.Config, local uint16, from netip.AddrPort, to []netip.AddrPort,
	remote uint16) *assoc.Assoc {
	w.Helper()
	a, err := h.Endpoint.Connect(w.Now, cfg, local, from, to, remote)
	if err != nil {
		w.Fatalf("connect: %v", err)
	}
	h.Adopt(a)
	return a
}

// Peer returns the newest association of host 1.
func (w *World) Peer() *assoc.Assoc {
	w.Helper()
	if n := len(w.Hosts[1].Assocs); n > 0 {
		return w.Hosts[1].Assocs[n-1]
	}
	w.Fatal("host 1 has no association")
	return nil
}

// Flush sends what both hosts have to send.
func (w *World) Flush() {
	for _, h := range w.Hosts {
		h.Poll(w.Now, func(a *assoc.Assoc, p *rawio.Packet) { w.sendPacket(h, a, p) })
	}
}

func (w *World) sendPacket(h *Host, a *assoc.Assoc, p *rawio.Packet) {
	if !p.Local.IsValid() || len(h.Addrs) == 1 {
		p.Local = h.Addr
	}
	s := Capture{At: w.Now, From: h.ID, Pkt: slices.Concat(p.Vec...), Packet: *p}
	s.Vec = [][]byte{s.Pkt}
	if a != nil {
		s.MTU = a.PathStats(0).MaxPacket
	}
	w.Sent = append(w.Sent, s)
	if w.onSend != nil {
		w.onSend(h, &s)
	} else if max := h.Link - rawio.Overhead(p.Remote); len(s.Pkt) > max {
		w.Errorf("packet of %d octets on a path of %d", len(s.Pkt), max)
	}
	h.fragmentOut(p)
	h.fragmentOut(&s.Packet)
	copies, delay := 1, time.Duration(0)
	if w.Filter != nil {
		copies, delay = w.Filter(h.ID, s.Pkt)
	}
	for range copies {
		if delay > 0 {
			w.held = append(w.held, heldPacket{w.Now.Add(delay), s.Packet})
		} else {
			w.Net.Send(w.Now, p)
		}
	}
}

// Run lets d pass.
func (w *World) Run(d time.Duration) {
	w.Helper()
	w.RunUntil(w.Now.Add(d), func() bool { return false })
}

// RunUntil runs until done says so or the time is up, and says whether done did.
func (w *World) RunUntil(end rawio.Time, done func() bool) bool {
	w.Helper()
	var still stallCounter
	for range 1_000_000 {
		w.Flush()
		if done() {
			return true
		}
		next := min(w.Net.NextArrival(), w.Alarm, w.Hosts[0].NextTimeout(), w.Hosts[1].NextTimeout())
		for _, x := range w.held {
			next = min(next, x.at)
		}
		if next > end {
			w.Now = end
			return done()
		}
		if still.isStuck(w.Now, next) {
			break
		}
		w.Now = max(w.Now, next)
		w.held = slices.DeleteFunc(w.held, func(x heldPacket) bool {
			if x.at <= w.Now {
				w.Net.Send(w.Now, &x.p)
			}
			return x.at <= w.Now
		})
		Deliver(w.Now, w.Net, w.Hosts[:])
	}
	w.Fatal("the world does not come to rest")
	return false
}

// Deliver hands hosts what has arrived by now, and has their timers expire.
func Deliver(now rawio.Time, net *simnet.Net, hosts []*Host) {
	for to, p, ok := net.Deliver(now); ok; to, p, ok = net.Deliver(now) {
		for _, h := range hosts {
			if slices.Contains(h.Addrs, to) {
				h.Receive(now, &p)
			}
		}
		p.Release()
	}
	for _, h := range hosts {
		h.HandleTimeout(now)
	}
}

// Lose returns a judge that drops the first n packets with a chunk of that type.
func Lose(t wire.ChunkType, n int) func(int, wire.Packet) (int, time.Duration) {
	return func(_ int, pkt wire.Packet) (int, time.Duration) {
		if n > 0 && Has(pkt, t) {
			n--
			return 0, 0
		}
		return 1, 0
	}
}

// Seen returns the packets from a host that hold a chunk of that type.
func (w *World) Seen(from int, t wire.ChunkType) (list []Capture) {
	for _, s := range w.Sent {
		if s.From == from && Has(s.Pkt, t) {
			list = append(list, s)
		}
	}
	return list
}

// Each shows f every chunk that was sent.
func (w *World) Each(f func(s Capture, c wire.Chunk)) {
	for _, s := range w.Sent {
		cs := s.Pkt.Chunks()
		for c, ok := cs.Next(); ok; c, ok = cs.Next() {
			f(s, c)
		}
	}
}

// Send queues a message.
func (w *World) Send(a *assoc.Assoc, stream wire.StreamID, data []byte) {
	w.Helper()
	m := assoc.Message{Stream: stream, PPID: 7, Body: [2][]byte{data}}
	if err := a.Send(w.Now, &m); err != nil {
		w.Fatalf("send: %v", err)
	}
}
