package assoc_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// A peer that has sent SHUTDOWN has no more DATA: what comes is neither delivered nor acknowledged.
func TestDataBehindAShutdownIsDiscarded(t *testing.T) {
	// req 9260-6-2, 9260-6-3
	l := passiveLab(t, nil)
	l.send(l.tag, l.data("before"))
	m := assoc.Message{Body: [2][]byte{[]byte("still to be acknowledged")}}
	if err := l.a.Send(l.now, &m); err != nil {
		t.Fatal(err)
	}
	l.flush()
	l.send(l.tag, wire.AppendShutdown(nil, l.hostTSN-1))
	l.inState(assoc.ShutdownReceived)
	l.expect(l.send(l.tag, l.data("behind")), "")
	if got := drain(l.a); len(got) != 1 || string(got[0]) != "before" {
		t.Errorf("received %q", got)
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
			l := bareLab(t)
			p := new(asked)
			l.h.placer = p
			l.listen(&assoc.Config{RecvBuffer: 1500})
			l.shake()
			if row.full {
				l.send(l.tag, l.data(string(make([]byte, 1000))), l.data(string(make([]byte, 400))))
				l.send(l.tag, l.data(string(make([]byte, 100))))
			}
			cum := l.tsn - 1
			p.tsns = nil
			out := l.send(l.tag, dataChunk(l.tsn+row.ahead, 0, 0, "too much"))
			if len(p.tsns) != 0 {
				t.Errorf("TSN %d was placed, the cumulative one is %d", p.tsns, cum)
			}
			k, err := wire.AsSack(chunkOf(out[0], wire.ChunkSack))
			if err != nil || k.CumTSN() != cum || k.NumGaps() != 0 {
				t.Errorf("SACK of %d with %d gap blocks, %v", k.CumTSN(), k.NumGaps(), err)
			}
		})
	}
}

// An INIT or SHUTDOWN COMPLETE among other chunks makes the rest of the packet void.
func TestNothingIsTakenBehindAChunkThatMustTravelAlone(t *testing.T) {
	// req 9260-3-1
	for _, c := range [][]byte{initChunk(5, 6), wire.AppendShutdownComplete(nil, false)} {
		l := passiveLab(t, nil)
		out := l.send(l.tag, wire.AppendHeartbeat(nil, []byte("x")), c, l.data("behind"))
		l.expect(out, "HEARTBEAT ACK")
		if got := drain(l.a); len(got) != 0 {
			t.Errorf("received %q", got)
		}
		l.inState(assoc.Established)
	}
}

// SHUTDOWN ACK and SHUTDOWN COMPLETE mean nothing in states that did not ask for them.
func TestEndsThatNobodyAskedForAreIgnored(t *testing.T) {
	// req 9260-9.2-16, 9260-9.2-17, 9260-8.5.1-8
	for _, row := range []struct {
		name  string
		chunk []byte
		state assoc.State
	}{
		{"SHUTDOWN ACK in ESTABLISHED", wire.AppendShutdownAck(nil), assoc.Established},
		{"SHUTDOWN ACK in SHUTDOWN-PENDING", wire.AppendShutdownAck(nil), assoc.ShutdownPending},
		{"SHUTDOWN ACK in SHUTDOWN-RECEIVED", wire.AppendShutdownAck(nil), assoc.ShutdownReceived},
		{"SHUTDOWN COMPLETE in ESTABLISHED", wire.AppendShutdownComplete(nil, false), assoc.Established},
		{"SHUTDOWN COMPLETE in SHUTDOWN-SENT", wire.AppendShutdownComplete(nil, false), assoc.ShutdownSent},
		{"COOKIE ACK in ESTABLISHED", wire.AppendCookieAck(nil), assoc.Established},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := passiveLab(t, nil)
			if row.state == assoc.ShutdownPending || row.state == assoc.ShutdownReceived {
				m := assoc.Message{Body: [2][]byte{[]byte("keeps the shutdown waiting")}}
				if err := l.a.Send(l.now, &m); err != nil {
					t.Fatal(err)
				}
				l.flush()
			}
			switch row.state {
			case assoc.ShutdownPending, assoc.ShutdownSent:
				if err := l.a.Shutdown(l.now); err != nil {
					t.Fatal(err)
				}
				l.flush()
			case assoc.ShutdownReceived:
				l.send(l.tag, wire.AppendShutdown(nil, l.hostTSN-1))
			}
			l.inState(row.state)
			l.expect(l.send(l.tag, row.chunk), "")
			l.inState(row.state)
		})
	}
}

// A SHUTDOWN that comes again says that the SHUTDOWN ACK was lost: it goes again at once.
func TestRepeatedShutdownGetsItsAnswerAgain(t *testing.T) {
	// req 9260-9.2-8
	l := passiveLab(t, nil)
	l.expect(l.send(l.tag, wire.AppendShutdown(nil, l.hostTSN-1)), "SHUTDOWN ACK")
	l.inState(assoc.ShutdownAckSent)
	l.now = l.now.Add(time.Millisecond)
	l.expect(l.send(l.tag, wire.AppendShutdown(nil, l.hostTSN-1)), "SHUTDOWN ACK")
}

// A second answer to one HEARTBEAT, which may come at any time later, says nothing.
func TestHeartbeatAckCountsOnce(t *testing.T) {
	// req 9260-8.3-7
	l := passiveLab(t, nil)
	if err := l.a.RequestHeartbeat(l.now, l.peer.Addr()); err != nil {
		t.Fatal(err)
	}
	out := l.flush()
	l.expect(out, "HEARTBEAT")
	ack := wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, chunkOf(out[0], wire.ChunkHeartbeat).Value())
	l.now = l.now.Add(10 * time.Millisecond)
	l.send(l.tag, ack)
	before := l.a.PathStats(0)
	if before.SRTT != 10*time.Millisecond {
		t.Fatalf("SRTT %v", before.SRTT)
	}
	l.now = l.now.Add(5 * time.Second)
	l.send(l.tag, ack)
	if s := l.a.PathStats(0); s.SRTT != before.SRTT || s.RTO != before.RTO {
		t.Errorf("SRTT %v, RTO %v after the second answer", s.SRTT, s.RTO)
	}
}

// HEARTBEATs that are answered keep no association alive whose DATA is not acknowledged.
func TestHeartbeatsDoNotSaveAnAssociationWhoseDataIsLost(t *testing.T) {
	// req 9260-8.1-3, 9260-8.1-7
	l := passiveLab(t, &assoc.Config{AssocMaxRetrans: 3, PathMaxRetrans: 10})
	m := assoc.Message{Body: [2][]byte{[]byte("never acknowledged")}}
	if err := l.a.Send(l.now, &m); err != nil {
		t.Fatal(err)
	}
	l.flush()
	for range 10 {
		l.wait(l.a.PathStats(0).RTO)
		if l.a.State() == assoc.Closed {
			if err, _ := l.h.downErr(); err != assoc.ErrTimeout {
				t.Errorf("ended by %v", err)
			}
			return
		}
		if err := l.a.RequestHeartbeat(l.now, l.peer.Addr()); err != nil {
			t.Fatal(err)
		}
		for _, p := range l.flush() {
			if c := chunkOf(p, wire.ChunkHeartbeat); c != nil {
				l.deliver(l.peer, packet(portA, portB, l.tag, wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, c.Value())))
			}
		}
	}
	t.Error("ten T3-rtx in a row, and the association lives")
}

// What was received in part before a restart of the peer is given back, and what was to be answered then
// is not sent any more.
func TestRestartLetsGoOfTheOldAssociation(t *testing.T) {
	// req 9260-5.2.4-5
	l := passiveLab(t, nil)
	var bufs []*rawio.Buf
	hold := func(chunk []byte) {
		b := rawio.NewBuf(packet(portA, portB, l.tag, chunk))
		bufs = append(bufs, b)
		p := rawio.Packet{Data: b.B, Buf: b, Local: l.h.addr, Remote: l.peer}
		l.h.receive(l.now, &p)
		p.Release()
	}
	fragment := wire.AppendDataHeader(nil, wire.DataFields{Flags: wire.FlagB, TSN: l.tsn, PPID: 7, PayloadLen: 1000})
	hold(append(fragment, make([]byte, 1000)...))
	waiting := wire.AppendDataHeader(nil, wire.DataFields{Flags: wire.FlagB | wire.FlagE, TSN: l.tsn + 5, Stream: 1, SSN: 3, PPID: 7, PayloadLen: 1000})
	hold(append(waiting, make([]byte, 1000)...))
	for i, b := range bufs {
		if b.Refs() != 1 {
			t.Fatalf("packet %d: %d references while its DATA is held", i, b.Refs())
		}
	}
	l.flush()

	l.peerTag, l.tsn = 0x22222222, 77
	oldTag := l.tag
	l.initiate()
	l.deliver(l.peer, packet(portA, portB, oldTag, wire.AppendHeartbeat(nil, []byte("of the old association"))))
	l.deliver(l.peer, packet(portA, portB, l.tag, wire.AppendCookieEcho(nil, l.cookie)))
	l.expect(l.flush(), "COOKIE ACK")
	if l.a.PeerTag() != l.peerTag {
		t.Fatal("no restart")
	}
	for i, b := range bufs {
		if b.Refs() != 0 {
			t.Errorf("packet %d: %d references after the restart", i, b.Refs())
		}
	}
}

// A restart makes no paths to addresses that the association did not have, not even where there was no
// room for all of them at first.
func TestRestartAddsNoPaths(t *testing.T) {
	addr := func(i int) []byte {
		return wire.AppendAddressParam(nil, netip.MustParseAddr(fmt.Sprintf("10.0.1.%d", i)))
	}
	l := bareLab(t)
	l.listen(nil)
	var first [][]byte
	for i := range 10 {
		first = append(first, addr(i))
	}
	l.initiate(first...)
	l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie))
	had := make(map[netip.Addr]bool)
	for i := range l.a.NumPaths() {
		had[l.a.PathStats(i).Remote.Addr()] = true
	}
	if len(had) != assoc.MaxPaths {
		t.Fatalf("%d paths", len(had))
	}
	l.peerTag, l.tsn = 0x22222222, 77
	l.initiate(addr(8), addr(9), addr(1))
	l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie))
	if l.a.PeerTag() != l.peerTag {
		t.Fatal("no restart")
	}
	for i := range l.a.NumPaths() {
		if a := l.a.PathStats(i).Remote.Addr(); !had[a] {
			t.Errorf("a path to %v", a)
		}
	}
}
