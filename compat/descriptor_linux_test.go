package compat

import (
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
	"golang.org/x/sys/unix"
)

// What a program sets on the descriptor holds for the socket, which is found by it and by a dup of it, and for what follows.
func TestTheDescriptorIsThatOfTheSocket(t *testing.T) {
	l, at := listen(t)
	var dup int
	must.OK(t, l.Control(func(fd uintptr) {
		must.OK(t, unix.SetsockoptTimeval(int(fd), unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 1000}))
		must.OK(t, unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF, 9000))
		dup = must.Get(unix.Dup(int(fd)))(t)
	}))
	defer unix.Close(dup)
	same(t, Find(dup), l)
	_, err := l.Accept()
	same(t, err, error(syscall.EAGAIN))
	must.OK(t, l.SetNonblock(true))
	_, err = l.Accept()
	same(t, err, error(syscall.EAGAIN))

	c := NewSocket(false, false)
	must.OK(t, c.SetBuffer(false, 9000))
	same(t, must.Get(c.Buffer(false))(t), 18000) // as Linux counts
	must.OK(t, c.Control(func(fd uintptr) {
		same(t, Find(int(fd)), c)
		must.OK(t, unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1}))
		must.OK(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_TOS, 46<<2))
	}))
	must.Get(c.Connect(at))(t)
	s := must.Get(l.Accept())(t)
	same(t, c.conn.Stats().RecvWindow, 18000)
	same(t, c.conn.Paths()[0].DSCP, uint8(46))
	must.OK(t, c.Close())
	same(t, read(s, 9), recv{err: syscall.ECONNRESET})
	fd := must.Get(s.Descriptor())(t)
	must.OK(t, s.Close())
	same(t, Find(fd), (*Socket)(nil))

	for _, kind := range []struct{ v6, v6only bool }{{false, false}, {true, false}, {true, true}} {
		s := NewSocket(kind.v6, kind.v6only)
		must.OK(t, s.SetTimeout(false, 1500*time.Millisecond))
		must.OK(t, s.SetTimeout(true, 2500*time.Millisecond))
		fd := must.Get(s.Descriptor())(t)
		key := must.Get(holderKey(fd))(t)
		domain := must.Get(unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN))(t)
		check.That(t, (domain == unix.AF_INET6) == kind.v6, "%+v: domain %d", kind, domain)
		if kind.v6 {
			check.Equal(t, "IPV6_V6ONLY", must.Get(unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY))(t), boolInt(kind.v6only))
		}
		for opt, want := range map[int]time.Duration{unix.SO_RCVTIMEO: 1500 * time.Millisecond, unix.SO_SNDTIMEO: 2500 * time.Millisecond} {
			tv := must.Get(unix.GetsockoptTimeval(fd, unix.SOL_SOCKET, opt))(t)
			check.Equal(t, "timeout", time.Duration(tv.Nano()), want)
		}
		check.That(t, s.rd.timeout == 1500*time.Millisecond && s.wr.timeout == 2500*time.Millisecond, "%v, %v", s.rd.timeout, s.wr.timeout)
		must.OK(t, s.Control(func(fd uintptr) {
			must.OK(t, unix.SetsockoptLinger(int(fd), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 3}))
		}))
		check.That(t, s.opts.linger && s.opts.lingerTime == 3*time.Second, "lingers for %v", s.opts.lingerTime)
		must.OK(t, s.SetNonblock(true))
		check.That(t, s.rd.nonblock && s.wr.nonblock, "O_NONBLOCK is not heeded")
		must.OK(t, s.Close())
		now, err := holderKey(fd)
		check.That(t, err != nil || now != key, "the descriptor stays open")
		check.Equal(t, "the descriptor of a closed socket", s.fd, -1)
		s.ReadBack() // which reads nobody else's
	}

	twice := l.Dup()
	must.OK(t, l.Close())
	same(t, twice.Closed(), false)
	must.OK(t, twice.Close())
	same(t, Find(dup), (*Socket)(nil))
	same(t, twice.Control(nil), error(syscall.EBADF))
}

// The version that a program's go.mod requires tells its byte order of PPIDs, the environment goes before it, and without both the first PPID does.
func TestPPIDsAreInTheOrderOfTheProgram(t *testing.T) {
	const module, since = "example.com/sctp", "20250601"
	info := func(version string) *debug.BuildInfo {
		return &debug.BuildInfo{Deps: []*debug.Module{{Path: "example.com/other", Version: "v1.0.0"}, {Path: module, Version: version}}}
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
		check.That(t, got == Swap(46) && p.In(got) == row.out, "%s: %#x goes out as %#x and comes back as %#x", name, row.out, got, p.In(got))
	}
	for link, ok := range map[string]bool{"raw": true, "": true, "udp": true, "tcp": false} {
		t.Setenv("RDDP_LINK", "udp")
		err := Use(link)
		check.That(t, (err == nil) == ok, "Use(%q): %v", link, err)
	}
	must.OK(t, Use("udp"))
}
