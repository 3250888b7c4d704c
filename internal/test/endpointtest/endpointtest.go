// Package endpointtest is an endpoint that a test feeds with packets, one by one, and listens to.
package endpointtest

import (
	"math/rand"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

// The ports of both sides, and the MTU of every path.
const (
	LocalPort = 5000
	PeerPort  = 6000
	MTU       = 1400
)

// The addresses of the endpoint and of its peer.
var (
	HostAddr = netip.MustParseAddrPort("10.0.0.1:0")
	PeerAddr = netip.MustParseAddrPort("10.0.0.9:0")
)

// Bench is an endpoint that the test feeds with packets and listens to.
type Bench struct {
	T   *testing.T
	Now rawio.Time
	EP  *endpoint.Endpoint
	Out *assoc.TxBatch
}

// New returns one with randomness that follows from a seed.
func New(t *testing.T, cfg endpoint.Config) *Bench {
	cfg.Rand = rand.New(rand.NewSource(3))
	cfg.MTU = func(_, _ netip.Addr) int { return MTU }
	return &Bench{T: t, Now: rawio.Time(time.Hour), EP: endpoint.New(cfg), Out: assoc.NewTxBatch(8)}
}

// Receive hands over a packet from the peer as a shell would, and returns the endpoint's answers
// and the association that took it.
func (b *Bench) Receive(pkt []byte) ([]rawio.Packet, *assoc.Assoc) {
	return b.ReceiveFrom(PeerAddr, HostAddr, pkt)
}

// ReceiveFrom is Receive between any addresses.
func (b *Bench) ReceiveFrom(remote, local netip.AddrPort, pkt []byte) ([]rawio.Packet, *assoc.Assoc) {
	p := rawio.Packet{Data: pkt, Local: local, Remote: remote}
	a, ok := b.EP.Lookup(&p)
	if ok && a == nil {
		n, isNew := b.EP.Len(), false
		a, isNew = b.EP.HandleUnmatched(b.Now, &p)
		check.That(b.T, isNew == (b.EP.Len() > n), "new: %v, with %d associations after %d", isNew, b.EP.Len(), n)
	}
	if a != nil {
		a.HandlePacket(b.Now, &p)
	}
	return b.Answers(), a
}

// Answers are what the endpoint itself has to send.
func (b *Bench) Answers() []rawio.Packet { return b.Poll(b.EP.PollTransmit) }

// Poll collects what an endpoint, or an association, has to send.
func (b *Bench) Poll(transmit func(rawio.Time, *assoc.TxBatch) bool) (list []rawio.Packet) {
	for more := true; more; b.Out.Reset() {
		more = transmit(b.Now, b.Out)
		for _, p := range b.Out.Pkts {
			list = append(list, rawio.Packet{Data: slices.Concat(p.Vec...), Local: p.Local, Remote: p.Remote})
		}
	}
	return list
}

// GoodInit is what the peer says of itself.
var GoodInit = wire.InitFields{Tag: 0xabcdef01, ARwnd: 1500, OutStreams: 3, InStreams: 4, TSN: 99}

// Only returns the single chunk of the single packet.
func Only(t *testing.T, list []rawio.Packet) (wire.Packet, wire.Chunk) {
	t.Helper()
	must.Equal(t, "packets", len(list), 1)
	pkt := wire.Packet(list[0].Data)
	check.That(t, pkt.ChecksumOK(), "wrong checksum")
	cs := pkt.Chunks()
	c, ok := cs.Next()
	_, more := cs.Next()
	must.That(t, ok && !more, "not one chunk")
	return pkt, c
}

// CookieOf goes through INIT and INIT ACK.
func (b *Bench) CookieOf(f wire.InitFields, params ...[]byte) (tag uint32, cookie []byte) {
	b.T.Helper()
	list, _ := b.Receive(sctptest.Packet(PeerPort, LocalPort, 0, sctptest.InitLike(wire.ChunkInit, f, params...)))
	return b.CookieIn(list)
}

// CookieIn takes the tag and the cookie out of the INIT ACK that is one of the packets; nil if none
// is.
func (b *Bench) CookieIn(list []rawio.Packet) (tag uint32, cookie []byte) {
	b.T.Helper()
	for _, p := range list {
		cs := wire.Packet(p.Data).Chunks()
		c, _ := cs.Next()
		if c.Type() != wire.ChunkInitAck {
			continue
		}
		ack, err := wire.AsInit(c)
		must.OK(b.T, err)
		ps := ack.Params()
		for p, ok := ps.Next(); ok; p, ok = ps.Next() {
			if p.Type() == wire.ParamStateCookie {
				return ack.Tag(), slices.Clone(p.Value())
			}
		}
	}
	return 0, nil
}

// Echo brings a cookie and says whether it is answered as a packet out of the blue.
func (b *Bench) Echo(tag uint32, cookie []byte) (a *assoc.Assoc, outOfBlue bool) {
	b.T.Helper()
	list, a := b.Receive(sctptest.Packet(PeerPort, LocalPort, tag, wire.AppendCookieEcho(nil, cookie)))
	if len(list) == 0 {
		return a, false
	}
	pkt, c := Only(b.T, list)
	ab, err := wire.AsAbort(c)
	return a, err == nil && ab.T() && pkt.VTag() == tag
}

// Establish goes through the handshake of a peer and returns the association, nil if it was
// refused.
func (b *Bench) Establish(from netip.AddrPort, port uint16) *assoc.Assoc {
	b.T.Helper()
	list, _ := b.ReceiveFrom(from, HostAddr,
		sctptest.Packet(port, LocalPort, 0, sctptest.InitLike(wire.ChunkInit, GoodInit)))
	tag, cookie := b.CookieIn(list)
	must.That(b.T, cookie != nil, "no cookie")
	_, a := b.ReceiveFrom(from, HostAddr, sctptest.Packet(port, LocalPort, tag, wire.AppendCookieEcho(nil, cookie)))
	return a
}

// Stale is a COOKIE ECHO that has come too late, of another port.
func (b *Bench) Stale() []byte {
	list, _ := b.ReceiveFrom(PeerAddr, HostAddr,
		sctptest.Packet(PeerPort+2, LocalPort, 0, sctptest.InitLike(wire.ChunkInit, GoodInit)))
	tag, cookie := b.CookieIn(list)
	b.Now = b.Now.Add(time.Minute + 1)
	return sctptest.Packet(PeerPort+2, LocalPort, tag, wire.AppendCookieEcho(nil, cookie))
}

// Connect starts an association to a peer's address.
func (b *Bench) Connect(local uint16, to netip.AddrPort) *assoc.Assoc {
	b.T.Helper()
	a, err := b.EP.Connect(b.Now, nil, local, HostAddr, []netip.AddrPort{to}, PeerPort)
	must.OK(b.T, err)
	return a
}

// Lookup says whose a packet with that tag from an address is.
func (b *Bench) Lookup(from netip.AddrPort, local uint16, tag uint32) *assoc.Assoc {
	b.T.Helper()
	p := rawio.Packet{Data: sctptest.Packet(PeerPort, local, tag, wire.AppendCookieAck(nil)), Local: HostAddr,
		Remote: from}
	a, ok := b.EP.Lookup(&p)
	must.That(b.T, ok, "dropped")
	return a
}
