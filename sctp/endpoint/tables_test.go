package endpoint_test

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/lab"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

// connect starts an association to a peer's address.
func (b *bench) connect(local uint16, to netip.AddrPort) *assoc.Assoc {
	b.t.Helper()
	a, err := b.ep.Connect(b.now, nil, local, hostAddr, []netip.AddrPort{to}, peerPort)
	must.OK(b.t, err)
	return a
}

// lookup says whose a packet with that tag from an address is.
func (b *bench) lookup(from netip.AddrPort, local uint16, tag uint32) *assoc.Assoc {
	b.t.Helper()
	p := rawio.Packet{Data: lab.Packet(peerPort, local, tag, wire.AppendCookieAck(nil)), Local: hostAddr, Remote: from}
	a, ok := b.ep.Lookup(&p)
	must.That(b.t, ok, "dropped")
	return a
}

// An association that was removed is found by nothing, and its port is free.
func TestRemovedAssociationIsForgotten(t *testing.T) {
	b := newBench(t, endpoint.Config{})
	a := b.connect(localPort, peerAddr)
	elsewhere := netip.MustParseAddrPort("10.0.0.77:0")
	must.That(t, b.lookup(peerAddr, localPort, 1) == a && b.lookup(elsewhere, localPort, a.LocalTag()) == a,
		"not found by address or by tag")
	b.ep.Remove(a)
	check.That(t, b.lookup(peerAddr, localPort, a.LocalTag()) == nil, "found by address")
	check.That(t, b.lookup(elsewhere, localPort, a.LocalTag()) == nil, "found by tag")
	check.Equal(t, "associations", b.ep.Len(), 0)
}

// An address that the peer of one association has belongs to it, though the peer of another one lists it
// too, and stays with it when the other ends.
func TestAddressStaysWithItsAssociation(t *testing.T) {
	// req 9260-1.3-1
	b := newBench(t, endpoint.Config{})
	first := b.connect(localPort, peerAddr)
	otherAddr := netip.MustParseAddrPort("10.0.0.10:0")
	second := b.connect(localPort, otherAddr)
	b.poll(second.PollTransmit)
	ack := wire.AppendInit(nil, wire.ChunkInitAck, wire.InitFields{Tag: 9, ARwnd: 1500, OutStreams: 1, InStreams: 1, TSN: 5})
	ack = wire.AppendParam(ack, wire.ParamStateCookie, []byte("cookie"))
	ack = wire.CloseChunk(wire.AppendAddressParam(ack, peerAddr.Addr()), 0)
	b.receiveFrom(otherAddr, hostAddr, lab.Packet(peerPort, localPort, second.LocalTag(), ack))
	must.Equal(t, "paths", second.NumPaths(), 2)
	b.ep.Refresh(second)
	check.Equal(t, "the address belongs to the association whose peer has not only listed it", b.lookup(peerAddr, localPort, 1), first)
	quote := lab.Packet(localPort, peerPort, 9)
	a, ok := b.ep.Lookup(&rawio.Packet{Kind: rawio.KindPacketTooBig, Data: quote, Remote: peerAddr})
	check.That(t, a == first && ok, "so did a report")
	b.ep.Remove(second)
	check.Equal(t, "the address belongs to the first when the other has ended", b.lookup(peerAddr, localPort, 1), first)
}

// A port that somebody listens on is not picked for an association.
func TestEphemeralPortIsNobodysPort(t *testing.T) {
	free := newBench(t, endpoint.Config{}).connect(0, peerAddr).LocalPort()
	b := newBench(t, endpoint.Config{}) // the same random numbers
	must.OK(t, b.ep.Listen(free, nil))
	got := b.connect(0, peerAddr).LocalPort()
	check.That(t, got != free, "port %d has a listener", got)
}
