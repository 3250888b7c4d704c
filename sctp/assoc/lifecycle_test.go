package assoc_test

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestNobodyListens(t *testing.T) {
	w := newWorld(t)
	a := w.connect(nil)
	w.run(time.Second)
	err, _ := w.hosts[0].downErr()
	var refused *assoc.AbortError
	if a.State() != assoc.Closed || !errors.As(err, &refused) || !refused.ByPeer { // req 9260-9.1-4
		t.Errorf("state %v, %v", a.State(), err)
	}
}

func TestUDPPortIsLearnedAfterTheTagCheck(t *testing.T) {
	l := passiveLab(t, nil)
	beat := wire.AppendHeartbeat(nil, []byte("x"))
	moved := netip.AddrPortFrom(l.peer.Addr(), 40000)
	l.expect(l.sendFrom(moved, l.tag^1, beat), "")
	if got := l.a.PeerAddr(); got != l.peer { // req 6951-5.4-2
		t.Fatalf("a wrong tag moved the peer to %v", got)
	}
	l.expect(l.sendFrom(moved, l.tag, beat), "HEARTBEAT ACK")
	if got := l.a.PeerAddr(); got != moved {
		t.Errorf("the peer is at %v", got)
	}
	l.send(l.tag, beat) // req 6951-5.4-3: natively again
	if got := l.a.PeerAddr(); got != l.peer {
		t.Errorf("the peer is at %v", got)
	}
	if l.a.LocalAddr() != l.h.addr || l.a.LocalPort() != portB || l.a.PeerPort() != portA {
		t.Errorf("%v %d %d", l.a.LocalAddr(), l.a.LocalPort(), l.a.PeerPort())
	}
}

func TestLocalAddressIsTheOneThePeerAnswersTo(t *testing.T) {
	l := bareLab(t)
	a, err := l.h.ep.Connect(l.now, nil, portB, netip.AddrPort{}, []netip.AddrPort{l.peer}, portA)
	if err != nil {
		t.Fatal(err)
	}
	l.h.adopt(a)
	init, _ := wire.AsInit(chunkOf(l.flush()[0], wire.ChunkInit))
	if a.LocalAddr().IsValid() {
		t.Error("an address out of nowhere")
	}
	l.expect(l.send(init.Tag(), initAckChunk(l.peerTag, 1, []byte("c"))), "COOKIE ECHO")
	if a.LocalAddr() != l.h.addr {
		t.Errorf("local address %v", a.LocalAddr())
	}
}

func TestCloseGivesReceiveBuffersBack(t *testing.T) {
	l := passiveLab(t, nil)
	pool := rawio.NewPool(1400, 16)
	for i, flags := range []uint8{wire.FlagB | wire.FlagE | wire.FlagU, wire.FlagB} { // a whole message and a lone fragment
		chunk := wire.AppendDataHeader(nil, wire.DataFields{Flags: flags, TSN: l.tsn + wire.TSN(i), PayloadLen: 1200})
		buf := pool.Get()
		n := copy(buf.B, packet(portA, portB, l.tag, append(chunk, make([]byte, 1200)...)))
		p := rawio.Packet{Data: buf.B[:n], Buf: buf, Local: l.h.addr, Remote: l.peer}
		l.h.receive(l.now, &p)
		p.Release()
	}
	if pool.Outstanding() != 2 {
		t.Fatalf("%d buffers held", pool.Outstanding())
	}
	l.a.Abort(l.now, nil)
	l.a.Close()
	if pool.Outstanding() != 0 {
		t.Errorf("%d buffers held after Close", pool.Outstanding())
	}
}

func TestDetachFreesTheUsersMemory(t *testing.T) {
	w, a, b := pair(t, nil, nil)
	w.judge = lose(wire.ChunkData, 1)
	mem := bytes.Repeat([]byte("A"), 1200)
	want := bytes.Clone(mem)
	w.send(a, 2, mem)
	w.run(time.Millisecond) // lost
	a.Detach(2, mem)
	clear(mem)
	w.run(5 * time.Second)
	if got := drain(b); len(got) != 1 || !bytes.Equal(got[0], want) {
		t.Errorf("the retransmission carries what the memory holds now")
	}
}

func TestErrorsTellWhatHappened(t *testing.T) {
	for _, row := range []struct {
		err  error
		want string
	}{
		{&assoc.AbortError{}, "sctp: association aborted"},
		{&assoc.AbortError{ByPeer: true, Causes: []assoc.Cause{{Code: wire.CauseUserAbort, Info: []byte("bye")}, {Code: wire.CauseOutOfResource}}},
			`sctp: association aborted by the peer: User-Initiated Abort "bye", Out of Resource`},
		{&assoc.PeerError{Causes: []assoc.Cause{{Code: wire.CauseInvalidStream}}}, "sctp: the peer reports an error: Invalid Stream Identifier"},
		{&assoc.AdaptationError{Want: 1, Absent: true}, "sctp: the peer announced no adaptation layer, 0x1 is required"},
		{&assoc.AdaptationError{Want: 1, Got: 2}, "sctp: the peer announced adaptation layer 0x2, 0x1 is required"},
		{&assoc.ConfigError{Field: "SackDelay", Range: "positive"}, "sctp: Config.SackDelay must be positive"},
	} {
		if got := row.err.Error(); got != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
	var timeout interface{ Timeout() bool }
	if !errors.As(assoc.ErrTimeout, &timeout) || !timeout.Timeout() {
		t.Error("ErrTimeout is no timeout")
	}
}
