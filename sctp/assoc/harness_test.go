package assoc_test

import (
	"math/rand"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

const (
	testMTU   = 1452
	portA     = 5000
	portB     = 6000
	latency   = 10 * time.Millisecond
	roundTrip = 2 * latency
)

// world is two endpoints joined by a wire, in virtual time.
type world struct {
	t     *testing.T
	now   rawio.Time
	hosts [2]*host
	air   []flight
	// judge decides about each packet: how many copies arrive (0 drops it) and how much later.
	judge func(from int, pkt wire.Packet) (copies int, delay time.Duration)
	sent  []sighting
}

type flight struct {
	at  rawio.Time
	to  int
	pkt []byte
}

// sighting is a packet seen on the wire, lost ones included.
type sighting struct {
	at   rawio.Time
	from int
	pkt  wire.Packet
}

type host struct {
	id      int
	addr    netip.AddrPort
	ep      *endpoint.Endpoint
	assocs  []*assoc.Assoc
	events  []assoc.Event
	placer  assoc.Placer
	source  assoc.Source
	batch   *assoc.TxBatch
	onEvent func(*assoc.Assoc, assoc.Event)
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: rawio.Time(time.Hour)}
	for i := range w.hosts {
		w.hosts[i] = &host{
			id:   i,
			addr: netip.MustParseAddrPort([]string{"10.0.0.1:0", "10.0.0.2:0"}[i]),
			ep: endpoint.New(endpoint.Config{
				Rand: rand.New(rand.NewSource(int64(i + 1))),
				MTU:  func(_, _ netip.Addr) int { return testMTU },
			}),
			batch: assoc.NewTxBatch(4),
		}
	}
	return w
}

// connect starts an association from host 0 to host 1.
func (w *world) connect(cfg *assoc.Config) *assoc.Assoc {
	w.t.Helper()
	return w.connectFrom(0, portA, portB, cfg)
}

func (w *world) connectFrom(id int, local, remote uint16, cfg *assoc.Config) *assoc.Assoc {
	w.t.Helper()
	h, peer := w.hosts[id], w.hosts[1-id]
	a, err := h.ep.Connect(w.now, cfg, local, h.addr, []netip.AddrPort{peer.addr}, remote)
	if err != nil {
		w.t.Fatalf("connect: %v", err)
	}
	h.adopt(a)
	return a
}

func (w *world) listen(cfg *assoc.Config) {
	w.t.Helper()
	if err := w.hosts[1].ep.Listen(portB, cfg); err != nil {
		w.t.Fatalf("listen: %v", err)
	}
}

// pair returns two associated ends.
func pair(t *testing.T, ca, cb *assoc.Config) (w *world, a, b *assoc.Assoc) {
	t.Helper()
	w = newWorld(t)
	w.listen(cb)
	a = w.connect(ca)
	w.run(time.Second)
	b = w.peer()
	if a.State() != assoc.Established || b.State() != assoc.Established {
		t.Fatalf("states %v and %v after the handshake", a.State(), b.State())
	}
	return w, a, b
}

// peer returns the newest association of host 1.
func (w *world) peer() *assoc.Assoc {
	w.t.Helper()
	if n := len(w.hosts[1].assocs); n > 0 {
		return w.hosts[1].assocs[n-1]
	}
	w.t.Fatal("host 1 has no association")
	return nil
}

func (h *host) adopt(a *assoc.Assoc) {
	a.SetUpper(h.placer, h.source)
	h.assocs = append(h.assocs, a)
}

// receive hands a packet to the host as a shell would.
func (h *host) receive(now rawio.Time, p *rawio.Packet) {
	a, ok := h.ep.Lookup(p)
	if !ok {
		return
	}
	if a == nil {
		var isNew bool
		if a, isNew = h.ep.HandleUnmatched(now, p); isNew {
			h.adopt(a)
		}
	}
	if a != nil {
		a.HandlePacket(now, p)
	}
}

// settle polls events.
func (h *host) settle() {
	for i := 0; i < len(h.assocs); i++ {
		a := h.assocs[i]
		for e, ok := a.PollEvent(); ok; e, ok = a.PollEvent() {
			h.events = append(h.events, e)
			switch e.Kind {
			case assoc.EventUp, assoc.EventRestart, assoc.EventPathUp, assoc.EventPathDown:
				h.ep.Refresh(a)
			case assoc.EventDown:
				h.ep.Remove(a)
			}
			if h.onEvent != nil {
				h.onEvent(a, e)
			}
		}
	}
}

// flush sends what both hosts have to send.
func (w *world) flush() {
	for _, h := range w.hosts {
		h.settle()
		for more := true; more; {
			more = h.ep.PollTransmit(w.now, h.batch)
			w.take(h)
		}
		for _, a := range h.assocs {
			for more := true; more; {
				more = a.PollTransmit(w.now, h.batch)
				w.take(h)
			}
		}
		h.settle()
	}
}

func (w *world) take(h *host) {
	for i := range h.batch.Pkts {
		pkt := slices.Concat(h.batch.Pkts[i].Vec...)
		w.sent = append(w.sent, sighting{w.now, h.id, pkt})
		if len(pkt) > testMTU {
			w.t.Errorf("packet of %d octets on a path of %d", len(pkt), testMTU)
		}
		copies, delay := 1, time.Duration(0)
		if w.judge != nil {
			copies, delay = w.judge(h.id, pkt)
		}
		for range copies {
			w.air = append(w.air, flight{w.now.Add(latency + delay), 1 - h.id, pkt})
		}
	}
	h.batch.Reset()
}

// next returns when something happens next.
func (w *world) next() rawio.Time {
	t := rawio.Never
	for _, f := range w.air {
		t = min(t, f.at)
	}
	for _, h := range w.hosts {
		for _, a := range h.assocs {
			t = min(t, a.NextTimeout())
		}
	}
	return t
}

// run lets d pass.
func (w *world) run(d time.Duration) { w.runUntil(w.now.Add(d), func() bool { return false }) }

// runUntil runs until done says so or the time is up, and says whether done did.
func (w *world) runUntil(end rawio.Time, done func() bool) bool {
	w.t.Helper()
	for range 1_000_000 {
		w.flush()
		if done() {
			return true
		}
		t := w.next()
		if t > end {
			w.now = end
			return done()
		}
		w.now = max(w.now, t)
		w.deliver()
		for _, h := range w.hosts {
			for _, a := range h.assocs {
				if a.NextTimeout() <= w.now {
					a.HandleTimeout(w.now)
				}
			}
		}
	}
	w.t.Fatal("the world does not come to rest")
	return false
}

func (w *world) deliver() {
	var later []flight
	var due []flight
	for _, f := range w.air {
		if f.at <= w.now {
			due = append(due, f)
		} else {
			later = append(later, f)
		}
	}
	w.air = later
	for _, f := range due {
		h := w.hosts[f.to]
		b := rawio.NewBuf(slices.Clone(f.pkt))
		p := rawio.Packet{Data: b.B, Buf: b, Local: h.addr, Remote: w.hosts[1-f.to].addr}
		h.receive(w.now, &p)
		p.Release()
	}
}

// has says whether the packet holds a chunk of that type.
func has(pkt wire.Packet, t wire.ChunkType) bool { return chunkOf(pkt, t) != nil }

func chunkOf(pkt wire.Packet, t wire.ChunkType) wire.Chunk {
	cs := pkt.Chunks()
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		if c.Type() == t {
			return c
		}
	}
	return nil
}

// chunkTypes lists the chunks of a packet.
func chunkTypes(pkt wire.Packet) (list []wire.ChunkType) {
	cs := pkt.Chunks()
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		list = append(list, c.Type())
	}
	return list
}

// lose returns a judge that drops the first n packets with a chunk of that type.
func lose(t wire.ChunkType, n int) func(int, wire.Packet) (int, time.Duration) {
	return func(_ int, pkt wire.Packet) (int, time.Duration) {
		if n > 0 && has(pkt, t) {
			n--
			return 0, 0
		}
		return 1, 0
	}
}

// seen returns the packets from a host that hold a chunk of that type.
func (w *world) seen(from int, t wire.ChunkType) (list []sighting) {
	for _, s := range w.sent {
		if s.from == from && has(s.pkt, t) {
			list = append(list, s)
		}
	}
	return list
}

// event returns the first event of that kind.
func (h *host) event(k assoc.EventKind) (assoc.Event, bool) {
	for _, e := range h.events {
		if e.Kind == k {
			return e, true
		}
	}
	return assoc.Event{}, false
}

// downErr returns the error that ended a host's association, and whether one ended.
func (h *host) downErr() (error, bool) {
	e, ok := h.event(assoc.EventDown)
	return e.Err, ok
}

// send queues a message.
func (w *world) send(a *assoc.Assoc, stream wire.StreamID, data []byte) {
	w.t.Helper()
	m := assoc.Message{Stream: stream, PPID: 7, Body: [2][]byte{data}}
	if err := a.Send(w.now, &m); err != nil {
		w.t.Fatalf("send: %v", err)
	}
}

// drain receives all complete messages.
func drain(a *assoc.Assoc) (list [][]byte) {
	for r, ok := a.Receive(); ok; r, ok = a.Receive() {
		b := make([]byte, r.Size)
		r.CopyTo(b, 0)
		list = append(list, b)
		a.Release(r)
	}
	return list
}
