package assoc_test

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestVerificationTagRules(t *testing.T) {
	abort := func(t bool) []byte { return wire.AppendAbort(nil, t) }
	complete := func(t bool) []byte { return wire.AppendShutdownComplete(nil, t) }
	ackSent := func(t *testing.T) *lab {
		l := passiveLab(t, nil)
		l.expect(l.send(l.tag, wire.AppendShutdown(nil, l.hostTSN-1)), "SHUTDOWN ACK")
		return l
	}
	up := func(t *testing.T) *lab { return passiveLab(t, nil) }
	for _, row := range []struct {
		name   string
		lab    func(*testing.T) *lab
		tag    func(*lab) uint32
		chunks [][]byte
		ends   bool
	}{
		// req 9260-8.5.1-4
		{"ABORT, own tag, T=0: accepted", up, own, [][]byte{abort(false)}, true},
		{"ABORT, own tag, T=1: discarded", up, own, [][]byte{abort(true)}, false},
		{"ABORT, peer's tag, T=1: accepted", up, peers, [][]byte{abort(true)}, true},
		{"ABORT, peer's tag, T=0: discarded", up, peers, [][]byte{abort(false)}, false},
		{"ABORT, foreign tag, T=1: discarded", up, foreign, [][]byte{abort(true)}, false},
		{"ABORT behind a HEARTBEAT, T=0: accepted, the HEARTBEAT unanswered", up, own, // req 9260-9.1-3
			[][]byte{wire.AppendHeartbeat(nil, []byte("x")), abort(false)}, true},
		{"ABORT behind a HEARTBEAT, T=1: the packet is discarded", up, own,
			[][]byte{wire.AppendHeartbeat(nil, []byte("x")), abort(true)}, false},
		{"ABORT with a broken cause: discarded", up, own, [][]byte{wire.AppendChunk(nil, wire.ChunkAbort, 0, []byte{0, 12, 0, 99})}, false}, // req 9260-3.3.7-5
		// req 9260-8.5.1-7
		{"SHUTDOWN COMPLETE, own tag, T=0: accepted", ackSent, own, [][]byte{complete(false)}, true},
		{"SHUTDOWN COMPLETE, own tag, T=1: discarded", ackSent, own, [][]byte{complete(true)}, false},
		{"SHUTDOWN COMPLETE, peer's tag, T=1: accepted", ackSent, peers, [][]byte{complete(true)}, true},
		{"SHUTDOWN COMPLETE, peer's tag, T=0: discarded", ackSent, peers, [][]byte{complete(false)}, false},
		{"SHUTDOWN COMPLETE in ESTABLISHED: ignored", up, own, [][]byte{complete(false)}, false}, // req 9260-8.5.1-8
		// req 9260-8.5-1
		{"HEARTBEAT with the peer's tag: discarded", up, peers, [][]byte{wire.AppendHeartbeat(nil, []byte("x"))}, false},
		{"HEARTBEAT with a foreign tag: discarded", up, foreign, [][]byte{wire.AppendHeartbeat(nil, []byte("x"))}, false},
		// req 9260-8.5.1-2, 9260-12.3-1
		{"tag 0 without INIT: discarded", up, zero, [][]byte{wire.AppendHeartbeat(nil, []byte("x"))}, false},
		{"tag 0 with ABORT: discarded", up, zero, [][]byte{abort(false)}, false},
		{"INIT with another chunk: discarded", up, zero, [][]byte{initChunk(9, 9), wire.AppendHeartbeat(nil, []byte("x"))}, false},
		{"INIT with a tag: discarded", up, own, [][]byte{initChunk(9, 9)}, false},
		{"INIT behind another chunk with tag 0: discarded", up, zero, [][]byte{wire.AppendHeartbeat(nil, []byte("x")), initChunk(9, 9)}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := row.lab(t)
			state := l.a.State()
			l.expect(l.send(row.tag(l), row.chunks...), "")
			if row.ends {
				l.inState(assoc.Closed)
			} else {
				l.inState(state)
			}
		})
	}
}

func own(l *lab) uint32     { return l.tag }
func peers(l *lab) uint32   { return l.peerTag }
func foreign(l *lab) uint32 { return l.tag ^ l.peerTag ^ 0x5a5a5a5a }
func zero(*lab) uint32      { return 0 }

func TestPacketFromAnAddressThatIsNotThePeersIsDropped(t *testing.T) {
	l := passiveLab(t, nil)
	other := netip.MustParseAddrPort("10.0.0.77:0")
	l.expect(l.sendFrom(other, l.tag, wire.AppendHeartbeat(nil, []byte("x"))), "")
	l.expect(l.sendFrom(other, l.tag, dataChunk(l.tsn, 0, 0, "x")), "")
	if got := drain(l.a); got != nil {
		t.Errorf("received %q", got)
	}
	l.expect(l.sendFrom(l.peer, l.tag, wire.AppendHeartbeat(nil, []byte("x"))), "HEARTBEAT ACK")
}

func TestListedAddressOfThePeerIsKnownAndProbed(t *testing.T) {
	l := bareLab(t)
	l.listen(nil)
	second := netip.MustParseAddrPort("10.0.0.10:0")
	l.initiate(wire.AppendAddressParam(nil, second.Addr()), wire.AppendAddressParam(nil, l.peer.Addr()))
	out := l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie))
	if l.a.NumPaths() != 2 { // req 9260-5.1.2-3
		t.Fatalf("%d paths", l.a.NumPaths())
	}
	if s := l.a.PathStats(1); s.State != assoc.PathUnconfirmed || s.Remote != second { // req 9260-5.4-1
		t.Fatalf("second path %+v", s)
	}
	out = append(out, l.wait(0)...)
	var beat wire.Chunk
	for _, p := range out {
		if c := chunkOf(p, wire.ChunkHeartbeat); c != nil {
			beat = c
		}
	}
	if beat == nil { // req 9260-5.4-3
		t.Fatalf("the unconfirmed address is not probed: %q", describe(out))
	}
	h, _ := wire.AsHeartbeat(beat)
	wrong := append([]byte(nil), h.Info()...)
	wrong[0] ^= 1
	l.sendFrom(second, l.tag, wire.AppendHeartbeatAck(nil, wrong))
	if s := l.a.PathStats(1).State; s != assoc.PathUnconfirmed { // req 9260-5.4-2
		t.Fatalf("a wrong nonce confirmed the path: %v", s)
	}
	l.sendFrom(second, l.tag, wire.AppendHeartbeatAck(nil, h.Info()))
	if s := l.a.PathStats(1).State; s != assoc.PathActive {
		t.Fatalf("the right nonce did not confirm the path: %v", s)
	}
	if e, ok := l.h.event(assoc.EventPathUp); !ok || e.Path != second {
		t.Errorf("no EventPathUp for it: %+v", e)
	}
}
