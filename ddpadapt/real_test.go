package ddpadapt

import (
	"bytes"
	"errors"
	"math/rand"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

// The stories here run over two real associations joined by a wire in virtual time.

const wirePort = 4791

type host struct {
	addr   netip.AddrPort
	ep     *endpoint.Endpoint
	cfg    assoc.Config
	a      *assoc.Assoc
	m      *Mux
	batch  *assoc.TxBatch
	events []Event
	table  *ddp.Table
	ids    ddp.StreamID
}

type world struct {
	testing.TB
	now   rawio.Time
	hosts [2]*host
	air   []flying
	fate  func(pkt wire.Packet) (lost bool, delay time.Duration)
	sent  []wire.Packet
}

type flying struct {
	at  rawio.Time
	to  int
	pkt []byte
}

func newHost(i, seed, mtu int) *host {
	h := &host{addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 0), batch: assoc.NewTxBatch(8), table: ddp.NewTable(entropy{})}
	h.ep = endpoint.New(endpoint.Config{Rand: rand.New(rand.NewSource(int64(seed))), MTU: func(_, _ netip.Addr) int { return mtu }})
	h.cfg = assoc.Config{OutStreams: 16}
	Configure(&h.cfg)
	return h
}

// newWorld associates host 0 with host 1, or tries to, over a path of mtu octets for SCTP.
func newWorld(t testing.TB, mtu int, change func(hosts [2]*host)) *world {
	w := &world{TB: t, now: rawio.Time(time.Hour), hosts: [2]*host{newHost(0, 1, mtu), newHost(1, 2, mtu)}}
	if change != nil {
		change(w.hosts)
	}
	if err := w.hosts[1].ep.Listen(wirePort, &w.hosts[1].cfg); err != nil {
		t.Fatal(err)
	}
	w.connect()
	w.run(time.Second)
	return w
}

func (w *world) connect() {
	h := w.hosts[0]
	a, err := h.ep.Connect(w.now, &h.cfg, wirePort+1, h.addr, []netip.AddrPort{w.hosts[1].addr}, wirePort)
	if err != nil {
		w.Fatal(err)
	}
	h.adopt(a, true)
}

func (h *host) adopt(a *assoc.Assoc, initiator bool) {
	h.a, h.m = a, NewMux(a, Config{Initiator: initiator})
	a.SetUpper(h.m, h.m)
}

func (h *host) receive(now rawio.Time, p *rawio.Packet) {
	a, ok := h.ep.Lookup(p)
	if ok && a == nil {
		var isNew bool
		if a, isNew = h.ep.HandleUnmatched(now, p); isNew {
			h.adopt(a, false)
		}
	}
	if a != nil {
		a.HandlePacket(now, p)
		h.m.HandleReceived(now)
	}
}

// settle moves events up and packets out.
func (w *world) settle() {
	for to, h := range w.hosts {
		for more := true; more; {
			more = h.ep.PollTransmit(w.now, h.batch)
			w.launch(h, 1-to)
		}
		for more := h.a != nil; more; {
			more = h.a.PollTransmit(w.now, h.batch)
			w.launch(h, 1-to)
		}
		for h.a != nil {
			ev, ok := h.a.PollEvent()
			if !ok {
				break
			}
			switch ev.Kind {
			case assoc.EventUp, assoc.EventRestart, assoc.EventPathUp, assoc.EventPathDown:
				h.ep.Refresh(h.a)
			case assoc.EventDown:
				h.ep.Remove(h.a)
			}
			h.m.HandleEvent(w.now, ev)
		}
		for h.m != nil {
			ev, ok := h.m.PollEvent()
			if !ok {
				break
			}
			h.events = append(h.events, ev)
		}
	}
}

func (w *world) launch(h *host, to int) {
	for i := range h.batch.Pkts {
		pkt := slices.Concat(h.batch.Pkts[i].Vec...)
		w.sent = append(w.sent, pkt)
		lost, delay := false, time.Duration(0)
		if w.fate != nil {
			lost, delay = w.fate(pkt)
		}
		if !lost {
			w.air = append(w.air, flying{w.now.Add(5*time.Millisecond + delay), to, pkt})
		}
	}
	h.batch.Reset()
}

// run lets d pass.
func (w *world) run(d time.Duration) {
	w.Helper()
	for end, n := w.now.Add(d), 0; ; n++ {
		if n > 1_000_000 {
			w.Fatal("the world does not come to rest")
		}
		w.settle()
		next := rawio.Never
		for _, f := range w.air {
			next = min(next, f.at)
		}
		for _, h := range w.hosts {
			if h.a != nil {
				next = min(next, h.a.NextTimeout())
			}
		}
		if next > end {
			w.now = end
			return
		}
		w.now = max(w.now, next)
		air := w.air
		w.air = nil
		for _, f := range air {
			if f.at > w.now {
				w.air = append(w.air, f)
				continue
			}
			buf := rawio.NewBuf(f.pkt)
			p := rawio.Packet{Data: f.pkt, Buf: buf, Local: w.hosts[f.to].addr, Remote: w.hosts[1-f.to].addr}
			w.hosts[f.to].receive(w.now, &p)
			p.Release()
		}
		for _, h := range w.hosts {
			if h.a != nil && h.a.NextTimeout() <= w.now {
				h.a.HandleTimeout(w.now)
			}
		}
	}
}

// event takes the next event of a host, which must be of that kind.
func (w *world) event(host int, kind EventKind) Event {
	w.Helper()
	h := w.hosts[host]
	if len(h.events) == 0 || h.events[0].Kind != kind {
		w.Fatalf("host %d at %v has events %v, want %v", host, w.now, h.events, kind)
	}
	ev := h.events[0]
	h.events = h.events[1:]
	return ev
}

func (h *host) stream(u ddp.ULP) *ddp.Stream {
	h.ids++
	return ddp.NewStream(ddp.StreamConfig{ID: h.ids, PD: 1, Table: h.table, ULP: u, Queues: 1})
}

// session opens and accepts a session from host 0 with private data both ways.
func (w *world) session(private []byte) (sa, sb *Session, ua, ub *sink, da, db *ddp.Stream) {
	w.Helper()
	ua, ub = new(sink), new(sink)
	da, db = w.hosts[0].stream(ua), w.hosts[1].stream(ub)
	sa, err := w.hosts[0].m.Open(w.now, -1, da, private)
	if err != nil {
		w.Fatal(err)
	}
	w.run(10 * time.Second)
	ev := w.event(1, EventInitiate)
	sb = ev.Session
	if !bytes.Equal(ev.Private, private) {
		w.Fatalf("private data of %d octets, want %d", len(ev.Private), len(private))
	}
	if err := sb.Accept(w.now, db, private); err != nil {
		w.Fatal(err)
	}
	w.run(10 * time.Second)
	if ev := w.event(0, EventAccepted); !bytes.Equal(ev.Private, private) {
		w.Fatalf("private data of %d octets, want %d", len(ev.Private), len(private))
	}
	return sa, sb, ua, ub, da, db
}

// A session carries bulk data both ways over paths of all sorts and leaves nothing behind.
func TestOverRealAssociations(t *testing.T) {
	rnd := rand.New(rand.NewSource(1))
	for _, c := range []struct {
		name string
		mtu  int
		fate func(wire.Packet) (bool, time.Duration)
	}{
		{"a clean path", 1480, nil},
		{"a path that reorders", 1480, func(wire.Packet) (bool, time.Duration) {
			return false, time.Duration(rnd.Intn(8)) * time.Millisecond
		}},
		{"a path that loses one packet in thirty", 1480, func(wire.Packet) (bool, time.Duration) { return rnd.Intn(30) == 0, 0 }},
		{"a jumbo path", 65515, nil},
		{"a path too narrow for 516 octets: fragments", 480, nil}, // req 5043-9-3
		{"a narrow path that reorders and loses", 480, func(wire.Packet) (bool, time.Duration) {
			return rnd.Intn(50) == 0, time.Duration(rnd.Intn(8)) * time.Millisecond
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.mtu, nil)
			w.event(0, EventUp)
			w.event(1, EventUp)
			if n := w.hosts[0].m.Streams(); n != 16 {
				t.Fatalf("%d streams", n)
			}
			w.fate = c.fate
			private := bytes.Repeat([]byte{7}, MaxPrivateData)
			for round := range 2 { // the second session on the same streams
				sa, sb, ua, ub, da, db := w.session(private)
				const size = 200_000
				var want, got [2][]byte
				for i, s := range [2]*ddp.Stream{da, db} {
					want[i], got[i] = make([]byte, size), make([]byte, size)
					rnd.Read(want[i])
					region, err := w.hosts[1-i].table.Register(ddp.Spec{PD: 1, Mem: ddp.Bytes(got[i]), Access: ddp.RemoteWrite})
					if err != nil {
						t.Fatal(err)
					}
					if err := s.SendTagged(region.STag(), 0, 0, ddp.Gather{{Mem: ddp.Bytes(want[i]), Len: size}}, 1); err != nil {
						t.Fatal(err)
					}
				}
				if err := sa.Terminate(w.now); err != nil {
					t.Fatal(err)
				}
				w.run(10 * time.Minute)
				w.event(1, EventTerminated)
				if err := sb.Terminate(w.now); err != nil {
					t.Fatal(err)
				}
				w.run(time.Minute)
				w.event(0, EventTerminated)
				w.event(0, EventEnded)
				w.event(1, EventEnded)
				if ua.delivered != 1 || ub.delivered != 1 || ua.completed != 1 || ub.completed != 1 {
					t.Fatalf("round %d: %+v and %+v", round, ua, ub)
				}
				for i := range want {
					if !bytes.Equal(want[i], got[i]) {
						t.Fatalf("round %d: direction %d arrived changed", round, i)
					}
				}
			}
			for i, h := range w.hosts {
				if h.m.Sessions() != 0 || h.m.Stats().Violations != 0 || h.a.State() != assoc.Established {
					t.Fatalf("host %d: %d sessions, %+v, %v", i, h.m.Sessions(), h.m.Stats(), h.a.State())
				}
			}
		})
	}
}

// What is seen on the wire: setup with indication 1 and equal stream counts, then only unordered,
// unfragmented DATA of PPID 16 and 17 that leaves room for a SACK.
func TestOnTheWire(t *testing.T) {
	w := newWorld(t, 1480, nil)
	w.event(0, EventUp)
	w.event(1, EventUp)
	_, _, _, _, da, _ := w.session([]byte("x"))
	da.SendTagged(1, 0, 0, ddp.Gather{{Mem: ddp.Bytes(make([]byte, 5000)), Len: 5000}}, 1)
	w.run(time.Second)
	setups, data, largest := 0, 0, 0
	for _, pkt := range w.sent {
		cs := pkt.Chunks()
		for c, ok := cs.Next(); ok; c, ok = cs.Next() {
			switch c.Type() {
			case wire.ChunkInit, wire.ChunkInitAck:
				setups++
				in, err := wire.AsInit(c)
				if err != nil {
					t.Fatal(err)
				}
				if in.OutStreams() != in.InStreams() { // req 5043-8-3
					t.Fatalf("%v asks for %d outbound and %d inbound streams", c.Type(), in.OutStreams(), in.InStreams())
				}
				found := false
				ps := in.Params()
				for p, ok := ps.Next(); ok; p, ok = ps.Next() {
					// req 5043-5.1-1, 5043-11.1-1
					found = found || bytes.Equal(p, []byte{0xc0, 0x06, 0, 8, 0, 0, 0, 1})
				}
				if !found {
					t.Fatalf("%v without the DDP indication", c.Type())
				}
			case wire.ChunkData:
				data++
				d, err := wire.AsData(c)
				// req 5043-10-1, 5043-9-3, 5043-5.2-1, 5043-12-1
				if err != nil || !d.U() || !d.B() || !d.E() || d.PPID() != 16 && d.PPID() != 17 {
					t.Fatalf("DATA with flags %#x, PPID %d: %v", d.Flags(), d.PPID(), err)
				}
				largest = max(largest, len(pkt))
			}
		}
	}
	if setups != 2 || data < 6 {
		t.Fatalf("%d setup chunks, %d DATA", setups, data)
	}
	// req 5043-9-4: 16 octets are left for a SACK, so that it fits the packet of a full segment
	if largest > 1480 || largest < 1480-16-3 {
		t.Fatalf("largest packet with DATA is %d octets", largest)
	}
}

// Segments and control messages of up to 516 octets are in one DATA chunk wherever IP carries it whole, which a path MTU
// of 576 does, over UDP too; only narrower paths have fragments.
func TestFragmentsOnlyWhereIPWouldFragment(t *testing.T) {
	// req 5043-9-2, 5043-9-3
	const least = wire.CommonHeaderLen + wire.DataHeaderLen + (ssnLen+MinMULPDU+3)&^3
	for _, c := range []struct {
		name  string
		mtu   int
		whole bool
	}{
		{"576 octets", 576 - 20, true}, {"576 octets with UDP", 576 - 28, true}, {"just wide enough", least, true}, {"too narrow", least - 4, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.mtu, nil)
			w.event(0, EventUp)
			w.event(1, EventUp)
			_, _, _, _, da, db := w.session(bytes.Repeat([]byte{7}, MaxPrivateData))
			for i, s := range []*ddp.Stream{da, db} { // both ways, so that SACKs would go along
				memory := make([]byte, 5000)
				region, err := w.hosts[1-i].table.Register(ddp.Spec{PD: 1, Mem: ddp.Bytes(memory), Access: ddp.RemoteWrite})
				if err != nil {
					t.Fatal(err)
				}
				if err := s.SendTagged(region.STag(), 0, 0, ddp.Gather{{Mem: ddp.Bytes(make([]byte, 5000)), Len: 5000}}, 1); err != nil {
					t.Fatal(err)
				}
			}
			w.run(time.Minute)
			data, parts := 0, 0
			for _, pkt := range w.sent {
				if len(pkt) > c.mtu {
					t.Errorf("packet of %d octets", len(pkt))
				}
				cs := pkt.Chunks()
				for ch, ok := cs.Next(); ok; ch, ok = cs.Next() {
					if d, err := wire.AsData(ch); err == nil && ch.Type() == wire.ChunkData {
						data++
						if !d.B() || !d.E() {
							parts++
						}
					}
				}
			}
			if data < 22 || (parts == 0) != c.whole {
				t.Errorf("%d of %d DATA chunks are fragments", parts, data)
			}
		})
	}
}

// A peer that does not speak DDP gets no association.
func TestPeerWithoutDDP(t *testing.T) {
	// req 5043-7.1-3, 5043-11.1-3, 5043-11.1-5
	other := uint32(2)
	for _, c := range []struct {
		name       string
		indication *uint32
	}{{"no indication", nil}, {"another indication", &other}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, 1480, func(hosts [2]*host) {
				hosts[1].cfg.Adaptation, hosts[1].cfg.RequireAdaptation = c.indication, false
			})
			ev := w.event(0, EventDown)
			var ae *assoc.AdaptationError
			if !errors.As(ev.Err, &ae) || ae.Want != AdaptationDDP {
				t.Fatalf("event %+v", ev)
			}
		})
	}
}

// A peer that lost its state sets the association up anew: the sessions end, new ones work.
func TestRealRestart(t *testing.T) {
	w := newWorld(t, 1480, nil)
	w.event(0, EventUp)
	w.event(1, EventUp)
	_, sb, _, _, _, _ := w.session(nil)
	w.hosts[0] = newHost(0, 3, 1480)
	w.connect()
	w.run(time.Second)
	w.event(0, EventUp)
	if ev := w.event(1, EventDown); ev.Session != sb || ev.Err != ErrRestarted {
		t.Fatalf("event %+v", ev)
	}
	w.event(1, EventDown)
	w.event(1, EventUp)
	w.session(nil)
}

// An ABORT of the association reaches both sides' sessions.
func TestRealAbort(t *testing.T) {
	w := newWorld(t, 1480, nil)
	w.event(0, EventUp)
	w.event(1, EventUp)
	sa, sb, _, _, _, _ := w.session(nil)
	w.hosts[0].a.Abort(w.now, []byte("enough"))
	w.run(time.Second)
	for i, s := range []*Session{sa, sb} {
		var ae *assoc.AbortError
		if ev := w.event(i, EventDown); ev.Session != s || !errors.As(ev.Err, &ae) || ae.ByPeer != (i == 1) {
			t.Fatalf("host %d: event %+v", i, ev)
		}
		w.event(i, EventDown)
	}
}
