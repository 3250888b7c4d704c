package sctp

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/compat"
)

var (
	home  = &SCTPAddr{IPAddrs: []net.IPAddr{{IP: net.IPv4(127, 0, 0, 1)}}}
	other = &SCTPAddr{IPAddrs: []net.IPAddr{{IP: net.IPv4(127, 0, 0, 2)}}}
	away  = &SCTPAddr{IPAddrs: []net.IPAddr{{IP: net.IPv4(192, 0, 2, 1)}}} // not of this host
)

// Every call on a connection that is closed, or that is nil, fails by EBADF; addresses are nil.
func TestEachCallOfAClosedConnection(t *testing.T) {
	closed, _ := connectedPair(t)
	mustOK(t, closed.Close())
	buf := make([]byte, 99)
	conn := func(_ any, err error) error { return err }
	for name, c := range map[string]*SCTPConn{"closed": closed, "nil": nil} {
		length := int32(4)
		r, _, getsockopt := c.Getsockopt(SCTP_NODELAY, uintptr(unsafe.Pointer(&buf[0])), uintptr(unsafe.Pointer(&length)))
		checkEqual(t, "getsockopt returns", r, ^uintptr(0))
		r, _, setsockopt := c.Setsockopt(SCTP_NODELAY, uintptr(unsafe.Pointer(&buf[0])), 4)
		checkEqual(t, "setsockopt returns", r, ^uintptr(0))
		n, _, _, err := c.SCTPRead(buf)
		checkEqual(t, "SCTPRead returns", n, -1)
		calls := map[string]error{
			"SCTPRead": err, "Read": conn(c.Read(buf)), "Write": conn(c.Write(buf)), "SCTPWrite": conn(c.SCTPWrite(buf, new(SndRcvInfo))), "Close": c.Close(),
			"Getsockopt": getsockopt, "Setsockopt": setsockopt, "SetInitMsg": c.SetInitMsg(1, 1, 1, 1), "SubscribeEvents": c.SubscribeEvents(0), "SubscribedEvents": conn(c.SubscribedEvents()),
			"SetDefaultSentParam": c.SetDefaultSentParam(new(SndRcvInfo)), "GetDefaultSentParam": conn(c.GetDefaultSentParam()), "PeelOff": conn(c.PeelOff(0)),
			"SCTPGetPrimaryPeerAddr": conn(c.SCTPGetPrimaryPeerAddr()), "SCTPLocalAddr": conn(c.SCTPLocalAddr(0)), "SCTPRemoteAddr": conn(c.SCTPRemoteAddr(0)),
			"SetDeadline": c.SetDeadline(time.Time{}), "SetReadDeadline": c.SetReadDeadline(time.Time{}), "SetWriteDeadline": c.SetWriteDeadline(time.Time{}),
			"SetWriteBuffer": c.SetWriteBuffer(1), "SetReadBuffer": c.SetReadBuffer(1), "GetWriteBuffer": conn(c.GetWriteBuffer()), "GetReadBuffer": conn(c.GetReadBuffer()),
			"SetNoDelay": c.SetNoDelay(1), "GetNoDelay": conn(c.GetNoDelay()), "SetRtoInfo": c.SetRtoInfo(RtoInfo{}), "GetRtoInfo": conn(c.GetRtoInfo()),
			"SetAssocInfo": c.SetAssocInfo(AssocInfo{}), "GetAssocInfo": conn(c.GetAssocInfo()), "SetMaxSegSize": c.SetMaxSegSize(900), "GetMaxSegSize": conn(c.GetMaxSegSize()),
			"SetNonBlock": c.SetNonBlock(true), "SetReadTimeout": c.SetReadTimeout(syscall.Timeval{}), "SetWriteTimeout": c.SetWriteTimeout(syscall.Timeval{}),
		}
		for call, err := range calls {
			checkEqual(t, name+": "+call, err, error(syscall.EBADF))
		}
		n, err = c.Read(buf)
		checkEqual(t, name+": octets of Read", n, 0)
		checkEqual(t, name+": LocalAddr", c.LocalAddr(), net.Addr(nil))
		checkEqual(t, name+": RemoteAddr", c.RemoteAddr(), net.Addr(nil))
	}
}

// An address is text and back, and what has none says so.
func TestAddressesAsText(t *testing.T) {
	for _, text := range []string{"127.0.0.1:7", "127.0.0.1/127.0.0.2:65535", "127.0.0.1/[::1]:1", ":9"} {
		a, err := ResolveSCTPAddr("sctp", text)
		mustOK(t, err)
		checkEqual(t, text, []string{a.String(), a.Network()}, []string{text, "sctp"})
	}
	for network, text := range map[string]string{"sctp": "127.0.0.1", "tcp": "127.0.0.1:1", "sctp4": "[::1]:1"} {
		a, err := ResolveSCTPAddr(network, text)
		if a != nil || err == nil {
			t.Errorf("%s %s: %v", network, text, a)
		}
	}
	checkEqual(t, "nil", (*SCTPAddr)(nil).String(), "<nil>")
	checkEqual(t, "the addresses of nil", (*SCTPAddr)(nil).addrs(), []net.IPAddr(nil))
	fails := errors.New("fails")
	for name, row := range map[string]struct {
		raw []byte
		err error
		is  error
	}{"an error": {home.ToRawSockAddrBuf(), fails, fails}, "none": {nil, nil, syscall.EINVAL}, "half of one": {home.ToRawSockAddrBuf()[:9], nil, syscall.EINVAL}} {
		a, err := parseAddrs(row.raw, 1, row.err)
		checkEqual(t, name, []any{a, err}, []any{(*SCTPAddr)(nil), row.is})
	}
	a, err := parseAddrs((&SCTPAddr{IPAddrs: append(home.IPAddrs, other.IPAddrs...), Port: 7}).ToRawSockAddrBuf(), 2, nil)
	mustOK(t, err)
	checkEqual(t, "two", a.String(), "127.0.0.1/127.0.0.2:7")
}

// Both ends have each other's addresses, by each call that tells them.
func TestTheAddressesOfBothEnds(t *testing.T) {
	l := listenLoopback(t)
	a, err := DialSCTP("sctp", other, l.Addr().(*SCTPAddr))
	mustOK(t, err)
	defer a.Close()
	b, err := l.AcceptSCTP(0)
	mustOK(t, err)
	defer b.Close()
	remote, err := a.SCTPRemoteAddr(0)
	mustOK(t, err)
	local, err := a.SCTPLocalAddr(0)
	mustOK(t, err)
	primary, err := a.SCTPGetPrimaryPeerAddr()
	mustOK(t, err)
	checkEqual(t, "the peer", []string{remote.String(), primary.String(), a.RemoteAddr().String(), b.LocalAddr().String()},
		[]string{l.Addr().String(), l.Addr().String(), l.Addr().String(), l.Addr().String()})
	checkEqual(t, "this end", []string{a.LocalAddr().String(), b.RemoteAddr().String()}, []string{local.String(), local.String()})
	if local.IPAddrs[0].String() != "127.0.0.2" || local.Port == 0 {
		t.Errorf("bound to %v", local)
	}
}

// Control sees the socket before it is bound, an error of it is the result, and so is one of each
// thing that a configuration asks for.
func TestConfigurationsThatFail(t *testing.T) {
	l := listenLoopback(t)
	at := l.Addr().(*SCTPAddr)
	fails := errors.New("fails")
	for name, row := range map[string]struct {
		cfg     SocketConfig
		network string
		laddr   *SCTPAddr
		want    error
	}{
		"Control":                {SocketConfig{Control: func(string, string, syscall.RawConn) error { return fails }}, "sctp", nil, fails},
		"Control, bound":         {SocketConfig{Control: func(string, string, syscall.RawConn) error { return fails }}, "sctp", home, fails},
		"a network":              {SocketConfig{}, "tcp", nil, net.UnknownNetworkError("tcp")},
		"an address":             {SocketConfig{}, "sctp", away, syscall.EADDRNOTAVAIL},
		"streams of no number":   {SocketConfig{RtoInfo: &RtoInfo{SrtoInitial: 9, SrtoMax: 5}}, "sctp", nil, syscall.EINVAL},
		"a short segment":        {SocketConfig{MaxSeg: 1}, "sctp", nil, syscall.EINVAL},
		"a short segment, bound": {SocketConfig{MaxSeg: 1}, "sctp", home, syscall.EINVAL},
		"the first of several":   {SocketConfig{RtoInfo: &RtoInfo{SrtoInitial: 9, SrtoMax: 5}, AssocInfo: &AssocInfo{AsocMaxRxt: 4}, MaxSeg: 900}, "sctp", nil, syscall.EINVAL},
	} {
		c, err := row.cfg.Dial(row.network, row.laddr, at)
		checkEqual(t, "dial: "+name, []any{c, err}, []any{(*SCTPConn)(nil), row.want})
		ln, err := row.cfg.Listen(row.network, row.laddr)
		checkEqual(t, "listen: "+name, []any{ln, err}, []any{(*SCTPListener)(nil), row.want})
	}
	var seen []string
	cfg := SocketConfig{InitMsg: InitMsg{NumOstreams: 7, MaxInstreams: 9, MaxAttempts: 3, MaxInitTimeout: 500}, RtoInfo: &RtoInfo{SrtoInitial: 300, SrtoMax: 4000, StroMin: 200}, AssocInfo: &AssocInfo{AsocMaxRxt: 4, CookieLife: 9000}, MaxSeg: 900,
		Control: func(network, address string, c syscall.RawConn) error {
			seen = append(seen, network+" "+address)
			checkEqual(t, "read of a descriptor", []error{c.Read(nil), c.Write(nil)}, []error{syscall.EOPNOTSUPP, syscall.EOPNOTSUPP})
			return c.Control(func(fd uintptr) {
				mustOK(t, syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 20_000))
			})
		}}
	ln, err := cfg.Listen("sctp4", home)
	mustOK(t, err)
	defer ln.Close()
	a, err := cfg.Dial("sctp", nil, ln.Addr().(*SCTPAddr))
	mustOK(t, err)
	defer a.Close()
	b, err := ln.AcceptSCTP(0)
	mustOK(t, err)
	defer b.Close()
	checkEqual(t, "Control", seen, []string{"sctp4 127.0.0.1:0", "sctp <nil>"})
	for _, c := range []*SCTPConn{a, b} {
		octets, err := c.GetReadBuffer()
		checkEqual(t, "what Control has set", []any{octets, err}, []any{40_000, nil})
		init := rawOption(t, c, SCTP_INITMSG, 8)
		for i, want := range []uint16{7, 9, 3, 500} {
			checkEqual(t, "INITMSG", binary.NativeEndian.Uint16(init[2*i:]), want)
		}
		rto, err := c.GetRtoInfo()
		checkEqual(t, "RtoInfo", []any{*rto, err}, []any{RtoInfo{SrtoInitial: 300, SrtoMax: 4000, StroMin: 200}, nil})
		assoc, err := c.GetAssocInfo()
		checkEqual(t, "AssocInfo", []any{assoc.AsocMaxRxt, assoc.CookieLife, err}, []any{uint16(4), uint32(9000), nil})
		seg, err := c.GetMaxSegSize()
		checkEqual(t, "MaxSeg", []any{*seg, err}, []any{900, nil})
	}
	all, err := ListenSCTP("sctp", nil) // all addresses, and some port
	mustOK(t, err)
	defer all.Close()
	if got := all.Addr().(*SCTPAddr); got.Port == 0 || len(got.IPAddrs) == 0 {
		t.Errorf("all addresses are %v", got)
	}
}

// A call that fails closes the socket that it has made, and with it the descriptor.
func TestCallsThatFailLeaveNoSocket(t *testing.T) {
	taken := listenLoopback(t).Addr().(*SCTPAddr)
	nobody := &SCTPAddr{IPAddrs: home.IPAddrs, Port: 1}
	fails := errors.New("fails")
	for name, row := range map[string]struct {
		control      error
		laddr, raddr *SCTPAddr // without raddr it listens
		want         error
	}{
		"listen: Control":           {fails, home, nil, fails},
		"listen: another's address": {nil, away, nil, syscall.EADDRNOTAVAIL},
		"listen: a port in use":     {nil, taken, nil, syscall.EADDRINUSE},
		"dial: Control":             {fails, nil, taken, fails},
		"dial: another's address":   {nil, away, taken, syscall.EADDRNOTAVAIL},
		"dial: nobody":              {nil, nil, nobody, syscall.ECONNREFUSED},
	} {
		var socket *compat.Socket
		cfg := SocketConfig{Control: func(_, _ string, c syscall.RawConn) error {
			return errors.Join(c.Control(func(fd uintptr) { socket = compat.Find(int(fd)) }), row.control)
		}}
		var err error
		if row.raddr == nil {
			_, err = cfg.Listen("sctp4", row.laddr)
		} else {
			_, err = cfg.Dial("sctp4", row.laddr, row.raddr)
		}
		if !errors.Is(err, row.want) {
			t.Errorf("%s: %v, want %v", name, err, row.want)
		}
		if socket == nil || !socket.Closed() {
			t.Errorf("%s: the socket %v is left", name, socket)
		}
	}
}

// A descriptor is its socket for the functions that take one, and for a new connection.
func TestFunctionsOfDescriptors(t *testing.T) {
	l := listenLoopback(t)
	s, err := (&SocketConfig{}).Listen("sctp4", other) // not a dialled one, since it is to be connected
	mustOK(t, err)
	defer s.Close()
	conn, _ := connectedPair(t)
	fd, err := conn.socket.Load().Descriptor()
	mustOK(t, err)
	called := 0
	same := NewSCTPConn(fd, func([]byte) error { called++; return nil })
	checkEqual(t, "the socket", same.socket.Load() == conn.socket.Load(), true)
	mustOK(t, same.handler(nil))
	checkEqual(t, "the handler", called, 1)
	none := NewSCTPConn(-1, nil)
	checkEqual(t, "no socket", none.Close(), error(syscall.EBADF))
	checkEqual(t, "bind of one that is connected", SCTPBind(fd, home, SCTP_BINDX_ADD_ADDR), error(syscall.EOPNOTSUPP))
	id, err := SCTPConnect(fd, l.Addr().(*SCTPAddr))
	checkEqual(t, "connect of one that is connected", []any{id, err}, []any{0, error(syscall.EISCONN)})
	for _, flags := range []int{0, 3, 4} {
		checkEqual(t, "flags", SCTPBind(fd, home, flags), error(syscall.EINVAL))
	}

	var fresh int
	cfg := SocketConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(d uintptr) { fresh = int(d) })
	}}
	cfg.Control = func(control func(string, string, syscall.RawConn) error) func(string, string, syscall.RawConn) error {
		return func(network, address string, c syscall.RawConn) error {
			mustOK(t, control(network, address, c))
			mustOK(t, SCTPBind(fresh, home, SCTP_BINDX_ADD_ADDR))
			mustOK(t, SCTPBind(fresh, other, SCTP_BINDX_ADD_ADDR))
			checkEqual(t, "an address twice", SCTPBind(fresh, other, SCTP_BINDX_ADD_ADDR), error(syscall.EINVAL))
			mustOK(t, SCTPBind(fresh, other, SCTP_BINDX_REM_ADDR))
			checkEqual(t, "the last one away", SCTPBind(fresh, home, SCTP_BINDX_REM_ADDR), error(syscall.EBUSY))
			id, err := SCTPConnect(fresh, l.Addr().(*SCTPAddr))
			mustOK(t, err)
			if id <= 0 {
				t.Errorf("association %d", id)
			}
			return errors.New("that is all")
		}
	}(cfg.Control)
	_, err = cfg.Dial("sctp4", nil, l.Addr().(*SCTPAddr))
	checkEqual(t, "dial", err, errors.New("that is all"))
	c, err := l.AcceptSCTP(0)
	mustOK(t, err)
	mustOK(t, c.Close())
}

// Options are set by addresses too.
func TestSetsockoptByAddress(t *testing.T) {
	c, _ := connectedPair(t)
	v := int32(1)
	r, _, err := c.Setsockopt(SCTP_NODELAY, uintptr(unsafe.Pointer(&v)), 4)
	checkEqual(t, "setsockopt", []any{r, err}, []any{uintptr(0), nil})
	checkEqual(t, "NODELAY", rawOption(t, c, SCTP_NODELAY, 4), binary.NativeEndian.AppendUint32(nil, 1))
	r, _, err = c.Setsockopt(SCTP_NODELAY, uintptr(unsafe.Pointer(&v)), 3)
	checkEqual(t, "setsockopt that fails", []any{r, err}, []any{^uintptr(0), error(syscall.EINVAL)})
}

// A wrapped connection is its connection in all else.
func TestAWrappedConnection(t *testing.T) {
	a, b := connectedPair(t)
	w, peer := NewSCTPSndRcvInfoWrappedConn(a), NewSCTPSndRcvInfoWrappedConn(b)
	checkEqual(t, "addresses", []string{w.LocalAddr().String(), w.RemoteAddr().String()}, []string{a.LocalAddr().String(), a.RemoteAddr().String()})
	for name, row := range map[string]struct {
		set func(int) error
		get func() (int, error)
		of  func() (int, error)
	}{"write buffer": {w.SetWriteBuffer, w.GetWriteBuffer, a.GetWriteBuffer}, "read buffer": {w.SetReadBuffer, w.GetReadBuffer, a.GetReadBuffer}} {
		mustOK(t, row.set(20_000))
		got, err := row.get()
		mustOK(t, err)
		of, err := row.of()
		mustOK(t, err)
		checkEqual(t, name, []int{got, of}, []int{40_000, 40_000})
	}
	buf := make([]byte, 99)
	passed := time.Now().Add(-time.Second)
	full := func() error {
		for range 100_000 {
			if _, err := w.Write(make([]byte, 40_000)); err != nil {
				return err
			}
		}
		return nil
	}
	for name, set := range map[string]func(time.Time) error{"SetDeadline": w.SetDeadline, "SetReadDeadline": w.SetReadDeadline} {
		mustOK(t, set(passed))
		n, err := w.Read(buf)
		checkEqual(t, "read after "+name, []any{n, err}, []any{0, os.ErrDeadlineExceeded})
		mustOK(t, set(time.Time{}))
	}
	for name, set := range map[string]func(time.Time) error{"SetDeadline": w.SetDeadline, "SetWriteDeadline": w.SetWriteDeadline} {
		mustOK(t, set(passed))
		checkEqual(t, "write after "+name, full(), os.ErrDeadlineExceeded)
		mustOK(t, set(time.Time{}))
	}
	mustOK(t, peer.Close())
	mustOK(t, w.Close())
	checkEqual(t, "closed", a.Close(), error(syscall.EBADF))
	n, err := w.Write(make([]byte, 40))
	checkEqual(t, "write, closed", []any{n, err}, []any{0, error(syscall.EBADF)})
	n, err = w.Read(buf)
	checkEqual(t, "read, closed", []any{n, err}, []any{0, error(syscall.EBADF)})
	if NewSCTPSndRcvInfoWrappedConn(a) != nil {
		t.Error("a closed connection is wrapped")
	}
}

// A wrapped read has an info in front only if there is one, of the connection's own fields.
func TestAWrappedReadWithoutAnInfo(t *testing.T) {
	a, b := connectedPair(t)
	w := NewSCTPSndRcvInfoWrappedConn(b)
	mustOK(t, b.SubscribeEvents(0))
	_, err := a.Write([]byte("x"))
	mustOK(t, err)
	buf := make([]byte, 40)
	for i := range buf {
		buf[i] = 0xee
	}
	n, err := w.Read(buf)
	checkEqual(t, "read", []any{n, err, string(buf[:33])}, []any{33, nil, string(make([]byte, 32)) + "x"})
	mustOK(t, b.SubscribeEvents(SCTP_EVENT_DATA_IO))
	_, err = a.SCTPWrite([]byte("y"), &SndRcvInfo{Stream: 3, PPID: 0x01020304})
	mustOK(t, err)
	n, err = w.Read(buf)
	checkEqual(t, "read", []any{n, err, binary.NativeEndian.Uint16(buf), binary.NativeEndian.Uint32(buf[8:]), string(buf[32:33])}, []any{33, nil, uint16(3), uint32(0x01020304), "y"})
}

// A server that is closed listens again at once on its port, while its associations live on, with
// SO_REUSEADDR or without.
func TestAServerIsReloaded(t *testing.T) {
	reuse := func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) {
			mustOK(t, syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
		})
	}
	for name, cfg := range map[string]*SocketConfig{"SO_REUSEADDR": {Control: reuse}, "without": {}} {
		l, err := cfg.Listen("sctp", home)
		mustOK(t, err)
		at := l.Addr().(*SCTPAddr)
		a, err := DialSCTP("sctp", nil, at)
		mustOK(t, err)
		b, err := l.AcceptSCTP(0)
		mustOK(t, err)
		_, err = cfg.Listen("sctp", at)
		checkEqual(t, name+": another while it listens", err, error(syscall.EADDRINUSE))
		for range 2 {
			mustOK(t, l.Close())
			l, err = cfg.Listen("sctp", at)
			mustOK(t, err)
			c, err := DialSCTP("sctp", nil, at)
			mustOK(t, err)
			d, err := l.AcceptSCTP(0)
			mustOK(t, err)
			for from, to := range map[*SCTPConn]*SCTPConn{a: b, c: d} {
				buf := make([]byte, 9)
				_, err = from.Write([]byte("x"))
				mustOK(t, err)
				n, err := to.Read(buf)
				checkEqual(t, name+": a message", []any{n, err}, []any{1, nil})
			}
			mustOK(t, c.Close())
			mustOK(t, d.Close())
		}
		mustOK(t, a.Close())
		mustOK(t, b.Close())
		mustOK(t, l.Close())
	}
}

// An Accept that does not wait fails by EAGAIN, and the listener goes on.
func TestAcceptWithoutWaiting(t *testing.T) {
	l := listenLoopback(t)
	mustOK(t, l.fd.socket.Load().SetNonblock(true))
	c, err := l.Accept(0)
	checkEqual(t, "accept", err, error(syscall.EAGAIN))
	checkEqual(t, "stopped", l.IsStopped(), false)
	mustOK(t, l.fd.socket.Load().SetNonblock(false))
	a, err := DialSCTP("sctp", nil, l.Addr().(*SCTPAddr))
	mustOK(t, err)
	c, err = l.Accept(0)
	mustOK(t, err)
	checkEqual(t, "its peer", c.RemoteAddr().String(), a.LocalAddr().String())
	mustOK(t, c.Close())
	mustOK(t, a.Close())
}

// A listener tells its MaxSeg, and what it was given by the calls that take options one by one.
func TestExtendedCallsPassTheirOptions(t *testing.T) {
	rto, assoc := RtoInfo{SrtoInitial: 300, SrtoMax: 4000, StroMin: 200}, AssocInfo{AsocMaxRxt: 4, CookieLife: 9000}
	l, err := ListenSCTPExt("sctp", home, InitMsg{NumOstreams: 3, MaxInstreams: 4}, &rto, &assoc, 900)
	mustOK(t, err)
	defer l.Close()
	n, err := l.MaxSeg()
	checkEqual(t, "MaxSeg", []any{n, err}, []any{900, nil})
	a, err := DialSCTPExt("sctp", nil, l.Addr().(*SCTPAddr), InitMsg{NumOstreams: 5, MaxInstreams: 6}, nil, nil, 0)
	mustOK(t, err)
	defer a.Close()
	b, err := l.AcceptSCTP(0)
	mustOK(t, err)
	defer b.Close()
	for i, c := range []*SCTPConn{a, b} {
		init := rawOption(t, c, SCTP_INITMSG, 8)
		checkEqual(t, "INITMSG", []uint16{binary.NativeEndian.Uint16(init), binary.NativeEndian.Uint16(init[2:])}, [][]uint16{{5, 6}, {3, 4}}[i])
		seg, err := c.GetMaxSegSize()
		checkEqual(t, "MaxSeg", []any{*seg, err}, []any{[]int{0, 900}[i], nil})
		got, err := c.GetRtoInfo()
		checkEqual(t, "RtoInfo", []any{*got, err}, []any{[]RtoInfo{{SrtoInitial: 1000, SrtoMax: 60000, StroMin: 1000}, rto}[i], nil})
		life, err := c.GetAssocInfo()
		checkEqual(t, "AssocInfo", []any{life.CookieLife, err}, []any{[]uint32{60000, 9000}[i], nil})
	}
	if _, err = DialSCTPExt("sctp", nil, nil, InitMsg{}, nil, nil, 0); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("dial nothing: %v", err)
	}
}

// A dial that may not wait leaves the connection to the caller.
func TestDialWithoutWaiting(t *testing.T) {
	l := listenLoopback(t)
	cfg := SocketConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { mustOK(t, syscall.SetNonblock(int(fd), true)) })
	}}
	a, err := cfg.Dial("sctp", nil, l.Addr().(*SCTPAddr))
	checkEqual(t, "dial", err, error(syscall.EINPROGRESS))
	b, err := l.AcceptSCTP(0)
	mustOK(t, err)
	mustOK(t, a.SetNonBlock(false))
	_, err = a.Write([]byte("x"))
	mustOK(t, err)
	n, err := b.Read(make([]byte, 9))
	checkEqual(t, "read", []any{n, err}, []any{1, nil})
	mustOK(t, a.Close())
	mustOK(t, b.Close())
}
