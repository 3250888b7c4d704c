package sctp

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestSendPrimitive(t *testing.T) {
	// The peer's window has room for the first message, which nothing acknowledges.
	muted := func(t *testing.T) *Conn {
		a, b, links := apiPair(t)
		c, _ := connectTransports(t, a, b, &Config{Events: 100, RemoteAddrs: []netip.Addr{addrsB[1].Addr()},
			DisablePMTUD: true},
			&Config{RecvBuffer: 3000})
		links[0].Lose.Store(true)
		return c
	}
	write := func(t *testing.T, c *Conn, msg []byte, info SendInfo) {
		t.Helper()
		must.Do(c.WriteMsg(msg, info))(t)
	}
	t.Run("lifetime", func(t *testing.T) {
		c := muted(t)
		write(t, c, patternOf(1, 2500), SendInfo{Lifetime: time.Nanosecond}) // over before it can be sent
		write(t, c, patternOf(2, 2500), SendInfo{Lifetime: time.Hour})       // sent at once
		write(t, c, patternOf(3, 2500), SendInfo{Stream: 3, PPID: 4, Lifetime: 20 * time.Millisecond})
		write(t, c, patternOf(4, 2500), SendInfo{})
		for _, want := range []struct {
			n      int
			stream uint16
		}{{1, 0}, {3, 3}} {
			ev := nextOfKind(t, c, EventSendFailed)
			check.That(t, ev.Unsent && bytes.Equal(ev.Message, patternOf(want.n, 2500)) &&
				ev.Info.Stream == want.stream,
				// req 9260-11.1-5, 9260-11.1-4: with its context
				"message %d: unsent %v, %d octets, %+v", want.n, ev.Unsent, len(ev.Message), ev.Info)
		}
		st := c.Stats()
		check.That(t, st.Outstanding != 0 && st.Outstanding+st.Queued == 5000,
			"%d octets sent, %d queued of the other two", st.Outstanding, st.Queued)
		c.Abort("")
		for _, n := range []int{2, 4} {
			ev := nextOfKind(t, c, EventSendFailed)
			check.That(t, bytes.Equal(ev.Message, patternOf(n, 2500)), "message %d: %+v", n, ev.Info)
		}
	})
	t.Run("lifetime of a message that waits for room", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, s := newPair(t).connect(t, &Config{Events: 10, SendBuffer: 3000}, nil)
			s.lock() // nothing is acknowledged
			write(t, c, patternOf(1, 2500), SendInfo{})
			end := startBlocked(func() error {
				_, err := c.WriteMsg(patternOf(2, 2500), SendInfo{Lifetime: 20 * time.Millisecond})
				return err
			})
			time.Sleep(21 * time.Millisecond)
			s.unlock()
			// req 9260-11.1-5: it counts from the call
			ev := nextOfKind(t, c, EventSendFailed)
			check.That(t, ev.Unsent && bytes.Equal(ev.Message, patternOf(2, 2500)), "%d octets failed, unsent %v",
				len(ev.Message), ev.Unsent)
			check.OK(t, <-end)
			check.That(t, c.send.firstWriter == nil, "a writer still waits")
		})
	})
	t.Run("a message that fails in two pieces", func(t *testing.T) {
		c := muted(t)
		c.lock()
		c.resizeSendBuffer()
		for i, size := range []int{10_000, 5000, 7000} { // to the end of a ring of 16 KiB, and on from its beginning
			if i == 2 {
				c.send.buffer.freeMessage(0)
			}
			_, token, ok := placeMessage(&c.send.buffer, patternOf(i, size), SendInfo{})
			check.That(t, ok && token == uint64(i), "message %d finds no room", i)
		}
		c.queueEvent(assoc.Event{Kind: EventSendFailed, Token: 2})
		c.unlock()
		check.That(t, bytes.Equal(nextOfKind(t, c, EventSendFailed).Message, patternOf(2, 7000)),
			"its octets are not those that were written")
	})
	t.Run("destination", func(t *testing.T) {
		c := muted(t)
		write(t, c, patternOf(1, 100), SendInfo{Dest: addrsB[1].Addr()}) // req 9260-11.1-4
		for _, p := range c.Paths() {
			check.That(t, (p.Flight > 0) == (p.Remote.Addr() == addrsB[1].Addr()), "%d octets in flight to %v",
				p.Flight, p.Remote)
		}
		check.Fails(c.WriteMsg(patternOf(1, 100), SendInfo{Dest: netip.MustParseAddr("192.0.2.9")}))(t, "to a stranger",
			assoc.ErrNoPath)
	})
}

// A program that reads one of several messages and answers it will answer the others: the answers
// go together, with the last at once, else after a moment.
func TestAnswersToWhatHasComeGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := overRoad(t, simnet.Params{Delay: 100 * time.Microsecond, MTU: 1500}, nil)
		c, s := connectTransports(t, ends[0], ends[1], &Config{NoDelay: true}, nil)
		b := make([]byte, 100)
		read := func(c *Conn) {
			_, _, err := c.ReadMsg(b)
			must.OK(t, err)
		}
		answer := func() {
			read(s)
			must.Do(s.WriteMsg(b, SendInfo{}))(t)
		}
		for _, n := range []int{1, 6, 4, 3} { // the first tells the round trip
			for range n {
				must.Do(c.WriteMsg(b, SendInfo{}))(t)
			}
			time.Sleep(time.Millisecond)
			before := ends[1].Stats().TxPackets
			sent := func() int { return int(ends[1].Stats().TxPackets - before) }
			for i := 1; i < n; i++ {
				answer()
			}
			check.Equal(t, "packets before the last answer", sent(), 0)
			if n == 4 { // who looks for more when there is none is not about to answer
				read(s)
				end := startBlocked(func() error { _, _, err := s.ReadMsg(b); return err })
				check.Equal(t, "packets before a read that waits for more", sent(), 1)
				must.Do(c.WriteMsg(b, SendInfo{}))(t)
				check.OK(t, <-end)
				continue
			}
			if n == 3 {
				time.Sleep(time.Millisecond)
				check.Equal(t, "packets after a moment", sent(), 1)
				continue
			}
			answer()
			check.Equal(t, "packets of all answers", sent(), 1)
			for range n {
				read(c)
			}
			time.Sleep(time.Second)
		}
	})
}

// recorder is a link that keeps a copy of the DATA chunks it is given.
type recorder struct {
	*mem.Link
	mu   sync.Mutex
	data []wire.Data
}

func (r *recorder) WriteBatch(p []rawio.Packet) (int, error) {
	r.mu.Lock()
	for i := range p {
		cs := wire.Packet(bytes.Join(p[i].Vec, nil)).Chunks()
		for c, ok := cs.Next(); ok; c, ok = cs.Next() {
			if d, err := wire.AsData(c); err == nil {
				r.data = append(r.data, d)
			}
		}
	}
	r.mu.Unlock()
	return r.Link.WriteBatch(p)
}

// Prompt implements rawio.Prompter.
func (r *recorder) Prompt() rawio.Link { return r }

func TestWhatSendInfoPutsOnTheWire(t *testing.T) {
	la, lb := mempair.New(t, mem.Options{MTU: 1500})
	link := &recorder{Link: la}
	p := &pair{bAddr: lb.LocalAddrs()[0].Addr()}
	for _, end := range []struct {
		link rawio.Link
		t    **Transport
	}{{link, &p.a}, {lb, &p.b}} {
		*end.t = must.Get(NewTransport(end.link, nil))(t)
		defer (*end.t).Close()
	}
	c, _ := p.connect(t, &Config{Events: 20, EventKinds: AllEvents()}, nil)
	const i, u, b, e = wire.FlagI, wire.FlagU, wire.FlagB, wire.FlagE
	for _, tt := range []struct {
		name   string
		info   SendInfo
		size   int
		stream wire.StreamID
		ppid   uint32
		flags  []uint8
	}{
		{"nothing said: ordered, on stream 0", SendInfo{}, 100, 0, 0, []uint8{b | e}},
		{"unordered, with a payload protocol", SendInfo{Stream: 4, PPID: 0x01020304, Unordered: true}, 2000, 4, 0x01020304, []uint8{u | b, u | e}},
		{"to be acknowledged at once: the I bit on the last chunk", SendInfo{Stream: 9, SackNow: true}, 3500, 9, 0, []uint8{b, 0, e | i}},
	} {
		must.Do(c.WriteMsg(make([]byte, tt.size), tt.info))(t)
		nextOfKind(t, c, EventSenderDry)
		link.mu.Lock()
		check.Equal(t, tt.name+": chunks", len(link.data), len(tt.flags))
		for k, d := range link.data { // req 9260-11.1-4
			check.That(t, d.Stream() == tt.stream && d.PPID() == tt.ppid && d.Flags() == tt.flags[k],
				"%s: chunk %d on stream %d with PPID %#x and flags %#x, want %#x", tt.name, k, d.Stream(), d.PPID(),
				d.Flags(), tt.flags[k])
		}
		link.data = nil
		link.mu.Unlock()
	}
}

// placeMessage puts a message into the buffer, after making it larger if that is wanted.
func placeMessage(s *sendBuf, msg []byte, info SendInfo) ([2][]byte, uint64, bool) {
	if size := s.ringSizeFor(len(msg)); size > 0 {
		s.switchRing(newRing(size))
	}
	w, token, ok := s.putMessage(msg, &info)
	if !ok {
		return [2][]byte{}, 0, false
	}
	return w.body, token, true
}

// Messages end in any order; their octets stay as they are until then.
func TestSendBufferFreesInAnyOrder(t *testing.T) {
	s := sendBuf{maxOctets: 100_000}
	r := rand.New(rand.NewPCG(1, 2))
	type message struct {
		token uint64
		n     int
	}
	var live []message
	holds := func(m message) {
		t.Helper()
		w := s.get(m.token)
		got := append(bytes.Clone(w.body[0]), w.body[1]...)
		must.That(t, bytes.Equal(got, patternOf(m.n, 1+m.n%3000)) && w.info.PPID == uint32(m.n),
			"message %d of %d octets was overwritten", m.n, len(got))
	}
	full, grown := 0, 0
	for n := range 20_000 {
		before := len(s.ring)
		if _, token, ok := placeMessage(&s, patternOf(n, 1+n%3000), SendInfo{PPID: uint32(n)}); !ok {
			full++
		} else if r.IntN(10) == 0 {
			s.undoPut() // the association has refused it
		} else {
			live = append(live, message{token, n})
		}
		if len(s.ring) > before {
			grown++
		}
		must.That(t, len(s.ring) <= s.maxOctets, "a ring of %d octets, the maximum is %d", len(s.ring), s.maxOctets)
		for len(live) > 0 && r.IntN(101) < 50 {
			i := 0
			if r.IntN(4) == 0 {
				i = r.IntN(len(live))
			}
			holds(live[i])
			s.freeMessage(live[i].token)
			live = append(live[:i], live[i+1:]...)
		}
	}
	for _, m := range live {
		holds(m)
		s.freeMessage(m.token)
	}
	check.That(t, s.usedOctets == 0 && len(s.msgs) == 0 && cap(s.msgs) <= 10_000 && full != 0 && grown >= 3,
		"%d octets and %d messages left, room for %d, full %d times, grown %d times", s.usedOctets, len(s.msgs),
		cap(s.msgs), full, grown)
	for range 3 { // what is empty, and was at the last trim, is given back; what comes then finds its place
		s.trimIdle()
		s.trimIdle()
		check.That(t, s.heldOctets() == 0, "%d octets are kept for nothing", s.heldOctets())
		_, token, ok := placeMessage(&s, patternOf(7, 8), SendInfo{PPID: 7})
		s.trimIdle()
		s.trimIdle()
		check.That(t, ok && s.heldOctets() >= firstRingOctets, "%d octets are kept for a message", s.heldOctets())
		holds(message{token, 7})
		s.freeMessage(token)
	}
	for used, roomy := range map[int]bool{75: true, 76: false} {
		b := sendBuf{maxOctets: 100, usedOctets: used}
		check.That(t, b.hasQuarterFree() == roomy, "%d octets of 100 leave room for several messages: %v", used, !roomy)
	}
	// a ring that had grown, is full, and four times what it may be
	for is, want := range map[[2]int]int{{40_000, 10_000}: 10_000, {39_999, 10_000}: 0, {40_000, 9_999}: 0} {
		b := sendBuf{maxOctets: 10_000, ring: make([]byte, is[0]), usedOctets: is[1]}
		check.Equal(t, "octets of a shorter ring", b.ringSizeFor(1), want)
	}
	small := sendBuf{maxOctets: 100}
	check.Equal(t, "octets of a ring for what never fits", small.ringSizeFor(101), 0)
	const few = 8
	// that are never empty move what is there now and then
	queue, in, moved := sendBuf{maxOctets: 100_000}, inbox{}, [2]int{}
	for i := range 1000 {
		_, token, _ := placeMessage(&queue, []byte("x"), SendInfo{})
		in.push(new(assoc.Received))
		if i >= few {
			queue.freeMessage(token - few)
			in.popFirst()
		}
		for k, head := range [2]int{queue.head, in.head} {
			if head == 1 {
				moved[k]++
			}
		}
	}
	check.That(t, max(moved[0], moved[1]) <= 1000/few+1 && max(cap(queue.msgs), cap(in.queue)) <= 4*few &&
		queue.nextToken() == 1000, "%d messages moved %d times, room for %d and %d", few, moved, cap(queue.msgs),
		cap(in.queue))
	exact := sendBuf{maxOctets: 100_000}
	_, _, ok := placeMessage(&exact, make([]byte, firstRingOctets), SendInfo{})
	must.That(t, ok && len(exact.ring) == firstRingOctets && unsafe.Sizeof(firstRing{}) <= 1<<10-8,
		"a ring of %d octets for %d: %v", len(exact.ring), firstRingOctets, ok)
}
