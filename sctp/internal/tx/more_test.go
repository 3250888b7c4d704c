package tx

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/internal/script"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/wire"
)

// stock is a Source of messages most of which fill a packet. What they are depends on how many there were, not on
// when they are asked for.
type stock struct {
	*lab
	seed  uint64
	given uint64
	left  int
}

func (k *stock) Idle() bool { return k.left == 0 }

func (k *stock) Next(_ rawio.Time, room int, m *Message) bool {
	if k.left == 0 {
		return false
	}
	k.left--
	k.given++
	r := rand.New(rand.NewPCG(k.seed, k.given))
	size := room
	switch r.IntN(20) {
	case 0:
		size = 1 + r.IntN(room)
	case 1:
		size = room + 1 + r.IntN(20)
	}
	*m = Message{Stream: wire.StreamID(r.IntN(4)), PPID: r.Uint32(), Unordered: r.IntN(3) > 0, SackNow: r.IntN(10) == 0, Token: k.given}
	b := bytes.Repeat([]byte{byte(k.given)}, size)
	m.HeadLen = uint8(copy(m.Head[:r.IntN(min(size, HeadCap+1))], b))
	b = b[m.HeadLen:]
	cut := r.IntN(len(b) + 1)
	m.Body = [2][]byte{b[:cut], b[cut:]}
	return true
}

// step does one of the things that may happen to a Sender; the same to each of two for the same r.
func (k *stock) step(r *rand.Rand) {
	k.now += rawio.Time(r.IntN(5)) * ms
	s := k.s
	switch r.IntN(12) {
	case 0:
		k.left = r.IntN(300)
	case 1:
		size := []int{1 + r.IntN(3000), full, full + 16, r.IntN(30)*full + r.IntN(2)*r.IntN(full) + 1}[r.IntN(4)]
		m := Message{Body: [2][]byte{make([]byte, size)}, Stream: wire.StreamID(r.IntN(2)), SackNow: r.IntN(4) == 0, Unordered: r.IntN(4) == 0, NoBundle: r.IntN(8) == 0}
		for i := range m.Body[0] {
			m.Body[0][i] = byte(i >> 3)
		}
		if n := size / 3; r.IntN(2) == 0 {
			m.Body[0], m.Body[1] = m.Body[0][:n], m.Body[0][n:]
		}
		if r.IntN(2) == 0 {
			m.Path = uint8(r.IntN(len(s.Paths()) + 1))
		}
		must.OK(k.t, s.Enqueue(&m))
	case 2:
		s.SetSackNow(r.IntN(8) == 0)
	case 3:
		k.now += second
		s.HandleTimeout(k.now)
	case 4:
		p := s.Paths()[r.IntN(len(s.Paths()))]
		p.Least = r.IntN(2) * 600
	case 5:
		if p := s.Paths()[len(s.Paths())-1]; len(s.Paths()) > 1 {
			p.State = Active + PathState(r.IntN(2))
		}
	case 6:
		s.SetECN(r.IntN(2) == 0)
	case 7: // the window closes for a while
		k.sack(r, uint32(r.IntN(5000)))
	default:
		k.sack(r, uint32(1<<20))
	}
}

// sack acknowledges some of what is outstanding, at times with gaps.
func (k *stock) sack(r *rand.Rand, window uint32) {
	out := k.s.Outstanding()
	n := r.IntN(out + 1)
	var gaps []wire.GapBlock
	if left := out - n; left > 3 && r.IntN(4) == 0 {
		start := 2 + r.IntN(left-2)
		gaps = append(gaps, wire.GapBlock{Start: uint16(start), End: uint16(start + r.IntN(left-start+1))})
	}
	must.Do(k.s.HandleSack(k.now, makeSack(k.s.CumTSN().Add(uint32(n)), window, gaps...)))(k.t)
}

// slow is a pacer that lets a few packets go at once.
type slow struct{ cc.Controller }

func (slow) PacingRate(time.Duration) int64 { return 5_000_000 }

// Packets that are made many at a time are those that are made one by one.
func TestFillMoreMakesWhatFillMakes(t *testing.T) {
	made := 0
	told := script.Told(t, "testdata/more.txt", 300, func(n int, told *strings.Builder) {
		seed := uint64(n)
		paths, burst := 1+int(seed%2), []int{0, 4, 40}[seed%3]
		ends := [2]*stock{}
		for i := range ends {
			l := newLab(t, paths)
			l.single = i == 0
			l.s.cfg.MaxBurst = burst
			if seed%7 == 0 {
				l.path(0).cc = fixed(20 * counted)
			}
			if seed%5 == 0 {
				for _, p := range l.s.Paths() {
					p.pacer = slow{p.cc}
				}
			}
			ends[i] = &stock{lab: l, seed: seed}
			l.s.SetUpper(ends[i], l)
		}
		ends[1].told = told
		rands := [2]*rand.Rand{rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 1))}
		for step := range 200 {
			var wrote [2][]string
			for i, k := range ends {
				k.step(rands[i])
				for _, p := range k.transmit() {
					wrote[i] = append(wrote[i], fmt.Sprintf("%v %v %v %x", p.Remote, p.ECN, p.Fragment, p.Vec))
				}
				err := k.s.Audit()
				must.That(t, err == nil, "seed %d, step %d: %v", seed, step, err)
			}
			one, more := ends[0].s, ends[1].s
			a, b := fmt.Sprint(wrote[0]), fmt.Sprint(wrote[1])
			must.That(t, a == b, "seed %d, step %d: %d packets one by one, %d otherwise:\n%s\n%s", seed, step, len(wrote[0]), len(wrote[1]), a, b)
			must.That(t, one.Stats() == more.Stats() && one.ledger.rwnd == more.ledger.rwnd && one.burst == more.burst && one.NextTimeout() == more.NextTimeout(), "seed %d, step %d: %+v and %+v", seed, step, one.Stats(), more.Stats())
			made += len(wrote[1])
			if step%8 == 0 {
				ends[1].tell()
			}
		}
	})
	check.That(t, made >= 150*told, "only %d packets were made", made)
}

// What is marked goes first, also where the packet before was one of several that are alike.
func TestFillMoreLetsMarkedChunksGoFirst(t *testing.T) {
	// req 9260-6.1-10
	l := newLab(t, 2)
	for _, to := range []uint8{2, 1, 1} {
		must.OK(t, l.s.Enqueue(&Message{Body: [2][]byte{make([]byte, full)}, Path: to}))
	}
	l.path(0).est.rto = time.Second / 2
	l.expect("one chunk to the second path is timed", "1>1 | 2 | 3")
	l.timeout()
	l.path(0).State = PotentiallyFailed
	l.s.SetUpper(&supply{n: 5, size: full}, l)
	l.expect("both that were lost before anything new", "2>1 | 3>1 | 4>1 | 5>1")
}

// A packet takes all that is marked for its path, also what comes behind chunks for another.
func TestMarkedChunksOfTwoPathsInTurns(t *testing.T) {
	l := newLab(t, 2)
	l.path(0).cc, l.path(1).cc = fixed(1<<20), fixed(1<<20)
	for _, to := range []uint8{2, 1, 2, 1, 1, 1} {
		must.OK(t, l.s.Enqueue(&Message{Body: [2][]byte{make([]byte, 100)}, Path: to, NoBundle: true}))
	}
	l.transmit()
	for i := range wire.TSN(3) {
		l.sack(0, gap{4, 4 + i})
	}
	l.expect("two and one", "1 3>1 | 2")
}

// hears notes what a congestion controller is told.
type hears struct {
	*window
	said string
}

func (h *hears) OnSent(_ rawio.Time, octets, flight int) {
	h.said += fmt.Sprintf("sent %d of %d ", octets, flight)
}
func (h *hears) OnIdle(now, since rawio.Time, rtos int) {
	h.said += fmt.Sprintf("idle for %v, %d RTO ", now.Sub(since), rtos)
}
func (h *hears) OnAck(_ rawio.Time, a cc.Ack) {
	h.said += fmt.Sprintf("acked %d and %d of %d after %v, in recovery: %v ", a.Octets, a.Dups, a.Flight, a.Trip, a.Recovery)
}

func TestControllerHearsWhatIsSentAndAcknowledged(t *testing.T) {
	l := newLab(t, 1)
	h := &hears{window: fixed(1 << 20)}
	l.path(0).cc = h
	u := &supply{n: 4, size: full}
	l.s.SetUpper(u, l)
	l.transmit()
	l.now += 3 * ms
	l.s.HandleECNE(l.now, 1)
	l.sack(1)
	l.sack(1) // says nothing new
	l.after(5, 3)
	u.n, u.size = 1, 100
	l.transmit()
	l.timeout()
	l.b = pack.NewBatch(1)
	l.path(0).SetMTU(1200)
	l.transmit()
	l.b.Reset()
	l.b.Begin(1, 2, 3, l.path(0).Local, l.path(0).Remote, labMTU)
	l.s.Fill(l.now, l.b, l.path(0)) // there is nothing to send
	l.b.End()
	l.sackFor(wire.Sack(wire.AppendSack(nil, wire.SackFields{CumTSN: 3, ARwnd: 1 << 20, Dups: []wire.TSN{4}}))) // which was sent twice
	l.sack(5)
	l.now += 5 * second
	u.n = 1
	l.transmit()
	check.Equal(t, "what the controller has heard", h.said, "sent 984 of 984 sent 2952 of 3936 acked 984 and 0 of 3936 after 3ms, in recovery: true acked 1968 and 0 of 2952 after 8ms, in recovery: false sent 116 of 1100 sent 1100 of 1100 acked 0 and 984 of 1100 after 0s, in recovery: false acked 1100 and 0 of 1100 after 0s, in recovery: false idle for 5s, 2 RTO sent 116 of 116 ")
}

// A Source that does not keep its word is asked no more, and what it gave is not sent.
func TestSourceThatBreaksItsWord(t *testing.T) {
	defer invariant.Tolerate()()
	for _, row := range []struct {
		name, what string
		give       Message
	}{
		{"no user data", "0 octets, 0 of them in its head, for stream 1 of 16", Message{Stream: 1}},
		{"a head beyond its place", "37 octets, 27 of them in its head, for stream 2 of 16", Message{Stream: 2, HeadLen: HeadCap + 1, Body: [2][]byte{make([]byte, 10)}}},
		{"a stream that is not there", "10 octets, 0 of them in its head, for stream 16 of 16", Message{Stream: 16, Body: [2][]byte{make([]byte, 10)}}},
	} {
		l := newLab(t, 1)
		l.s.SetUpper(gives(row.give), l)
		if l.s.Poll(l.now) != nil || l.s.Fault() == nil || l.s.slot.full || l.s.load(l.now, full) {
			t.Errorf("%s: %v, to be sent: %v", row.name, l.s.Fault(), l.s.slot.full)
		} else if f := l.s.Fault(); f.Where != "tx.load" || f.What != "the Source gave a message of "+row.what+"; next TSN 1" {
			t.Errorf("%s: %v", row.name, f)
		}
	}
}

// gives is a Source of one and the same message.
type gives Message

func (g gives) Next(_ rawio.Time, _ int, m *Message) bool { *m = Message(g); return true }
func (gives) Idle() bool                                  { return false }
func (gives) Acked(rawio.Time, wire.StreamID, uint64)     {}
