package assoc_test

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

var (
	addr2 = netip.MustParseAddrPort("10.0.0.10:0")
	addr3 = netip.MustParseAddrPort("10.0.0.11:0")
)

// twoPaths is established with a peer that listed a second address, which has answered a HEARTBEAT.
func twoPaths(t *testing.T) *lab {
	t.Helper()
	l := bareLab(t)
	l.listen(nil)
	l.initiate(wire.AppendAddressParam(nil, l.peer.Addr()), wire.AppendAddressParam(nil, addr2.Addr()))
	out := l.post(l.peer, l.tag, wire.AppendCookieEcho(nil, l.cookie))
	for l.a.NumPaths() == 2 && l.a.PathStats(1).State != assoc.PathActive {
		for _, p := range out {
			if c := chunkOf(p.pkt, wire.ChunkHeartbeat); c != nil {
				l.post(p.to, l.tag, wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, c.Value()))
			}
		}
		l.now = l.a.NextTimeout()
		l.a.HandleTimeout(l.now)
		out = l.collect()
	}
	if l.a.NumPaths() != 2 {
		t.Fatalf("%d paths", l.a.NumPaths())
	}
	return l
}

func TestInitialPrimaryPathIsARecordedAddress(t *testing.T) {
	// req 9260-5.1.2-6
	l := twoPaths(t)
	if p := l.a.PathStats(l.a.Stats().Primary); p.Remote != l.peer || !p.Primary {
		t.Errorf("primary path to %v, want to where the INIT came from", p.Remote)
	}
	l = bareLab(t)
	a, err := l.h.ep.Connect(l.now, nil, portB, l.h.addr, []netip.AddrPort{l.peer, addr2}, portA)
	if err != nil {
		t.Fatal(err)
	}
	l.h.adopt(a)
	l.collect()
	l.post(addr2, a.LocalTag(), initAckChunk(l.peerTag, 1, []byte("c"), wire.AppendAddressParam(nil, addr3.Addr())))
	if p := a.PathStats(a.Stats().Primary); p.Remote != l.peer {
		t.Errorf("primary path to %v, want to where the INIT went", p.Remote)
	}
}

func TestPacketsGoToRecordedAddressesOnly(t *testing.T) {
	// req 9260-5.1.2-4: whatever other addresses send with the right tag.
	l := twoPaths(t)
	if err := l.a.Send(l.now, &assoc.Message{Body: [2][]byte{make([]byte, 5000)}}); err != nil {
		t.Fatal(err)
	}
	list := l.collect()
	for range 20 {
		list = append(list, l.post(addr3, l.tag, l.data("from elsewhere"), wire.AppendHeartbeat(nil, []byte("x")))...)
		l.now = l.a.NextTimeout()
		l.a.HandleTimeout(l.now)
		list = append(list, l.collect()...)
	}
	for _, p := range list {
		if p.to != l.peer && p.to != addr2 && !has(p.pkt, wire.ChunkAbort) { // an ABORT with T = 1 answers what is out of the blue
			t.Errorf("sent to %s", text([]posted{p}))
		}
	}
	if len(list) < 20 {
		t.Errorf("only %d packets", len(list))
	}
}

func TestSackGoesWhereDataCameFrom(t *testing.T) {
	// req 9260-6.7-2, 9260-6.4-3
	l := twoPaths(t)
	for i, from := range []netip.AddrPort{l.peer, addr2, addr2, l.peer, addr2} {
		l.tsn++ // a gap: each packet is acknowledged at once
		for _, p := range l.post(from, l.tag, l.data("x")) {
			if has(p.pkt, wire.ChunkSack) && p.to != from {
				t.Errorf("packet %d came from %v, its SACK went to %v", i, from, p.to)
			}
		}
	}
	if n := l.a.Stats().SacksOut; n != 5 {
		t.Errorf("%d SACKs for 5 packets", n)
	}
}

func TestNoCookieEchoToAnUnconfirmedAddress(t *testing.T) {
	// req 9260-5.4-9, 9260-5.4-8: neither alone nor with a HEARTBEAT, so that none is larger than the PMTU.
	l := activeLab(t, nil)
	cookie := bytes.Repeat([]byte("c"), testMTU)
	list := l.post(addr2, l.tag, initAckChunk(l.peerTag, l.tsn, cookie, wire.AppendAddressParam(nil, addr3.Addr())))
	for range 6 {
		l.now = l.a.NextTimeout()
		l.a.HandleTimeout(l.now)
		list = append(list, l.collect()...)
	}
	echoes := 0
	for _, p := range list {
		if has(p.pkt, wire.ChunkCookieEcho) {
			echoes++
			if p.to != l.peer {
				t.Errorf("COOKIE ECHO to %v, which is not confirmed", p.to)
			}
		}
	}
	if echoes < 2 {
		t.Errorf("%d COOKIE ECHOs: %s", echoes, text(list))
	}
}
