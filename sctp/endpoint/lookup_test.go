package endpoint_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/endpointtest"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestTheChecksumComesBeforeEverythingElse(t *testing.T) {
	// req 9260-A-3: the three packets for which the tag says nothing, with one bit wrong, do
	// nothing.
	b := endpointtest.New(t, endpoint.Config{})
	must.OK(t, b.EP.Listen(localPort, nil))
	spoil := func(pkt []byte) []byte {
		pkt[8] ^= 1
		return pkt
	}
	list, _ := b.Receive(spoil(sctptest.Packet(peerPort, localPort, 0, sctptest.InitLike(wire.ChunkInit, goodInit))))
	check.Equal(t, "answers to an INIT with a wrong checksum", len(list), 0)
	list, _ = b.Receive(sctptest.Packet(peerPort, localPort, 0, sctptest.InitLike(wire.ChunkInit, goodInit)))
	_, c := only(t, list)
	ack := must.Get(wire.AsInit(c))(t)
	ps := ack.Params()
	cookie, _ := ps.Next()
	must.Equal(t, "type of the first parameter", cookie.Type(), wire.ParamStateCookie)
	tag := ack.Tag()
	echo := sctptest.Packet(peerPort, localPort, tag, wire.AppendCookieEcho(nil, cookie.Value()))
	list, a := b.Receive(spoil(echo))
	check.That(t, len(list) == 0 && a == nil, "a COOKIE ECHO with a wrong checksum made an association")
	_, a = b.Receive(spoil(echo)) // right again
	must.That(t, a != nil, "no association")
	b.Receive(sctptest.Packet(peerPort, localPort, tag, wire.AppendShutdown(nil, ack.TSN()-1)))
	must.Equal(t, "state", a.State(), assoc.ShutdownAckSent)
	complete := sctptest.Packet(peerPort, localPort, tag, wire.AppendShutdownComplete(nil, false))
	b.Receive(spoil(complete))
	check.Equal(t, "a SHUTDOWN COMPLETE with a wrong checksum was accepted", a.State(), assoc.ShutdownAckSent)
	b.Receive(spoil(complete))
	check.That(t, a.State() == assoc.Closed, "state %v after the right one", a.State())
}
