package endpoint_test

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/endpointtest"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

// An association that was removed is found by nothing, and its port is free.
func TestRemovedAssociationIsForgotten(t *testing.T) {
	b := endpointtest.New(t, endpoint.Config{})
	a := b.Connect(localPort, peerAddr)
	elsewhere := netip.MustParseAddrPort("10.0.0.77:0")
	must.That(t, b.Lookup(peerAddr, localPort, 1) == a && b.Lookup(elsewhere, localPort, a.LocalTag()) == a,
		"not found by address or by tag")
	b.EP.Remove(0, a)
	check.That(t, b.Lookup(peerAddr, localPort, a.LocalTag()) == nil, "found by address")
	check.That(t, b.Lookup(elsewhere, localPort, a.LocalTag()) == nil, "found by tag")
	check.Equal(t, "associations", b.EP.Len(), 0)
}

// An address that the peer of one association has belongs to it, though the peer of another one
// lists it too, and stays with it when the other ends.
func TestAddressStaysWithItsAssociation(t *testing.T) {
	// req 9260-1.3-1
	b := endpointtest.New(t, endpoint.Config{})
	first := b.Connect(localPort, peerAddr)
	otherAddr := netip.MustParseAddrPort("10.0.0.10:0")
	second := b.Connect(localPort, otherAddr)
	b.Poll(second.PollTransmit)
	ack := wire.AppendInit(nil, wire.ChunkInitAck, wire.InitFields{Tag: 9, ARwnd: 1500, OutStreams: 1, InStreams: 1,
		TSN: 5})
	ack = wire.AppendParam(ack, wire.ParamStateCookie, []byte("cookie"))
	ack = wire.CloseChunk(wire.AppendAddressParam(ack, peerAddr.Addr()), 0)
	b.ReceiveFrom(otherAddr, hostAddr, sctptest.Packet(peerPort, localPort, second.LocalTag(), ack))
	must.Equal(t, "paths", second.NumPaths(), 2)
	b.EP.Refresh(second)
	check.Equal(t, "the address belongs to the association whose peer has not only listed it",
		b.Lookup(peerAddr, localPort, 1), first)
	quote := sctptest.Packet(localPort, peerPort, 9)
	a, ok := b.EP.Lookup(&rawio.Packet{Kind: rawio.KindPacketTooBig, Data: quote, Remote: peerAddr})
	check.That(t, a == first && ok, "so did a report")
	b.EP.Remove(0, second)
	check.Equal(t, "the address belongs to the first when the other has ended", b.Lookup(peerAddr, localPort, 1), first)
}

// The owner of an association is told of it before a packet can find it; and while it is refreshed
// it is found by what it keeps.
func TestOwnerIsToldFirst(t *testing.T) {
	b := endpointtest.New(t, endpoint.Config{})
	var told *assoc.Assoc
	b.EP = endpoint.New(endpoint.Config{Rand: ones{}, MTU: func(_, _ netip.Addr) int { return mtu },
		Adopt: func(a *assoc.Assoc) {
			told = a
			check.That(t, b.Lookup(peerAddr, localPort, 1) == nil, "found before its owner knows of it")
		}})
	a := b.Connect(localPort, peerAddr)
	check.That(t, told == a && b.Lookup(peerAddr, localPort, 1) == a, "not told, or not found")
	b.EP.Refresh(a)
	check.Equal(t, "found behind a refresh", b.Lookup(peerAddr, localPort, 1), a)
}
