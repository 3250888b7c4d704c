package assoc_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// addressParams makes a parameter of each address.
func addressParams(list []netip.Addr) (params [][]byte) {
	for _, a := range list {
		params = append(params, wire.AppendAddressParam(nil, a))
	}
	return params
}

// restartFrom has the peer come back with another tag, by that address and listing those, and returns
// what answers its INIT.
func (l *lab) restartFrom(from netip.AddrPort, list []netip.Addr) posted {
	l.t.Helper()
	l.peerTag, l.tsn = l.peerTag+1, 77
	out := l.post(from, 0, initChunk(l.peerTag, l.tsn, addressParams(list)...))
	if len(out) != 1 || out[0].to != from {
		l.t.Fatalf("INIT was answered by %s", text(out))
	}
	return out[0]
}

func TestRestartOfAPeerWithSeveralAddresses(t *testing.T) {
	nine := netip.MustParseAddrPort("10.0.0.9:0")
	for _, row := range []struct {
		name         string
		before       string // listed at the setup, which comes from 10.0.0.9
		from         string // where the restart comes from, and what it lists
		after        string
		added        string // refused because of these
		destinations string // after the restart, the confirmed one first
	}{
		{"the same", "10.0.0.9 10.0.0.10", "10.0.0.9", "10.0.0.9 10.0.0.10", "", "10.0.0.9 10.0.0.10"},
		{"by another address", "10.0.0.10", "10.0.0.10", "10.0.0.9", "", "10.0.0.10 10.0.0.9"},
		{"with fewer", "10.0.0.10 10.0.0.11", "10.0.0.11", "", "", "10.0.0.11"},
		{"with one more", "10.0.0.10", "10.0.0.9", "10.0.0.10 10.0.0.66", "10.0.0.66", ""}, // req 9260-5.2.2-2, 9260-5.2.2-3, 9260-5.2.2-4
		{"from one more", "10.0.0.10", "10.0.0.66", "10.0.0.9 10.0.0.10", "10.0.0.66", ""}, // req 9260-5.1.2-5
		{"with two more", "10.0.0.10", "10.0.0.9", "10.0.0.66 10.0.0.10 2001:db8::1", "10.0.0.66 2001:db8::1", ""},
		{"with one that is nobody's", "10.0.0.10", "10.0.0.9", "10.0.0.10 127.0.0.1 239.0.0.1", "", "10.0.0.9 10.0.0.10"},
		{"with more than are kept", "10.0.0.20 10.0.0.21 10.0.0.22 10.0.0.23 10.0.0.24 10.0.0.25 10.0.0.26 10.0.0.27 10.0.0.28", "10.0.0.24",
			"10.0.0.9 10.0.0.20 10.0.0.21 10.0.0.22 10.0.0.23 10.0.0.24 10.0.0.25 10.0.0.26 10.0.0.27 10.0.0.28", "",
			"10.0.0.24 10.0.0.9 10.0.0.20 10.0.0.21 10.0.0.22 10.0.0.23 10.0.0.25 10.0.0.26"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var list []netip.AddrPort
			for _, a := range addrs(row.before) {
				list = append(list, netip.AddrPortFrom(a, 0))
			}
			l, _ := listingLab(t, &assoc.Config{HeartbeatInterval: -1}, list...)
			from := netip.AddrPortFrom(netip.MustParseAddr(row.from), 0)
			tag, known := l.tag, paths(l.a)
			answer := l.restartFrom(from, addrs(row.after)).pkt
			if row.added != "" {
				code, cause := causeOf(answer)
				var got []netip.Addr
				ps := cause.Params()
				for p, ok := ps.Next(); ok; p, ok = ps.Next() {
					a, _ := p.Addr()
					got = append(got, a)
				}
				if !has(answer, wire.ChunkAbort) || answer.VTag() != l.peerTag || code != wire.CauseRestart || !slices.Equal(got, addrs(row.added)) {
					t.Errorf("answered by %s, tag %#x, cause %v %v", describe([]wire.Packet{answer}), answer.VTag(), code, got)
				}
				if l.a.LocalTag() != tag || len(paths(l.a)) != len(known) { // req 9260-5.2.2-8
					t.Error("the association has changed")
				}
				l.inState(assoc.Established)
				return
			}
			l.noteInitAck(answer)
			l.post(from, l.tag, wire.AppendCookieEcho(nil, l.cookie))
			if _, ok := l.h.event(assoc.EventRestart); !ok || l.a.LocalTag() != l.tag { // req 9260-5.2.4-7
				t.Fatal("no restart")
			}
			var got []netip.Addr
			for i, p := range paths(l.a) {
				got = append(got, p.Remote.Addr())
				if (p.State == assoc.PathActive) != (i == 0) || p.Primary != (i == 0) { // req 9260-5.4-1
					t.Errorf("%+v", p)
				}
			}
			if !slices.Equal(got, addrs(row.destinations)) {
				t.Errorf("destinations %v", got)
			}
			// What the peer no longer has is no longer heard.
			for _, k := range known {
				answered := slices.ContainsFunc(l.post(k.Remote, l.tag, wire.AppendHeartbeat(nil, []byte("x"))),
					func(p posted) bool { return p.to == k.Remote && has(p.pkt, wire.ChunkHeartbeatAck) })
				if answered != slices.Contains(got, k.Remote.Addr()) {
					t.Errorf("%v: answered %v", k.Remote, answered)
				}
			}
		})
	}
	// A new INIT of the peer finds its association by any of its addresses.
	l, _ := listingLab(t, nil, second)
	if p := l.restartFrom(second, []netip.Addr{nine.Addr()}); !has(p.pkt, wire.ChunkInitAck) || len(l.h.assocs) != 1 { // req 9260-1.3-1
		t.Error(text([]posted{p}))
	}
}

// Whoever lists somebody else's address cannot take it over: its owner's answer to the probe ends it.
func TestCampedAddressIsFreedByItsOwner(t *testing.T) {
	l, out := listingLab(t, nil, second)
	l.until(l.now, func(p posted) { out = append(out, p) })
	probe := to(second, out)[0]
	abort := wire.AppendAbort(nil, true) // what a host without such an association says, section 8.4
	l.deliver(second, packet(portA, portB, probe.VTag(), abort))
	l.collect()
	l.inState(assoc.Closed)
}
