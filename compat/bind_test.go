package compat

import (
	"net"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// sockaddrs are addresses of the loopback network, or others, with a port.
func sockaddrs(port int, ips ...string) []byte {
	var list []net.IPAddr
	for _, ip := range ips {
		list = append(list, net.IPAddr{IP: net.ParseIP(ip)})
	}
	return RawAddrs(list, port)
}

// Each call in each state fails by the errno of Linux, or succeeds.
func TestCallsInEachState(t *testing.T) {
	const ok = syscall.Errno(0)
	type calls struct {
		bind, bindPort, unbind, listen, connect, accept, send, recv, shutdown, peers, own syscall.Errno
	}
	states := map[string]struct {
		make func(t *testing.T) *Socket
		want calls
	}{
		"new": {func(*testing.T) *Socket { return NewSocket(false, false) },
			calls{ok, ok, syscall.EBUSY, ok, syscall.ECONNREFUSED, syscall.EINVAL, syscall.ENOTCONN, syscall.ENOTCONN,
				syscall.ENOTCONN, syscall.ENOTCONN, ok}},
		"bound": {func(t *testing.T) *Socket {
			s := NewSocket(false, false)
			must.OK(t, s.Bind(sockaddrs(40_123, "127.0.0.1"), false))
			return s
		}, calls{ok, syscall.EINVAL, syscall.EBUSY, ok, syscall.ECONNREFUSED, syscall.EINVAL, syscall.ENOTCONN,
			syscall.ENOTCONN, syscall.ENOTCONN, syscall.ENOTCONN, ok}},
		"listening": {func(t *testing.T) *Socket { l, _ := listenSocket(t); return l },
			calls{syscall.EOPNOTSUPP, syscall.EOPNOTSUPP, syscall.EOPNOTSUPP, ok, syscall.EISCONN, syscall.EAGAIN,
				syscall.ENOTCONN, syscall.ENOTCONN, syscall.ENOTCONN, syscall.ENOTCONN, ok}},
		"being connected": {func(t *testing.T) *Socket {
			s := NewSocket(false, false)
			s.connecting = true
			must.OK(t, s.SetNonblock(true))
			must.OK(t, s.SetReadDeadline(time.Now()))
			return s
		}, calls{syscall.EOPNOTSUPP, syscall.EOPNOTSUPP, syscall.EOPNOTSUPP, syscall.EINVAL, syscall.EALREADY,
			syscall.EINVAL, syscall.EAGAIN, syscall.EAGAIN, syscall.EAGAIN, syscall.EAGAIN, ok}},
		"connected": {func(t *testing.T) *Socket { a, _ := newPair(t); must.OK(t, a.SetNonblock(true)); return a },
			calls{syscall.EOPNOTSUPP, syscall.EOPNOTSUPP, syscall.EOPNOTSUPP, syscall.EINVAL, syscall.EISCONN,
				syscall.EINVAL, ok, syscall.EAGAIN, ok, ok, ok}},
		"accepted": {func(t *testing.T) *Socket { _, b := newPair(t); must.OK(t, b.SetNonblock(true)); return b },
			calls{syscall.EOPNOTSUPP, syscall.EOPNOTSUPP, syscall.EOPNOTSUPP, syscall.EINVAL, syscall.EISCONN,
				syscall.EINVAL, ok, syscall.EAGAIN, ok, ok, ok}},
		"closed": {func(t *testing.T) *Socket { s := NewSocket(false, false); must.OK(t, s.Close()); return s },
			calls{syscall.EBADF, syscall.EBADF, syscall.EBADF, syscall.EBADF, syscall.EBADF, syscall.EBADF,
				syscall.EBADF, syscall.EBADF, syscall.EBADF, syscall.EBADF, syscall.EBADF}},
	}
	for name, state := range states {
		fail := func(err error) syscall.Errno {
			if err == nil {
				return ok
			}
			no, _ := err.(syscall.Errno)
			return no
		}
		w := state.want
		for call, row := range map[string]struct {
			want syscall.Errno
			do   func(s *Socket) error
		}{
			"bind": {w.bind, func(s *Socket) error { return s.Bind(sockaddrs(0, "127.0.0.2"), false) }},
			"bind to another port": {w.bindPort,
				func(s *Socket) error { return s.Bind(sockaddrs(40_124, "127.0.0.2"), false) }},
			"unbind": {w.unbind,
				func(s *Socket) error { return s.Bind(sockaddrs(0, "127.0.0.1"), true) }},
			"unbind by the option": {w.unbind,
				func(s *Socket) error { return s.Setsockopt(optBindRemove, sockaddrs(0, "127.0.0.1")) }},
			"listen": {w.listen, func(s *Socket) error { return s.Listen() }},
			"connect": {w.connect,
				func(s *Socket) error { _, err := s.Connect(sockaddrs(1, "127.0.0.1")); return err }},
			"connect by the option": {w.connect,
				func(s *Socket) error { return s.Setsockopt(optConnect, sockaddrs(1, "127.0.0.1")) }},
			"connect by the older option": {w.connect,
				func(s *Socket) error { return s.Setsockopt(optConnectOld, sockaddrs(1, "127.0.0.1")) }},
			"accept": {w.accept, func(s *Socket) error {
				if !s.Closed() {
					must.OK(t, s.SetTimeout(false, time.Millisecond))
				}
				_, err := s.Accept()
				return err
			}},
			"send":     {w.send, func(s *Socket) error { _, err := s.Send([]byte("x"), nil); return err }},
			"recv":     {w.recv, func(s *Socket) error { return readSocket(s, 9).err }},
			"shutdown": {w.shutdown, func(s *Socket) error { return s.Shutdown() }},
			"peers":    {w.peers, func(s *Socket) error { _, _, err := s.RemoteAddrs(); return err }},
			"own":      {w.own, func(s *Socket) error { _, _, err := s.LocalAddrs(); return err }},
		} {
			s := state.make(t)
			got := fail(row.do(s))
			check.That(t, got == row.want, "%s, %s: %v, want %v", name, call, got, row.want)
			s.connecting = false
			s.Close()
		}
	}
}

// Addresses are added and taken away one by one, or not at all; the last one stays.
func TestBindAndUnbind(t *testing.T) {
	s := NewSocket(false, false)
	defer s.Close()
	has := func(what string, ips ...string) {
		t.Helper()
		raw, n, err := s.LocalAddrs()
		check.That(t, err == nil && n == len(ips) && slices.Equal(raw, sockaddrs(40_125, ips...)), "%s: % x, %v",
			what, raw,
			err)
	}
	raw, n, err := s.LocalAddrs()
	check.That(t, len(raw) == 0 && n == 0 && err == nil, "not bound: % x, %d, %v", raw, n, err)
	for _, step := range []struct {
		name string
		to   []byte
		rem  bool
		want error
		has  []string
	}{
		{"several at once", sockaddrs(40_125, "127.0.0.1", "127.0.0.2"), false, nil, []string{"127.0.0.1", "127.0.0.2"}},
		{"one more, whose port is not given", sockaddrs(0, "127.0.0.3"), false, nil, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}},
		{"one that is bound already", sockaddrs(0, "127.0.0.4", "127.0.0.2"), false, syscall.EINVAL, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}},
		{"one that is not of this host", sockaddrs(0, "127.0.0.4", "192.0.2.1"), false, syscall.EADDRNOTAVAIL, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}},
		{"a multicast one", sockaddrs(0, "224.0.0.1"), false, syscall.EADDRNOTAVAIL, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}},
		{"one of another family", sockaddrs(0, "::1"), false, syscall.EINVAL, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}},
		{"at another port", sockaddrs(40_126, "127.0.0.4"), false, syscall.EINVAL, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}},
		{"at two ports", append(sockaddrs(40_125, "127.0.0.4"), sockaddrs(40_126, "127.0.0.5")...), false, syscall.EINVAL, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}},
		{"nothing", nil, false, syscall.EINVAL, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}},
		{"half a sockaddr", sockaddrs(0, "127.0.0.4")[:15], false, syscall.EINVAL, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}},
		{"taken away, that was not there", sockaddrs(0, "127.0.0.1", "127.0.0.4"), true, syscall.EINVAL, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}},
		{"taken away, all", sockaddrs(0, "127.0.0.0"), true, syscall.EINVAL, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}},
		{"taken away, every address", sockaddrs(0, "0.0.0.0"), true, syscall.EINVAL, []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}},
		{"taken away, two", sockaddrs(40_125, "127.0.0.1", "127.0.0.3"), true, nil, []string{"127.0.0.2"}},
		{"taken away, the last", sockaddrs(0, "127.0.0.2"), true, syscall.EBUSY, []string{"127.0.0.2"}},
		{"every address besides", sockaddrs(0, "0.0.0.0"), false, nil, []string{"127.0.0.2"}},
	} {
		check.Equal(t, step.name, s.Bind(step.to, step.rem), step.want)
		has(step.name, step.has...)
	}
	six := NewSocket(true, true)
	checkSame(t, six.Bind(sockaddrs(0, "127.0.0.1"), false), error(syscall.EINVAL))
	must.OK(t, six.Close())
	var many []string
	for i := range maxAddrs + 1 {
		many = append(many, net.IPv4(127, 0, 0, byte(1+i)).String())
	}
	checkSame(t, NewSocket(false, false).Bind(sockaddrs(0, many...), false), error(syscall.EINVAL))
	must.OK(t, NewSocket(false, false).Bind(sockaddrs(0, many[:maxAddrs]...), false))
}

// Two addresses of the peer are two paths, each with parameters of its own.
func TestParametersOfOneAddress(t *testing.T) {
	l := NewSocket(false, false)
	defer l.Close()
	must.OK(t, l.Bind(sockaddrs(0, "127.0.0.1", "127.0.0.2"), false))
	must.OK(t, l.Listen())
	to, n := must.Two(l.LocalAddrs())(t)
	check.Equal(t, "addresses of the listener", n, 2)
	a := NewSocket(false, false)
	must.Get(a.Connect(to))(t)
	b := must.Get(l.Accept())(t)
	defer b.Close()
	defer a.Close()
	peers, n := must.Two(a.RemoteAddrs())(t)
	check.That(t, n == 2 && slices.Equal(peers, to), "the peer has %d addresses: % x", n, peers)
	own, n := must.Two(b.LocalAddrs())(t)
	check.That(t, n == 2 && slices.Equal(own, to), "the accepted one has %d addresses: % x", n, own)

	of := func(b, sockaddr []byte) []byte { // of one of them
		b = slices.Clone(b)
		copy(b[4:], sockaddr)
		return b
	}
	first, second := to[:sockaddrInet4Len], to[sockaddrInet4Len:]
	get := func(sockaddr []byte) []byte {
		t.Helper()
		got := of(make([]byte, 156), sockaddr)
		must.Get(a.Getsockopt(optPeerAddrParams, got))(t)
		return got
	}
	set := func(p, sockaddr []byte) error { return a.Setsockopt(optPeerAddrParams, of(p, sockaddr)) }
	must.OK(t, set(paramsOf(7000, 0, 0, 0, sppHeartbeat|sppFlowLabel|sppDSCP, 0x12345, 46<<2), second))
	must.OK(t, set(paramsOf(0, 5, 0, 200, sppNoHeartbeat|sppSackDelay, 0, 0), first)) // which has the rest already
	mtu := func(i int) int { return a.conn.Paths()[i].MaxPacket + 28 }
	if a.conn.Paths()[0].Remote.Addr().String() != "127.0.0.1" {
		t.Fatal("the first path is not that to the first address")
	}
	checkSteady(t, func() []byte { return get(second) }, func() []byte {
		return of(paramsOf(7000, 5, mtu(1), 200, sppHeartbeat|sppPMTUD|sppSackDelay|sppFlowLabel|sppDSCP, 0x12345,
			46<<2), second)
	})
	checkSteady(t, func() []byte { return get(first) }, func() []byte {
		return of(paramsOf(0, 5, mtu(0), 200, sppNoHeartbeat|sppPMTUD|sppSackDelay, 0, 0), first)
	})
	checkSame(t, get(nil), paramsOf(30000, 5, 0, 200, sppHeartbeat|sppPMTUD|sppSackDelay, 0, 0))
	checkSame(t, get(sockaddrs(0, "0.0.0.0")), of(paramsOf(30000, 5, 0, 200, sppHeartbeat|sppPMTUD|sppSackDelay, 0, 0),
		sockaddrs(0, "0.0.0.0")))

	// marks without their flags
	for _, p := range [][]byte{paramsOf(7100, 0, 0, 0, sppHeartbeat, 0, 0), paramsOf(0, 0, 0, 0, 0, 0, 0),
		paramsOf(7000, 0, 0, 0, sppHeartbeat, 7, 8)} {
		must.OK(t, set(p, second))
		got := get(second)[4+sockaddrStorageLen+18:]
		checkSame(t, got, append(uint32s(0x12345), 46<<2, 0))
	}
	must.OK(t, set(paramsOf(0, 0, 0, 0, sppFlowLabel, 0x54321, 4), second))
	checkSame(t, get(second)[4+sockaddrStorageLen+18:], append(uint32s(0x54321), 46<<2, 0))
	must.OK(t, set(paramsOf(0, 0, 0, 0, sppDSCP, 7, 10<<2), second))
	checkSame(t, get(second)[4+sockaddrStorageLen+18:], append(uint32s(0x54321), 10<<2, 0))
	must.OK(t, set(paramsOf(0, 0, 0, 0, sppDSCP|sppFlowLabel, 0xfff12345, 46<<2), second)) // of which 20 bits count

	// What can only be the same for both is refused, whole.
	for name, p := range map[string][]byte{
		"pathmaxrxt": paramsOf(9000, 4, 0, 0, sppHeartbeat, 0, 0),
		"MTU":        paramsOf(9000, 0, 1400, 0, sppHeartbeat|sppNoPMTUD, 0, 0),
		"no search":  paramsOf(9000, 0, 0, 0, sppHeartbeat|sppNoPMTUD, 0, 0),
		"SACK delay": paramsOf(9000, 0, 0, 100, sppHeartbeat|sppSackDelay, 0, 0),
		"none":       paramsOf(9000, 0, 0, 0, sppHeartbeat|sppNoSackDelay, 0, 0),
	} {
		check.Equal(t, name, set(p, second), error(syscall.EOPNOTSUPP))
		checkSame(t, get(second)[4+sockaddrStorageLen:8+sockaddrStorageLen], uint32s(7000))
	}
	must.OK(t, set(paramsOf(9000, 4, 0, 0, sppHeartbeat, 0, 0), sockaddrs(0, "0.0.0.0"))) // of all
	checkSame(t, get(second)[4+sockaddrStorageLen:10+sockaddrStorageLen], append(uint32s(9000), uint16s(4)...))

	beats := func() uint64 { return a.conn.Stats().HeartbeatsOut }
	before := beats()
	must.OK(t, set(paramsOf(0, 0, 0, 0, sppDemand, 0, 0), second))
	check.Equal(t, "HEARTBEATs on demand", beats(), before+1)
	for _, p := range [][]byte{paramsOf(9000, 0, 0, 0, sppHeartbeat, 0, 0), paramsOf(0, 0, 0, 0, sppDSCP|sppFlowLabel, 0x12345, 46<<2)} {
		must.OK(t, set(p, second))
		must.OK(t, set(p, nil))
	}
	check.Equal(t, "HEARTBEATs that nobody has asked for", beats(), before+1)
	must.OK(t, set(paramsOf(0, 0, 0, 0, sppDemand, 0, 0), nil))
	check.Equal(t, "HEARTBEATs on demand", beats(), before+2)

	// The primary address, and what is told of each.
	primary := func() []byte {
		got := make([]byte, 4+sockaddrStorageLen)
		must.Get(a.Getsockopt(optPrimaryAddr, got))(t)
		return got
	}
	storage := func(sockaddr []byte) []byte {
		b := nativeOrder.AppendUint32(nil, uint32(a.assocID))
		b = append(b, sockaddr...)
		return append(b, make([]byte, 4+sockaddrStorageLen-len(b))...)
	}
	checkSame(t, primary(), storage(first))
	must.OK(t, a.Setsockopt(optPrimaryAddr, of(make([]byte, 4+sockaddrStorageLen), second)))
	checkSame(t, primary(), storage(second))
	peers, _ = must.Two(a.RemoteAddrs())(t)
	check.That(t, slices.Equal(peers, append(slices.Clone(second), first...)), "the primary address first: % x", peers)
	for i, sockaddr := range [][]byte{first, second} {
		state := byte(0)
		checkSteady(t, func() []byte {
			got := of(make([]byte, sizePeerAddrInfo), sockaddr)
			must.Get(a.Getsockopt(optPeerAddrInfo, got))(t)
			state = got[4+sockaddrStorageLen]
			return got
		}, func() []byte {
			p := a.conn.Paths()[i]
			want := append(storage(sockaddr), uint32s(2, p.Cwnd, int(p.SRTT.Milliseconds()), int(p.RTO.Milliseconds()),
				p.MaxPacket+28)...)
			if p.State != 0 {
				want[4+sockaddrStorageLen] = state
			}
			return want
		})
	}
	three := of(make([]byte, sizePeerAddrInfo), sockaddrs(0, "127.0.0.3"))
	_, err := a.Getsockopt(optPeerAddrInfo, three)
	checkSame(t, err, error(syscall.EINVAL))
	_, err = a.Getsockopt(optPeerAddrParams, of(make([]byte, 156), sockaddrs(0, "127.0.0.3")))
	checkSame(t, err, error(syscall.EINVAL))

	// SCTP_STATUS, field by field.
	got := make([]byte, 24+sizePeerAddrInfo)
	must.Get(a.Getsockopt(optStatus, got))(t)
	st := a.conn.Stats()
	want := append(uint32s(int(a.assocID), 5, st.PeerWindow), uint16s(0, 0, st.InStreams, st.OutStreams)...)
	check.That(t, slices.Equal(got[:20], want) && nativeOrder.Uint32(got[20:]) > 500 &&
		slices.Equal(got[24:28+sockaddrStorageLen], storage(second)), "status: % x, want % x ...", got, want)

	// SCTP_GET_PEER_ADDRS and SCTP_GET_LOCAL_ADDRS have a number and the list.
	for opt, want := range map[int][]byte{optPeerAddrs: peers} {
		got := make([]byte, 8+len(want)+4)
		n := must.Get(a.Getsockopt(opt, got))(t)
		check.That(t, n == 8+len(want) && nativeOrder.Uint32(got[4:]) == 2 && slices.Equal(got[8:n], want),
			"%d octets: % x", n, got)
	}
	gotInfo := make([]byte, 20)
	must.Get(a.Getsockopt(optAssocInfo, gotInfo))(t)
	st = a.conn.Stats()
	checkSame(t, gotInfo, append(append(uint32s(int(a.assocID)), uint16s(10, 2)...),
		uint32s(st.PeerWindow, st.RecvWindow, 60000)...))

	must.OK(t, a.Shutdown())
	checkSame(t, set(paramsOf(0, 0, 0, 0, sppDemand, 0, 0), second), error(syscall.EPIPE))
	_ = readSocket(b, 9)
	for a.conn.Err() == nil {
		runtime.Gosched()
	}
	_, err = a.Getsockopt(optStatus, make([]byte, 24+sizePeerAddrInfo))
	checkSame(t, err, error(syscall.EINVAL))
}

// Addresses are read as they are written, with the zone of a link-local one, and no zone of others.
func TestSockaddrsThereAndBack(t *testing.T) {
	lo := must.Get(net.InterfaceByIndex(1))(t).Name
	for _, list := range [][]net.IPAddr{{{IP: net.IPv4(192, 0, 2, 1).To4()}}, {{IP: net.ParseIP("2001:db8::1")}},
		{{IP: net.ParseIP("fe80::1"), Zone: lo}},
		{{IP: net.ParseIP("fe80::1"), Zone: "4711"}},
		{{IP: net.IPv4(192, 0, 2, 1).To4()}, {IP: net.ParseIP("2001:db8::1")}}} {
		raw := RawAddrs(list, 4711)
		got, port := must.Two(ParseAddrs(raw))(t)
		check.Equal(t, "port", port, 4711)
		checkSame(t, got, list)
		checkSame(t, FirstAddr(append(raw, 0xee))[:4], raw[:4])
		for n := range len(raw) {
			if _, _, err := ParseAddrs(raw[:n]); n > 0 && n != 16 && err != syscall.EINVAL {
				t.Errorf("%d octets of %v: %v", n, list, err)
			}
		}
		text := FormatAddr(list, 4711)
		back, port := must.Two(ResolveAddr("sctp", text))(t)
		check.Equal(t, text, FormatAddr(back, port), text)
	}
	check.Equal(t, "no address", FormatAddr(nil, 7), ":7")
	checkSame(t, RawAddrs(nil, 7), sockaddrs(7, "0.0.0.0"))
	check.That(t, FirstAddr([]byte{1, 2, 3}) == nil, "no sockaddr")
	_, _, err := ResolveAddr("tcp", "127.0.0.1:1")
	check.That(t, err != nil && err.Error() == "invalid net: tcp", "an address of TCP: %v", err)
	mapped := append(uint16s(afInet6, 0), make([]byte, 24)...)
	copy(mapped[8:], net.IPv4(192, 0, 2, 1).To16())
	got, _ := must.Two(ParseAddrs(mapped))(t)
	check.Equal(t, "a mapped one", got[0].IP.String(), "192.0.2.1")
}

// Sockets of IPv6 show addresses of IPv4 mapped, unless they are told not to.
func TestAddressesAreMapped(t *testing.T) {
	l, to := listenSocket(t)
	mapped := func(raw []byte) []byte {
		list, port := must.Two(ParseAddrs(raw))(t)
		b := append(nativeOrder.AppendUint16(nil, afInet6), raw[2:4]...)
		check.That(t, len(list) == 1 && port != 0, "%v", list)
		return append(append(b, 0, 0, 0, 0), append(list[0].IP.To16(), 0, 0, 0, 0)...)
	}
	for _, v6 := range []bool{false, true} {
		a := NewSocket(v6, false)
		must.Get(a.Connect(to))(t)
		b := must.Get(l.Accept())(t)
		for _, want := range []struct {
			on  byte
			raw []byte
		}{{1, to}, {0, to}, {1, to}} {
			must.OK(t, a.Setsockopt(optMappedV4, []byte{want.on, 0, 0, 0}))
			if v6 && want.on == 1 {
				want.raw = mapped(to)
			}
			raw, n, err := a.RemoteAddrs()
			check.That(t, err == nil && n == 1 && slices.Equal(raw, want.raw), "IPv6 %v, mapped %d: % x, %v", v6,
				want.on, raw, err)
			got := make([]byte, 4+sockaddrStorageLen)
			must.Get(a.Getsockopt(optPrimaryAddr, got))(t)
			check.That(t, slices.Equal(got[4:4+len(want.raw)], want.raw), "IPv6 %v, mapped %d, the primary one: % x",
				v6, want.on, got)
			info := make([]byte, sizePeerAddrInfo)
			copy(info[4:], want.raw) // either names it
			must.Get(a.Getsockopt(optPeerAddrInfo, info))(t)
			check.That(t, slices.Equal(info[4:4+len(want.raw)], want.raw), "IPv6 %v, mapped %d, info: % x", v6,
				want.on, info)
		}
		b.Close()
		a.Close()
	}
}
