package assoc_test

import (
	"bytes"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// placer answers by what the payload begins with.
type placer struct {
	seen []string
}

func (p *placer) Place(_ rawio.Time, d wire.Data, _ *rawio.Buf) assoc.Verdict {
	s := string(d.Payload())
	p.seen = append(p.seen, s)
	switch {
	case strings.HasPrefix(s, "place"):
		return assoc.Consumed
	case strings.HasPrefix(s, "drop"):
		return assoc.DropUnacked
	case strings.HasPrefix(s, "abort"):
		return assoc.AbortAssoc
	}
	return assoc.Queue
}

func TestPlacerVerdicts(t *testing.T) {
	l := bareLab(t)
	p := &placer{}
	l.h.placer = p
	l.listen(&assoc.Config{HeartbeatInterval: -1})
	l.shake()
	window := l.a.Stats().RecvWindow

	l.send(l.tag, l.data("place me"))
	if s := l.a.Stats(); s.RecvWindow != window || s.Placed != 1 { // req 5041-A-1
		t.Errorf("a placed chunk costs window: %d of %d", s.RecvWindow, window)
	}
	first := l.data("place me twice")
	l.send(l.tag, first)
	l.send(l.tag, first)
	if len(p.seen) != 2 {
		t.Errorf("a duplicate was offered for placement: %q", p.seen)
	}
	tsn := l.tsn
	out := l.send(l.tag, l.data("drop this one"))
	sack, _ := wire.AsSack(chunkOf(out[len(out)-1], wire.ChunkSack))
	if sack.CumTSN() != tsn-1 || sack.NumGaps() != 0 { // req 9260-6.2-5
		t.Errorf("a refused chunk was acknowledged: cum %d", sack.CumTSN())
	}
	l.tsn = tsn
	l.send(l.tag, l.data("queue"))
	if got := drain(l.a); len(got) != 1 || string(got[0]) != "queue" {
		t.Errorf("delivered %q", got)
	}
	out = l.send(l.tag, l.data("abort"), l.data("place too late"))
	l.expect(out, "ABORT")
	l.inState(assoc.Closed)
	if p.seen[len(p.seen)-1] != "abort" {
		t.Error("a chunk behind the refused one was placed")
	}
}

func TestSackTiming(t *testing.T) {
	l := passiveLab(t, &assoc.Config{HeartbeatInterval: -1})
	l.expect(l.send(l.tag, l.data("first")), "SACK") // req 9260-5.1-11
	l.expect(l.send(l.tag, l.data("a")), "")
	l.expect(l.send(l.tag, l.data("b"), l.data("b2")), "SACK") // req 9260-6.2-7: second packet
	l.expect(l.send(l.tag, l.data("c"), l.data("c2")), "")     // one packet, however many chunks
	start := l.now
	out := l.wait(time.Second)
	l.expect(out, "SACK")
	_ = start
	l.tsn++
	l.expect(l.send(l.tag, l.data("gap")), "SACK") // req 9260-6.7-1
}

func TestSackRidesOnData(t *testing.T) {
	l := passiveLab(t, &assoc.Config{HeartbeatInterval: -1})
	l.send(l.tag, l.data("first"))
	l.send(l.tag, l.data("second"))
	if err := l.a.Send(l.now, &assoc.Message{Body: [2][]byte{[]byte("answer")}}); err != nil {
		t.Fatal(err)
	}
	l.expect(l.flush(), "SACK DATA") // req 9260-6.1-15, 9260-6-9
	l.expect(l.wait(500*time.Millisecond), "")
}

func TestDataOutsideItsStatesIsDiscarded(t *testing.T) {
	for _, row := range []struct {
		name string
		lab  func(*testing.T) *lab
	}{
		{"COOKIE-WAIT", func(t *testing.T) *lab { return activeLab(t, nil) }},
		{"COOKIE-ECHOED", func(t *testing.T) *lab { return echoedLab(t, nil) }},
	} {
		t.Run(row.name, func(t *testing.T) { // req 9260-6-3
			l := row.lab(t)
			l.expect(l.send(l.tag, l.data("x"), l.sack(l.hostTSN-1)), "")
			if got := drain(l.a); got != nil {
				t.Errorf("received %q", got)
			}
		})
	}
}

func TestDataBundledWithCookieAckIsTaken(t *testing.T) {
	l := echoedLab(t, nil)
	out := l.send(l.tag, wire.AppendCookieAck(nil), l.data("bundled")) // req 9260-3.3.12-2
	l.expect(out, "SACK")
	if got := drain(l.a); len(got) != 1 {
		t.Errorf("received %q", got)
	}
}

func TestInvalidStreamIsAcknowledgedAndReported(t *testing.T) {
	l := passiveLab(t, &assoc.Config{InStreams: 3})
	b := dataChunk(l.tsn, 3, 0, "nowhere")
	out := l.send(l.tag, b)
	l.expect(out, "ERROR SACK") // req 9260-6.5-2, 9260-6.5-3
	code, cause := causeOf(out[0])
	if s, err := cause.InvalidStream(); code != wire.CauseInvalidStream || err != nil || s != 3 { // req 9260-3.3.10.1-1
		t.Errorf("cause %v stream %d", code, s)
	}
	if k, _ := wire.AsSack(chunkOf(out[0], wire.ChunkSack)); k.CumTSN() != l.tsn {
		t.Errorf("cum %d", k.CumTSN())
	}
	if got := drain(l.a); got != nil {
		t.Errorf("delivered %q", got)
	}
}

func TestOneReplyPacketForOnePacket(t *testing.T) {
	l := passiveLab(t, nil)
	var chunks [][]byte
	for range 40 {
		chunks = append(chunks, wire.AppendHeartbeat(nil, bytes.Repeat([]byte("x"), 100)))
	}
	out := l.send(l.tag, chunks...) // req 9260-12.4-2
	if len(out) != 1 || len(out[0]) > testMTU {
		t.Fatalf("%d packets in answer to one", len(out))
	}
	if l.a.Stats().RepliesDropped == 0 {
		t.Error("what did not fit was not counted")
	}
}

func TestReplyQueueIsBounded(t *testing.T) {
	l := passiveLab(t, nil)
	pkt := packet(portA, portB, l.tag, wire.AppendHeartbeat(nil, bytes.Repeat([]byte("x"), 1000)))
	for range 10_000 {
		l.deliver(l.peer, append([]byte(nil), pkt...))
	}
	if n := len(l.flush()); n > 200 {
		t.Errorf("%d replies were held", n)
	}
	init := packet(portA, portB, 0, initChunk(5, 5))
	for range 10_000 {
		l.deliver(l.peer, append([]byte(nil), init...))
	}
	if n := len(l.flush()); n > 200 {
		t.Errorf("%d INIT ACKs were held", n)
	}
}

func TestClosedWindowOpensAgain(t *testing.T) {
	w, a, b := pair(t, nil, &assoc.Config{RecvBuffer: 4000})
	payload := bytes.Repeat([]byte("z"), 1000)
	for range 20 {
		w.send(a, 0, payload)
	}
	w.run(5 * time.Second)
	if s := b.Stats(); s.RecvWindow >= 1000 {
		t.Fatalf("window still %d", s.RecvWindow)
	}
	if a.Stats().PeerWindow >= 1000 {
		t.Fatalf("the sender believes in %d octets", a.Stats().PeerWindow)
	}
	w.run(10 * time.Minute) // probes keep the association alive, req 9260-6.1-2, 9260-6.1-4
	if a.State() != assoc.Established {
		t.Fatalf("state %v", a.State())
	}
	n := 0
	for range 100 {
		n += len(drain(b)) // req 9260-6.2-9
		w.run(200 * time.Millisecond)
	}
	if n != 20 {
		t.Errorf("%d of 20 messages arrived", n)
	}
}

// TestMessagesSurviveABadNetwork sends in both directions through loss, duplication and reordering.
func TestMessagesSurviveABadNetwork(t *testing.T) {
	for seed := range int64(8) {
		rnd := rand.New(rand.NewSource(seed))
		w, a, b := pair(t, nil, nil)
		w.judge = func(int, wire.Packet) (int, time.Duration) {
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
				w.send(x, wire.StreamID(0), m)
			}
			w.run(time.Duration(rnd.Intn(50)) * time.Millisecond)
			got[0], got[1] = append(got[0], drain(b)...), append(got[1], drain(a)...)
		}
		_ = a.Shutdown(w.now)
		w.runUntil(w.now.Add(time.Hour), func() bool {
			got[0], got[1] = append(got[0], drain(b)...), append(got[1], drain(a)...)
			return a.State() == assoc.Closed && b.State() == assoc.Closed
		})
		for k := range got {
			if len(got[k]) != 60 {
				t.Fatalf("seed %d: %d of 60 messages, states %v %v", seed, len(got[k]), a.State(), b.State())
			}
			for i := range got[k] {
				if !bytes.Equal(got[k][i], sent[k][i]) {
					t.Fatalf("seed %d: message %d differs or is out of order", seed, i)
				}
			}
		}
	}
}

// TestMutatedPacketsDoNoHarm feeds an association with packets of a real exchange, a few octets of
// which are changed, with a right checksum.
func TestMutatedPacketsDoNoHarm(t *testing.T) {
	w, a, b := pair(t, nil, nil)
	w.send(a, 1, make([]byte, 3000))
	w.send(b, 1, make([]byte, 3000))
	w.run(time.Minute)
	_ = a.Shutdown(w.now)
	w.run(time.Minute)
	corpus := w.sent
	rnd := rand.New(rand.NewSource(1))
	for round := range 200 {
		l := passiveLab(t, &assoc.Config{RecvBuffer: 1 << 16})
		for range 100 {
			src := corpus[rnd.Intn(len(corpus))].pkt
			pkt := append([]byte(nil), src...)
			copy(pkt, packet(portA, portB, []uint32{l.tag, l.tag, l.tag, 0, l.peerTag}[rnd.Intn(5)])[:8])
			for range rnd.Intn(6) {
				pkt[12+rnd.Intn(min(len(pkt)-12, 40))] = byte(rnd.Intn(256))
			}
			if rnd.Intn(4) == 0 {
				pkt = pkt[:12+rnd.Intn(len(pkt)-12)]
			}
			wire.PutChecksum(pkt, wire.ChecksumBytes(pkt))
			l.deliver(l.peer, pkt)
			if out := l.flush(); len(out) > 8 {
				t.Fatalf("round %d: %d packets in answer to one", round, len(out))
			}
			if rnd.Intn(10) == 0 {
				l.wait(time.Duration(rnd.Intn(5000)) * time.Millisecond)
			}
		}
	}
}
