package compat

import (
	"net"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp"
	"golang.org/x/sys/unix"
)

// What a program sets on the descriptor holds for the socket, which is found by it and by a dup of
// it, and for what follows.
func TestTheDescriptorIsThatOfTheSocket(t *testing.T) {
	l, at := listenSocket(t)
	var dup int
	must.OK(t, l.Control(func(fd uintptr) {
		must.OK(t, unix.SetsockoptTimeval(int(fd), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 1000}))
		must.OK(t, unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 9000))
		dup = must.Get(unix.Dup(int(fd)))(t)
	}))
	defer unix.Close(dup)
	checkSame(t, Find(dup), l)
	_, err := l.Accept()
	checkSame(t, err, error(syscall.EAGAIN))
	must.OK(t, l.SetNonblock(true))
	_, err = l.Accept()
	checkSame(t, err, error(syscall.EAGAIN))

	c := NewSocket(false, false)
	must.OK(t, c.SetBuffer(false, 9000))
	checkSame(t, must.Get(c.Buffer(false))(t), 18000) // as Linux counts
	must.OK(t, c.Control(func(fd uintptr) {
		checkSame(t, Find(int(fd)), c)
		must.OK(t, unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}))
		must.OK(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, 46<<2))
	}))
	must.Get(c.Connect(at))(t)
	s := must.Get(l.Accept())(t)
	checkSame(t, c.conn.Stats().RecvWindow, 18000)
	checkSame(t, c.conn.Paths()[0].DSCP, uint8(46))
	must.OK(t, c.Close())
	checkSame(t, readSocket(s, 9), recv{err: syscall.ECONNRESET})
	fd := must.Get(s.Descriptor())(t)
	must.OK(t, s.Close())
	checkSame(t, Find(fd), (*Socket)(nil))

	for _, kind := range []struct{ v6, v6only bool }{{false, false}, {true, false}, {true, true}} {
		s := NewSocket(kind.v6, kind.v6only)
		must.OK(t, s.SetTimeout(false, 1500*time.Millisecond))
		must.OK(t, s.SetTimeout(true, 2500*time.Millisecond))
		fd := must.Get(s.Descriptor())(t)
		key := must.Get(placeholderKey(fd))(t)
		domain := must.Get(unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN))(t)
		check.That(t, (domain == unix.AF_INET6) == kind.v6, "%+v: domain %d", kind, domain)
		if kind.v6 {
			check.Equal(t, "IPV6_V6ONLY", must.Get(unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY))(t),
				boolInt(kind.v6only))
		}
		for opt, want := range map[int]time.Duration{unix.SO_RCVTIMEO: 1500 * time.Millisecond,
			unix.SO_SNDTIMEO: 2500 * time.Millisecond} {
			tv := must.Get(unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, opt))(t)
			check.Equal(t, "timeout", time.Duration(tv.Nano()), want)
		}
		check.That(t, s.readWaits.timeout == 1500*time.Millisecond && s.writeWaits.timeout == 2500*time.Millisecond,
			"%v, %v", s.readWaits.timeout, s.writeWaits.timeout)
		must.OK(t, s.Control(func(fd uintptr) {
			must.OK(t, unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER,
				&unix.Linger{Onoff: 1, Linger: 3}))
		}))
		check.That(t, s.opts.linger && s.opts.lingerTime == 3*time.Second, "lingers for %v", s.opts.lingerTime)
		must.OK(t, s.SetNonblock(true))
		check.That(t, s.readWaits.nonblock && s.writeWaits.nonblock, "O_NONBLOCK is not heeded")
		must.OK(t, s.Close())
		now, err := placeholderKey(fd)
		check.That(t, err != nil || now != key, "the descriptor stays open")
		check.Equal(t, "the descriptor of a closed socket", s.placeholderFD, -1)
		s.ReadBack() // which reads nobody else's
	}

	twice := l.Dup()
	must.OK(t, l.Close())
	checkSame(t, twice.Closed(), false)
	must.OK(t, twice.Close())
	checkSame(t, Find(dup), (*Socket)(nil))
	checkSame(t, twice.Control(nil), error(syscall.EBADF))
}

// What is set on a listener's descriptor is on those of the sockets that it accepts, and a socket
// of IPv6 has the class of either family.
func TestAcceptedSocketsHaveTheDescriptorsOptions(t *testing.T) {
	for _, row := range []struct {
		name         string
		v6           bool
		to           string
		level, class int
	}{
		{"IPv4", false, "127.0.0.1", unix.IPPROTO_IP, unix.IP_TOS}, {"IPv6", true, "::1", unix.IPPROTO_IPV6, unix.IPV6_TCLASS},
		{"IPv6, that of IPv4", true, "127.0.0.1", unix.IPPROTO_IP, unix.IP_TOS},
	} {
		l := NewSocket(row.v6, false)
		must.OK(t, l.Bind(RawAddrs([]net.IPAddr{{IP: net.ParseIP(row.to)}}, 0), false))
		must.OK(t, l.Listen())
		must.OK(t, l.Control(func(fd uintptr) {
			must.OK(t, unix.SetsockoptInt(int(fd), row.level, row.class, 46<<2))
			must.OK(t, unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER,
				&unix.Linger{Onoff: 1, Linger: 7}))
			must.OK(t, unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 20_000))
			must.OK(t, unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, 30_000))
		}))
		to, _ := must.Two(l.LocalAddrs())(t)
		a := NewSocket(row.v6, false)
		must.Get(a.Connect(to))(t)
		b := must.Get(l.Accept())(t)
		check.That(t, b.v6 == row.v6 && !b.v6only, "%s: of another family", row.name)
		check.That(t, b.conn.Paths()[0].DSCP == 46 && a.conn.Paths()[0].DSCP == 0, "%s: DSCP %d", row.name,
			b.conn.Paths()[0].DSCP)
		must.OK(t, b.Control(func(fd uintptr) {
			check.Equal(t, row.name+": class", must.Get(unix.GetsockoptInt(int(fd), row.level, row.class))(t), 46<<2)
			linger := must.Get(unix.GetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER))(t)
			check.Equal(t, row.name+": SO_LINGER", *linger, unix.Linger{Onoff: 1, Linger: 7})
			check.Equal(t, row.name+": SO_RCVBUF",
				must.Get(unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF))(t), 40_000)
			check.Equal(t, row.name+": SO_SNDBUF",
				must.Get(unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF))(t), 60_000)
		}))
		check.That(t, b.opts.cfg.RecvBuffer == 40_000 && b.opts.cfg.SendBuffer == 60_000 && b.opts.linger &&
			b.opts.lingerTime == 7*time.Second, "%s: %+v", row.name, b.opts)
		must.OK(t, b.Setsockopt(optPeerAddrParams, paramsOf(0, 0, 0, 0, sppDSCP, 0, 10<<2)))
		must.OK(t, b.SetNonblock(false)) // reads the descriptor, whose class is as it was
		check.Equal(t, row.name+": DSCP of SCTP_PEER_ADDR_PARAMS", b.opts.cfg.DSCP, uint8(10))
		a.conn.Abort("")
		b.conn.Abort("")
		must.OK(t, a.Close())
		must.OK(t, b.Close())
		must.OK(t, l.Close())
	}
	s := NewSocket(false, false)
	must.OK(t, s.Setsockopt(optPartialDelivery, uint32s(15_000)))
	must.OK(t, s.SetBuffer(true, 4000))
	check.Equal(t, "the point of partial delivery, with a smaller send buffer", s.opts.cfg.PartialDelivery, 15_000)
	must.OK(t, s.SetBuffer(false, 5000))
	check.Equal(t, "the point of partial delivery, with a smaller receive buffer", s.opts.cfg.PartialDelivery, 10_000)
	must.OK(t, s.SetBuffer(false, 1)) // the kernel's least
	check.That(t, s.opts.cfg.RecvBuffer >= 1500, "the least receive buffer is %d", s.opts.cfg.RecvBuffer)
	must.OK(t, s.Close())
}

// SO_RCVTIMEO and SO_SNDTIMEO of a listener are those of the sockets that it accepts, whatever of
// them was set last; O_NONBLOCK is not, as on Linux.
func TestAcceptedSocketsHaveTheTimeoutsOfTheListener(t *testing.T) {
	const rcv, snd = 90 * time.Second, 70 * time.Second
	l, at := listenSocket(t)
	must.OK(t, l.SetTimeout(false, rcv))
	must.OK(t, l.SetTimeout(true, snd))
	a := NewSocket(false, false)
	defer a.Close()
	must.Get(a.Connect(at))(t)
	for a.conn.Stats().State != sctp.Established {
		runtime.Gosched()
	}
	must.OK(t, l.SetNonblock(true))
	b, err := l.Accept()
	for err == syscall.EAGAIN { // it is on its way to the listener
		b, err = l.Accept()
	}
	must.OK(t, err)
	defer b.Close()
	check.That(t, b.readWaits.timeout == rcv && b.writeWaits.timeout == snd && !b.readWaits.nonblock &&
		!b.writeWaits.nonblock, "accepted: %v, %v, O_NONBLOCK %v, %v", b.readWaits.timeout, b.writeWaits.timeout,
		b.readWaits.nonblock, b.writeWaits.nonblock)
	must.OK(t, b.Control(func(fd uintptr) {
		for opt, want := range map[int]time.Duration{unix.SO_RCVTIMEO: rcv, unix.SO_SNDTIMEO: snd} {
			tv := must.Get(unix.GetsockoptTimeval(int(fd), unix.SOL_SOCKET, opt))(t)
			check.Equal(t, "its descriptor's timeout", time.Duration(tv.Nano()), want)
		}
		flags := must.Get(unix.FcntlInt(fd, unix.F_GETFL, 0))(t)
		check.Equal(t, "its descriptor's O_NONBLOCK", flags&unix.O_NONBLOCK, 0)
	}))
	check.That(t, b.readWaits.timeout == rcv && b.writeWaits.timeout == snd, "read back: %v, %v", b.readWaits.timeout,
		b.writeWaits.timeout)
	must.OK(t, b.SetTimeout(false, time.Millisecond)) // and is the socket's own from then on
	checkSame(t, readSocket(b, 9), recv{err: syscall.EAGAIN})
	check.That(t, l.readWaits.timeout == rcv && a.readWaits.timeout == 0, "the listener has %v, the peer %v",
		l.readWaits.timeout, a.readWaits.timeout)
}

// On a host without IPv6 a socket of both families has a descriptor of IPv4; other errors are told.
func TestDescriptorsOfAHostWithoutIPv6(t *testing.T) {
	defer func() { openSocket = unix.Socket }()
	for _, row := range []struct {
		name string
		v6   bool
		of6  error // what the host says of IPv6
		want error
	}{
		{"a host of both", true, nil, nil}, {"a host without IPv6", true, unix.EAFNOSUPPORT, nil},
		{"no descriptor", true, unix.EMFILE, unix.EMFILE}, {"a socket of IPv4", false, unix.EAFNOSUPPORT, nil},
	} {
		openSocket = func(family, kind, protocol int) (int, error) {
			if family == unix.AF_INET6 && row.of6 != nil {
				return -1, row.of6
			}
			return unix.Socket(family, kind, protocol)
		}
		fd, err := newPlaceholder(row.v6, false)
		check.Equal(t, row.name, err, row.want)
		if err != nil {
			continue
		}
		domain := must.Get(unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN))(t)
		check.Equal(t, row.name+": of IPv6", domain == unix.AF_INET6, row.v6 && row.of6 == nil)
		kind := must.Get(unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE))(t)
		flags := must.Get(unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0))(t)
		check.That(t, kind == unix.SOCK_DGRAM && flags == unix.FD_CLOEXEC, "%s: type %d, flags %d", row.name, kind, flags)
		closePlaceholder(fd)
	}
}

// A socket gets its descriptor whatever its number is, and fails by the errno where there is none,
// or where a program has closed it.
func TestDescriptorsThatFail(t *testing.T) {
	input := must.Get(unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 3))(t)
	must.OK(t, unix.Close(0))
	s := NewSocket(false, false)
	fd := must.Get(s.Descriptor())(t)
	again := must.Get(s.Descriptor())(t)
	must.OK(t, s.SetNonblock(true))
	nonblock := s.readWaits.nonblock
	must.OK(t, s.Close())
	_, err := unix.FcntlInt(0, unix.F_GETFD, 0)
	must.OK(t, unix.Dup2(input, 0))
	must.OK(t, unix.Close(input))
	check.That(t, fd == 0 && again == 0 && nonblock && err == unix.EBADF,
		"descriptor %d, then %d, O_NONBLOCK %v, when closed %v", fd, again, nonblock, err)

	s = NewSocket(false, false)
	fd = must.Get(s.Descriptor())(t)
	must.OK(t, unix.Close(fd))
	_, err = s.Buffer(true)
	check.Equal(t, "a buffer of one that the program has closed", err, error(syscall.EBADF))
	check.Equal(t, "to set it", s.SetBuffer(true, 9000), error(syscall.EBADF))
	check.That(t, Find(fd) == nil, "it is found")
	s.placeholderFD = -1 // its number may be another's by now
	must.OK(t, s.Close())

	var limit unix.Rlimit
	must.OK(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	s = NewSocket(false, false)
	must.OK(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Max: limit.Max}))
	fd, err = s.Descriptor()
	bind := s.Bind(sockaddrs(0, "192.0.2.1"), false)
	_, found := s.Buffer(true)
	must.OK(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	check.That(t, fd == -1 && err == syscall.EMFILE, "no descriptor is left: %d, %v", fd, err)
	check.Equal(t, "bind, which cannot know the addresses", bind, error(syscall.EMFILE))
	check.Equal(t, "a buffer", found, error(syscall.EMFILE))
	must.OK(t, s.Close())
}

// The version that a program's go.mod requires tells its byte order of PPIDs, the environment goes
// before it, and without both the first PPID does.
func TestPPIDsAreInTheOrderOfTheProgram(t *testing.T) {
	const module, since = "example.com/sctp", "20250601"
	info := func(version string) *debug.BuildInfo {
		return &debug.BuildInfo{Deps: []*debug.Module{{Path: "example.com/other", Version: "v1.0.0"},
			{Path: module, Version: version}}}
	}
	for name, row := range map[string]struct {
		env   string
		info  *debug.BuildInfo
		order int32
		out   uint32
	}{
		"of 2019":           {"", info("v0.0.0-20190922091402-408ec287e38c"), orderMemory, Swap(46)},
		"of today":          {"", info("v0.0.0-20251114114122-19ddcbc6aae2"), orderHost, 46},
		"told otherwise":    {"memory", info("v0.0.0-20251114114122-19ddcbc6aae2"), orderMemory, Swap(46)},
		"told to convert":   {"host", info("v0.0.0-20190922091402-408ec287e38c"), orderHost, 46},
		"a test, shifted":   {"", &debug.BuildInfo{}, orderUnknown, Swap(46)},
		"a test, not so":    {"", nil, orderUnknown, 46},
		"a workspace's own": {"", info("(devel)"), orderUnknown, 46},
	} {
		p := new(PPIDs)
		p.order.Store(orderOf(row.env, row.info, module, since))
		check.Equal(t, name+": order", p.order.Load(), row.order)
		got := p.Out(row.out)
		check.That(t, got == Swap(46) && p.In(got) == row.out, "%s: %#x goes out as %#x and comes back as %#x", name,
			row.out, got, p.In(got))
	}
	p := new(PPIDs)
	check.That(t, p.Out(0) == 0 && p.order.Load() == orderUnknown, "none tells the order")
	for i, v := range []uint32{46, Swap(47), 48} { // the first one that is sent does
		check.Equal(t, "in the order of the first", p.Out(v), []uint32{Swap(46), 47, Swap(48)}[i])
	}
	// with zeros, but not in all the lower octets
	for _, v := range []uint32{256, 257, 1 << 16, 1<<24 + 1, 1<<24 + 256} {
		check.Equal(t, "a number of this host", new(PPIDs).Out(v), Swap(v))
	}
	p = new(PPIDs)
	check.Equal(t, "one that has come tells nothing", p.In(Swap(46)), uint32(46))
	check.Equal(t, "the order", p.order.Load(), int32(orderUnknown))
	for env, order := range map[string]int32{"host": orderHost, "memory": orderMemory, "": orderUnknown} {
		t.Setenv("RDDP_PPID", env)
		check.Equal(t, "this program, told "+env, PPIDsOf(module, since).order.Load(), order)
	}
	t.Setenv("RDDP_PPID", "")
	defer func() { readBuildInfo = debug.ReadBuildInfo }()
	for version, order := range map[string]int32{"v0.0.0-20250531000000-408ec287e38c": orderMemory,
		"v0.0.0-20250601000000-408ec287e38c": orderHost} {
		readBuildInfo = func() (*debug.BuildInfo, bool) { return info(version), true }
		check.Equal(t, "a program that requires "+version, PPIDsOf(module, since).order.Load(), order)
	}
	for link, ok := range map[string]bool{"tun": true, "raw": true, "": true, "udp": true, "tcp": false} {
		t.Setenv("RDDP_LINK", "udp")
		err := Use(link)
		check.That(t, (err == nil) == ok, "Use(%q): %v", link, err)
	}
	must.OK(t, Use("udp"))
}
