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

// fromTo returns from where to where packets go in some minutes, during which the peer answers
// nothing, each once.
func fromTo(l *sctptest.Lab, first ...sctptest.SentPacket) (list []string) {
	note := func(p sctptest.SentPacket) {
		if w := p.From.Addr().String() + ">" + p.To.Addr().String(); !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	for _, p := range first {
		note(p)
	}
	l.Until(l.Now.Add(3*time.Minute), note)
	return list
}

// An endpoint without Config.LocalAddrs has one address that its peer knows. No packet goes to an
// address of another family, where it would leave from an address that the peer does not know, nor
// from another address of the same family that the link might choose: the peer would answer by
// ABORT. A peer that lists addresses of both families is as good as one that lists those of one.
func TestPacketsLeaveFromTheAddressThatThePeerKnows(t *testing.T) {
	for _, row := range []struct {
		name, own, peer, listed string
		want                    []string
	}{
		{"IPv4", "10.0.0.1", "10.0.0.9", "10.0.0.9 2001:db8::9 fd00::9", []string{"10.0.0.1>10.0.0.9"}},
		{"IPv4, with a second address", "10.0.0.1", "10.0.0.9", "2001:db8::9 10.1.0.9", []string{"10.0.0.1>10.0.0.9", "10.0.0.1>10.1.0.9"}},
		{"IPv6", "2001:db8::1", "2001:db8::9", "10.0.0.9 198.51.100.9 2001:db8::9", []string{"2001:db8::1>2001:db8::9"}},
		{"IPv6, with a second address", "2001:db8::1", "2001:db8::9", "198.51.100.9 2001:db8:1::9", []string{"2001:db8::1>2001:db8::9", "2001:db8::1>2001:db8:1::9"}},
		{"a link", "fe80::1%eth0", "fe80::9%eth0", "10.0.0.9 2001:db8::9 169.254.1.9", []string{"fe80::1%eth0>fe80::9%eth0", "fe80::1%eth0>2001:db8::9"}},
		{"a link of IPv4", "169.254.1.1", "169.254.1.9", "fe80::9 10.0.0.9 2001:db8::9", []string{"169.254.1.1>169.254.1.9", "169.254.1.1>10.0.0.9"}},
		{"IPv4 as IPv6", "::ffff:10.0.0.1", "::ffff:10.0.0.9", "2001:db8::9 10.1.0.9", []string{"10.0.0.1>10.0.0.9", "10.0.0.1>10.1.0.9"}},
		{"this host", "127.0.0.1", "127.0.0.9", "::1 10.0.0.9 2001:db8::9", []string{"127.0.0.1>127.0.0.9", "127.0.0.1>10.0.0.9"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			peer := netip.AddrPortFrom(netip.MustParseAddr(row.peer), 0)
			judge := func(side string, l *sctptest.Lab, first ...sctptest.SentPacket) {
				t.Helper()
				l.InState(assoc.Established)
				check.Slice(t, side+": ways", fromTo(l, first...), row.want)
				for _, p := range sctptest.Paths(l.A) {
					check.Equal(t, side+": the source of "+p.Remote.String(), p.Local.Addr(),
						netip.MustParseAddr(row.own).Unmap())
				}
			}
			bare := func() *sctptest.Lab {
				l := sctptest.NewLab(t)
				l.Peer, l.Host.Addr = peer, netip.AddrPortFrom(netip.MustParseAddr(row.own), 0)
				return l
			}
			cfg := &assoc.Config{AssocMaxRetrans: 1000}
			l := bare()
			l.Listen(cfg)
			l.Initiate(addressParams(parseAddrs(row.listed))...)
			judge("responder", l, onWay(l.Post(peer, l.Tag, wire.AppendCookieEcho(nil, l.Cookie)))...)

			l = bare()
			l.Dial(cfg, netip.AddrPort{}, peer) // the link chooses where the INIT leaves from
			l.ReadInit()
			first := l.Post(peer, l.Tag, sctptest.InitAckChunk(l.PeerTag, l.TSN, []byte("cookie!!"),
				addressParams(parseAddrs(row.listed))...))
			judge("initiator", l, onWay(append(first, l.Post(peer, l.Tag, wire.AppendCookieAck(nil))...))...)
		})
	}
}

// onWay leaves addresses as they are, but for IPv4-mapped ones, in which answers go back the way
// that they were asked for.
func onWay(list []sctptest.SentPacket) []sctptest.SentPacket {
	for i, p := range list {
		list[i].From, list[i].To = netip.AddrPortFrom(p.From.Addr().Unmap(), 0),
			netip.AddrPortFrom(p.To.Addr().Unmap(), 0)
	}
	return list
}

// Of several addresses of the peer, of both families, an INIT goes to each, and says that it is of
// one family. What the peer knows is where the INIT has left from that it answers: paths to
// addresses of the other family end then.
func TestOfBothFamiliesTheOneThatAnswersIsUsed(t *testing.T) {
	four, six := netip.MustParseAddrPort("10.0.0.9:0"), netip.MustParseAddrPort("[2001:db8::9]:0")
	more := addressParams(parseAddrs("10.1.0.9 2001:db8:1::9"))
	for _, row := range []struct {
		name  string
		own   string // Config.LocalAddrs
		to    []netip.AddrPort
		inits int // until the peer answers
		want  []string
	}{
		{"the first", "", []netip.AddrPort{four, six}, 1, []string{"10.0.0.1>10.0.0.9", "10.0.0.1>10.1.0.9"}},
		{"the first, of IPv6", "", []netip.AddrPort{six, four}, 1, []string{"2001:db8::1>2001:db8::9", "2001:db8::1>2001:db8:1::9"}},
		{"the second", "", []netip.AddrPort{four, six}, 2, []string{"2001:db8::1>2001:db8::9", "2001:db8::1>2001:db8:1::9"}},
		{"the first, again", "", []netip.AddrPort{six, four}, 3, []string{"2001:db8::1>2001:db8::9", "2001:db8::1>2001:db8:1::9"}},
		{"both, of which the peer is told both", "10.0.0.1 2001:db8::1", []netip.AddrPort{four, six}, 1,
			[]string{"10.0.0.1>10.0.0.9", "2001:db8::1>2001:db8::9", "10.0.0.1>10.1.0.9", "2001:db8::1>2001:db8:1::9"}},
		{"the second, where the peer is told neither", "192.168.0.1 fd00::1",
			[]netip.AddrPort{netip.MustParseAddrPort("198.51.100.9:0"), six}, 2,
			[]string{"fd00::1>2001:db8::9", "fd00::1>2001:db8:1::9"}},
		{"the first, where the peer is told the address of the other", "192.168.0.1 2001:db8::1",
			[]netip.AddrPort{netip.MustParseAddrPort("198.51.100.9:0"), six}, 1,
			[]string{"192.168.0.1>198.51.100.9", "2001:db8::1>2001:db8::9", "2001:db8::1>2001:db8:1::9"}},
		{"the second, where it is not told that of the first", "192.168.0.1 2001:db8::1",
			[]netip.AddrPort{netip.MustParseAddrPort("198.51.100.9:0"), six}, 2,
			[]string{"2001:db8::1>2001:db8::9", "2001:db8::1>2001:db8:1::9"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := sctptest.NewLab(t)
			if row.own != "" {
				l.Host.Addrs = parseAddrs(row.own)
				l.Host.Addr = netip.AddrPortFrom(l.Host.Addrs[0], 0)
			}
			l.Dial(&assoc.Config{LocalAddrs: parseAddrs(row.own), AssocMaxRetrans: 1000}, netip.AddrPort{}, row.to...)
			var out []sctptest.SentPacket
			for n := range row.inits {
				if n > 0 {
					l.Now = l.A.NextTimeout()
					l.A.HandleTimeout(l.Now)
				}
				out = l.Collect()
				must.That(t, len(out) == 1 && out[0].To == row.to[n%len(row.to)], "INIT %d: %s", n, sctptest.Text(out))
			}
			from := out[0].To
			out = l.Post(from, l.A.LocalTag(), sctptest.InitAckChunk(l.PeerTag, l.TSN, []byte("cookie!!"), more...))
			must.Equal(t, "in answer to INIT ACK", sctptest.Text(out), from.Addr().String()+": COOKIE ECHO")
			got := fromTo(l, append(out, l.Post(from, l.A.LocalTag(), wire.AppendCookieAck(nil))...)...)
			slices.Sort(got)
			slices.Sort(row.want)
			check.Slice(t, "ways", got, row.want)
			check.That(t, l.A.PathStats(0).Remote.IsValid() && l.A.PeerAddr() == from, "primary path to %v",
				l.A.PeerAddr())
		})
	}
}

// An INIT ACK that no INIT of its family can have asked for is nobody's.
func TestInitAckOfAFamilyThatWasNotAsked(t *testing.T) {
	l := sctptest.Active(t, &assoc.Config{LocalAddrs: parseAddrs("10.0.0.1")})
	out := l.SendFrom(netip.MustParseAddrPort("[2001:db8::9]:0"), l.Tag,
		sctptest.InitAckChunk(l.PeerTag, l.TSN, []byte("cookie!!")))
	l.Expect(out, "")
	l.InState(assoc.CookieWait)
	check.Equal(t, "ForeignSource", l.A.Stats().ForeignSource, 1)
}

// A peer that lists both families restarts, and lists them again. What it knows afterwards is
// where its INIT went.
func TestRestartOfADualStackPeer(t *testing.T) {
	l := sctptest.NewLab(t)
	l.Listen(&assoc.Config{AssocMaxRetrans: 1000})
	both := addressParams(parseAddrs("10.0.0.9 10.1.0.9 2001:db8::9"))
	l.Initiate(both...)
	l.Post(l.Peer, l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
	l.Host.Addr = netip.MustParseAddrPort("10.0.0.3:0") // another address of this host
	l.NoteInitAck(restartFrom(l, l.Peer, parseAddrs("10.0.0.9 10.1.0.9 2001:db8::9")).Pkt)
	out := l.Post(l.Peer, l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
	_, restarted := l.Host.Event(assoc.EventRestart)
	check.That(t, restarted, "no restart: %s", sctptest.Text(out))
	check.Slice(t, "ways", fromTo(l, out...), []string{"10.0.0.3>10.0.0.9", "10.0.0.3>10.1.0.9"})
}

// The peer of a collision knows the own address that it has sent its INIT to. Whether it is one
// that this side has chosen, and of which family, is no matter.
func TestCollisionWithADualStackPeer(t *testing.T) {
	four, six := netip.MustParseAddrPort("10.0.0.9:0"), netip.MustParseAddrPort("[2001:db8::9]:0")
	both := addressParams(parseAddrs("10.0.0.9 10.1.0.9 2001:db8::9"))
	for _, row := range []struct {
		name  string
		to    []netip.AddrPort // of the own INIT
		from  netip.AddrPort   // where the peer's comes from
		want  []string
		reply netip.AddrPort // where its INIT ACK goes
	}{
		{"by the same address", []netip.AddrPort{four}, four, []string{"10.0.0.1>10.0.0.9", "10.0.0.1>10.1.0.9"}, four},
		{"by one of two", []netip.AddrPort{four, six}, six, []string{"2001:db8::1>2001:db8::9"}, six},
		{"by one of the other family, which lists this one", []netip.AddrPort{six}, four, []string{"2001:db8::1>2001:db8::9"}, six},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := sctptest.NewLab(t)
			l.Host.Addrs = parseAddrs("10.0.0.1 2001:db8::1")
			l.Dial(&assoc.Config{AssocMaxRetrans: 1000}, netip.AddrPort{}, row.to...)
			l.ReadInit()
			out := l.Post(row.from, 0, sctptest.InitChunk(l.PeerTag, l.TSN, both...))
			// req 9260-5.2.1-2
			must.Equal(t, "in answer to INIT", sctptest.Text(out), row.reply.Addr().String()+": INIT ACK")
			l.NoteInitAck(out[0].Pkt)
			out = l.Post(row.reply, l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
			l.InState(assoc.Established)
			check.Slice(t, "ways", fromTo(l, out...), row.want)
		})
	}
}

// A peer that restarts from a place where less of this host means anything is told less, and known
// less by.
func TestRestartFromElsewhere(t *testing.T) {
	l := sctptest.NewLab(t)
	l.Host.Addrs = parseAddrs("10.0.0.1 198.51.100.1")
	l.Listen(&assoc.Config{LocalAddrs: l.Host.Addrs, AssocMaxRetrans: 1000})
	public := netip.MustParseAddrPort("192.0.2.9:0")
	l.Initiate(wire.AppendAddressParam(nil, public.Addr()))
	l.Post(l.Peer, l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
	var local []netip.Addr
	for _, p := range sctptest.Paths(l.A) {
		local = append(local, p.Local.Addr())
	}
	check.Slice(t, "sources", local, parseAddrs("10.0.0.1 198.51.100.1"))
	l.Host.Addr = netip.MustParseAddrPort("198.51.100.1:0")
	l.NoteInitAck(restartFrom(l, public, nil).Pkt)
	out := l.Post(public, l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
	check.Slice(t, "ways", fromTo(l, out...), []string{"198.51.100.1>192.0.2.9"})
}

// A link that does not tell where packets came to chooses where they leave from: paths stay within
// the family of the peer.
func TestFamilyOfALinkThatChoosesTheSource(t *testing.T) {
	l := sctptest.NewLab(t)
	l.Listen(&assoc.Config{AssocMaxRetrans: 1000})
	hand := func(tag uint32, chunk []byte) []sctptest.SentPacket {
		p := rawio.Packet{Data: sctptest.Packet(sctptest.PortA, sctptest.PortB, tag, chunk), Remote: l.Peer}
		l.Host.Receive(l.Now, &p)
		return l.Collect()
	}
	l.NoteInitAck(hand(0, sctptest.InitChunk(l.PeerTag, l.TSN,
		addressParams(parseAddrs("2001:db8::9 10.1.0.9"))...))[0].Pkt)
	out := hand(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
	l.A = l.Host.Assocs[0]
	check.Slice(t, "ways", fromTo(l, out...), []string{"invalid IP>10.0.0.9", "invalid IP>10.1.0.9"})
}
