package assoc_test

import (
	"bytes"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestPlacerVerdicts(t *testing.T) {
	l := sctptest.NewLab(t)
	p := &sctptest.Placer{}
	l.Host.Placer = p
	l.Listen(&assoc.Config{HeartbeatInterval: -1})
	l.Handshake()
	window := l.A.Stats().RecvWindow

	l.Send(l.Tag, l.Data("place me"))
	s := l.A.Stats()
	// req 5041-A-1
	check.That(t, s.RecvWindow == window && s.Placed == 1, "a placed chunk costs window: %d of %d", s.RecvWindow,
		window)
	first := l.Data("place me twice")
	l.Send(l.Tag, first)
	l.Send(l.Tag, first)
	check.That(t, len(p.Seen) == 2, "a duplicate was offered for placement: %q", p.Seen)
	tsn := l.TSN
	out := l.Send(l.Tag, l.Data("drop this one"))
	sack, _ := wire.AsSack(sctptest.ChunkOf(out[len(out)-1], wire.ChunkSack))
	// req 9260-6.2-5
	check.That(t, sack.CumTSN() == tsn-1 && sack.NumGaps() == 0, "a refused chunk was acknowledged: cum %d",
		sack.CumTSN())
	l.TSN = tsn
	l.Send(l.Tag, l.Data("queue"))
	got := sctptest.Drain(l.A)
	check.That(t, len(got) == 1 && string(got[0]) == "queue", "delivered %q", got)
	out = l.Send(l.Tag, l.Data("abort"), l.Data("place too late"))
	l.Expect(out, "ABORT")
	l.InState(assoc.Closed)
	check.Equal(t, "a chunk behind the refused one was placed", p.Seen[len(p.Seen)-1], "abort")
}

func TestSackComesWithTheSecondPacketOrIn200ms(t *testing.T) {
	l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
	l.Expect(l.Send(l.Tag, l.Data("first")), "SACK") // req 9260-5.1-11
	l.Expect(l.Send(l.Tag, l.Data("a")), "")
	l.Expect(l.Send(l.Tag, l.Data("b"), l.Data("b2")), "SACK") // req 9260-6.2-7: second packet
	l.Expect(l.Send(l.Tag, l.Data("c"), l.Data("c2")), "")     // one packet, however many chunks
	l.Expect(l.Wait(500*time.Millisecond), "SACK")             // req 9260-6.2-1
	l.TSN++
	l.Expect(l.Send(l.Tag, l.Data("gap")), "SACK") // req 9260-6.7-1
}

func TestSackRidesOnData(t *testing.T) {
	l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
	l.Send(l.Tag, l.Data("first"))
	l.Send(l.Tag, l.Data("second"))
	must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{[]byte("answer")}}))
	l.Expect(l.Flush(), "SACK DATA") // req 9260-6.1-15, 9260-6-9
	l.Expect(l.Wait(500*time.Millisecond), "")
}

func TestDataBundledWithCookieAckIsTaken(t *testing.T) {
	l := sctptest.Echoed(t, nil)
	out := l.Send(l.Tag, wire.AppendCookieAck(nil), l.Data("bundled")) // req 9260-3.3.12-2
	l.Expect(out, "SACK")
	check.Equal(t, "messages received", len(sctptest.Drain(l.A)), 1)
}

func TestInvalidStreamIsAcknowledgedAndReported(t *testing.T) {
	for _, id := range []wire.StreamID{3, 0x1234} { // the first one that there is not, and one of two octets
		l := sctptest.Passive(t, &assoc.Config{InStreams: 3})
		out := l.Send(l.Tag, sctptest.DataChunk(l.TSN, id, 0, "nowhere"))
		l.Expect(out, "ERROR SACK") // req 9260-6.5-2, 9260-6.5-3
		code, cause := sctptest.CauseOf(out[0])
		// req 9260-3.3.10.1-1
		check.That(t, code == wire.CauseInvalidStream &&
			bytes.Equal(cause, []byte{0, 1, 0, 8, byte(id >> 8), byte(id), 0, 0}), "cause %x", []byte(cause))
		k, _ := wire.AsSack(sctptest.ChunkOf(out[0], wire.ChunkSack))
		check.That(t, k.CumTSN() == l.TSN, "cum %d", k.CumTSN())
		got := sctptest.Drain(l.A)
		check.That(t, got == nil, "delivered %q", got)
	}
}

func TestOneReplyPacketForOnePacket(t *testing.T) {
	l := sctptest.Passive(t, nil)
	var chunks [][]byte
	for range 40 {
		chunks = append(chunks, wire.AppendHeartbeat(nil, bytes.Repeat([]byte("x"), 100)))
	}
	l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag,
		wire.AppendHeartbeat(nil, make([]byte, 1000))))
	out := l.Send(l.Tag, chunks...) // req 9260-12.4-2
	must.That(t, len(out) == 2 && len(out[1]) <= sctptest.MTU && len(out[1]) > sctptest.MTU-104,
		"%d packets in answer to two", len(out))
	check.That(t, l.A.Stats().RepliesDropped != 0, "what did not fit was not counted")
}

func TestReplyQueueIsBounded(t *testing.T) {
	l := sctptest.Passive(t, nil)
	pkt := sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag,
		wire.AppendHeartbeat(nil, bytes.Repeat([]byte("x"), 1000)))
	for range 10_000 {
		l.Deliver(l.Peer, append([]byte(nil), pkt...))
	}
	n := len(l.Flush())
	check.That(t, n <= 200, "%d replies were held", n)
	init := sctptest.Packet(sctptest.PortA, sctptest.PortB, 0, sctptest.InitChunk(5, 5))
	for range 10_000 {
		l.Deliver(l.Peer, append([]byte(nil), init...))
	}
	n = len(l.Flush())
	check.That(t, n <= 200, "%d INIT ACKs were held", n)
}

func TestClosedWindowOpensAgain(t *testing.T) {
	w, a, b := sctptest.Pair(t, &assoc.Config{DisableFragments: true}, &assoc.Config{RecvBuffer: 4000})
	payload := bytes.Repeat([]byte("z"), 1000)
	for range 20 {
		w.Send(a, 0, payload)
	}
	w.Run(5 * time.Second)
	must.That(t, b.Stats().RecvWindow < 1000, "window still %d", b.Stats().RecvWindow)
	must.That(t, a.Stats().PeerWindow < 1000, "the sender believes in %d octets", a.Stats().PeerWindow)
	sent := a.Stats().DataOut
	w.Run(10 * time.Minute) // probes keep the association alive, req 9260-6.1-2, 9260-6.1-4
	check.That(t, a.Stats().DataOut-sent > 5, "%d probes of a closed window in ten minutes", a.Stats().DataOut-sent)
	must.Equal(t, "state", a.State(), assoc.Established)
	n := 0
	for range 100 {
		n += len(sctptest.Drain(b)) // req 9260-6.2-9
		w.Run(200 * time.Millisecond)
	}
	check.Equal(t, "messages that arrived", n, 20)
}

// A message that does not fit the window is cut to it, unless no message is to be fragmented.
func TestMessageIsCutToTheWindow(t *testing.T) {
	for _, row := range []struct {
		name     string
		from, to bool // Config.DisableFragments, and what Reconfigure makes of it
		window   int
	}{
		{"cut", false, false, 0},
		{"not to be fragmented", true, true, 1200},
		{"not any more", false, true, 1200},
		{"again", true, false, 0},
	} {
		w, a, b := sctptest.Pair(t, &assoc.Config{DisableFragments: row.from}, &assoc.Config{RecvBuffer: 4000})
		must.OK(t, a.Reconfigure(w.Now, func(c *assoc.Config) { c.DisableFragments = row.to }))
		for range 3 {
			w.Send(a, 0, make([]byte, 1400))
		}
		w.Run(500 * time.Millisecond) // less than an RTO
		check.Equal(t, row.name+": octets that the receiver has room for", b.Stats().RecvWindow, row.window)
		check.Equal(t, row.name+": messages", len(sctptest.Drain(b)), 2)
		w.Run(2 * time.Second)
		check.Equal(t, row.name+": messages when the window has opened", len(sctptest.Drain(b)), 1)
	}
}

// TestMessagesSurviveABadNetwork sends in both directions through loss, duplication and reordering.
func TestMessagesSurviveABadNetwork(t *testing.T) {
	// req 9260-6.10-1: the world measures each packet
	for seed := range int64(8) {
		rnd := rand.New(rand.NewSource(seed))
		w, a, b := sctptest.Pair(t, nil, nil)
		w.Filter = func(int, wire.Packet) (int, time.Duration) {
			delay := time.Duration(rnd.Intn(30)) * time.Millisecond
			switch n := rnd.Intn(100); {
			case n < 10:
				return 0, 0
			case n < 15:
				return 2, delay
			default:
				return 1, delay
			}
		}
		var sent, got [2][][]byte
		for i := range 60 {
			for k, x := range []*assoc.Assoc{a, b} {
				m := make([]byte, 1+rnd.Intn(4000))
				rnd.Read(m)
				m[0] = byte(i)
				sent[k] = append(sent[k], m)
				w.Send(x, wire.StreamID(0), m)
			}
			w.Run(time.Duration(rnd.Intn(50)) * time.Millisecond)
			got[0], got[1] = append(got[0], sctptest.Drain(b)...), append(got[1], sctptest.Drain(a)...)
		}
		_ = a.Shutdown(w.Now)
		w.RunUntil(w.Now.Add(time.Hour), func() bool {
			got[0], got[1] = append(got[0], sctptest.Drain(b)...), append(got[1], sctptest.Drain(a)...)
			return a.State() == assoc.Closed && b.State() == assoc.Closed
		})
		for k := range got {
			must.That(t, len(got[k]) == 60, "seed %d: %d of 60 messages, states %v %v", seed, len(got[k]), a.State(),
				b.State())
			for i := range got[k] {
				must.That(t, bytes.Equal(got[k][i], sent[k][i]), "seed %d: message %d differs or is out of order",
					seed, i)
			}
		}
	}
}

// TestMutatedPacketsDoNoHarm feeds an association with packets of a real exchange, a few octets of
// which are changed, with a right checksum.
func TestMutatedPacketsDoNoHarm(t *testing.T) {
	w, a, b := sctptest.Pair(t, nil, nil)
	w.Send(a, 1, make([]byte, 3000))
	w.Send(b, 1, make([]byte, 3000))
	w.Run(time.Minute)
	_ = a.Shutdown(w.Now)
	w.Run(time.Minute)
	corpus := w.Sent
	rnd := rand.New(rand.NewSource(1))
	for round := range 200 {
		l := sctptest.Passive(t, &assoc.Config{RecvBuffer: 1 << 16})
		for range 100 {
			src := corpus[rnd.Intn(len(corpus))].Pkt
			pkt := append([]byte(nil), src...)
			copy(pkt, sctptest.Packet(sctptest.PortA, sctptest.PortB,
				[]uint32{l.Tag, l.Tag, l.Tag, 0, l.PeerTag}[rnd.Intn(5)])[:8])
			for range rnd.Intn(6) {
				pkt[12+rnd.Intn(min(len(pkt)-12, 40))] = byte(rnd.Intn(256))
			}
			if rnd.Intn(4) == 0 {
				pkt = pkt[:12+rnd.Intn(len(pkt)-12)]
			}
			wire.PutChecksum(pkt, wire.ChecksumBytes(pkt))
			l.Deliver(l.Peer, pkt)
			out := l.Flush()
			must.That(t, len(out) <= 8, "round %d: %d packets in answer to one", round, len(out))
			if rnd.Intn(10) == 0 {
				l.Wait(time.Duration(rnd.Intn(5000)) * time.Millisecond)
			}
		}
	}
}

func TestOneSackForOnePacket(t *testing.T) {
	// req 9260-6.2-8: a gap, a duplicate, the I bit and a chunk for which there is no room are four
	// reasons for a SACK at once, and one packet.
	l := sctptest.Passive(t, &assoc.Config{RecvBuffer: 1500, HeartbeatInterval: -1})
	first := l.Data("first")
	l.Send(l.Tag, first)
	l.TSN++
	gap := l.Data("behind a gap")
	urgent := l.Data("at once")
	urgent[1] |= wire.FlagI
	big := l.Data(strings.Repeat("x", 1400))
	last := l.Data(strings.Repeat("y", 200))
	over := l.Data("over")
	l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, first, gap, urgent, big, last, over))
	l.Expect(l.Flush(), "SACK")
	check.Equal(t, "chunks without room", l.A.Stats().OutOfWindow, 1)
	l.Expect(l.Wait(2*time.Second), "")
}

func TestDataIsAcknowledgedBySack(t *testing.T) {
	// req 9260-6.2-1, 9260-6.2-13: every chunk, within the delay, by SACK.
	l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
	for n := 1; n <= 7; n++ {
		for range n {
			l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, l.Data("x")))
		}
		out := l.Wait(200 * time.Millisecond)
		must.That(t, len(out) != 0 && sctptest.Has(out[len(out)-1], wire.ChunkSack),
			"%d packets are not acknowledged after 200 ms", n)
		k, err := wire.AsSack(sctptest.ChunkOf(out[len(out)-1], wire.ChunkSack))
		must.That(t, err == nil && k.CumTSN() == l.TSN-1,
			"%d packets: %q acknowledges %d, want %d (%v)", n, sctptest.Describe(out), k.CumTSN(), l.TSN-1, err)
	}
}

// A SACK waits no longer than a round trip, or 25 ms, where it may wait for longer, but in a crowd.
func TestSackWaitsForARoundTripAtMost(t *testing.T) {
	for _, row := range []struct {
		cfg       assoc.Config
		crowd     bool
		trip, max time.Duration
	}{
		{assoc.Config{}, false, 3 * time.Millisecond, 25 * time.Millisecond},
		{assoc.Config{}, false, 70 * time.Millisecond, 70 * time.Millisecond},
		{assoc.Config{}, false, 300 * time.Millisecond, 200 * time.Millisecond},
		{assoc.Config{SackDelay: 20 * time.Millisecond}, false, 70 * time.Millisecond, 20 * time.Millisecond},
		{assoc.Config{RFC9260: true}, false, 70 * time.Millisecond, 200 * time.Millisecond},
		{assoc.Config{}, true, 3 * time.Millisecond, 80 * time.Millisecond},
		{assoc.Config{}, true, 90 * time.Millisecond, 90 * time.Millisecond},
		{assoc.Config{SackDelay: 200 * time.Millisecond}, true, 3 * time.Millisecond, 80 * time.Millisecond},
		{assoc.Config{}, false, 0, 80 * time.Millisecond}, // not known
		{assoc.Config{SackDelay: 60 * time.Millisecond}, true, 3 * time.Millisecond, 60 * time.Millisecond},
		{assoc.Config{RFC9260: true}, true, 3 * time.Millisecond, 200 * time.Millisecond},
		// req 9260-6.2-11
		{assoc.Config{SackDelay: 500 * time.Millisecond, RFC9260: true}, true, 300 * time.Millisecond,
			500 * time.Millisecond},
	} {
		row.cfg.HeartbeatInterval = -1
		l := sctptest.Passive(t, &row.cfg)
		l.A.SetCrowded(row.crowd)
		if row.trip > 0 {
			must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{{1}}}))
			l.Flush()
			l.Now = l.Now.Add(row.trip)
			l.Send(l.Tag, l.Sack(l.HostTSN))
		}
		l.Expect(l.Send(l.Tag, l.Data("first")), "SACK")
		l.Expect(l.Send(l.Tag, l.Data("second")), "")
		early, late := l.Wait(row.max-1), l.Wait(1)
		check.That(t, len(early) == 0 && len(late) == 1,
			"round trips of %v, in a crowd %v: %d packets in less than %v, then %d", row.trip, row.crowd, len(early),
			row.max, len(late))
	}
}

// A peer that sends again what was not acknowledged for so long is not kept waiting for half as
// long the next time. What comes twice for another reason says nothing.
func TestSackDelayIsLearntFromDuplicates(t *testing.T) {
	for _, row := range []struct {
		name   string
		cfg    assoc.Config
		first  time.Duration // until the SACK
		after  time.Duration // a chunk comes again
		second time.Duration // until the next SACK
	}{
		{"its timer was shorter", assoc.Config{}, 80 * time.Millisecond, 60 * time.Millisecond, 30 * time.Millisecond},
		{"it was as long, and crossed the SACK", assoc.Config{}, 80 * time.Millisecond, 90 * time.Millisecond, 45 * time.Millisecond},
		{"the SACK was lost", assoc.Config{}, 80 * time.Millisecond, time.Second, 80 * time.Millisecond},
		{"the network has copied it", assoc.Config{}, 80 * time.Millisecond, 5 * time.Millisecond, 80 * time.Millisecond},
		{"a shorter delay was asked for", assoc.Config{SackDelay: 20 * time.Millisecond}, 20 * time.Millisecond, 60 * time.Millisecond, 20 * time.Millisecond},
		{"by the letter", assoc.Config{RFC9260: true}, 200 * time.Millisecond, 60 * time.Millisecond, 200 * time.Millisecond},
	} {
		row.cfg.HeartbeatInterval = -1
		l := sctptest.Passive(t, &row.cfg)
		l.Expect(l.Send(l.Tag, l.Data("first")), "SACK")
		again := l.Data("second")
		l.Expect(l.Send(l.Tag, again), "")
		if row.after >= row.first {
			l.Expect(l.Wait(row.first), "SACK")
			l.Wait(row.after - row.first)
		} else {
			l.Expect(l.Wait(row.after), "")
		}
		l.Expect(l.Send(l.Tag, again), "SACK")
		must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{{1}}})) // so that no SACK has waited for nothing
		l.Flush()
		l.Expect(l.Send(l.Tag, l.Data("third")), "")
		early, late := l.Wait(row.second-1), l.Wait(1)
		check.That(t, !hasAck(early, l.TSN-1) && hasAck(late, l.TSN-1), "%s: %q before %v, then %q", row.name,
			sctptest.Describe(early), row.second, sctptest.Describe(late))
	}
}

// hasAck says whether one of the packets acknowledges a TSN.
func hasAck(out []wire.Packet, t wire.TSN) bool {
	for _, p := range out {
		if k, err := wire.AsSack(sctptest.ChunkOf(p, wire.ChunkSack)); err == nil && k.CumTSN() == t {
			return true
		}
	}
	return false
}

// Where a SACK has waited for nothing, and packets come farther apart than it may wait, the next
// goes at once: until DATA goes in time to have taken it along, with a SACK or without.
func TestSackDoesNotWaitInVain(t *testing.T) {
	// req 9260-6.2-7
	for _, letter := range []bool{false, true} {
		l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1, SackDelay: 20 * time.Millisecond,
			RFC9260: letter})
		atOnce := "SACK"
		if letter {
			atOnce = ""
		}
		l.Expect(l.Send(l.Tag, l.Data("first")), "SACK")
		l.Wait(time.Second)
		l.Expect(l.Send(l.Tag, l.Data("a")), "")
		l.Expect(l.Wait(20*time.Millisecond), "SACK")
		l.Wait(time.Second)
		l.Expect(l.Send(l.Tag, l.Data("b")), atOnce)
		must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{[]byte("answer")}}))
		l.Flush()
		l.Send(l.Tag, l.Sack(l.HostTSN))
		l.Wait(time.Second)
		l.Expect(l.Send(l.Tag, l.Data("c")), "")
	}
}

// asked notes what it is asked and leaves everything to ordinary delivery.
type asked struct{ tsns []wire.TSN }

func (p *asked) Place(_ rawio.Time, d wire.Data, _ *rawio.Buf) assoc.Verdict {
	p.tsns = append(p.tsns, d.TSN())
	return assoc.Queue
}

// What the receive window has no room for is dropped before anybody may place it, and is not
// acknowledged.
func TestDataOutsideTheWindowIsNotPlaced(t *testing.T) {
	// req 9260-6.2-2
	for _, row := range []struct {
		name  string
		ahead wire.TSN // of the chunk's TSN
		full  bool     // the receive buffer is
	}{
		{"the buffer is full", 0, true},
		{"no gap block reaches its TSN", 1 << 16, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := sctptest.NewLab(t)
			p := new(asked)
			l.Host.Placer = p
			l.Listen(&assoc.Config{RecvBuffer: 1500})
			l.Handshake()
			if row.full {
				l.Send(l.Tag, l.Data(string(make([]byte, 1000))), l.Data(string(make([]byte, 400))))
				l.Send(l.Tag, l.Data(string(make([]byte, 100))))
			}
			cum := l.TSN - 1
			p.tsns = nil
			out := l.Send(l.Tag, sctptest.DataChunk(l.TSN+row.ahead, 0, 0, "too much"))
			check.That(t, len(p.tsns) == 0, "TSN %d was placed, the cumulative one is %d", p.tsns, cum)
			k, err := wire.AsSack(sctptest.ChunkOf(out[0], wire.ChunkSack))
			check.That(t, err == nil && k.CumTSN() == cum && k.NumGaps() == 0,
				"SACK of %d with %d gap blocks, %v", k.CumTSN(), k.NumGaps(), err)
		})
	}
}
