package raw_test

import (
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"os"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// By whichever socket a packet leaves, its header is the same, but for its length and what follows
// from that, and for the identification, which says nothing of a packet that is not to be cut (RFC
// 6864 section 4.1).
func TestShortPacketsHaveTheHeadersOfLongOnes(t *testing.T) {
	ns := testns.New(t)
	var tap int
	ns.Do(func() (err error) {
		const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8 // in network order
		tap, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, all)
		return err
	})
	defer unix.Close(tap)
	other := netip.MustParseAddr("127.0.0.2")
	for _, cfg := range []raw.Config{{}, {Local: v4}, {Local: other}, {Local: netip.IPv4Unspecified()}, {Peer: v4},
		{Mark: rawio.Mark{TTL: 3, Class: 0xb8}}} {
		l := openLink(t, ns, cfg)
		for _, p := range []rawio.Packet{{}, {Local: addrPortOf(v4)}, {Local: addrPortOf(other)},
			{Local: addrPortOf(other), ECN: rawio.ECT0},
			{Local: addrPortOf(v4), DSCP: 46}} {
			t.Run(fmt.Sprintf("link from %v to %v with %v, packet from %v with %d, %d", cfg.Local, cfg.Peer, cfg.Mark,
				p.Local.Addr(), p.DSCP, p.ECN), func(t *testing.T) {
				var heads [2][]byte
				for i, n := range []int{100, 2049} {
					data := fakePacket(20001, uint16(20002+i), n)
					p.Remote, p.Vec = addrPortOf(v4), [][]byte{data}
					linktest.WriteAll(t, l, p)
					b := make([]byte, 4096)
					for n := 0; !bytes.HasSuffix(b[:n], data); {
						n = must.Get(unix.Read(tap, b))(t)
					}
					heads[i] = b[:20]
					check.That(t, b[6] == 0x40 && b[7] == 0, "%d octets: flags and offset %x, want DF alone", n, b[6:8])
					clear(b[2:6])
					clear(b[10:12])
				}
				check.Slice(t, "header of the short one", heads[0], heads[1])
			})
		}
	}
}

// Nor need the loopback device ever have been up: in a network namespace it is not, to begin with.
func TestShortPacketsNeedNoLoopback(t *testing.T) {
	a, b := testns.New(t), testns.New(t)
	own, peer := netip.MustParsePrefix("10.77.0.1/24"), netip.MustParsePrefix("10.77.0.2/24")
	testns.Veth(a, b, "cable", 1500, own, peer)
	a.Do(func() error {
		return netlink.AddrDel(must.Get(netlink.LinkByName("lo"))(t), must.Get(netlink.ParseAddr("127.0.0.1/8"))(t))
	})
	far := openLink(t, b, raw.Config{NoPortFilter: true})
	for _, cfg := range []raw.Config{{Local: own.Addr()}, {}} {
		l := openLink(t, a, cfg)
		a.Do(func() error {
			table, err := os.ReadFile("/proc/thread-self/net/raw")
			check.That(t, bytes.Contains(table, []byte(" 01004D0A:0000")), "no socket is connected to %v:\n%s", own,
				table)
			return err
		})
		linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{fakePacket(1, 2, 100)}, Local: addrPortOf(own.Addr()),
			Remote: addrPortOf(peer.Addr())})
		got := linktest.ReadPackets(t, far, 1)[0]
		check.That(t, len(got.Data) == 100 && got.Remote.Addr() == own.Addr(), "%d octets come from %v",
			len(got.Data), got.Remote)
		rawio.ReleaseAll([]rawio.Packet{got})
	}
}

// A short packet may be too long for a device, and that is told as of a long one.
func TestShortPacketIsTooLongForADevice(t *testing.T) {
	ns := testns.New(t)
	ns.SetMTU("lo", 1000)
	l := openLink(t, ns, raw.Config{Local: v4})
	for _, n := range []int{980, 981} {
		sent, err := l.WriteBatch([]rawio.Packet{{Vec: [][]byte{fakePacket(1, 2, n)}, Remote: addrPortOf(v4)}})
		if n == 980 {
			check.That(t, sent == 1 && err == nil, "%d octets: %d sent, %v", n, sent, err)
		} else {
			check.That(t, sent == 0 && err == rawio.ErrTooLong, "%d octets: %d sent, %v, want %v", n, sent, err,
				rawio.ErrTooLong)
		}
	}
}

// Where short packets have no socket of their own, they leave by the other one.
func TestShortPacketsNeedNoSocketOfTheirOwn(t *testing.T) {
	testns.Refusals(t, func() (io.Closer, error) {
		l, err := raw.Open(raw.Config{Local: v4})
		if err == nil {
			linktest.WriteAll(t, l, rawio.Packet{Vec: [][]byte{fakePacket(1, 2, 40)}, Remote: addrPortOf(v4)})
		}
		return l, err
	},
		testns.DoesWithout("no way to nobody", unix.ENETUNREACH, unix.SYS_CONNECT),
		testns.DoesWithout("no time to live", unix.ENOPROTOOPT, unix.SYS_SETSOCKOPT, -1, unix.IPPROTO_IP, unix.IP_TTL))
}
