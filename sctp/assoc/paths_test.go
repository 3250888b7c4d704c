package assoc_test

import (
	"bytes"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

var (
	addr2 = sctptest.Second
	addr3 = netip.MustParseAddrPort("10.0.0.11:0")
)

func TestPacketsGoToRecordedAddressesOnly(t *testing.T) {
	// req 9260-5.1.2-4: whatever other addresses send with the right tag.
	l := sctptest.TwoPaths(t)
	must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{make([]byte, 5000)}}))
	list := l.Collect()
	for range 20 {
		list = append(list, l.Post(addr3, l.Tag, l.Data("from elsewhere"), wire.AppendHeartbeat(nil, []byte("x")))...)
		l.Now = l.A.NextTimeout()
		l.A.HandleTimeout(l.Now)
		list = append(list, l.Collect()...)
	}
	for _, p := range list {
		// an ABORT with T = 1 answers what is out of the blue
		check.That(t, p.To == l.Peer || p.To == addr2 || sctptest.Has(p.Pkt, wire.ChunkAbort), "sent to %s",
			sctptest.Text([]sctptest.SentPacket{p}))
	}
	check.That(t, len(list) >= 20, "only %d packets", len(list))
}

func TestSackGoesWhereDataCameFrom(t *testing.T) {
	// req 9260-6.7-2, 9260-6.4-3
	l := sctptest.TwoPaths(t)
	for i, from := range []netip.AddrPort{l.Peer, addr2, addr2, l.Peer, addr2} {
		l.TSN++ // a gap: each packet is acknowledged at once
		for _, p := range l.Post(from, l.Tag, l.Data("x")) {
			check.That(t, !sctptest.Has(p.Pkt, wire.ChunkSack) || p.To == from,
				"packet %d came from %v, its SACK went to %v", i, from, p.To)
		}
	}
	check.Equal(t, "SACKs for 5 packets", l.A.Stats().SacksOut, 5)
}

func TestNoCookieEchoToAnUnconfirmedAddress(t *testing.T) {
	// req 9260-5.4-9, 9260-5.4-8: neither alone nor with a HEARTBEAT, so that none is larger than
	// the PMTU.
	l := sctptest.Active(t, nil)
	cookie := bytes.Repeat([]byte("c"), sctptest.MTU)
	list := l.Post(addr2, l.Tag, sctptest.InitAckChunk(l.PeerTag, l.TSN, cookie,
		wire.AppendAddressParam(nil, addr3.Addr())))
	for range 6 {
		l.Now = l.A.NextTimeout()
		l.A.HandleTimeout(l.Now)
		list = append(list, l.Collect()...)
	}
	echoes := 0
	for _, p := range list {
		if sctptest.Has(p.Pkt, wire.ChunkCookieEcho) {
			echoes++
			check.Equal(t, "where COOKIE ECHO goes", p.To, l.Peer)
		}
	}
	check.That(t, echoes >= 2, "%d COOKIE ECHOs: %s", echoes, sctptest.Text(list))
}
