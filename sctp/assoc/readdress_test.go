package assoc_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
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

// restartFrom has the peer come back with another tag, by that address and listing those, and
// returns what answers its INIT.
func restartFrom(l *sctptest.Lab, from netip.AddrPort, list []netip.Addr) sctptest.SentPacket {
	l.Helper()
	l.PeerTag, l.TSN = l.PeerTag+1, 77
	out := l.Post(from, 0, sctptest.InitChunk(l.PeerTag, l.TSN, addressParams(list)...))
	if len(out) != 1 || out[0].To != from {
		l.Fatalf("INIT was answered by %s", sctptest.Text(out))
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
		// req 9260-5.2.2-2, 9260-5.2.2-3, 9260-5.2.2-4
		{"with one more", "10.0.0.10", "10.0.0.9", "10.0.0.10 10.0.0.66", "10.0.0.66", ""},
		{"from one more", "10.0.0.10", "10.0.0.66", "10.0.0.9 10.0.0.10", "10.0.0.66", ""}, // req 9260-5.1.2-5
		{"with two more", "10.0.0.10", "10.0.0.9", "10.0.0.66 10.0.0.10 10.0.0.67", "10.0.0.66 10.0.0.67", ""},
		{"with one of a family that is not used", "10.0.0.10 2001:db8::9", "10.0.0.10", "10.0.0.9 2001:db8::66", "", "10.0.0.10 10.0.0.9"},
		{"with one that is nobody's", "10.0.0.10", "10.0.0.9", "10.0.0.10 127.0.0.1 239.0.0.1", "", "10.0.0.9 10.0.0.10"},
		{"with more than are kept", "10.0.0.20 10.0.0.21 10.0.0.22 10.0.0.23 10.0.0.24 10.0.0.25 10.0.0.26 " +
			"10.0.0.27 10.0.0.28", "10.0.0.24",
			"10.0.0.9 10.0.0.20 10.0.0.21 10.0.0.22 10.0.0.23 10.0.0.24 10.0.0.25 10.0.0.26 10.0.0.27 10.0.0.28", "",
			"10.0.0.24 10.0.0.9 10.0.0.20 10.0.0.21 10.0.0.22 10.0.0.23 10.0.0.25 10.0.0.26"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var list []netip.AddrPort
			for _, a := range parseAddrs(row.before) {
				list = append(list, netip.AddrPortFrom(a, 0))
			}
			l, _ := listingLab(t, &assoc.Config{HeartbeatInterval: -1}, list...)
			from := netip.AddrPortFrom(netip.MustParseAddr(row.from), 0)
			tag, known := l.Tag, sctptest.Paths(l.A)
			answer := restartFrom(l, from, parseAddrs(row.after)).Pkt
			if row.added != "" {
				code, cause := sctptest.CauseOf(answer)
				var got []netip.Addr
				ps := cause.Params()
				for p, ok := ps.Next(); ok; p, ok = ps.Next() {
					a, _ := p.Addr()
					got = append(got, a)
				}
				check.That(t, sctptest.Has(answer, wire.ChunkAbort) && answer.VTag() == l.PeerTag &&
					code == wire.CauseRestart && slices.Equal(got, parseAddrs(row.added)),
					"answered by %s, tag %#x, cause %v %v", sctptest.Describe([]wire.Packet{answer}), answer.VTag(),
					code, got)
				// req 9260-5.2.2-8
				check.That(t, l.A.LocalTag() == tag && len(sctptest.Paths(l.A)) == len(known),
					"the association has changed")
				l.InState(assoc.Established)
				return
			}
			l.NoteInitAck(answer)
			l.Post(from, l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
			if _, ok := l.Host.Event(assoc.EventRestart); !ok || l.A.LocalTag() != l.Tag { // req 9260-5.2.4-7
				t.Fatal("no restart")
			}
			var got []netip.Addr
			for i, p := range sctptest.Paths(l.A) {
				got = append(got, p.Remote.Addr())
				// req 9260-5.4-1
				check.That(t, (p.State == assoc.PathActive) == (i == 0) && p.Primary == (i == 0), "%+v", p)
			}
			check.Slice(t, "destinations", got, parseAddrs(row.destinations))
			// What the peer no longer has is no longer heard.
			for _, k := range known {
				answered := slices.ContainsFunc(l.Post(k.Remote, l.Tag, wire.AppendHeartbeat(nil, []byte("x"))),
					func(p sctptest.SentPacket) bool {
						return p.To == k.Remote &&
							sctptest.Has(p.Pkt, wire.ChunkHeartbeatAck)
					})
				check.Equal(t, k.Remote.String()+": answered", answered, slices.Contains(got, k.Remote.Addr()))
			}
		})
	}
	// A new INIT of the peer finds its association by any of its addresses.
	l, _ := listingLab(t, nil, second)
	// req 9260-1.3-1
	if p := restartFrom(l, second, []netip.Addr{nine.Addr()}); !sctptest.Has(p.Pkt, wire.ChunkInitAck) ||
		len(l.Host.Assocs) != 1 {
		t.Error(sctptest.Text([]sctptest.SentPacket{p}))
	}
}

// Whoever lists somebody else's address cannot take it over: its owner's answer to the probe ends
// it.
func TestCampedAddressIsFreedByItsOwner(t *testing.T) {
	l, out := listingLab(t, nil, second)
	l.Until(l.Now, func(p sctptest.SentPacket) { out = append(out, p) })
	probe := sentTo(second, out)[0]
	abort := wire.AppendAbort(nil, true) // what a host without such an association says, section 8.4
	l.Deliver(second, sctptest.Packet(sctptest.PortA, sctptest.PortB, probe.VTag(), abort))
	l.Collect()
	l.InState(assoc.Closed)
}

// A host that says nothing out of the blue, as one behind a filter, is kept out no longer than the
// probes to its address take (RFC 5062 section 2.2).
func TestCampedAddressIsGivenUpWhenItDoesNotAnswer(t *testing.T) {
	camped := func(t *testing.T) (l *sctptest.Lab, probe wire.Packet) {
		l, out := listingLab(t, &assoc.Config{HeartbeatInterval: -1}, second)
		l.Until(l.Now, func(p sctptest.SentPacket) { out = append(out, p) })
		return l, sentTo(second, out)[0]
	}
	// The owner has another address, which makes its INIT one with new addresses.
	owner := func(l *sctptest.Lab) sctptest.SentPacket {
		return l.Post(second, 0, sctptest.InitChunk(0x22222222, 5000, wire.AppendAddressParam(nil, third.Addr())))[0]
	}
	refused := func(p sctptest.SentPacket) bool {
		code, _ := sctptest.CauseOf(p.Pkt)
		return sctptest.Has(p.Pkt, wire.ChunkAbort) && code == wire.CauseRestart
	}
	giveUp := func(t *testing.T, l *sctptest.Lab) {
		t.Helper()
		p := owner(l)
		// req 9260-5.2.2-2
		must.That(t, refused(p), "while the probes go on: %s", sctptest.Text([]sctptest.SentPacket{p}))
		l.Until(l.Now+rawio.Time(62*time.Second), func(sctptest.SentPacket) {})
		_, ok := l.Host.Event(assoc.EventPathDown)
		must.That(t, !ok, "given up before the sixth probe, which is sent after 31 s, has had its 32 s")
		l.Until(l.Now+rawio.Time(time.Second), func(sctptest.SentPacket) {})
		e, ok := l.Host.Event(assoc.EventPathDown)
		must.That(t, ok && e.Path == second, "%+v, %v", e, ok)
		l.Collect()
		l.InState(assoc.Established)
	}
	t.Run("its owner sets up an association", func(t *testing.T) {
		l, _ := camped(t)
		camper, camperTag := l.A, l.Tag
		giveUp(t, l)
		l.NoteInitAck(owner(l).Pkt)
		out := l.Post(second, l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
		must.That(t, len(l.Host.Assocs) == 2 && l.A != camper && sctptest.Has(out[0].Pkt, wire.ChunkCookieAck) &&
			out[0].To == second,
			"%d associations, COOKIE ECHO answered by %s", len(l.Host.Assocs), sctptest.Text(out))
		if out := sentTo(second, l.Post(second, l.Tag, wire.AppendHeartbeat(nil, []byte("x")))); len(out) != 1 ||
			!sctptest.Has(out[0], wire.ChunkHeartbeatAck) {
			t.Error("the owner's packets do not find its association")
		}
		check.That(t, len(l.Post(l.Peer, camperTag, wire.AppendHeartbeat(nil, []byte("x")))) == 1 &&
			camper.State() == assoc.Established,
			"the camper's packets do not find its own")
	})
	t.Run("its owner says that it knows nothing of the association", func(t *testing.T) {
		l, _ := camped(t)
		giveUp(t, l)
		l.Deliver(second, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.PeerTag, wire.AppendAbort(nil, true)))
		l.Collect()
		l.InState(assoc.Closed)
	})
	t.Run("a router says that there is no SCTP", func(t *testing.T) {
		l, probe := camped(t)
		giveUp(t, l)
		l.Now += rawio.Time(time.Minute)
		p := rawio.Packet{Kind: rawio.KindProtoUnreachable, Data: probe[:8], Local: l.Host.Addr, Remote: second}
		l.Host.Receive(l.Now, &p)
		l.Collect()
		l.InState(assoc.Closed)
	})
	t.Run("the association ends", func(t *testing.T) {
		l, _ := camped(t)
		giveUp(t, l)
		l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, wire.AppendAbort(nil, false)))
		l.Collect()
		l.InState(assoc.Closed)
		out := sentTo(second, l.Post(second, 0x1234, wire.AppendHeartbeat(nil, []byte("x"))))
		check.That(t, len(out) == 1 && sctptest.Has(out[0], wire.ChunkAbort) && out[0].VTag() == 0x1234,
			// req 9260-8.4-10, 9260-8.4-11
			"a packet from there, out of the blue, is answered by %s", sctptest.Describe(out))
	})
	t.Run("it answers after all", func(t *testing.T) {
		l, _ := camped(t)
		giveUp(t, l)
		must.OK(t, l.A.RequestHeartbeat(l.Now, second.Addr()))
		info := sctptest.ChunkOf(sentTo(second, l.Collect())[0], wire.ChunkHeartbeat).Value()
		l.Post(second, l.Tag, wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, info))
		p := owner(l)
		check.That(t, refused(p), "the address is confirmed, and an INIT from there answered by %s",
			sctptest.Text([]sctptest.SentPacket{p}))
	})
}
