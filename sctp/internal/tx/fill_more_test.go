package tx

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/wire"
)

// randomSource is a Source of messages most of which fill a packet. What they are depends on how
// many there were, not on when they are asked for.
type randomSource struct {
	*senderLab
	seed  uint64
	given uint64
	left  int
}

func (k *randomSource) Idle() bool { return k.left == 0 }

func (k *randomSource) Next(_ rawio.Time, room int, m *Message) bool {
	if k.left == 0 {
		return false
	}
	k.left--
	k.given++
	if k.isAlike() {
		*m = k.alikeMessage(room)
		return true
	}
	r := rand.New(rand.NewPCG(k.seed, k.given))
	size := room
	switch r.IntN(20) {
	case 0:
		size = 1 + r.IntN(room)
	case 1:
		size = room + 1 + r.IntN(20)
	}
	*m = Message{Stream: wire.StreamID(r.IntN(4)), PPID: r.Uint32(), Unordered: r.IntN(3) > 0,
		SackNow: r.IntN(10) == 0, Token: k.given}
	b := bytes.Repeat([]byte{byte(k.given)}, size)
	m.HeadLen = uint8(copy(m.Head[:r.IntN(min(size, HeadCap+1))], b))
	b = b[m.HeadLen:]
	cut := r.IntN(len(b) + 1)
	m.Body = [2][]byte{b[:cut], b[cut:]}
	return true
}

// Of so many messages all are alike but for their octets, or each is another.
const alikeCount = 20

func (k *randomSource) isAlike() bool {
	return rand.New(rand.NewPCG(k.seed, ^(k.given/alikeCount))).IntN(3) == 0
}

// sameToken is what all of these have, and some that are queued.
const sameToken = 7

// Acked tells what the Source gave from what was queued, which lab.Acked has.
func (k *randomSource) Acked(now rawio.Time, stream wire.StreamID, token uint64) {
	k.acked = append(k.acked, uint64(stream)<<32|1<<31|token)
}

// alikeMessage is one of those that are alike.
func (k *randomSource) alikeMessage(room int) Message {
	r := rand.New(rand.NewPCG(k.seed, ^(k.given / alikeCount)))
	m := Message{Stream: wire.StreamID(r.IntN(4)), PPID: r.Uint32(), Unordered: true, Token: sameToken,
		HeadLen: uint8(r.IntN(min(room, HeadCap) + 1))}
	b := bytes.Repeat([]byte{byte(k.given)}, room)
	copy(m.Head[:m.HeadLen], b)
	m.Body[0] = b[m.HeadLen:]
	return m
}

// runSource is a stock that says what it has in a row.
type runSource struct {
	*randomSource
	run  Run
	runs int // that it has given
}

func (k *runSource) NextRun(now rawio.Time, size, n int) *Run {
	k.given++
	n = min(n, k.left, alikeCount-int(k.given%alikeCount))
	is := k.isAlike()
	k.given--
	if !is || n < 2 {
		return nil
	}
	k.run = Run{N: n}
	for i := range n {
		var m Message
		k.Next(now, size, &m)
		k.run.Stream, k.run.PPID, k.run.Token, k.run.HeadLen = m.Stream, m.PPID, m.Token, m.HeadLen
		k.run.Heads[i] = m.Head
		k.run.Body = append(k.run.Body, m.Body[0]...)
	}
	if k.given%3 == 0 {
		k.run.Beyond = k.run.Body[:len(k.run.Body)/2]
	}
	k.runs++
	return &k.run
}

func (k *runSource) AckedRun(now rawio.Time, stream wire.StreamID, token uint64, n int) {
	for range n {
		k.Acked(now, stream, token)
	}
}

// step does one of the things that may happen to a Sender; the same to each of two for the same r.
func (k *randomSource) step(r *rand.Rand) {
	k.now += rawio.Time(r.IntN(5)) * ms
	s := k.s
	switch r.IntN(12) {
	case 0:
		k.left = r.IntN(300)
	case 1:
		size := []int{1 + r.IntN(3000), full, full + 16, r.IntN(30)*full + r.IntN(2)*r.IntN(full) + 1}[r.IntN(4)]
		m := Message{Body: [2][]byte{make([]byte, size)}, Stream: wire.StreamID(r.IntN(2)), SackNow: r.IntN(4) == 0,
			Unordered: r.IntN(4) == 0, NoBundle: r.IntN(8) == 0, Token: sameToken}
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
		p.BasePMTU = r.IntN(2) * 600
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
func (k *randomSource) sack(r *rand.Rand, window uint32) {
	out := k.s.Outstanding()
	n := r.IntN(out + 1)
	var gaps []wire.GapBlock
	if left := out - n; left > 3 && r.IntN(4) == 0 {
		start := 2 + r.IntN(left-2)
		gaps = append(gaps, wire.GapBlock{Start: uint16(start), End: uint16(start + r.IntN(left-start+1))})
	}
	must.Do(k.s.HandleSack(k.now, makeSack(k.s.CumTSN().Add(uint32(n)), window, gaps...)))(k.t)
}

// slowPacer is a pacer that lets a few packets go at once.
type slowPacer struct{ cc.Controller }

func (slowPacer) PacingRate(time.Duration) int64 { return 5_000_000 }

// Packets that are made many at a time are those that are made one by one, also where the Source
// says what it has in a row.
func TestFillMoreMakesWhatFillMakes(t *testing.T) {
	made, runs := 0, 0
	told := fuzzinput.CheckRecording(t, "testdata/more.txt", 300, func(n int, told *strings.Builder) {
		seed := uint64(n)
		paths, burst := 1+int(seed%2), []int{0, 4, 40}[seed%3]
		ends, src := [3]*randomSource{}, &runSource{}
		for i := range ends {
			l := newLab(t, paths)
			l.noFillMore = i == 0
			l.s.cfg.MaxBurst = burst
			if seed%7 == 0 {
				l.pathAt(0).cc = newFixedWindow(20 * counted)
			}
			if seed%5 == 0 {
				for _, p := range l.s.Paths() {
					p.pacer = slowPacer{p.cc}
				}
			}
			ends[i] = &randomSource{senderLab: l, seed: seed}
			l.s.SetUpper(ends[i], l)
		}
		src.randomSource = ends[2]
		ends[2].s.SetUpper(src, ends[2].senderLab)
		ends[1].traceOut = told
		rands := [3]*rand.Rand{rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 1)),
			rand.New(rand.NewPCG(seed, 1))}
		for step := range 200 {
			var wrote [3][]string
			for i, k := range ends {
				k.step(rands[i])
				for _, p := range k.transmit() {
					wrote[i] = append(wrote[i], fmt.Sprintf("%v %v %v %x", p.Remote, p.ECN, p.Fragment, p.Vec))
				}
				err := k.s.Audit()
				must.That(t, err == nil, "seed %d, step %d: %v", seed, step, err)
			}
			one := ends[0].s
			for i := 1; i < len(ends); i++ {
				more := ends[i].s
				a, b := fmt.Sprint(wrote[0]), fmt.Sprint(wrote[i])
				must.That(t, a == b, "seed %d, step %d: %d packets one by one, %d otherwise:\n%s\n%s", seed, step,
					len(wrote[0]), len(wrote[i]), a, b)
				must.That(t, one.Stats() == more.Stats() && one.outstanding.rwnd == more.outstanding.rwnd &&
					one.burst.left == more.burst.left && one.NextTimeout() == more.NextTimeout(),
					"seed %d, step %d: %+v and %+v", seed, step, one.Stats(), more.Stats())
				must.That(t, slices.Equal(ends[0].acked, ends[i].acked),
					"seed %d, step %d: acknowledged are %d and %d", seed, step, ends[0].acked, ends[i].acked)
				if step%8 > 0 {
					continue
				}
				must.That(t, streamChains(one) == streamChains(more),
					"seed %d, step %d: the streams are otherwise: %s, want %s", seed, step, streamChains(more),
					streamChains(one))
				must.That(t, one.DumpState() == more.DumpState(),
					"seed %d, step %d: otherwise it would be\n%s\nand is\n%s", seed, step, one.DumpState(),
					more.DumpState())
			}
			made += len(wrote[1])
			if step%8 == 0 {
				ends[1].traceEvent()
			}
		}
		runs += src.runs
		must.That(t, src.run.Body == nil && src.run.Beyond == nil, "seed %d: the memory of a run is kept", seed)
	})
	check.That(t, runs >= 5*told, "only %d runs were sent", runs)
	check.That(t, made >= 150*told, "only %d packets were made", made)
}

// streamChains is what is outstanding of each stream, from its last chunk on.
func streamChains(s *Sender) (told string) {
	for id := range wire.StreamID(4) {
		for t, ok := s.lastInStream(id); ok; t, ok = s.outstanding.prevInStream(t) {
			told += fmt.Sprint(" ", id, ":", t)
		}
	}
	return told
}

// What is marked goes first, also where the packet before was one of several that are alike.
func TestFillMoreLetsMarkedChunksGoFirst(t *testing.T) {
	// req 9260-6.1-10
	l := newLab(t, 2)
	for _, to := range []uint8{2, 1, 1} {
		must.OK(t, l.s.Enqueue(&Message{Body: [2][]byte{make([]byte, full)}, Path: to}))
	}
	l.pathAt(0).rttEst.rto = time.Second / 2
	l.expectTSNs("one chunk to the second path is timed", "1>1 | 2 | 3")
	l.runNextTimeout()
	l.pathAt(0).State = PotentiallyFailed
	l.s.SetUpper(&countedSource{n: 5, size: full}, l)
	l.expectTSNs("both that were lost before anything new", "2>1 | 3>1 | 4>1 | 5>1")
}

// A packet takes all that is marked for its path, also what comes behind chunks for another.
func TestMarkedChunksOfTwoPathsInTurns(t *testing.T) {
	l := newLab(t, 2)
	l.pathAt(0).cc, l.pathAt(1).cc = newFixedWindow(1<<20), newFixedWindow(1<<20)
	for _, to := range []uint8{2, 1, 2, 1, 1, 1} {
		must.OK(t, l.s.Enqueue(&Message{Body: [2][]byte{make([]byte, 100)}, Path: to, NoBundle: true}))
	}
	l.transmit()
	for i := range wire.TSN(3) {
		l.sack(0, gap{4, 4 + i})
	}
	l.expectTSNs("two and one", "1 3>1 | 2")
}

// controllerLog notes what a congestion controller is told.
type controllerLog struct {
	*fixedWindow
	calls string
}

func (h *controllerLog) OnSent(_ rawio.Time, octets, flight int) {
	h.calls += fmt.Sprintf("sent %d of %d ", octets, flight)
}
func (h *controllerLog) OnIdle(now, since rawio.Time, rtos int) {
	h.calls += fmt.Sprintf("idle for %v, %d RTO ", now.Sub(since), rtos)
}
func (h *controllerLog) OnAck(_ rawio.Time, a cc.Ack) {
	h.calls += fmt.Sprintf("acked %d and %d of %d after %v, in recovery: %v ", a.Octets, a.Dups, a.Flight, a.Trip,
		a.Recovery)
}

func TestControllerHearsWhatIsSentAndAcknowledged(t *testing.T) {
	l := newLab(t, 1)
	h := &controllerLog{fixedWindow: newFixedWindow(1 << 20)}
	l.pathAt(0).cc = h
	u := &countedSource{n: 4, size: full}
	l.s.SetUpper(u, l)
	l.transmit()
	l.now += 3 * ms
	l.s.HandleECNE(l.now, 1)
	l.sack(1)
	l.sack(1) // says nothing new
	l.sackAfter(5, 3)
	u.n, u.size = 1, 100
	l.transmit()
	l.runNextTimeout()
	l.b = pack.NewBatch(1)
	l.pathAt(0).SetMTU(1200)
	l.transmit()
	l.b.Reset()
	l.b.Begin(1, 2, 3, l.pathAt(0).Local, l.pathAt(0).Remote, labMTU)
	l.s.Fill(l.now, l.b, l.pathAt(0)) // there is nothing to send
	l.b.End()
	// which was sent twice
	l.handleSack(wire.Sack(wire.AppendSack(nil, wire.SackFields{CumTSN: 3, ARwnd: 1 << 20, Dups: []wire.TSN{4}})))
	l.sack(5)
	l.now += 5 * second
	u.n = 1
	l.transmit()
	check.Equal(t, "what the controller has heard", h.calls,
		"sent 984 of 984 sent 2952 of 3936 acked 984 and 0 of 3936 after 3ms, in recovery: true acked 1968 and "+
			"0 of 2952 after 8ms, in recovery: false sent 116 of 1100 sent 1100 of 1100 acked 0 and 984 of 1100 "+
			"after 0s, in recovery: false acked 1100 and 0 of 1100 after 0s, in recovery: false idle for 5s, 2 RTO "+
			"sent 116 of 116 ")
}

// A Source that does not keep its word is asked no more, and what it gave is not sent.
func TestSourceThatBreaksItsWord(t *testing.T) {
	defer invariant.TolerateInTest()()
	for _, row := range []struct {
		name, what string
		give       Message
	}{
		{"no user data", "0 octets, 0 of them in its head, for stream 1 of 16", Message{Stream: 1}},
		{"a head beyond its place", "37 octets, 27 of them in its head, for stream 2 of 16", Message{Stream: 2, HeadLen: HeadCap + 1, Body: [2][]byte{make([]byte, 10)}}},
		{"a stream that is not there", "10 octets, 0 of them in its head, for stream 16 of 16", Message{Stream: 16, Body: [2][]byte{make([]byte, 10)}}},
	} {
		l := newLab(t, 1)
		l.s.SetUpper(oneMessageSource(row.give), l)
		if l.s.Poll(l.now) != nil || l.s.Fault() == nil || l.s.queue.current.loaded || l.s.loadMessage(l.now, full) {
			t.Errorf("%s: %v, to be sent: %v", row.name, l.s.Fault(), l.s.queue.current.loaded)
		} else if f := l.s.Fault(); f.Where != "tx.loadMessage" || f.What != "the Source gave a message of "+row.what+
			"; next TSN 1" {
			t.Errorf("%s: %v", row.name, f)
		}
	}
}

// Nor is what a run has that is none.
func TestRunThatIsNone(t *testing.T) {
	defer invariant.TolerateInTest()()
	body := func(n int) []byte { return make([]byte, n) }
	for _, row := range []struct {
		what string
		give Run
	}{
		{"0 messages of 8, with heads of 0 octets and 0 more of 968 each, for stream 1 of 16", Run{Stream: 1}},
		{"9 messages of 8, with heads of 0 octets and 8712 more of 968 each, for stream 1 of 16", Run{Stream: 1, N: 9, Body: body(9 * full)}},
		{"2 messages of 8, with heads of 27 octets and 1882 more of 968 each, for stream 1 of 16", Run{Stream: 1, N: 2, HeadLen: HeadCap + 1, Body: body(2 * (full - HeadCap - 1))}},
		{"2 messages of 8, with heads of 8 octets and 1936 more of 968 each, for stream 1 of 16", Run{Stream: 1, N: 2, HeadLen: 8, Body: body(2 * full)}},
		{"2 messages of 8, with heads of 0 octets and 1935 more of 968 each, for stream 1 of 16", Run{Stream: 1, N: 2, Body: body(2*full - 1)}},
		{"2 messages of 8, with heads of 0 octets and 1936 more of 968 each, for stream 16 of 16", Run{Stream: 16, N: 2, Body: body(2 * full)}},
	} {
		l := newLab(t, 1)
		l.pathAt(0).cc = newFixedWindow(1 << 20)
		g := &oneRunSource{run: row.give}
		l.s.SetUpper(g, l)
		n := len(l.transmit())
		if f := l.s.Fault(); f == nil || f.Where != "tx.sendSourceRun" || f.What != "the Source gave "+row.what+
			"; next TSN 2" || n != 1 {
			t.Errorf("%d packets: %v, want %s", n, f, row.what)
		}
		must.That(t, l.s.Poll(l.now) == nil && g.runs == 1, "%d runs were asked for", g.runs)
	}
}

// Where there are fewer packets to be made than make a run, where each would have to be padded, or
// something else is to go first, there is none.
func TestWhereNoRunIsAskedFor(t *testing.T) {
	for _, row := range []struct {
		name  string
		story func(l *senderLab)
		runs  int
	}{
		{"a window that takes them", func(*senderLab) {}, 1},
		{"one of three packets", func(l *senderLab) { l.pathAt(0).cc = newFixedWindow(3 * counted) }, 0},
		{"room for two in the batch", func(l *senderLab) { l.b = pack.NewBatch(2) }, 0},
		{"messages that are padded", func(l *senderLab) { l.s.Reconfigure(1<<20, 0, false, false, full-3) }, 0},
		{"others that were queued before", func(l *senderLab) { l.enqueueMany(30, full) }, 0},
	} {
		l := newLab(t, 1)
		l.pathAt(0).cc = newFixedWindow(30 * counted)
		g := &oneRunSource{}
		row.story(l)
		l.s.SetUpper(g, l)
		l.transmit()
		check.That(t, min(g.runs, 1) == row.runs && l.s.Fault() == nil, "%s: %d runs were asked for; %v", row.name,
			g.runs, l.s.Fault())
	}
}

// oneRunSource is a Source of messages of any length that are no more than a packet takes, and of
// one run.
type oneRunSource struct {
	run  Run
	runs int
}

func (g *oneRunSource) Next(_ rawio.Time, room int, m *Message) bool {
	m.Body[0] = make([]byte, room)
	return true
}
func (g *oneRunSource) Idle() bool                              { return false }
func (g *oneRunSource) Acked(rawio.Time, wire.StreamID, uint64) {}
func (g *oneRunSource) NextRun(rawio.Time, int, int) *Run {
	if g.runs++; g.run.Stream == 0 {
		return nil
	}
	return &g.run
}
func (g *oneRunSource) AckedRun(rawio.Time, wire.StreamID, uint64, int) {}

// oneMessageSource is a Source of one and the same message.
type oneMessageSource Message

func (g oneMessageSource) Next(_ rawio.Time, _ int, m *Message) bool { *m = Message(g); return true }
func (oneMessageSource) Idle() bool                                  { return false }
func (oneMessageSource) Acked(rawio.Time, wire.StreamID, uint64)     {}

// Messages that are acknowledged together are told to whom they were of, each with its stream, in
// the order of their TSNs.
func TestAcknowledgedTogetherIsToldInOrder(t *testing.T) {
	const want = "queue 2, queue 2, source 2, source 2, source 2, source 1, source 1, source 1, queue 2"
	for _, inRuns := range []bool{false, true} {
		var told []string
		l := newLab(t, 1)
		l.pathAt(0).cc = newFixedWindow(1 << 20)
		src, sink := &ackedLog{"source", &told, []wire.StreamID{2, 2, 2, 1, 1, 1}}, &ackedLog{"queue", &told, nil}
		l.s.SetUpper(src, sink)
		if inRuns {
			l.s.SetUpper(ackedRunLog{src}, sink)
		}
		for _, n := range []int{2, 1} {
			for range n {
				must.OK(t, l.s.Enqueue(&Message{Body: [2][]byte{make([]byte, full)}, Stream: 2, Token: sameToken}))
			}
			l.transmit()
		}
		l.sack(l.s.NextTSN() - 1)
		check.Equal(t, fmt.Sprint("what is told, in runs: ", inRuns), strings.Join(told, ", "), want)
	}
}

// ackedLog is a Source of full messages with the same token, on these streams, and a Sink.
type ackedLog struct {
	name string
	told *[]string
	left []wire.StreamID
}

func (u *ackedLog) Idle() bool { return len(u.left) == 0 }
func (u *ackedLog) Next(_ rawio.Time, room int, m *Message) bool {
	if u.Idle() {
		return false
	}
	*m = Message{Stream: u.left[0], Unordered: true, Token: sameToken, Body: [2][]byte{make([]byte, room)}}
	u.left = u.left[1:]
	return true
}
func (u *ackedLog) Acked(_ rawio.Time, stream wire.StreamID, token uint64) {
	*u.told = append(*u.told, fmt.Sprint(u.name, " ", stream))
}

// ackedRunLog is one that hears of them together.
type ackedRunLog struct{ *ackedLog }

func (ackedRunLog) NextRun(rawio.Time, int, int) *Run { return nil }
func (u ackedRunLog) AckedRun(now rawio.Time, stream wire.StreamID, token uint64, n int) {
	for range n {
		u.Acked(now, stream, token)
	}
}
