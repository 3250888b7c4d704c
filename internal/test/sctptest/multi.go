package sctptest

import (
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Multi is two hosts with several addresses each, joined by networks that fail and return: network
// i joins the i-th addresses of both.
type Multi struct {
	*World
	Addrs [2][]netip.Addr
}

// NewMulti has n networks with the latency of the other worlds, 10.1.0.0/24 being the first.
func NewMulti(t testing.TB, n int) *Multi {
	var addrs [2][]netip.AddrPort
	for i := range addrs {
		for k := range n {
			addrs[i] = append(addrs[i], netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(1 + k), 0, byte(1 + i)}),
				0))
		}
	}
	w := &Multi{World: newWorld(t, MTU+rawio.Overhead(addrs[0][0]), 0, addrs, simnet.Params{})}
	for i, h := range w.Hosts {
		w.Addrs[i] = h.Addrs
	}
	return w
}

// Move gives a host other addresses, which no network joins yet.
func (w *Multi) Move(host int, addrs ...netip.Addr) {
	h := w.Hosts[host]
	h.Addrs, h.Addr, w.Addrs[host] = addrs, netip.AddrPortFrom(addrs[0], 0), addrs
}

// Associate has both hosts use all their addresses and host 0 know the first of host 1 only. It
// returns when every address is confirmed.
func (w *Multi) Associate(ca, cb assoc.Config) (a, b *assoc.Assoc) {
	w.Helper()
	ca.LocalAddrs, cb.LocalAddrs = w.Addrs[0], w.Addrs[1]
	w.Listen(&cb)
	a = w.Connect(&ca, w.Addrs[1][0])
	up := func() bool {
		for _, h := range w.Hosts {
			if len(h.Assocs) == 0 || h.Assocs[0].State() != assoc.Established {
				return false
			}
			for _, p := range Paths(h.Assocs[0]) {
				if p.State != assoc.PathActive {
					return false
				}
			}
		}
		return true
	}
	if !w.RunUntil(w.Now.Add(time.Minute), up) {
		w.Fatalf("not all paths came up: %+v", Paths(a))
	}
	return a, w.Hosts[1].Assocs[0]
}

// Connect starts an association of host 0 to addresses of host 1.
func (w *Multi) Connect(cfg *assoc.Config, to ...netip.Addr) *assoc.Assoc {
	w.Helper()
	var remotes []netip.AddrPort
	for _, r := range to {
		remotes = append(remotes, netip.AddrPortFrom(r, 0))
	}
	return w.connectHost(w.Hosts[0], cfg, PortA, netip.AddrPort{}, remotes, PortB)
}

// Cut and Heal end and restore a network.
func (w *Multi) Cut(k int)  { w.Net.Partition(w.Addrs[0][k], w.Addrs[1][k]) }
func (w *Multi) Heal(k int) { w.Net.Heal(w.Addrs[0][k], w.Addrs[1][k]) }

// CutAndSend cuts all networks and sends a message.
func (w *Multi) CutAndSend(a *assoc.Assoc, token int) {
	w.Helper()
	for k := range w.Addrs[0] {
		w.Cut(k)
	}
	m := assoc.Message{Body: [2][]byte{make([]byte, StreamSize)}, Token: uint64(token)}
	if err := a.Send(w.Now, &m); err != nil {
		w.Fatal(err)
	}
}

// Seen returns the packets with a chunk of that type to an address since a time.
func (w *Multi) Seen(to netip.Addr, t wire.ChunkType, since rawio.Time) (list []Capture) {
	for _, s := range w.Sent {
		if s.Remote.Addr() == to && s.At >= since && Has(s.Pkt, t) {
			list = append(list, s)
		}
	}
	return list
}

// When returns the time of the first event of that kind on a host since a time. addr may be invalid
// for any path.
func (w *Multi) When(host int, k assoc.EventKind, addr netip.Addr, since rawio.Time) (at rawio.Time, ok bool) {
	for _, e := range w.Hosts[host].Events {
		if e.Kind == k && e.At >= since && (!addr.IsValid() || e.Path.Addr() == addr) {
			return e.At, true
		}
	}
	return 0, false
}

// PathTo returns the statistics of the path to an address.
func PathTo(t testing.TB, a *assoc.Assoc, addr netip.Addr) assoc.PathStats {
	t.Helper()
	for _, p := range Paths(a) {
		if p.Remote.Addr() == addr {
			return p
		}
	}
	t.Fatalf("no path to %v", addr)
	return assoc.PathStats{}
}
