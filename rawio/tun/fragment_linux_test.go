package tun_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/tun"
	"golang.org/x/sys/unix"
)

// A packet that may be fragmented passes a device that it is too long for; the host puts it
// together.
func TestPacketThatMayBeFragmentedPassesAShorterDevice(t *testing.T) {
	for i, family := range []string{"IPv4", "IPv6"} {
		t.Run(family, func(t *testing.T) {
			ns := newRouter(t)
			l := openLink(t, ns, tun.Config{Host: host1, Addrs: addr1, MTU: 1400})
			var host *raw.Link
			ns.Do(func() (err error) {
				host, err = raw.Open(raw.Config{Local: host1[i].Addr(), Ports: []uint16{20002}})
				return err
			})
			defer host.Close()
			long, short := linktest.Pattern(9000), linktest.Pattern(1000)
			for _, b := range [][]byte{long, short} {
				binary.BigEndian.PutUint16(b, 20001)
				binary.BigEndian.PutUint16(b[2:], 20002)
			}
			linktest.CheckFragmentation(t, l, host, addrPortOf(addr1[i]), addrPortOf(host1[i].Addr()), long, short,
				9000)
		})
	}
}

// Fragments that arrive are put together: those that the host makes, those of another link, and
// those that a router has cut again. Other packets pass them by.
func TestFragmentsOfOthersArePutTogether(t *testing.T) {
	for i, family := range []string{"IPv4", "IPv6"} {
		t.Run(family, func(t *testing.T) {
			ns := newRouter(t)
			a := openLink(t, ns, tun.Config{Host: host1, Addrs: addr1, MTU: 1500})
			b := openLink(t, ns, tun.Config{Host: host2, Addrs: addr2, MTU: 1280})
			long, short := linktest.Pattern(9000), linktest.Pattern(1000)
			mtu := []int{1500, 1280}[i] // IPv6 routers do not cut
			for range 100 {
				linktest.WriteAll(t, a,
					rawio.Packet{Vec: [][]byte{long}, Remote: addrPortOf(addr2[i]), ECN: rawio.ECT0, Fragment: mtu},
					rawio.Packet{Vec: [][]byte{short}, Remote: addrPortOf(addr2[i])})
				pkts := linktest.ReadPackets(t, b, 2)
				p := pkts[0]
				must.That(t, bytes.Equal(p.Data, long) && p.Kind == rawio.KindSCTP && p.Local == addrPortOf(addr2[i]) &&
					p.Remote == addrPortOf(addr1[i]) && p.ECN == rawio.ECT0 && p.Buf.Refs() == 1,
					"%d octets from %v to %v, ECN %d", len(p.Data), p.Remote, p.Local, p.ECN)
				must.Slice(t, "octets of the second", pkts[1].Data, short)
				pkts[0].Release()
				pkts[1].Release()
			}
			s := b.Stats()
			check.That(t, s.RxReassembled == 100 && s.RxPackets == 200 && s.RxFragments >= 800 && s.RxFragmentsBad+
				s.RxFragmentsLate+s.RxFragmentsFull+s.RxMalformed == 0, "stats %+v", s)
			host := hostSocket(t, ns, i)
			sendRaw(t, host, addr2[i], linktest.Pattern(60000))
			p := linktest.ReadPackets(t, b, 1)[0]
			check.That(t, bytes.Equal(p.Data, linktest.Pattern(60000)) && p.Remote == addrPortOf(host2[i].Addr()),
				"%d octets from %v", len(p.Data), p.Remote)
			p.Release()
		})
	}
}

// hostSocket is a raw socket of the host's for SCTP, whose packets it cuts to what the device
// carries.
func hostSocket(t *testing.T, ns *testns.NS, i int) int {
	fd := rawSocket(t, ns, []int{unix.AF_INET, unix.AF_INET6}[i], unix.IPPROTO_SCTP)
	if i == 0 {
		must.OK(t, unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DONT))
	}
	return fd
}

// IPv6 packets by hand, from the host: fragments behind and in front of extension headers, atomic
// ones (RFC 6946), those of other protocols, and first ones without the upper layer's header (RFC
// 8200 section 4.5).
func TestFragmentsOfIPv6(t *testing.T) {
	ns := newRouter(t)
	l := openLink(t, ns, tun.Config{Host: host1, Addrs: addr1})
	fd := rawSocket(t, ns, unix.AF_INET6, unix.IPPROTO_RAW) // with headers of ours
	const destination, fragment, sctp, udp = 60, 44, 132, 17
	options := func(next byte) []byte { return []byte{next, 0, 1, 4, 0, 0, 0, 0} }
	header := func(next byte, at uint16, more byte, id byte) []byte {
		return []byte{next, 0, byte(at >> 8), byte(at) | more, 0, 0, 0, id}
	}
	packetOf := func(next byte, parts ...[]byte) {
		b := bytes.Join(parts, nil)
		h := make([]byte, 40)
		h[0], h[6], h[7] = 6<<4, next, 64
		binary.BigEndian.PutUint16(h[4:], uint16(len(b)))
		src, dst := host1[1].Addr().As16(), addr1[1].As16()
		copy(h[8:], src[:])
		copy(h[24:], dst[:])
		sendRaw(t, fd, addr1[1], append(h, b...))
	}
	whole := linktest.Pattern(100)
	packetOf(destination, options(fragment), header(sctp, 48, 0, 1), whole[48:])
	packetOf(destination, options(fragment), header(sctp, 0, 1, 1), whole[:48])
	packetOf(fragment, header(destination, 0, 1, 2), options(sctp), whole[:40])
	// atomic, with the identification of those around it
	packetOf(fragment, header(sctp, 0, 0, 2), whole)
	// only what the first one names next counts
	packetOf(fragment, header(udp, 48, 0, 2), whole[40:])
	packetOf(fragment, header(udp, 0, 1, 3), whole[:8])                                 // another protocol
	packetOf(fragment, header(sctp, 0, 1, 4), whole[:8])                                // no whole common header
	packetOf(fragment, header(destination, 0, 1, 5), []byte{sctp, 9, 1, 4, 0, 0, 0, 0}) // nor all options
	packetOf(udp, whole[:8])
	packetOf(sctp, whole)
	for i, p := range linktest.ReadPackets(t, l, 4) {
		check.That(t, bytes.Equal(p.Data, whole) && p.Local == addrPortOf(addr1[1]) &&
			p.Remote == addrPortOf(host1[1].Addr()),
			"packet %d: %d octets", i, len(p.Data))
		p.Release()
	}
	s := l.Stats()
	check.That(t, s.RxFragments == 4 && s.RxReassembled == 2 && s.RxOther == 2 && s.RxMalformed == 2, "stats %+v", s)
}

// Fragments for another host's address are not kept; those that contradict each other, or that
// nobody completes, are counted.
func TestFragmentsThatAreDropped(t *testing.T) {
	ns := newRouter(t)
	l := openLink(t, ns, tun.Config{Host: host1[:1], Addrs: addr1[:1]})
	fd := rawSocket(t, ns, unix.AF_INET, unix.IPPROTO_RAW) // with headers of ours
	fragment := func(dst netip.Addr, id, at, n int, more byte) {
		h := make([]byte, 20, 20+n)
		h[0], h[6], h[7], h[8], h[9] = 0x45, more<<5|byte(at>>11), byte(at>>3), 64, unix.IPPROTO_SCTP
		binary.BigEndian.PutUint16(h[4:], uint16(id))
		src, d := host1[0].Addr().As4(), dst.As4()
		copy(h[12:], src[:])
		copy(h[16:], d[:])
		sendRaw(t, fd, dst, append(h, linktest.Pattern(n)...)) // the kernel fills in the rest
	}
	fragment(netip.MustParseAddr("10.9.1.77"), 1, 0, 800, 1)
	fragment(addr1[0], 1, 0, 800, 1)
	fragment(addr1[0], 1, 792, 800, 0) // overlaps
	fragment(addr1[0], 1, 800, 800, 0)
	fragment(addr1[0], 2, 8, 7, 1) // of no multiple of 8
	for id := range 200 {          // more than the 128 that may wait of one source
		fragment(addr1[0], 1000+id, 0, 8, 1)
	}
	fragment(addr1[0], 2000, 16, 4, 0)
	fragment(addr1[0], 2000, 8, 8, 1)
	fragment(addr1[0], 2000, 0, 8, 1)
	p := linktest.ReadPackets(t, l, 1)[0] // it took the place of one
	check.Equal(t, "octets", len(p.Data), 20)
	p.Release()
	s := l.Stats()
	check.That(t, s.RxFragments == 206 && s.RxReassembled == 1 && s.RxPackets == 1 && s.RxFragmentsBad == 3 &&
		s.RxFragmentsFull == 200-127 && s.RxFragmentsLate == 0 && s.RxMalformed == 1 && s.RxNotOurs >= 1, "stats %+v",
		s)
}
