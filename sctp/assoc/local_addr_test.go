package assoc_test

import (
	"errors"
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

// An address that a peer elsewhere lists, and that is also one of this host's, is no path. A peer
// that is on this host has the addresses of this host.
func TestAddressesOfThisHostAreNoPaths(t *testing.T) {
	for _, row := range []struct {
		name, own, source, listed, want string
	}{
		{"the bridge of both hosts", "10.0.0.1 172.17.0.1", "10.0.0.9", "10.0.0.9 172.17.0.1", "10.0.0.9"},
		{"several, and one that is the peer's alone", "10.0.0.1 172.17.0.1 172.18.0.1", "10.0.0.9", "172.17.0.1 172.18.0.1 10.1.0.9", "10.0.0.9 10.1.0.9"},
		{"they keep out none of the peer's", "10.0.0.1 172.17.0.1 172.17.0.2 172.17.0.3 172.17.0.4", "10.0.0.9",
			"172.17.0.1 172.17.0.2 172.17.0.3 172.17.0.4 10.1.0.1 10.1.0.2 10.1.0.3 10.1.0.4 10.1.0.5",
			"10.0.0.9 10.1.0.1 10.1.0.2 10.1.0.3 10.1.0.4 10.1.0.5"},
		{"one of another link than the peer's", "fe80::1%eth0 fe80::5%docker0", "fe80::9%eth0", "fe80::5", "fe80::9%eth0 fe80::5%eth0"},
		{"one of that link", "fe80::1%eth0 fe80::5%eth0", "fe80::9%eth0", "fe80::5", "fe80::9%eth0"},
		{"a peer on this host", "10.0.0.1 10.1.0.1 172.17.0.1", "10.0.0.1", "10.0.0.1 10.1.0.1 172.17.0.1", "10.0.0.1 10.1.0.1 172.17.0.1"},
		{"a peer on this host, by the loopback network", "10.0.0.1 172.17.0.1", "127.0.0.1", "127.0.0.1 10.0.0.1 172.17.0.1", "127.0.0.1 10.0.0.1 172.17.0.1"},
		{"a container on this host, which has one of its own", "10.0.0.1 172.17.0.1", "172.17.0.2", "172.17.0.2 172.17.0.1", "172.17.0.2"},
	} {
		t.Run(row.name, func(t *testing.T) {
			bare := func() *sctptest.Lab {
				l := sctptest.NewLab(t)
				l.Host.Own = parseAddrs(row.own)
				l.Host.Addr = netip.AddrPortFrom(l.Host.Own[0], 0)
				l.Peer = netip.AddrPortFrom(netip.MustParseAddr(row.source), 0)
				return l
			}
			judge := func(side string, l *sctptest.Lab, first []sctptest.SentPacket) {
				t.Helper()
				l.InState(assoc.Established)
				var got, sent []netip.Addr
				for _, p := range sctptest.Paths(l.A) {
					got = append(got, p.Remote.Addr())
				}
				check.Slice(t, side+": destinations", got, parseAddrs(row.want))
				see := func(p sctptest.SentPacket) { sent = append(sent, p.To.Addr()) }
				for _, p := range first {
					see(p)
				}
				l.Until(l.Now.Add(time.Minute), see)
				for _, a := range sent {
					check.That(t, slices.Contains(got, a), "%s: a packet has gone to %v", side, a)
				}
			}
			params := addressParams(parseAddrs(row.listed))
			l := bare()
			l.Listen(nil)
			l.Initiate(params...)
			judge("responder", l, l.Post(l.Peer, l.Tag, wire.AppendCookieEcho(nil, l.Cookie)))

			// A restart that lists the same addresses adds none.
			l = bare()
			l.Listen(nil)
			l.Initiate(params...)
			l.Post(l.Peer, l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
			l.NoteInitAck(restartFrom(l, l.Peer, parseAddrs(row.listed)).Pkt)
			judge("restart", l, l.Post(l.Peer, l.Tag, wire.AppendCookieEcho(nil, l.Cookie)))

			l = bare()
			l.Connect(nil)
			out := l.Post(l.Peer, l.Tag, sctptest.InitAckChunk(l.PeerTag, l.TSN, []byte("cookie!!"), params...))
			judge("initiator", l, append(out, l.Post(l.Peer, l.Tag, wire.AppendCookieAck(nil))...))
		})
	}
	// Nor where the user names it beside others.
	l := sctptest.NewLab(t)
	bridge := netip.MustParseAddrPort("172.17.0.1:0")
	l.Host.Own = parseAddrs("10.0.0.1 172.17.0.1")
	a := l.Dial(nil, netip.AddrPort{}, bridge, l.Peer)
	check.That(t, a.NumPaths() == 1 && a.PeerAddr() == l.Peer, "paths %+v", sctptest.Paths(a))
	a = l.Dial(nil, netip.AddrPort{}, bridge)
	check.That(t, a.NumPaths() == 1 && a.PeerAddr() == bridge, "of a peer on this host: %+v", sctptest.Paths(a))
}

// newSecondOurs is established with a peer that has two addresses, the second of which has become
// one of this host.
func newSecondOurs(t *testing.T) *sctptest.Lab {
	l := sctptest.TwoPaths(t)
	l.Host.Own = parseAddrs("10.0.0.1 10.0.0.10")
	return l
}

// An address that this host gets later is left at once, and nothing goes there, as long as the peer
// has another and this host has that one.
func TestAddressThatThisHostGetsLater(t *testing.T) {
	l := newSecondOurs(t)
	second := sctptest.Second.Addr()
	l.A.UsableFrom(l.Now, parseAddrs("10.0.0.1"))
	check.Equal(t, "state", sctptest.PathTo(t, l.A, second).State, assoc.PathInactive)
	answer := func(p sctptest.SentPacket) {
		check.That(t, p.To.Addr() != second, "%s goes to %v", sctptest.Describe([]wire.Packet{p.Pkt}), p.To)
		if c := sctptest.ChunkOf(p.Pkt, wire.ChunkHeartbeat); c != nil {
			l.Deliver(p.To, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag,
				wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, c.Value())))
		}
	}
	l.Until(l.Now.Add(10*time.Minute), answer)
	_, told := l.Host.Event(assoc.EventPathDown)
	check.That(t, told, "nobody hears that the path is down")
	l.InState(assoc.Established)
	l.Host.Own = parseAddrs("10.0.0.1") // and it has it no more
	l.A.UsableFrom(l.Now, parseAddrs("10.0.0.1"))
	l.Until(l.Now.Add(2*time.Minute), func(p sctptest.SentPacket) {
		if c := sctptest.ChunkOf(p.Pkt, wire.ChunkHeartbeat); c != nil {
			l.Deliver(p.To, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag,
				wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, c.Value())))
		}
	})
	check.Equal(t, "state, once it answers again", sctptest.PathTo(t, l.A, second).State, assoc.PathActive)
}

// A peer all of whose addresses are this host's now is asked nevertheless: that ends the
// association.
func TestPeerWhoseOnlyAddressThisHostGets(t *testing.T) {
	l := sctptest.Passive(t, nil)
	l.Host.Own = []netip.Addr{l.Peer.Addr()}
	l.A.UsableFrom(l.Now, parseAddrs("10.0.0.1"))
	l.Until(l.Now.Add(time.Hour), func(sctptest.SentPacket) {})
	l.Collect()
	err, _ := l.Host.DownErr()
	check.That(t, errors.Is(err, assoc.ErrTimeout), "ended by %v", err)
}

// What this host itself answers to a packet that was for the peer, before anybody has noticed that
// it has the address, says nothing of the peer. What a third host answers counts (sections 8.5.1 B
// and 9.1).
func TestAnswersOfThisHostEndNothing(t *testing.T) {
	for _, row := range []struct {
		name string
		own  string
		send func(l *sctptest.Lab)
		ends bool
	}{
		{"its ABORT", "10.0.0.10", func(l *sctptest.Lab) { l.Post(sctptest.Second, l.PeerTag, wire.AppendAbort(nil, true)) }, false},
		// req 9260-8.5.1-3
		{"a third host's", "10.0.0.11",
			func(l *sctptest.Lab) { l.Post(sctptest.Second, l.PeerTag, wire.AppendAbort(nil, true)) }, true},
		{"its ABORT with the other tag", "10.0.0.10", func(l *sctptest.Lab) { l.Post(sctptest.Second, l.Tag, wire.AppendAbort(nil, false)) }, false},
		{"the peer's own", "10.0.0.10", func(l *sctptest.Lab) { l.Post(l.Peer, l.Tag, wire.AppendAbort(nil, false)) }, true},
		{"its report that it has no SCTP", "10.0.0.10", func(l *sctptest.Lab) { unreachableErrors(l) }, false},
		{"a third host's report", "10.0.0.11", func(l *sctptest.Lab) { unreachableErrors(l) }, true},
		{"its SHUTDOWN COMPLETE", "10.0.0.10", func(l *sctptest.Lab) { shutdownAcked(l) }, false},
		{"a third host's SHUTDOWN COMPLETE", "10.0.0.11", func(l *sctptest.Lab) { shutdownAcked(l) }, true},
	} {
		l := sctptest.TwoPaths(t)
		l.Host.Own = parseAddrs("10.0.0.1 " + row.own)
		row.send(l)
		l.Collect()
		_, ended := l.Host.DownErr()
		check.Equal(t, row.name+": ends the association", ended, row.ends)
	}
}

// unreachableErrors delivers protocol unreachable about a packet to the second address, when the
// peer has been silent for long.
func unreachableErrors(l *sctptest.Lab) {
	l.Now = l.Now.Add(time.Minute)
	quote := sctptest.Packet(sctptest.PortB, sctptest.PortA, l.PeerTag)
	l.DeliverPacket(rawio.Packet{Kind: rawio.KindProtoUnreachable, Data: quote, Remote: sctptest.Second})
}

// shutdownAcked has the peer end the association, and something at the second address say that it
// has none.
func shutdownAcked(l *sctptest.Lab) {
	l.Post(l.Peer, l.Tag, wire.AppendShutdown(nil, l.HostTSN-1))
	must.Equal(l.TB, "state", l.A.State(), assoc.ShutdownAckSent)
	l.Post(sctptest.Second, l.PeerTag, wire.AppendShutdownComplete(nil, true))
}
