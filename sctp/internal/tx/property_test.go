package tx

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/rx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// prng is xorshift64: enough to vary a test, and the same everywhere.
type prng uint64

func (r *prng) n(n int) int {
	*r ^= *r << 13
	*r ^= *r >> 7
	*r ^= *r << 17
	return int(uint64(*r>>11) % uint64(n))
}

// channel carries packets between the halves of two endpoints and loses, doubles and reorders them.
type channel struct {
	rnd        *prng
	loss, dup  int // percent
	delay      int // milliseconds; with faults up to twice that
	inFlight   []flying
	quiet      bool // towards the end of a run: no more faults
	lost, sent int
}

type flying struct {
	at   rawio.Time
	data []byte
	back bool // a SACK on its way to the sender
}

func (c *channel) send(now rawio.Time, data []byte, back bool) {
	c.sent++
	copies := 1
	if !c.quiet {
		switch k := c.rnd.n(100); {
		case k < c.loss:
			c.lost++
			return
		case k < c.loss+c.dup:
			copies = 2
		}
	}
	for range copies {
		at := now + rawio.Time(c.delay)*ms
		if c.loss > 0 {
			at += rawio.Time(c.rnd.n(c.delay*1000)) * rawio.Time(time.Microsecond)
		}
		c.inFlight = append(c.inFlight, flying{at, data, back})
	}
}

// next takes the first packet to arrive.
func (c *channel) next() (at rawio.Time, i int) {
	at, i = rawio.Never, -1
	for k, f := range c.inFlight {
		if f.at < at {
			at, i = f.at, k
		}
	}
	return at, i
}

// Whatever the channel does, all messages arrive exactly once, in order within each stream where
// they are ordered, and at the end nothing is in flight and the windows are what they were.
func TestEverythingArrivesExactlyOnceAndInOrder(t *testing.T) {
	var probes, reneged uint64
	pieces := 0
	for _, tt := range []struct {
		name                  string
		loss, dup, delay      int
		paths, window, burst  int
		readPercent, messages int
	}{
		{"clean", 0, 0, 5, 1, 1 << 20, 4, 100, 300},
		{"loss", 5, 0, 5, 1, 1 << 20, 4, 100, 300},
		{"loss, doubles, long delays", 10, 10, 50, 1, 1 << 20, 0, 100, 300},
		{"a third is lost", 33, 5, 5, 1, 1 << 20, 4, 100, 100},
		{"two paths", 15, 5, 20, 2, 1 << 20, 4, 100, 200},
		{"a small window and a slow reader", 5, 2, 5, 1, 12000, 4, 20, 200},
		{"a window of few chunks", 10, 0, 5, 1, 6000, 4, 30, 150},
		{"messages longer than the window", 0, 0, 5, 1, 3500, 4, 100, 150},
		{"messages longer than the window, and loss", 10, 5, 20, 1, 3500, 4, 50, 150},
	} {
		for seed := range 6 {
			t.Run(fmt.Sprint(tt.name, "/", seed), func(t *testing.T) {
				rnd := prng(1 + uint64(seed)*7919)
				rnd.n(2)
				l := newLab(t, tt.paths)
				l.s.cfg.MaxBurst = tt.burst
				tsn := wire.TSN(1<<32 - 50) // wraps in every run
				l.s.ring.base, l.s.ring.next, l.s.ring.intact = tsn, tsn, tsn
				l.s.SetPeer(uint32(tt.window), 4)
				l.s.maxRwnd = tt.window
				r := rx.NewReceiver(rx.Config{PeerTSN: tsn, RecvBuffer: tt.window, PMDCS: 1000, InStreams: 4, SackDelay: 200 * time.Millisecond})
				c := &channel{rnd: &rnd, loss: tt.loss, dup: tt.dup, delay: tt.delay}
				pieces += run(t, l, r, c, tt.messages, tt.readPercent)
				// req 9260-3.3.2-10: the receive buffer is as large as it was at first.
				if r.Window() != tt.window || r.Buffered() != 0 || r.Gaps() {
					t.Errorf("receiver: window %d of %d, %d octets held", r.Window(), tt.window, r.Buffered())
				}
				if s := l.s; s.Flight() != 0 || s.DataInFlight() != 0 || s.Queued() != 0 || s.held != 0 || !s.Idle(l.now) || s.NextTimeout() != rawio.Never {
					t.Errorf("sender: flight %d, data %d, queued %d, held %d", s.Flight(), s.DataInFlight(), s.Queued(), s.held)
				}
				st := l.s.Stats()
				if tt.loss == 0 && st.Retransmits > 0 {
					t.Errorf("%d retransmissions on a clean channel", st.Retransmits)
				}
				if tt.loss > 0 && (c.lost == 0 || st.FastRetransmits+st.Timeouts == 0) {
					t.Errorf("the channel lost %d packets, %+v: nothing was tested", c.lost, st)
				}
				probes += st.Probes
				reneged += st.Reneged
			})
		}
	}
	if probes == 0 || reneged == 0 {
		t.Errorf("%d window probes and %d reneged TSNs: the small windows tested nothing", probes, reneged)
	}
	if pieces == 0 {
		t.Error("no message was delivered in pieces")
	}
}

// message n is its number, then octets that follow from it.
func body(n, size int) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(n))
	return append(b, bytes.Repeat([]byte{byte(n)}, size-4)...)
}

func run(t *testing.T, l *lab, r *rx.Receiver, c *channel, messages, readPercent int) (pieces int) {
	sizes := map[int]int{}
	lastOf := map[wire.StreamID]int{}
	queued, got := 0, 0
	var part []byte // of the message that is delivered in pieces
	for steps := 0; got < messages || l.s.Outstanding() > 0 || r.Buffered() > 0; steps++ {
		if steps > 200000 {
			t.Fatalf("no end at %v: %d of %d messages, %d outstanding", time.Duration(l.now), got, messages, l.s.Outstanding())
		}
		c.quiet = got > messages*9/10
		for queued < messages && l.s.Queued() < 20000 {
			size := 4 + c.rnd.n([]int{20, 900, 5000}[c.rnd.n(3)])
			m := Message{Stream: wire.StreamID(c.rnd.n(4)), Unordered: c.rnd.n(4) == 0, Body: [2][]byte{body(queued, size)}, Token: uint64(queued)}
			if err := l.s.Enqueue(&m); err != nil {
				t.Fatal(err)
			}
			sizes[queued] = size
			queued++
		}
		for _, p := range l.transmit() {
			c.send(l.now, bytes.Join(p.Vec, nil), false)
		}
		l.check()
		if err := r.Audit(0); err != nil {
			t.Fatal(err)
		}
		for c.rnd.n(100) < readPercent {
			held, ok := r.Receive()
			if !ok {
				break
			}
			m, b := *held, make([]byte, held.Size)
			held.CopyTo(b, 0)
			r.Release(held)
			if m.Offset != len(part) {
				t.Fatalf("a piece at %d instead of %d", m.Offset, len(part))
			}
			if b = append(part, b...); m.More {
				pieces++
				part = b
				continue
			}
			part = nil
			n := int(binary.BigEndian.Uint32(b))
			if size, ok := sizes[n]; !ok || !bytes.Equal(b, body(n, size)) {
				t.Fatalf("message %d of %d octets: damaged or for the second time", n, len(b))
			}
			delete(sizes, n)
			if !m.Unordered {
				if last, ok := lastOf[m.Stream]; ok && last > n {
					t.Fatalf("stream %d: message %d after %d", m.Stream, n, last)
				}
				lastOf[m.Stream] = n
			}
			got++
		}
		if r.SackDue(l.now) {
			c.send(l.now, r.AppendSack(nil, labMTU-12), true)
		}
		at, i := c.next()
		if r.Buffered() > 0 {
			at = min(at, l.now+20*ms) // the reader comes back
		}
		l.now = max(l.now, min(at, l.s.NextTimeout(), r.Deadline()))
		if i >= 0 && c.inFlight[i].at <= l.now {
			arrive(t, l, r, c.inFlight[i])
			c.inFlight = append(c.inFlight[:i], c.inFlight[i+1:]...)
		}
		if l.s.NextTimeout() <= l.now {
			l.s.HandleTimeout(l.now)
			l.check()
		}
	}
	if len(l.acked) != messages {
		t.Errorf("%d of %d messages acknowledged", len(l.acked), messages)
	}
	for i, n := range l.acked {
		if n != uint64(i) {
			t.Fatalf("message %d acknowledged in place %d", n, i)
		}
	}
	return pieces
}

func arrive(t *testing.T, l *lab, r *rx.Receiver, f flying) {
	if f.back {
		l.sackFor(wire.Sack(f.data))
		return
	}
	for _, d := range chunks(t, rawio.Packet{Vec: [][]byte{f.data}}) {
		if r.Admit(d) == rx.New {
			if err := r.Queue(d, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.PacketDone(l.now); err != nil {
		t.Fatal(err)
	}
}

// A peer that acknowledges anything at all must not break the sender's books.
func TestRandomSacks(t *testing.T) {
	for seed := range 60 {
		rnd := prng(99 + seed)
		l := newLab(t, 1+seed%2)
		l.queue(200, full/2)
		for range 200 {
			l.transmit()
			k := wire.SackFields{CumTSN: l.s.CumTSN().Add(uint32(rnd.n(3)) - 1), ARwnd: uint32(rnd.n(20000))}
			for range rnd.n(4) {
				a := uint16(rnd.n(8))
				k.Gaps = append(k.Gaps, wire.GapBlock{Start: a, End: a + uint16(rnd.n(4)) - 1})
				k.Dups = append(k.Dups, k.CumTSN.Add(uint32(rnd.n(1000))-500))
			}
			if _, err := l.s.HandleSack(l.now, wire.Sack(wire.AppendSack(nil, k))); err == nil {
				l.check()
			}
			if l.now += rawio.Time(rnd.n(300)) * ms; l.s.NextTimeout() <= l.now {
				l.s.HandleTimeout(l.now)
				l.check()
			}
		}
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	l := newLab(t, 1)
	src := &supply{n: 1 << 30, size: full, body: make([]byte, full), acked: make([]uint64, 0, 1<<20)}
	l.s.SetUpper(src, nil)
	k := makeSack(0, 1<<20, wire.GapBlock{Start: 2, End: 2})
	small := &Message{Body: [2][]byte{make([]byte, 100)}}
	feed := func(cum wire.TSN, k wire.Sack) {
		binary.BigEndian.PutUint32(k[4:], uint32(cum))
		if _, err := l.s.HandleSack(l.now, k); err != nil {
			t.Fatal(err)
		}
	}
	whole := makeSack(0, 1<<20)
	round := func() {
		if err := l.s.Enqueue(small); err != nil {
			t.Fatal(err)
		}
		l.transmit()
		feed(l.s.CumTSN()+1, k) // one more, and one beyond a gap
		feed(l.s.CumTSN()+2, whole)
		l.now += ms
	}
	for range 200 {
		round()
	}
	if n := testing.AllocsPerRun(500, round); n != 0 {
		t.Errorf("%v allocations a round of sending and acknowledging", n)
	}
}
