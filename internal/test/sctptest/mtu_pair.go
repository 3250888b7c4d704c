package sctptest

import (
	"math/rand"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// MTUPair is two hosts whose links have an MTU of their own and report congestion marks. It holds,
// for every packet, that none but probes is longer than the path MTU of its sender allows, but in
// fragments. Both hosts read what arrives.
type MTUPair struct{ *World }

// Addresses of both ends of a road.
var (
	IPv4 = [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:0"), netip.MustParseAddrPort("10.0.0.2:0")}
	IPv6 = [2]netip.AddrPort{netip.MustParseAddrPort("[2001:db8::1]:0"), netip.MustParseAddrPort("[2001:db8::2]:0")}
	UDP  = [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:9899"), netip.MustParseAddrPort("10.0.0.2:9899")}
)

// NewMTUPair makes a road whose links carry link octets at IP level, and whose network carries
// path.Params.
func NewMTUPair(t testing.TB, addrs [2]netip.AddrPort, link int, path simnet.Params) *MTUPair {
	r := &MTUPair{newWorld(t, link, rawio.DontFragment|rawio.ECNField|rawio.Marking,
		[2][]netip.AddrPort{{addrs[0]}, {addrs[1]}}, path)}
	r.onSend = r.checkPacket
	for _, h := range r.Hosts {
		h.Reads = true
	}
	return r
}

// Probe says whether the packet is HEARTBEAT and PAD.
func (s *Capture) Probe() bool {
	return slices.Equal(ChunkTypes(s.Pkt), []wire.ChunkType{wire.ChunkHeartbeat, wire.ChunkPad})
}

// checkPacket holds what is true of every packet.
func (r *MTUPair) checkPacket(h *Host, s *Capture) {
	extra := rawio.Overhead(s.Remote)
	switch {
	case s.Probe() || Has(s.Pkt, wire.ChunkDTLS): // which may hold one
		if s.Fragment != 0 { // 8899-3-2, 8899-3-3
			r.Errorf("a probe may be fragmented")
		}
		if len(s.Pkt)+extra > h.Link { // 8899-3-5
			r.Errorf("a probe of %d octets on a link of %d", len(s.Pkt), h.Link)
		}
	case s.MTU > 0 && len(s.Pkt) > s.MTU && h.CutFrom > 0: // to what passes everywhere
		if s.Fragment == 0 || s.Fragment > s.MTU+extra || len(s.Pkt) < h.CutFrom {
			r.Errorf("a packet of %d octets with %v, to be fragmented to %d, on a path of %d", len(s.Pkt),
				ChunkTypes(s.Pkt), s.Fragment, s.MTU)
		}
	case s.MTU > 0 && len(s.Pkt) > s.MTU && s.Fragment != s.MTU+extra: // 8899-3-1
		r.Errorf("a packet of %d octets with %v, to be fragmented to %d, on a path of %d", len(s.Pkt),
			ChunkTypes(s.Pkt), s.Fragment, s.MTU)
	}
}

// Path changes one direction of the network.
func (r *MTUPair) Path(from int, change func(*simnet.Params)) {
	a, b := r.Hosts[from].Addrs[0], r.Hosts[1-from].Addrs[0]
	p, _ := r.Net.Link(a, b)
	change(&p)
	r.Net.SetLink(a, b, p)
}

// SetMTU changes the MTU of the network in both directions. quote is what reports quote, 0 for
// none.
func (r *MTUPair) SetMTU(mtu, quote int) {
	for i := range r.Hosts {
		r.Path(i, func(p *simnet.Params) { p.MTU, p.Quote = mtu, quote })
	}
}

// Join sets the association up and returns both ends of it.
func (r *MTUPair) Join(ca, cb *assoc.Config) (a, b *assoc.Assoc) {
	r.Helper()
	r.Listen(cb)
	a = r.Connect(ca)
	if !r.RunUntil(r.Now.Add(10*time.Second), func() bool {
		return a.State() == assoc.Established && len(r.Hosts[1].Assocs) > 0
	}) {
		r.Fatal("no association")
	}
	return a, r.Hosts[1].Assocs[0]
}

// Send queues a message of n octets at an end and returns what it holds.
func (r *MTUPair) Send(from, n int) []byte {
	r.Helper()
	b := make([]byte, n)
	rand.New(rand.NewSource(int64(n))).Read(b)
	if err := r.Hosts[from].Assocs[0].Send(r.Now, &assoc.Message{Body: [2][]byte{b}}); err != nil {
		r.Fatal(err)
	}
	return b
}

// Talk sends n messages of size octets every 50 ms from an end, and returns what they hold.
func (r *MTUPair) Talk(from, n, size int) (all []byte) {
	r.Helper()
	for range n {
		all = append(all, r.Send(from, size)...)
		r.Run(50 * time.Millisecond)
	}
	return all
}

// Probes returns the probes that an end has sent.
func (r *MTUPair) Probes(from int) (list []Capture) {
	for _, s := range r.Sent {
		if s.From == from && s.Probe() {
			list = append(list, s)
		}
	}
	return list
}

// WantMTU checks the path MTU of an end, IP-level.
func (r *MTUPair) WantMTU(what string, of, want int) {
	r.Helper()
	h := r.Hosts[of]
	if got := h.Assocs[0].PathStats(0).MaxPacket + rawio.Overhead(h.Addr); got != want {
		r.Errorf("%s: path MTU %d, want %d", what, got, want)
	}
}
