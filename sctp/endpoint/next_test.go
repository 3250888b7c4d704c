package endpoint_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/concurrent"
	"github.com/rddp-go/rddp/internal/test/endpointtest"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

// In whatever order the packets of several peers come, each finds its own association, and a
// damaged one none.
func TestLookupNext(t *testing.T) {
	// req 9260-1.3-1
	b := endpointtest.New(t, endpoint.Config{})
	type peer struct {
		from  netip.AddrPort
		local uint16
		a     *assoc.Assoc
	}
	peers := []peer{{from: peerAddr, local: localPort}, {from: peerAddr, local: localPort + 1},
		{from: netip.MustParseAddrPort("10.0.0.77:0"), local: localPort}}
	for i := range peers {
		peers[i].a = b.Connect(peers[i].local, peers[i].from)
	}
	stranger := peer{from: netip.MustParseAddrPort("10.0.0.78:0"), local: localPort}
	peers = append(peers, stranger)
	for first := range peers {
		for second := range peers {
			var last endpoint.LookupState
			for i, n := range []int{first, first, second, second, first, second, first, second} {
				p := rawio.Packet{Data: sctptest.Packet(peerPort, peers[n].local, 1, wire.AppendCookieAck(nil)),
					Local: hostAddr, Remote: peers[n].from}
				if i >= 4 && i != 6 {
					hash := []uint64{0}
					b.EP.PrefetchLookup([]rawio.Packet{p}, hash)
					check.That(t, hash[0] != 0, "a packet has no hash")
					last.Hash = hash[0]
				}
				a, ok := b.EP.LookupNext(&p, &last)
				must.That(t, ok && a == peers[n].a, "peers %d, %d: a packet of %d finds another association", first,
					second, n)
				p.Data[len(p.Data)-1] ^= 1
				a, ok = b.EP.LookupNext(&p, &last)
				must.That(t, !ok && a == nil, "a damaged packet finds an association")
			}
		}
	}
	var last endpoint.LookupState
	for range 2 {
		p := rawio.Packet{Data: sctptest.Packet(peerPort, localPort, 1, wire.AppendCookieAck(nil)), Remote: peerAddr}
		a, _ := b.EP.LookupNext(&p, &last)
		check.That(t, a == peers[0].a, "the next packet of a peer is looked for in the tables again")
		b.EP.Remove(0, peers[0].a)
	}
}

// Two associations between the same ports, whose peers send from an address that neither has named,
// are told apart by their tags, whatever came before.
func TestLookupNextGoesByTheTag(t *testing.T) {
	b := endpointtest.New(t, endpoint.Config{})
	elsewhere := netip.MustParseAddrPort("10.0.0.77:0")
	list := []*assoc.Assoc{b.Connect(localPort, peerAddr), b.Connect(localPort, netip.MustParseAddrPort("10.0.0.78:0"))}
	var last endpoint.LookupState
	for i := range 6 {
		want := list[i/2%2]
		p := rawio.Packet{Data: sctptest.Packet(peerPort, localPort, want.LocalTag(), wire.AppendCookieAck(nil)),
			Local: hostAddr, Remote: elsewhere}
		a, ok := b.EP.LookupNext(&p, &last)
		check.That(t, ok && a == want && !last.ByClaim, "packet %d finds %p, want %p", i, a, want)
	}
}

// What is no packet with a common header has no hash, whatever was there before it.
func TestExpectOfNoPackets(t *testing.T) {
	b := endpointtest.New(t, endpoint.Config{})
	pkts := []rawio.Packet{{}, {Data: make([]byte, wire.CommonHeaderLen-1)},
		{Data: make([]byte, wire.CommonHeaderLen), Kind: rawio.KindPacketTooBig}}
	hashes := []uint64{1, 2, 3, 4}
	b.EP.PrefetchLookup(pkts, hashes)
	check.That(t, slices.Equal(hashes, []uint64{0, 0, 0, 4}), "hashes %v", hashes)
}

// Lookup may run beside itself, Find and Stats, and counts what it drops all the same.
func TestLookupMayBeUsedAtOnce(t *testing.T) {
	const rounds = 100
	b := endpointtest.New(t, endpoint.Config{})
	look := func(p rawio.Packet) func(int) {
		p.Local, p.Remote = hostAddr, peerAddr
		return func(int) { b.EP.Lookup(&p) }
	}
	bad := sctptest.Packet(peerPort, localPort, 1, wire.AppendCookieAck(nil))
	bad[8]++
	short, wrong, stray := look(rawio.Packet{Data: []byte("short")}), look(rawio.Packet{Data: bad}),
		look(rawio.Packet{Kind: rawio.KindPacketTooBig, Data: make([]byte, 8)})
	concurrent.RunTogether(rounds, short, short, wrong, wrong, stray, stray, func(int) { b.EP.Stats() })
	s := b.EP.Stats()
	check.That(t, s.Malformed == 2*rounds && s.BadChecksum == 2*rounds && s.StrayReports == 2*rounds,
		"%+v of %d each", s, 2*rounds)
}
