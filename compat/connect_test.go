package compat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp"
)

// The network, and what is to be bound or connected, decide the family of a socket.
func TestTheFamilyOfASocket(t *testing.T) {
	addrs := func(list ...string) (ips []net.IPAddr) {
		for _, a := range list {
			ips = append(ips, net.IPAddr{IP: net.ParseIP(a)})
		}
		return ips
	}
	for _, row := range []struct {
		network       string
		listen        bool
		local, remote []net.IPAddr
		v6, v6only    bool
	}{
		{"sctp4", false, nil, addrs("::1"), false, false},
		{"sctp6", false, nil, addrs("127.0.0.1"), true, true},
		{"sctp", false, nil, addrs("127.0.0.1"), false, false},
		{"", false, nil, addrs("127.0.0.1"), false, false},
		{"sctp", false, nil, addrs("::1"), true, false},
		{"", false, nil, addrs("127.0.0.1", "::1"), true, false},
		{"sctp", false, addrs("::1"), addrs("127.0.0.1"), true, false},
		{"sctp", false, addrs("127.0.0.1"), addrs("127.0.0.1"), false, false},
		{"sctp", false, []net.IPAddr{{}}, addrs("127.0.0.1"), false, false},
		{"sctp", false, addrs("0.0.0.0"), addrs("127.0.0.1"), false, false},
		{"sctp", true, nil, nil, true, false},
		{"sctp", true, addrs("0.0.0.0"), nil, true, false},
		{"sctp", true, addrs("::"), nil, true, false},
		{"sctp", true, addrs("127.0.0.1"), nil, false, false},
		{"sctp", true, addrs("127.0.0.1", "::1"), nil, true, false},
		{"sctp", true, addrs("::1"), nil, true, false},
		{"sctp4", true, nil, nil, false, false},
		{"sctp6", true, nil, nil, true, true},
	} {
		s, err := SocketFor(row.network, row.listen, row.local, row.remote)
		must.OK(t, err)
		check.That(t, s.v6 == row.v6 && s.v6only == row.v6only, "%q, listen %v, %v to %v: IPv6 %v, alone %v",
			row.network, row.listen, row.local, row.remote, s.v6, s.v6only)
		check.Equal(t, "IPv4", s.hasIPv4(), !row.v6only)
		must.OK(t, s.Close())
	}
	_, err := SocketFor("tcp", false, nil, nil)
	check.Equal(t, "another network", err, error(net.UnknownNetworkError("tcp")))
}

// A socket takes addresses of its families alone.
func TestBindWithinTheFamily(t *testing.T) {
	for _, row := range []struct {
		v6, v6only bool
		to         string
		want       error
	}{
		{false, false, "127.0.0.1", nil}, {false, false, "::1", syscall.EINVAL}, {false, false, "::", syscall.EINVAL},
		{true, false, "127.0.0.1", nil}, {true, false, "::1", nil}, {true, false, "0.0.0.0", nil}, {true, false, "::", nil},
		{true, true, "127.0.0.1", syscall.EINVAL}, {true, true, "0.0.0.0", syscall.EINVAL}, {true, true, "::1", nil},
		{true, false, "ff02::1", syscall.EADDRNOTAVAIL},
	} {
		s := NewSocket(row.v6, row.v6only)
		check.Equal(t, fmt.Sprintf("%+v", row), s.Bind(sockaddrs(0, row.to), false), row.want)
		if row.want == syscall.EINVAL {
			_, err := s.Connect(sockaddrs(1, row.to))
			check.Equal(t, fmt.Sprintf("connect %+v", row), err, row.want)
		}
		must.OK(t, s.Close())
	}
	s := NewSocket(true, true) // any address of a link, whether it is there or not, as it may come
	check.OK(t, s.Bind(sockaddrs(0, "fe80::1234"), false))
	must.OK(t, s.Close())
	s = NewSocket(true, false) // one behind the other of a bad one counts too
	_, err := s.Connect(sockaddrs(1, "::1", "ff02::1"))
	check.Equal(t, "a second address that nobody has", err, error(syscall.EINVAL))
	_, err = s.Connect(sockaddrs(1, "ff02::1", "::1"))
	check.Equal(t, "a first address that nobody has", err, error(syscall.EINVAL))
	must.OK(t, s.Close())

	t.Setenv("RDDP_LINK", "tun")
	t.Setenv("RDDP_TUN", "192.0.2.7")
	for to, want := range map[string]bool{"192.0.2.7": true, "127.0.0.1": false, "192.0.2.8": false} {
		has, err := hasAddr(netip.MustParseAddr(to))
		check.That(t, err == nil && has == want, "a link of its own, %s: %v, %v", to, has, err)
	}
	t.Setenv("RDDP_TUN", "")
	has, err := hasAddr(netip.MustParseAddr("192.0.2.7"))
	check.That(t, err == nil && !has, "a link of its own without addresses: %v, %v", has, err)
}

// Bound to none in particular a socket has all addresses of the host that are of its families,
// those of the loopback first, without those of links.
func TestAddressesOfTheHost(t *testing.T) {
	var all []netip.Addr
	for _, a := range must.Get(net.InterfaceAddrs())(t) {
		ip, _ := netip.AddrFromSlice(a.(*net.IPNet).IP)
		if ip = ip.Unmap(); !ip.IsLinkLocalUnicast() {
			all = append(all, ip)
		}
	}
	for _, kind := range []struct{ v6, v6only bool }{{false, false}, {true, false}, {true, true}} {
		s := NewSocket(kind.v6, kind.v6only)
		to := "0.0.0.0"
		if kind.v6only {
			to = "::"
		}
		must.OK(t, s.Bind(sockaddrs(40_127, to), false))
		must.OK(t, s.Setsockopt(optMappedV4, uint32s(0)))
		raw, n, err := s.LocalAddrs()
		must.OK(t, err)
		list, port, err := ParseAddrs(raw)
		must.OK(t, err)
		check.That(t, len(list) == n && (port == 40_127 || n == 0), "%+v: %d addresses, port %d", kind, n, port)
		var got []netip.Addr
		for _, a := range list {
			ip, _ := netip.AddrFromSlice(a.IP)
			got = append(got, ip.Unmap())
		}
		var want []netip.Addr
		for _, loopback := range []bool{true, false} {
			for _, ip := range all {
				if ip.IsLoopback() == loopback && (ip.Is4() && !kind.v6only || ip.Is6() && kind.v6) {
					want = append(want, ip)
				}
			}
		}
		want = want[:min(len(want), maxAddrs)]
		check.That(t, slices.Equal(got, want), "%+v: %v, want %v", kind, got, want)
		must.OK(t, s.Close())
	}
}

// A socket that may not wait connects by itself: what becomes of it is heard by the next call,
// once.
func TestConnectWithoutWaiting(t *testing.T) {
	l, to := listenSocket(t)
	wait := func(s *Socket) { // until the attempt has ended
		for s.mu.Lock(); s.connecting || s.conn == nil && s.pendingErr == 0; s.mu.Lock() {
			s.mu.Unlock()
			runtime.Gosched()
		}
		s.mu.Unlock()
	}
	for name, limit := range map[string]func(s *Socket){
		"O_NONBLOCK":  func(s *Socket) { must.OK(t, s.SetNonblock(true)) },
		"SO_SNDTIMEO": func(s *Socket) { s.writeWaits.updateWaits(func(w *callWaits) { w.timeout = 1 }) },
	} {
		s := NewSocket(false, false)
		limit(s)
		id, err := s.Connect(to)
		check.That(t, err == syscall.EINPROGRESS && id == s.assocID && id > 0, "%s: %d, %v", name, id, err)
		wait(s)
		peer := must.Get(l.Accept())(t)
		must.OK(t, s.SetTimeout(true, 0))
		must.Get(s.Send([]byte("x"), nil))(t)
		checkSame(t, readSocket(peer, 9), wholeMessage("x"))
		must.OK(t, s.Close())
		must.OK(t, peer.Close())

		s = NewSocket(false, false)
		limit(s)
		_, err = s.Connect(sockaddrs(1, "127.0.0.1"))
		check.Equal(t, name+", where nobody listens", err, error(syscall.EINPROGRESS))
		wait(s)
		_, _, err = s.RemoteAddrs()
		check.Equal(t, name+", the next call", err, error(syscall.ECONNREFUSED))
		_, _, err = s.RemoteAddrs()
		check.Equal(t, name+", the one behind it", err, error(syscall.ENOTCONN))
		limit(s)
		_, err = s.Connect(to) // another try
		check.Equal(t, name+", again", err, error(syscall.EINPROGRESS))
		wait(s)
		peer = must.Get(l.Accept())(t)
		_, n, err := s.RemoteAddrs()
		check.That(t, n == 1 && err == nil, "%s, in the end: %v", name, err)
		must.OK(t, s.Close())
		must.OK(t, peer.Close())
	}
	s := NewSocket(false, false) // a long time is no reason not to wait
	must.OK(t, s.SetTimeout(true, time.Hour))
	id := must.Get(s.Connect(to))(t)
	check.That(t, id == s.assocID && !s.connecting, "%d", id)
	peer := must.Get(l.Accept())(t)
	check.That(t, peer.assocID > 0 && peer.assocID != id, "the peer's is %d too", id)
	must.OK(t, s.Close())
	must.OK(t, peer.Close())
}

// A call that needs an association waits while it is being set up, until it is or the socket is
// closed.
func TestCallsWaitForTheAssociation(t *testing.T) {
	_, to := listenSocket(t)
	const calls = 8
	start := func(s *Socket) (ended chan error) {
		s.connecting = true // as Connect has it
		var waiting atomic.Int32
		ended = make(chan error, calls)
		for range calls {
			go func() {
				waiting.Add(1)
				_, err := s.waitConn(syscall.ENOTCONN)
				ended <- err
			}()
		}
		for waiting.Load() < calls {
			runtime.Gosched()
		}
		return ended
	}
	all := func(name string, ended chan error, want error) {
		for range calls {
			select {
			case err := <-ended:
				check.Equal(t, name, err, want)
			case <-time.After(20 * time.Second):
				t.Fatal(name, ": a call still waits")
			}
		}
	}
	dial := func(s *Socket, raw []byte) error {
		list, port := must.Two(ParseAddrs(raw))(t)
		ip, _ := netip.AddrFromSlice(list[0].IP.To4())
		s.mu.Lock()
		d := sctp.Dialer{Config: s.connConfig()}
		s.mu.Unlock()
		return s.dialConn(&d, netip.AddrPortFrom(ip, uint16(port)))
	}
	s := NewSocket(false, false)
	ended := start(s)
	must.OK(t, dial(s, to))
	all("connected", ended, nil)
	must.OK(t, s.Close())
	s = NewSocket(false, false)
	for range 2 { // another try has them wait again
		ended = start(s)
		check.Equal(t, "nobody listens", dial(s, sockaddrs(1, "127.0.0.1")), error(syscall.ECONNREFUSED))
		all("nobody listens", ended, syscall.ENOTCONN)
	}
	ended = start(s)
	must.OK(t, s.Close())
	all("closed", ended, syscall.EBADF)
	check.Equal(t, "an association of a closed socket", dial(s, to), error(syscall.EBADF))
	s = NewSocket(false, false)
	must.OK(t, s.Close())
	s.closedCtx = context.Background() // it is closed when the association is up
	check.Equal(t, "closed on the way", dial(s, to), error(syscall.EBADF))
	check.That(t, s.conn != nil && s.conn.Err() != nil, "its association lives on")
}

// No address in particular is this host.
func TestConnectToThisHost(t *testing.T) {
	for any, want := range map[string]string{"0.0.0.0": "127.0.0.1", "::": "::1"} {
		l := NewSocket(true, false)
		must.OK(t, l.Bind(sockaddrs(0, want), false))
		must.OK(t, l.Listen())
		_, port := must.Two(ParseAddrs(firstOf(l.LocalAddrs())))(t)
		s := NewSocket(want == "::1", false)
		must.Get(s.Connect(sockaddrs(port, any)))(t)
		own, n, err := s.LocalAddrs() // of one that is bound to none: that which it talks from
		check.That(t, err == nil && n == 1 && slices.Equal(own, sockaddrs(int(s.boundPort), want)),
			"%s: own addresses % x, %v", any, own, err)
		check.Equal(t, any, s.conn.RemoteAddr().(sctp.Addr).Addr().String(), want)
		must.OK(t, s.Close())
		must.OK(t, l.Close())
	}
}

func firstOf(b []byte, _ int, _ error) []byte { return b }

// Each error of the stack is the errno of Linux.
func TestErrnos(t *testing.T) {
	for _, row := range []struct{ err, want error }{
		{nil, nil}, {io.EOF, io.EOF}, {os.ErrDeadlineExceeded, os.ErrDeadlineExceeded},
		{&net.OpError{Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}, syscall.EADDRINUSE},
		{new(sctp.ConfigError), syscall.EINVAL},
		{fmt.Errorf("in: %w", new(sctp.ConfigError)), syscall.EINVAL},
		{sctp.ErrEmptyMessage, syscall.EINVAL}, {sctp.ErrInvalidStream, syscall.EINVAL}, {sctp.ErrNoPath, syscall.EINVAL},
		{sctp.ErrClosing, syscall.EPIPE}, {sctp.ErrNotUp, syscall.ENOTCONN}, {sctp.ErrMessageTooLong, syscall.EMSGSIZE}, {sctp.ErrNoMarks, syscall.EOPNOTSUPP},
		{io.ErrUnexpectedEOF, syscall.ECONNABORTED}, {net.ErrClosed, syscall.EBADF}, {context.DeadlineExceeded, syscall.ETIMEDOUT},
		{fmt.Errorf("in: %w", sctp.ErrNoPath), syscall.EINVAL},
		{errors.New("of no errno"), syscall.EIO},
	} {
		check.Equal(t, fmt.Sprint(row.err), errnoOf(row.err), row.want)
	}
	for _, e := range matchableErrnos {
		check.Equal(t, "one that matches "+e.Error(), errnoOf(isErrno(e)), error(e))
	}
	var log strings.Builder // what EIO hides is in the log, and nothing else
	was := slog.Default()
	defer slog.SetDefault(was)
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	_ = errnoOf(errors.New("of no errno"))
	_ = errnoOf(sctp.ErrNoPath)
	_, line, _ := strings.Cut(log.String(), " ")
	check.Equal(t, "log", line, `level=WARN msg="sctp: an error that has no errno is EIO" error="of no errno"`+"\n")
}

// isErrno is an error that matches an errno and is none.
type isErrno syscall.Errno

func (e isErrno) Error() string        { return "matches " + syscall.Errno(e).Error() }
func (e isErrno) Is(target error) bool { return target == syscall.Errno(e) }

// Text and octets of addresses are taken or refused whole.
func TestAddressesThatAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		":7": "[] 7", "127.0.0.1:7": "[127.0.0.1] 7", "127.0.0.1/::1:7": "error",
		"127.0.0.1/[::1]:7":               "[127.0.0.1 ::1] 7",
		"127.0.0.1/127.0.0.2/127.0.0.3:8": "[127.0.0.1 127.0.0.2 127.0.0.3] 8",
		"127.0.0.1":                       "error", "x y:1": "error", "127.0.0.1:99999": "error", "": "[] 0",
		"127.0.0.1/:9": "[] 9",
	} {
		list, port, err := ResolveAddr("sctp", text)
		var ips []string
		for _, a := range list {
			ips = append(ips, a.String())
		}
		got := fmt.Sprint("[", strings.Join(ips, " "), "] ", port)
		if err != nil {
			got = "error"
			check.That(t, list == nil && port == 0, "%q: %v %d besides %v", text, list, port, err)
		}
		check.Equal(t, text, got, want)
	}
	for _, row := range []struct {
		network, text string
		ok            bool
	}{{"sctp4", "127.0.0.1:1", true}, {"sctp4", "[::1]:1", false}, {"sctp6", "[::1]:1", true},
		{"sctp6", "127.0.0.1:1", false}, {"", "[::1]:1", true}, {"tcp4", "127.0.0.1:1", false}} {
		_, _, err := ResolveAddr(row.network, row.text)
		check.That(t, (err == nil) == row.ok, "%s %s: %v", row.network, row.text, err)
	}
	check.Equal(t, "no text of an address", FormatAddr([]net.IPAddr{{}, {IP: net.IPv4(127, 0, 0, 1)}}, 7),
		"/127.0.0.1:7")
	for name, raw := range map[string][]byte{"no octets": nil, "of nothing": {}, "one": {1},
		"half of one behind another": append(sockaddrs(1, "127.0.0.1"), sockaddrs(1, "127.0.0.2")[:9]...)} {
		_, _, err := parseSockaddrs(raw)
		check.Equal(t, name, err, error(syscall.EINVAL))
	}
	list, port, err := parseSockaddrs(sockaddrs(0x1234, "127.0.0.1", "::1"))
	check.That(t, err == nil && port == 0x1234 && len(list) == 2 && list[1].Is6(), "%v %d %v", list, port, err)
	for _, a := range []string{"127.0.0.1", "::1"} { // what is behind it stays
		raw := sockaddrs(7, a)
		check.That(t, slices.Equal(FirstAddr(append(slices.Clone(raw), 1, 2)), raw), "%s: % x", a,
			FirstAddr(append(raw, 1, 2)))
	}
}
