package assoc_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestHandshakeTakesTwoRoundTripsAndNegotiatesStreams(t *testing.T) {
	w := newWorld(t)
	w.listen(&assoc.Config{OutStreams: 20, InStreams: 5})
	a := w.connect(&assoc.Config{OutStreams: 8, InStreams: 12})
	start := w.now
	up := w.runUntil(w.now.Add(time.Second), func() bool { return a.State() == assoc.Established })
	if !up || w.now.Sub(start) != 2*roundTrip {
		t.Fatalf("established: %v after %v", up, w.now.Sub(start))
	}
	b := w.peer()
	// req 9260-5.1.1-2, 9260-5.1.1-4
	if a.OutStreams() != 5 || a.InStreams() != 12 || b.OutStreams() != 12 || b.InStreams() != 5 {
		t.Errorf("streams %d/%d and %d/%d", a.OutStreams(), a.InStreams(), b.OutStreams(), b.InStreams())
	}
	for i, h := range w.hosts {
		if _, ok := h.event(assoc.EventUp); !ok {
			t.Errorf("host %d: no EventUp", i)
		}
	}
	init, _ := wire.AsInit(chunkOf(w.seen(0, wire.ChunkInit)[0].pkt, wire.ChunkInit))
	ackPkt := w.seen(1, wire.ChunkInitAck)[0].pkt
	ack, _ := wire.AsInit(chunkOf(ackPkt, wire.ChunkInitAck))
	if v := w.seen(0, wire.ChunkInit)[0].pkt.VTag(); v != 0 { // req 9260-8.5.1-1, 9260-3.1-4
		t.Errorf("INIT has tag %#x", v)
	}
	if ackPkt.VTag() != init.Tag() { // req 9260-5.1-3
		t.Errorf("INIT ACK has tag %#x, want %#x", ackPkt.VTag(), init.Tag())
	}
	if ack.OutStreams() > init.InStreams() { // req 9260-3.3.3-8
		t.Errorf("INIT ACK announces OS %d above MIS %d", ack.OutStreams(), init.InStreams())
	}
	echo := w.seen(0, wire.ChunkCookieEcho)[0].pkt
	if echo.VTag() != ack.Tag() || chunkTypes(echo)[0] != wire.ChunkCookieEcho { // req 9260-8.5.1-9, 9260-3.2.2-5
		t.Errorf("COOKIE ECHO packet: tag %#x, chunks %v", echo.VTag(), chunkTypes(echo))
	}
	ce, _ := wire.AsCookieEcho(chunkOf(echo, wire.ChunkCookieEcho))
	if string(ce.Cookie()) != string(paramOf(ack, wire.ParamStateCookie).Value()) { // req 9260-3.3.11-3
		t.Error("the cookie came back changed")
	}
	if ca := w.seen(1, wire.ChunkCookieAck)[0].pkt; chunkTypes(ca)[0] != wire.ChunkCookieAck { // req 9260-5.1-6
		t.Errorf("COOKIE ACK packet: %v", chunkTypes(ca))
	}
}

func TestHandshakeSurvivesLoss(t *testing.T) {
	for _, row := range []struct {
		name   string
		lost   wire.ChunkType
		resent wire.ChunkType
		from   int
	}{
		{"a lost INIT is retransmitted after RTO.Initial", wire.ChunkInit, wire.ChunkInit, 0},
		{"a lost INIT ACK makes the INIT come again", wire.ChunkInitAck, wire.ChunkInit, 0},
		{"a lost COOKIE ECHO is retransmitted", wire.ChunkCookieEcho, wire.ChunkCookieEcho, 0},
		{"a lost COOKIE ACK makes the COOKIE ECHO come again", wire.ChunkCookieAck, wire.ChunkCookieEcho, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.listen(nil)
			w.judge = lose(row.lost, 1)
			a := w.connect(nil)
			w.run(3 * time.Second)
			if a.State() != assoc.Established || w.peer().State() != assoc.Established {
				t.Fatalf("states %v, %v", a.State(), w.peer().State())
			}
			pkts := w.seen(row.from, row.resent)
			if len(pkts) != 2 || pkts[1].at.Sub(pkts[0].at) != time.Second {
				t.Fatalf("%d transmissions", len(pkts))
			}
			// req 9260-5.1.6-1: the same INIT, the same cookie
			if string(pkts[0].pkt) != string(pkts[1].pkt) {
				t.Error("the retransmission differs")
			}
		})
	}
}

func TestSetupIsAbandonedAfterMaxInitRetransmits(t *testing.T) {
	for _, row := range []struct {
		name string
		lost wire.ChunkType
		sent wire.ChunkType
	}{
		{"INIT unanswered", wire.ChunkInit, wire.ChunkInit},                    // req 9260-4-2
		{"COOKIE ECHO unanswered", wire.ChunkCookieEcho, wire.ChunkCookieEcho}, // req 9260-4-3
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.listen(nil)
			w.judge = lose(row.lost, 1000)
			a := w.connect(&assoc.Config{MaxInitRetrans: 4})
			w.run(10 * time.Minute)
			err, down := w.hosts[0].downErr()
			if !down || !errors.Is(err, assoc.ErrInitTimeout) || !errors.Is(err, syscall.ETIMEDOUT) || a.State() != assoc.Closed { // req 9260-4-4
				t.Fatalf("down %v with %v in %v", down, err, a.State())
			}
			pkts := w.seen(0, row.sent)
			if len(pkts) != 5 {
				t.Fatalf("%d transmissions, want 1 + 4", len(pkts))
			}
			for i, want := range []time.Duration{1, 2, 4, 8} { // exponential back-off, section 6.3.3
				if got := pkts[i+1].at.Sub(pkts[i].at); got != want*time.Second {
					t.Errorf("interval %d is %v", i, got)
				}
			}
		})
	}
}

func TestDuplicateHandshakePacketsChangeNothing(t *testing.T) {
	w := newWorld(t)
	w.listen(nil)
	w.judge = func(_ int, _ wire.Packet) (int, time.Duration) { return 2, 0 }
	a := w.connect(nil)
	w.run(time.Second)
	if a.State() != assoc.Established || len(w.hosts[1].assocs) != 1 || w.peer().State() != assoc.Established {
		t.Fatalf("state %v, %d associations", a.State(), len(w.hosts[1].assocs))
	}
	for i, h := range w.hosts {
		n := 0
		for _, e := range h.events {
			if e.Kind == assoc.EventUp {
				n++
			}
		}
		if n != 1 {
			t.Errorf("host %d: EventUp %d times", i, n)
		}
	}
	w.send(a, 0, []byte("hello"))
	w.judge = nil
	w.run(time.Second)
	if got := drain(w.peer()); len(got) != 1 || string(got[0]) != "hello" {
		t.Errorf("received %q", got)
	}
}

func TestSimultaneousConnectMakesOneAssociation(t *testing.T) {
	for _, row := range []struct {
		name  string
		delay time.Duration // of the second side's start
		slow  time.Duration // extra time that its INIT takes
	}{
		{"INITs cross in COOKIE-WAIT", 0, 0},
		{"the second side starts just before the INIT arrives", latency - time.Millisecond, 0},
		{"the second INIT meets COOKIE-ECHOED", 0, latency + latency/2},
		{"the second INIT meets ESTABLISHED", 0, 10 * latency},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.judge = func(from int, pkt wire.Packet) (int, time.Duration) {
				if from == 1 && has(pkt, wire.ChunkInit) {
					return 1, row.slow
				}
				return 1, 0
			}
			a := w.connectFrom(0, portA, portB, nil)
			w.run(row.delay)
			b := w.connectFrom(1, portB, portA, nil)
			w.run(10 * time.Second)
			if a.State() != assoc.Established || b.State() != assoc.Established {
				t.Fatalf("states %v, %v", a.State(), b.State())
			}
			// req 9260-1.3-1, 9260-5.2.1-8
			if a.LocalTag() != b.PeerTag() || b.LocalTag() != a.PeerTag() {
				t.Fatal("the two sides do not agree on their tags")
			}
			w.send(a, 0, []byte("one way"))
			w.send(b, 0, []byte("the other"))
			w.run(time.Second)
			if got := drain(b); len(got) != 1 || string(got[0]) != "one way" {
				t.Errorf("b received %q", got)
			}
			if got := drain(a); len(got) != 1 || string(got[0]) != "the other" {
				t.Errorf("a received %q", got)
			}
		})
	}
}

func TestSendBeforeUpAndBadStreams(t *testing.T) {
	w := newWorld(t)
	w.listen(nil)
	a := w.connect(&assoc.Config{OutStreams: 4, SendBuffer: 1000})
	m := assoc.Message{Body: [2][]byte{[]byte("x")}}
	if err := a.Send(w.now, &m); !errors.Is(err, assoc.ErrNotUp) {
		t.Errorf("Send in COOKIE-WAIT: %v", err)
	}
	w.run(time.Second)
	m.Stream = 4
	if err := a.Send(w.now, &m); !errors.Is(err, assoc.ErrInvalidStream) { // req 9260-5.1.1-4, 9260-6.5-1
		t.Errorf("Send on stream 4 of 4: %v", err)
	}
	m.Stream, m.Body[0] = 3, nil
	if err := a.Send(w.now, &m); !errors.Is(err, assoc.ErrEmptyMessage) { // req 9260-6.2-28
		t.Errorf("empty message: %v", err)
	}
	m.Body[0] = make([]byte, 600)
	if err := a.Send(w.now, &m); err != nil {
		t.Error(err)
	}
	if err := a.Send(w.now, &m); !errors.Is(err, assoc.ErrSendBufferFull) {
		t.Errorf("send buffer exceeded: %v", err)
	}
	w.run(time.Second)
	if _, ok := w.hosts[0].event(assoc.EventSenderDry); !ok {
		t.Error("no EventSenderDry")
	}
}
