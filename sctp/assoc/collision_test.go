package assoc_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestInitCollisionInCookieWait(t *testing.T) {
	j := sctptest.NewCookieLab(t, &assoc.Config{OutStreams: 6, InStreams: 12})
	j.Connect()
	deadline, tsn := j.A.NextTimeout(), j.HostTSN
	init, _ := wire.AsInit(wire.Chunk(sctptest.InitChunk(0x55667788, 900)))
	ack, c := j.SendInit([]byte(init))
	// req 9260-5.2.1-7: the own INIT's tag, TSN and streams, with the tag, TSN and window of the
	// peer's.
	check.That(t, ack.Tag() == j.Tag && c.LocalTag == j.Tag && ack.TSN() == tsn && c.LocalTSN == tsn &&
		c.OutStreams == 6 && c.InStreams == 12 &&
		c.PeerTag == 0x55667788 && c.PeerTSN == 900 && c.PeerRwnd == init.ARwnd(),
		"INIT ACK with tag %#x TSN %d, cookie %+v", ack.Tag(), ack.TSN(), c)
	// req 9260-5.2.1-9
	check.That(t, j.A.NextTimeout() == deadline, "T1-init was touched: %v instead of %v", j.A.NextTimeout(), deadline)
	j.InState(assoc.CookieWait)
	until := j.A.CookieUntil()
	check.That(t, until == j.Now.Add(time.Minute), "a cookie may come back until %v", until) // it names the own tag
	check.Equal(t, "the cookie was made at", j.A.CookieMade(), j.Now)

	j = sctptest.NewCookieLab(t, nil)
	j.Connect()
	j.Pass(sctptest.Packet(sctptest.PortA, sctptest.PortB, j.Tag,
		sctptest.InitAckChunk(j.PeerTag, j.TSN, []byte("theirs"))))
	j.Expect(j.Flush(), "COOKIE ECHO")
	deadline = j.A.NextTimeout()
	j.SendInit(sctptest.InitChunk(0x55667788, 900))
	// req 9260-5.2.1-9
	check.That(t, j.A.NextTimeout() == deadline, "COOKIE-ECHOED: T1-cookie was touched: %v instead of %v",
		j.A.NextTimeout(), deadline)
}

func TestInitAckForACollisionGoesToTheSourceIfItIsKnown(t *testing.T) {
	second, stranger := netip.MustParseAddrPort("10.0.0.10:0"), netip.MustParseAddrPort("10.0.0.66:0")
	l := sctptest.NewLab(t)
	l.Dial(nil, l.Host.Addr, l.Peer, second)
	l.Collect()
	init := sctptest.InitChunk(5, 5, wire.AppendAddressParam(nil, l.Peer.Addr()),
		wire.AppendAddressParam(nil, second.Addr()))
	if out := l.Post(second, 0, init); sctptest.Text(out) != "10.0.0.10: INIT ACK" { // req 9260-5.2.1-3, 9260-5.1-3
		t.Errorf("INIT from the second address: %s", sctptest.Text(out))
	}
	// The cookie shows that the peer has got the INIT ACK there: new data goes there too.
	l.NoteInitAck(l.Post(second, 0, init)[0].Pkt)
	l.Post(second, l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
	l.InState(assoc.Established)
	check.That(t, l.A.Stats().Primary == 1 && l.A.NumPaths() == 2, "path %d of %d is the primary one",
		l.A.Stats().Primary, l.A.NumPaths())
	l = sctptest.NewLab(t)
	l.Host.Adopt(must.Get(l.Host.Endpoint.Connect(l.Now, nil, sctptest.PortB, l.Host.Addr,
		[]netip.AddrPort{l.Peer, second}, sctptest.PortA))(t))
	l.Collect()
	if out := l.Post(stranger, 0, init); sctptest.Text(out) != "10.0.0.9: INIT ACK" { // req 9260-5.2.1-2, 9260-5.1.2-5
		t.Errorf("INIT from an address that nobody gave, listing two that somebody did: %s", sctptest.Text(out))
	}
}
