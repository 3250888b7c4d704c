package mmsg

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/wait"
	"golang.org/x/sys/unix"
)

// bare adds nothing to a datagram: these tests run over a pair of Unix sockets, which lose nothing.
type bare struct{}

func (bare) Decode(m *Message, p *rawio.Packet) bool {
	p.Data = m.Data
	return len(m.Data) > 0
}
func (bare) DecodeError(*ICMPError, *rawio.Packet) bool { return false }
func (bare) Encode(p *rawio.Packet, o *Outgoing) error  { return nil }

func newPair(t *testing.T, spin time.Duration) (a, b *Group) {
	t.Helper()
	fds := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))(t)
	group := func(fd int) *Group {
		s := must.Get(NewSocket(fd, false, bare{}))(t)
		g := must.Get(NewGroup(spin, s))(t)
		g.drainErrorsFunc = func(uintptr) {} // a Unix socket has no error queue, and would give a datagram instead
		t.Cleanup(func() { g.Close() })
		return g
	}
	return group(fds[0]), group(fds[1])
}

var anywhere = netip.MustParseAddrPort("127.0.0.1:1")

// Writers that find the queue full wait for the reader and go on; nothing is lost or mixed up.
func TestFullQueueBlocksWriters(t *testing.T) {
	for _, spin := range []time.Duration{0, 20 * time.Microsecond} {
		a, b := newPair(t, spin)
		// what two Unix sockets have between them
		must.OK(t, unix.SetsockoptInt(a.sockets[0].fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 1<<16))
		const writers, each = 4, 500
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				pkts := make([]rawio.Packet, 50)
				for i := 0; i < each; i += len(pkts) {
					for k := range pkts {
						head, body := make([]byte, 8), bytes.Repeat([]byte{byte(w)}, 1000+i+k)
						binary.BigEndian.PutUint32(head, uint32(w))
						binary.BigEndian.PutUint32(head[4:], uint32(i+k))
						pkts[k] = rawio.Packet{Vec: [][]byte{head, body}, Remote: anywhere}
					}
					n, err := a.WriteBatch(pkts)
					check.That(t, n == len(pkts) && err == nil, "WriteBatch = %d, %v", n, err)
				}
			})
		}
		for wait.WaitWritable(uintptr(a.sockets[0].fd)) { // until it is full
			runtime.Gosched()
		}
		var next [writers]int
		in := make([]rawio.Packet, 7)
		for total := 0; total < writers*each; {
			n := must.Get(b.ReadBatch(in))(t)
			for i := range in[:n] {
				d := in[i].Data
				w, k := binary.BigEndian.Uint32(d), int(binary.BigEndian.Uint32(d[4:]))
				must.That(t, next[w] == k && bytes.Equal(d[8:], bytes.Repeat([]byte{byte(w)}, 1000+k)),
					"writer %d: packet %d of %d octets, want packet %d", w, k, len(d), next[w])
				next[w]++
				in[i].Release()
			}
			total += n
		}
		wg.Wait()
	}
}

// Where nothing leaves a full socket for a second, the packet is refused, and nobody waits for it
// again before there is room.
func TestFullSocketKeepsNoWriterForLong(t *testing.T) {
	a, b := newPair(t, 0)
	s, w := a.sockets[0], newSender()
	waits := 0
	w.sendWhenWritable = func(uintptr) { waits++; w.writeTimeouts++ } // without success
	s.idleSenders.put(w)
	in, out := make([]rawio.Packet, 1), make([]rawio.Packet, 4)
	for i := range out {
		out[i] = rawio.Packet{Vec: [][]byte{make([]byte, 1000)}, Remote: anywhere}
	}
	fill := func() {
		t.Helper()
		var err error
		for err == nil {
			_, err = a.WriteBatch(out)
		}
		must.Equal(t, "error of a full socket", err, rawio.ErrFull)
	}
	read := func() {
		for b.PollBatch(in) > 0 {
			in[0].Release()
		}
	}
	for range 2 {
		waits = 0
		fill()
		check.Equal(t, "waits for the first that finds it full", waits, 100)
		fill()
		check.Equal(t, "waits once it is known", waits, 100)
		read()
		must.Do(a.WriteBatch(out[:1]))(t)
	}
	check.Equal(t, "packets refused", a.Stats.TxFull.Load(), 4)
}

// Sockets of a link that is read take turns: what waits in one is read though another has more than
// fills the room, time after time.
func TestSocketsTakeTurns(t *testing.T) {
	for count := 2; count <= 3; count++ {
		for full := range count { // the one that has the most
			var socks []*Socket
			for i := range count {
				fds := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))(t)
				s, out := must.Get(NewSocket(fds[0], false, bare{}))(t), must.Get(NewSocket(fds[1], false, bare{}))(t)
				socks = append(socks, s)
				t.Cleanup(func() { out.Close() })
				for range map[bool]int{true: 100, false: 3}[i == full] {
					must.Do(unix.Write(fds[1], []byte{byte(i)}))(t)
				}
			}
			g := must.Get(NewGroup(-1, socks...))(t)
			g.drainErrorsFunc = func(uintptr) {}
			in, got := make([]rawio.Packet, 4), make([]int, count)
			for range count + 1 { // so that each has had a turn, wherever they begin
				for _, p := range in[:g.PollBatch(in)] {
					got[p.Data[0]]++
					p.Release()
				}
			}
			for i, n := range got {
				check.That(t, n > 0, "%d sockets, of which %d fills the room: nothing of %d is read, %v", count, full,
					i, got)
			}
			g.Close()
		}
	}
}

// The receiver copies together the first packets that do not fit a small buffer, goes over to large
// ones, and comes back when packets have been small for long.
func TestReceiveBuffersFollowThePackets(t *testing.T) {
	a, b := newPair(t, 0)
	in := make([]rawio.Packet, 3)
	var held []rawio.Packet
	move := func(sizes ...int) {
		t.Helper()
		var out []rawio.Packet
		for _, n := range sizes {
			d := make([]byte, n)
			for i := range d {
				d[i] = byte(i*11 + n)
			}
			out = append(out, rawio.Packet{Vec: [][]byte{d}, Remote: anywhere})
		}
		n, err := a.WriteBatch(out)
		must.That(t, err == nil, "WriteBatch = %d, %v", n, err)
		for got := 0; got < len(out); {
			n := must.Get(b.ReadBatch(in))(t)
			for i := range in[:n] {
				must.That(t, bytes.Equal(in[i].Data, out[got+i].Vec[0]),
					"a packet of %d octets came as %d, or changed", len(out[got+i].Vec[0]), len(in[i].Data))
			}
			held = append(held, in[:n]...)
			got += n
		}
	}
	release := func() {
		for i := range held {
			held[i].Release()
		}
		held = held[:0]
	}
	move(2048, 2049, 3000, 65535, 100)
	check.That(t, b.receiver.usesLarge, "small buffers after large packets")
	check.Equal(t, "large messages of a system call", len(b.receiver.prepareMessages(MaxMessagesPerCall)),
		maxLargeMessages)
	move(65535, 1, 65535, 2048)
	release()
	for range smallStreakLimit + maxLargeMessages {
		move(100)
		release()
	}
	check.That(t, !b.receiver.usesLarge, "large buffers after small packets only")
	move(2049)
	release()
	b.Close()
	_, err := b.ReadBatch(in)
	check.That(t, err != nil, "ReadBatch after Close succeeded")
	check.Equal(t, "buffers leaked", b.receiver.small.Outstanding()+b.receiver.large.Outstanding(), 0)
}

func TestMalformedIsCountedAndSkipped(t *testing.T) {
	a, b := newPair(t, 0)
	bad, in := rawio.Packet{Remote: anywhere}, make([]rawio.Packet, 4)
	must.Do(a.WriteBatch([]rawio.Packet{bad, bad, bad, bad, bad, {Vec: [][]byte{{1}}, Remote: anywhere}}))(t)
	must.Equal(t, "packets behind more of them than are read at a time", b.PollBatch(in), 1)
	in[0].Release()
	check.Equal(t, "malformed", b.Stats.RxMalformed.Load(), 5)
}

// An error that stays is the packet's. This socket first reports ECONNREFUSED, which might be about
// an earlier packet and is tried again, and then has no peer any more.
func TestErrorStopsTheBatch(t *testing.T) {
	a, b := newPair(t, 0)
	b.Close()
	n, err := a.WriteBatch([]rawio.Packet{{Vec: [][]byte{{1}}, Remote: anywhere}})
	var sys *os.SyscallError
	check.That(t, n == 0 && errors.As(err, &sys) && sys.Err == unix.ENOTCONN, "WriteBatch to a closed peer = %d, %v",
		n, err)
	n, err = a.WriteBatch([]rawio.Packet{{Remote: netip.MustParseAddrPort("[::1]:1")}, {}})
	check.That(t, n == 0 && err != nil, "WriteBatch without a socket of the family = %d, %v", n, err)
	check.Equal(t, "errors", a.Stats.TxErrors.Load(), 2)
	n, err = a.ReadBatch(nil)
	check.That(t, n == 0 && err != nil, "ReadBatch without room = %d, %v", n, err)
}

func TestControlMessages(t *testing.T) {
	var o Outgoing
	from4, from6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	o.SetSource(from6)
	o.SetClass(3, true)
	if c, _ := parseControl(controlBytes(&o.control)[:o.controlLen]); c.Local != from6 || c.ECN != 3 {
		t.Errorf("IPv6: %+v", c)
	}
	o = Outgoing{}
	o.SetSource(netip.MustParseAddr("fe80::1%lo"))
	link, _ := parseControl(controlBytes(&o.control)[:o.controlLen])
	check.Equal(t, "a link-local source, of whose interface the destination says nothing", link.Local.String(),
		"fe80::1%lo")
	o = Outgoing{}
	o.SetSource(from4)
	o.SetClass(2, false)
	c, _ := parseControl(controlBytes(&o.control)[:o.controlLen])
	check.Equal(t, "IPv4: ECN", c.ECN, 2)
	for cut := range o.controlLen { // a cut-off message is left out, and none reads beyond the end
		parseControl(controlBytes(&o.control)[:cut])
	}
}

// A control message says something when level, type and length are as they should be, and else
// nothing.
func TestControlMessagesAreKnownByLevelTypeAndLength(t *testing.T) {
	type said struct {
		Control
		extendedErr
	}
	type row struct {
		level, typ int
		data       []byte
		want       said
	}
	ne := binary.NativeEndian
	one := make([]byte, 20) // 1, 2, 3...
	for i := range one {
		one[i] = byte(i + 1)
	}
	local := append([]byte{0xfe, 0x80, 15: 1}, 0, 0, 0, 0)
	ne.PutUint32(local[16:], 1)
	err := extendedErr{errno: ne.Uint32(one), origin: 5, typ: 6, code: 7, info: ne.Uint32(one[8:]),
		data: ne.Uint32(one[12:])}
	var tos [4]byte
	ne.PutUint32(tos[:], 0xb9)
	rows := []row{
		{unix.IPPROTO_IP, unix.IP_PKTINFO, one[:12], said{Control: Control{Local: netip.AddrFrom4([4]byte{9, 10, 11, 12})}}},
		{unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, one, said{Control: Control{Local: netip.AddrFrom16([16]byte(one))}}},
		{unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, local, said{Control: Control{Local: netip.MustParseAddr("fe80::1%lo")}}},
		{unix.IPPROTO_IP, unix.IP_TOS, []byte{0xb9}, said{Control: Control{ECN: 1}}},
		{unix.IPPROTO_IPV6, unix.IPV6_TCLASS, tos[:], said{Control: Control{ECN: 1}}},
		{unix.SOL_UDP, unix.UDP_GRO, tos[:], said{Control: Control{segmentSize: 0xb9}}},
		{unix.IPPROTO_IP, unix.IP_RECVERR, one[:16], said{extendedErr: err}},
		{unix.IPPROTO_IPV6, unix.IPV6_RECVERR, one[:16], said{extendedErr: err}},
	}
	for _, r := range rows {
		for _, level := range []int{unix.IPPROTO_IP, unix.IPPROTO_IPV6, unix.SOL_UDP, unix.SOL_SOCKET} {
			for typ := range 256 {
				for _, n := range []int{len(r.data), len(r.data) - 1} {
					own := level == r.level && typ == r.typ && n == len(r.data)
					if !own && slices.ContainsFunc(rows, func(o row) bool {
						return o.level == level && o.typ == typ && len(o.data) <= n
					}) {
						continue // that of another row
					}
					var buf controlBuf
					at := 0
					copy(buf.appendMessage(&at, level, typ, n), r.data)
					c, e := parseControl(controlBytes(&buf)[:at])
					want := (map[bool]said{true: r.want})[own]
					check.That(t, (said{c, e}) == want, "level %d, type %d, %d octets: %+v, want %+v", level, typ, n,
						said{c, e}, want)
				}
			}
		}
	}
}

// A system call takes so many messages, and octets of more than one message.
func TestSystemCallIsBounded(t *testing.T) {
	for _, row := range []struct{ packets, octets, want int }{{40, 10, MaxMessagesPerCall},
		{40, maxOctetsPerCall / 8, 8}, {40, maxOctetsPerCall/8 + 1, 7}, {1, maxOctetsPerCall + 1, 1}} {
		s, p := newSender(), rawio.Packet{Vec: [][]byte{make([]byte, row.octets)}, Remote: anywhere}
		must.OK(t, s.encodeBatch(slices.Repeat([]rawio.Packet{p}, row.packets), bare{}, false, false))
		check.Equal(t, "messages", s.messages, row.want)
	}
	check.That(t, newSender().encodeBatch(packetSequence(1, 13), loop{}, false, false) != nil,
		"what the codec refuses is taken")
}

// What is said about a packet that is sent alone, and which errors are about another one.
func TestErrorsOfAPacketSentAlone(t *testing.T) {
	g, addr := udpSocket(t, netip.AddrPort{})
	s := g.SocketOfFamily(addr.Addr())
	other, none := g.SocketOfFamily(netip.IPv6Loopback()), g.SocketOfFamily(netip.Addr{})
	check.That(t, g.SocketOfFamily(netip.AddrFrom16(addr.Addr().As16())) == s && other == nil && none == nil,
		"sockets of other addresses: %v, %v", other, none)
	for n, want := range map[int]error{100: nil, 65507: nil, 65508: rawio.ErrTooLong} {
		err := s.SendSingle(make([]byte, n), addr.Addr(), addr)
		check.That(t, err == want, "%d octets: %v, want %v", n, err, want)
	}
	var sys *os.SyscallError
	err := s.SendSingle(nil, netip.Addr{}, netip.MustParseAddrPort("255.255.255.255:1"))
	check.That(t, errors.As(err, &sys) && sys.Err == unix.EACCES, "to everybody: %v", err)
	check.Error(t, "an option of no socket", SetOptions(-1, EnableOption(unix.SOL_SOCKET, unix.SO_BROADCAST)),
		unix.EBADF)
	s.Close()
	check.Error(t, "Close when a socket is closed", g.Close(), os.ErrClosed)
	check.Equal(t, "second Close", g.Close(), net.ErrClosed)
	check.Equal(t, "after Close", s.SendSingle(nil, addr.Addr(), addr), net.ErrClosed)
	n, segment := 0, 0
	for e := range syscall.Errno(200) {
		if isFromICMP(e) {
			n++
		}
		if isSegmentationErrno(e) {
			segment++
		}
	}
	check.That(t, n == 10 && segment == 3 && isSegmentationErrno(unix.EIO),
		"%d errors that the kernel makes of ICMP, %d about segmentation", n, segment)
}

func TestZoneOfAnAddressSurvivesTheKernel(t *testing.T) {
	var s sockaddr
	a := netip.MustParseAddr("fe80::1%lo")
	check.That(t, s.setAddr(a, 7) == unix.SizeofSockaddrInet6 && s.Scope_id != 0, "scope %d", s.Scope_id)
	check.Equal(t, "came back as", s.toAddrPort(), netip.AddrPortFrom(a, 7))
	check.Equal(t, "index of an unknown zone", zoneIndex("no such interface"), 0)
	check.Equal(t, "index that no interface has", zoneIndex("4294967297"), 0)
	i := zoneIndex("4711")
	check.That(t, i == 4711 && zoneName(4711) == "4711", "a number as the zone has index %d", i)
}

// A program that may not go beyond the system's limit of a buffer gets what is up to it.
func TestBuffersOfWhoMayNotForceThem(t *testing.T) {
	fds := must.Get(unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))(t)
	defer unix.Close(fds[1])
	must.OK(t, unix.SetsockoptInt(fds[1], unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBufOctets))
	var s *Socket
	testns.New(t).Do(func() (err error) {
		if err = testns.Refuse(unix.EPERM, unix.SYS_SETSOCKOPT, -1, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE); err == nil {
			s, err = NewSocket(fds[0], false, bare{})
		}
		return err
	})
	defer s.Close()
	check.Equal(t, "octets", 2*s.ReceiveBuffer(),
		must.Get(unix.GetsockoptInt(fds[1], unix.SOL_SOCKET, unix.SO_RCVBUF))(t))
	testns.New(t).Do(func() error {
		must.OK(t, testns.Refuse(unix.EMFILE, unix.SYS_EVENTFD2))
		g, err := NewGroup(0, s)
		check.That(t, g == nil && errors.Is(err, unix.EMFILE) && s.Close() != nil,
			"a group that cannot wait, which closes its sockets: %v, %v", g, err)
		return nil
	})
}
