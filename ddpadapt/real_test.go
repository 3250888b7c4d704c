package ddpadapt

import (
	"bytes"
	"errors"
	"math/rand"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// The stories here run over two real associations joined by a wire in virtual time.

const wirePort = 4791

type host struct {
	*sctptest.Host
	cfg    assoc.Config
	a      *assoc.Assoc // the newest
	m      *Mux
	events []Event
	table  *ddp.Table
	ids    ddp.StreamID
}

type world struct {
	*sctptest.World
	hosts [2]*host
}

func newHosts(t testing.TB, mtu int) *world {
	w := &world{World: sctptest.NewWorld(t)}
	for i, h := range w.Hosts {
		h.Link = mtu + rawio.Overhead(h.Addr)
		w.setCookieState(i)
	}
	return w
}

// setCookieState gives a host a state of its own.
func (w *world) setCookieState(i int) {
	h := &host{Host: w.Hosts[i], cfg: assoc.Config{OutStreams: 16}, table: ddp.NewTable(entropy{})}
	Configure(&h.cfg)
	h.OnAdopt = func(a *assoc.Assoc) {
		h.a, h.m = a, NewMux(a, Config{Initiator: i == 0})
		a.SetUpper(h.m, h.m)
	}
	h.OnRecv = func(now rawio.Time, _ *assoc.Assoc) {
		for h.m.HandleReceived(now) {
		}
	}
	h.OnEvent = func(_ *assoc.Assoc, e assoc.Event) { h.m.HandleEvent(w.Now, e) }
	w.hosts[i] = h
}

// newWorld associates host 0 with host 1, or tries to, over a path of mtu octets for SCTP.
func newWorld(t testing.TB, mtu int, change func(hosts [2]*host)) *world {
	w := newHosts(t, mtu)
	if change != nil {
		change(w.hosts)
	}
	w.setUpAssoc()
	w.Run(time.Second)
	return w
}

func (w *world) setUpAssoc() {
	w.Helper()
	w.hosts[1].Endpoint.Unlisten(wirePort)
	if err := w.hosts[1].Endpoint.Listen(wirePort, &w.hosts[1].cfg); err != nil {
		w.Fatal(err)
	}
	w.ConnectFrom(0, wirePort+1, wirePort, &w.hosts[0].cfg)
}

// takeEvents takes the events of the Mux.
func (h *host) takeEvents() []Event {
	for h.m != nil {
		ev, ok := h.m.PollEvent()
		if !ok {
			break
		}
		h.events = append(h.events, ev)
	}
	return h.events
}

// nextEvent takes the next event of a host, which must be of that kind.
func (w *world) nextEvent(host int, kind EventKind) Event {
	w.Helper()
	h := w.hosts[host]
	if len(h.takeEvents()) == 0 || h.events[0].Kind != kind {
		w.Fatalf("host %d at %v has events %v, want %v", host, w.Now, h.events, kind)
	}
	ev := h.events[0]
	h.events = h.events[1:]
	return ev
}

func (h *host) newStream(u ddp.ULP) *ddp.Stream {
	h.ids++
	return ddp.NewStream(ddp.StreamConfig{ID: h.ids, PD: 1, Table: h.table, ULP: u, Queues: 1})
}

// openSession opens and accepts a session from host 0 with private data both ways.
func (w *world) openSession(private []byte) (sa, sb *Session, ua, ub *sink, da, db *ddp.Stream) {
	w.Helper()
	ua, ub = new(sink), new(sink)
	da, db = w.hosts[0].newStream(ua), w.hosts[1].newStream(ub)
	sa, err := w.hosts[0].m.Open(w.Now, -1, da, private)
	if err != nil {
		w.Fatal(err)
	}
	w.Run(10 * time.Second)
	ev := w.nextEvent(1, EventInitiate)
	sb = ev.Session
	if !bytes.Equal(ev.Private, private) {
		w.Fatalf("private data of %d octets, want %d", len(ev.Private), len(private))
	}
	if err := sb.Accept(w.Now, db, private); err != nil {
		w.Fatal(err)
	}
	w.Run(10 * time.Second)
	if ev := w.nextEvent(0, EventAccepted); !bytes.Equal(ev.Private, private) {
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
		fate func(int, wire.Packet) (int, time.Duration)
	}{
		{"a clean path", 1480, nil},
		{"a path that reorders", 1480, func(int, wire.Packet) (int, time.Duration) { return 1, time.Duration(rnd.Intn(8)) * time.Millisecond }},
		{"a path that loses one packet in thirty", 1480, func(int, wire.Packet) (int, time.Duration) { return min(rnd.Intn(30), 1), 0 }},
		{"a jumbo path", 65515, nil},
		{"a path too narrow for 516 octets: fragments", 512, nil}, // req 5043-9-3
		{"a narrow path that reorders and loses", 512, func(int, wire.Packet) (int, time.Duration) {
			return min(rnd.Intn(50), 1), time.Duration(rnd.Intn(8)) * time.Millisecond
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.mtu, nil)
			w.nextEvent(0, EventUp)
			w.nextEvent(1, EventUp)
			must.Equal(t, "streams", w.hosts[0].m.Streams(), 16)
			w.Filter = c.fate
			private := bytes.Repeat([]byte{7}, llp.MaxPrivateData)
			for round := range 2 { // the second session on the same streams
				sa, sb, ua, ub, da, db := w.openSession(private)
				const size = 200_000
				var want, got [2][]byte
				for i, s := range [2]*ddp.Stream{da, db} {
					want[i], got[i] = make([]byte, size), make([]byte, size)
					rnd.Read(want[i])
					region := must.Get(
						w.hosts[1-i].table.Register(
							ddp.Spec{PD: 1, Mem: ddp.Bytes(got[i]), Access: ddp.RemoteWrite}))(t)
					must.OK(t, s.SendTagged(region.STag(), 0, 0, ddp.Gather{{Mem: ddp.Bytes(want[i]), Len: size}}, 1))
				}
				must.OK(t, sa.Terminate(w.Now))
				w.Run(10 * time.Minute)
				w.nextEvent(1, EventTerminated)
				must.OK(t, sb.Terminate(w.Now))
				w.Run(time.Minute)
				w.nextEvent(0, EventTerminated)
				w.nextEvent(0, EventEnded)
				w.nextEvent(1, EventEnded)
				must.That(t, ua.delivered == 1 && ub.delivered == 1 && ua.completed == 1 && ub.completed == 1,
					"round %d: %+v and %+v", round, ua, ub)
				for i := range want {
					must.That(t, bytes.Equal(want[i], got[i]), "round %d: direction %d arrived changed", round, i)
				}
			}
			for i, h := range w.hosts {
				must.That(t, h.m.Sessions() == 0 && h.m.Stats().Violations == 0 && h.a.State() == assoc.Established,
					"host %d: %d sessions, %+v, %v", i, h.m.Sessions(), h.m.Stats(), h.a.State())
			}
		})
	}
}

// What is seen on the wire: setup with indication 1 and equal stream counts, then only unordered,
// unfragmented DATA of PPID 16 and 17 that leaves room for a SACK.
func TestOnTheWire(t *testing.T) {
	w := newWorld(t, 1480, nil)
	w.nextEvent(0, EventUp)
	w.nextEvent(1, EventUp)
	_, _, _, _, da, _ := w.openSession([]byte("x"))
	da.SendTagged(1, 0, 0, ddp.Gather{{Mem: ddp.Bytes(make([]byte, 5000)), Len: 5000}}, 1)
	w.Run(time.Second)
	setups, data, largest := 0, 0, 0
	for _, s := range w.Sent {
		pkt := s.Pkt
		cs := pkt.Chunks()
		for c, ok := cs.Next(); ok; c, ok = cs.Next() {
			switch c.Type() {
			case wire.ChunkInit, wire.ChunkInitAck:
				setups++
				in := must.Get(wire.AsInit(c))(t)
				// req 5043-8-3
				must.That(t, in.OutStreams() == in.InStreams(), "%v asks for %d outbound and %d inbound streams",
					c.Type(), in.OutStreams(), in.InStreams())
				found := false
				ps := in.Params()
				for p, ok := ps.Next(); ok; p, ok = ps.Next() {
					// req 5043-5.1-1, 5043-11.1-1
					found = found || bytes.Equal(p, []byte{0xc0, 0x06, 0, 8, 0, 0, 0, 1})
				}
				must.That(t, found, "%v without the DDP indication", c.Type())
			case wire.ChunkData:
				data++
				d, err := wire.AsData(c)
				// req 5043-10-1, 5043-9-3, 5043-5.2-1, 5043-12-1
				must.That(t, err == nil && d.U() && d.B() && d.E() && (d.PPID() == 16 || d.PPID() == 17),
					"DATA with flags %#x, PPID %d: %v", d.Flags(), d.PPID(), err)
				largest = max(largest, len(pkt))
			}
		}
	}
	must.That(t, setups == 2 && data >= 6, "%d setup chunks, %d DATA", setups, data)
	// req 5043-9-4: 16 octets are left for a SACK, so that it fits the packet of a full segment
	must.That(t, largest <= 1480 && largest >= 1480-16-3, "largest packet with DATA is %d octets", largest)
}

// Segments and control messages of up to 516 octets are in one DATA chunk wherever IP carries it
// whole, which a path MTU of 576 does, over UDP too; only narrower paths have fragments.
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
			w.nextEvent(0, EventUp)
			w.nextEvent(1, EventUp)
			_, _, _, _, da, db := w.openSession(bytes.Repeat([]byte{7}, llp.MaxPrivateData))
			for i, s := range []*ddp.Stream{da, db} { // both ways, so that SACKs would go along
				memory := make([]byte, 5000)
				region := must.Get(
					w.hosts[1-i].table.Register(ddp.Spec{PD: 1, Mem: ddp.Bytes(memory), Access: ddp.RemoteWrite}))(t)
				must.OK(t, s.SendTagged(region.STag(), 0, 0,
					ddp.Gather{{Mem: ddp.Bytes(make([]byte, 5000)), Len: 5000}}, 1))
			}
			w.Run(time.Minute)
			data, parts := 0, 0
			for _, s := range w.Sent {
				pkt := s.Pkt
				check.That(t, len(pkt) <= c.mtu, "packet of %d octets", len(pkt))
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
			check.That(t, data >= 22 && (parts == 0) == c.whole, "%d of %d DATA chunks are fragments", parts, data)
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
			ev := w.nextEvent(0, EventDown)
			var ae *assoc.AdaptationError
			must.That(t, errors.As(ev.Err, &ae) && ae.Want == AdaptationDDP, "event %+v", ev)
		})
	}
}

// A peer that lost its state sets the association up anew: the sessions end, new ones work.
func TestRealRestart(t *testing.T) {
	w := newWorld(t, 1480, nil)
	w.nextEvent(0, EventUp)
	w.nextEvent(1, EventUp)
	_, sb, _, _, _, _ := w.openSession(nil)
	w.Hosts[0].Reboot(3, 0)
	w.Hosts[0].Assocs = nil
	w.setCookieState(0)
	w.setUpAssoc()
	w.Run(time.Second)
	w.nextEvent(0, EventUp)
	ev := w.nextEvent(1, EventDown)
	must.That(t, ev.Session == sb && ev.Err == ErrRestarted, "event %+v", ev)
	w.nextEvent(1, EventDown)
	w.nextEvent(1, EventUp)
	w.openSession(nil)
}

// An ABORT of the association reaches both sides' sessions.
func TestRealAbort(t *testing.T) {
	w := newWorld(t, 1480, nil)
	w.nextEvent(0, EventUp)
	w.nextEvent(1, EventUp)
	sa, sb, _, _, _, _ := w.openSession(nil)
	w.hosts[0].a.Abort(w.Now, []byte("enough"))
	w.Run(time.Second)
	for i, s := range []*Session{sa, sb} {
		var ae *assoc.AbortError
		ev := w.nextEvent(i, EventDown)
		must.That(t, ev.Session == s && errors.As(ev.Err, &ae) && ae.ByPeer == (i == 1), "host %d: event %+v", i, ev)
		w.nextEvent(i, EventDown)
	}
}

// lens notes the lengths of messages and takes one untagged message.
type lens struct {
	sink
	got   []uint64
	queue *ddp.Queue
}

func (l *lens) Buffer(_, msn uint32, _ [5]byte) (*ddp.RecvBuffer, uint8) { return l.queue.Lookup(msn) }

func (l *lens) DeliverTagged(_ uint8, _ ddp.STag, _, n uint64) { l.got = append(l.got, n) }

func (l *lens) DeliverUntagged(_, _ uint32, _ [5]byte, n uint32, _ *ddp.RecvBuffer) {
	l.queue.Pop()
	l.got = append(l.got, uint64(n))
}

func TestWhatARealAssociationShows(t *testing.T) {
	w := newWorld(t, 1480, nil)
	w.nextEvent(0, EventUp)
	w.nextEvent(1, EventUp)
	ub := lens{queue: ddp.NewQueue(1)}
	buf, err := ddp.MakeRecvBuffer(gatherOf(make([]byte, 64)), 0)
	must.That(t, err == nil && ub.queue.Post(buf) == nil, "%v", err)
	da, db := w.hosts[0].newStream(new(sink)), w.hosts[1].newStream(&ub)
	must.Do(w.hosts[0].m.Open(w.Now, -1, da, nil))(t)
	w.Run(time.Second)
	must.OK(t, w.nextEvent(1, EventInitiate).Session.Accept(w.Now, db, nil))
	w.Run(time.Second)
	region := must.Get(w.hosts[1].table.Register(ddp.Spec{PD: 1, Mem: ddp.Bytes(make([]byte, 1<<20)),
		Access: ddp.RemoteWrite}))(t)
	before := len(w.Sent)
	must.OK(t, da.SendUntagged(0, [5]byte{}, gatherOf([]byte("now")), 1))
	w.Flush()
	check.That(t, len(w.Sent) != before, "a small untagged segment waits for more") // req 5043-11.2-1
	want := []uint64{3}
	for n := range uint64(9) { // chunks with padding and without
		must.OK(t, da.SendTagged(region.STag(), 0, 0, gatherOf(make([]byte, n)), n))
		want = append(want, n)
	}
	w.Run(time.Second)
	check.That(t, slices.Equal(ub.got, want), "lengths %v, want %v", ub.got, want) // req 5041-3-8
	must.OK(t, da.SendTagged(region.STag(), 0, 0, gatherOf(make([]byte, 1<<20)), 99))
	w.Run(time.Minute)
	least := uint32(1<<32 - 1)
	for _, s := range w.Sent {
		pkt := s.Pkt
		must.That(t, pkt.ChecksumOK(), "a packet without a right CRC32c") // req 5041-3-7
		cs := pkt.Chunks()
		for c, ok := cs.Next(); ok; c, ok = cs.Next() {
			if k, err := wire.AsSack(c); err == nil {
				least = min(least, k.ARwnd())
			}
			if in, err := wire.AsInit(c); err == nil {
				ps := in.Params()
				for p, ok := ps.Next(); ok; p, ok = ps.Next() {
					switch p.Type() {
					case wire.ParamIPv4, wire.ParamIPv6: // req 5043-7.2-2: one address unless asked for more
						t.Errorf("%v lists an address", c.Type())
					case 0x8001: // req 5041-3-7: zero checksums are acceptable
						t.Errorf("%v offers to do without the checksum", c.Type())
					}
				}
			}
		}
	}
	// req 5041-A-1, 5041-A-2: a_rwnd stays what it was through a megabyte of placed segments
	check.That(t, least == 1<<20, "a_rwnd fell to %d", least)
	bad := wire.AppendHeader(nil, wirePort, wirePort+1, w.hosts[0].a.LocalTag())
	bad = wire.AppendShutdown(bad, 0) // checksum 0
	p := rawio.Packet{Data: bad, Buf: rawio.NewBuf(bad), Local: w.hosts[0].Addr, Remote: w.hosts[1].Addr}
	w.hosts[0].Receive(w.Now, &p)
	check.Equal(t, "a packet with checksum 0 was accepted", w.hosts[0].a.State(), assoc.Established)
}

// A short tagged segment shares its packet with the untagged one that the ULP posts behind it.
func TestShortSegmentsShareAPacket(t *testing.T) {
	// req 5043-11.2-1, 5043-11.2-2
	w := newWorld(t, 1480, nil)
	w.nextEvent(0, EventUp)
	w.nextEvent(1, EventUp)
	_, _, _, ub, da, _ := w.openSession(nil)
	count := func() (packets, chunks int) {
		for _, s := range w.Sent {
			pkt := s.Pkt
			n := 0
			cs := pkt.Chunks()
			for c, ok := cs.Next(); ok; c, ok = cs.Next() {
				if c.Type() == wire.ChunkData {
					n++
				}
			}
			packets, chunks = packets+min(n, 1), chunks+n
		}
		w.Sent = nil
		return packets, chunks
	}
	count()
	post := func() {
		t.Helper()
		for n, err := range []error{
			da.SendTagged(1, 0, 0, nil, 1), da.SendTagged(1, 0, 0, nil, 2), da.SendUntagged(0, [5]byte{}, nil, 3),
		} {
			must.That(t, err == nil, "%d: %v", n, err)
		}
	}
	post()
	w.Flush()
	packets, chunks := count()
	check.That(t, packets == 1 && chunks == 3, "%d segments in %d packets, want 3 in 1", chunks, packets)
	// Nothing is held back for it, not even when earlier segments are not acknowledged (no Nagle).
	post()
	w.Flush()
	packets, chunks = count()
	check.That(t, packets == 1 && chunks == 3, "behind unacknowledged ones: %d segments in %d packets, want 3 in 1",
		chunks, packets)
	w.Run(time.Second)
	check.That(t, ub.delivered != 0, "nothing was delivered")
}

// INIT and INIT ACK have as many outbound as inbound streams each, also where the two hosts want
// different numbers, and as many pairs come of it as both have.
func TestStreamsArePairedWhateverEachHostWants(t *testing.T) {
	for _, want := range [][2]wire.StreamID{{16, 64}, {64, 16}, {16, 16}} {
		w := newWorld(t, 1480, func(hosts [2]*host) {
			for i, h := range hosts {
				h.cfg.OutStreams, h.cfg.InStreams = uint16(want[i]), uint16(want[i])
			}
		})
		w.nextEvent(0, EventUp)
		w.nextEvent(1, EventUp)
		setups := 0
		for _, s := range w.Sent {
			cs := s.Pkt.Chunks()
			for c, ok := cs.Next(); ok; c, ok = cs.Next() {
				if c.Type() == wire.ChunkInit || c.Type() == wire.ChunkInitAck {
					setups++
					in := must.Get(wire.AsInit(c))(t)
					must.That(t, in.OutStreams() == in.InStreams(),
						"%d and %d are wanted: %v with %d outbound and %d inbound streams",
						want[0], want[1], c.Type(), in.OutStreams(), in.InStreams()) // req 5043-8-3
				}
			}
		}
		must.That(t, setups == 2, "%d INIT and INIT ACK", setups)
		for i, h := range w.hosts {
			must.That(t, h.a.OutStreams() == 16 && h.a.InStreams() == 16,
				"%d and %d are wanted: host %d has %d out, %d in", want[0], want[1], i, h.a.OutStreams(),
				h.a.InStreams())
		}
	}
}
