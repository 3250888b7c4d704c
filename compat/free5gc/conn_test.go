package sctp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"reflect"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

func TestMain(m *testing.M) {
	os.Setenv("RDDP_LINK", "udp") // which needs no privilege
	os.Exit(m.Run())
}

func mustOK(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func checkEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: %+v, want %+v", what, got, want)
	}
}

// listen returns a listener on the loopback network.
func listenLoopback(t *testing.T) *SCTPListener {
	l, err := ListenSCTP("sctp", &SCTPAddr{IPAddrs: []net.IPAddr{{IP: net.IPv4(127, 0, 0, 1)}}})
	mustOK(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// pair returns both ends of an association.
func connectedPair(t *testing.T) (a, b *SCTPConn) {
	l := listenLoopback(t)
	a, err := DialSCTP("sctp", nil, l.Addr().(*SCTPAddr))
	mustOK(t, err)
	b, err = l.AcceptSCTP(1000)
	mustOK(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// raw reads an option as the system call does.
func rawOption(t *testing.T, c *SCTPConn, opt uintptr, octets int) []byte {
	t.Helper()
	b, n := make([]byte, octets), int32(octets)
	_, _, err := c.Getsockopt(opt, uintptr(unsafe.Pointer(&b[0])), uintptr(unsafe.Pointer(&n)))
	mustOK(t, err)
	return b[:n]
}

// Each event is the octet of sctp_event_subscribe in its place, and no other.
func TestEventsBitByBit(t *testing.T) {
	c, _ := connectedPair(t)
	for i, event := range []int{SCTP_EVENT_DATA_IO, SCTP_EVENT_ASSOCIATION, SCTP_EVENT_ADDRESS, SCTP_EVENT_SEND_FAILURE, SCTP_EVENT_PEER_ERROR, SCTP_EVENT_SHUTDOWN,
		SCTP_EVENT_PARTIAL_DELIVERY, SCTP_EVENT_ADAPTATION_LAYER, SCTP_EVENT_AUTHENTICATION, SCTP_EVENT_SENDER_DRY} {
		mustOK(t, c.SubscribeEvents(event))
		got, err := c.SubscribedEvents()
		mustOK(t, err)
		checkEqual(t, "subscribed to", got, event)
		want := make([]byte, 14)
		want[i] = 1
		checkEqual(t, "octets", rawOption(t, c, SCTP_EVENTS, 14), want)
	}
	for _, flags := range []int{SCTP_EVENT_ALL, 0, 0x2aa, 0x155} {
		mustOK(t, c.SubscribeEvents(flags))
		got, err := c.SubscribedEvents()
		mustOK(t, err)
		checkEqual(t, "subscribed to", got, flags)
	}
}

// What each call sets is in the structure of the option field by field, and is read back.
func TestOptionsAreReadBack(t *testing.T) {
	c, _ := connectedPair(t)
	u32 := func(v ...uint32) (b []byte) {
		for _, v := range v {
			b = binary.NativeEndian.AppendUint32(b, v)
		}
		return b
	}
	u16 := func(v ...uint16) (b []byte) {
		for _, v := range v {
			b = binary.NativeEndian.AppendUint16(b, v)
		}
		return b
	}
	mustOK(t, c.SetInitMsg(11, 12, 13, 14))
	checkEqual(t, "INITMSG", rawOption(t, c, SCTP_INITMSG, 8), u16(11, 12, 13, 14))

	info := SndRcvInfo{Stream: 1, Flags: SCTP_UNORDERED, PPID: 3, Context: 4, TTL: 5}
	mustOK(t, c.SetDefaultSentParam(&info))
	checkEqual(t, "DEFAULT_SENT_PARAM", rawOption(t, c, SCTP_DEFAULT_SENT_PARAM, 32), append(u16(1, 0, 1, 0), u32(3, 4, 5, 0, 0, 0)...))
	got, err := c.GetDefaultSentParam()
	mustOK(t, err)
	checkEqual(t, "GetDefaultSentParam", *got, info)

	for _, v := range []int{1, 0} {
		mustOK(t, c.SetNoDelay(v))
		got, err := c.GetNoDelay()
		mustOK(t, err)
		checkEqual(t, "GetNoDelay", got, v)
		checkEqual(t, "NODELAY", rawOption(t, c, SCTP_NODELAY, 4), u32(uint32(v)))
	}
	mustOK(t, c.SetRtoInfo(RtoInfo{SrtoInitial: 300, SrtoMax: 4000, StroMin: 200}))
	rto, err := c.GetRtoInfo()
	mustOK(t, err)
	checkEqual(t, "GetRtoInfo", *rto, RtoInfo{SrtoInitial: 300, SrtoMax: 4000, StroMin: 200})
	checkEqual(t, "RTOINFO", rawOption(t, c, SCTP_RTOINFO, 16), u32(0, 300, 4000, 200))
	mustOK(t, c.SetAssocInfo(AssocInfo{AsocMaxRxt: 4, CookieLife: 9000}))
	assoc, err := c.GetAssocInfo()
	mustOK(t, err)
	checkEqual(t, "GetAssocInfo", []any{assoc.AsocMaxRxt, assoc.NumberPeerDestinations, assoc.CookieLife}, []any{uint16(4), uint16(1), uint32(9000)})
	mustOK(t, c.SetMaxSegSize(900))
	seg, err := c.GetMaxSegSize()
	mustOK(t, err)
	checkEqual(t, "GetMaxSegSize", *seg, 900)
	checkEqual(t, "MAXSEG", rawOption(t, c, SCTP_MAXSEG, 8), u32(0, 900))

	for name, set := range map[string]func(int) error{"SetReadBuffer": c.SetReadBuffer, "SetWriteBuffer": c.SetWriteBuffer} {
		get, other := c.GetReadBuffer, c.GetWriteBuffer
		if name == "SetWriteBuffer" {
			get, other = other, get
		}
		before, err := other()
		mustOK(t, err)
		mustOK(t, set(20_000))
		got, err := get()
		mustOK(t, err)
		checkEqual(t, name+", as Linux counts", got, 40_000)
		after, err := other()
		mustOK(t, err)
		checkEqual(t, name+", of the other direction", after, before)
	}
}

// An info goes out with each message, and comes in with it, field by field; without the event there
// is none.
func TestInfosFieldByField(t *testing.T) {
	a, b := connectedPair(t)
	buf := make([]byte, 99)
	_, err := a.SCTPWrite([]byte("x"), nil)
	mustOK(t, err)
	n, info, err := readMessage(b, buf)
	checkEqual(t, "without the event", []any{n, info, err}, []any{1, (*SndRcvInfo)(nil), nil})
	mustOK(t, b.SubscribeEvents(SCTP_EVENT_DATA_IO))
	_, err = a.SCTPWrite([]byte("yes"), &SndRcvInfo{Stream: 3, Flags: SCTP_UNORDERED, PPID: 0x2e000000, Context: 9, TTL: 60_000})
	mustOK(t, err)
	n, info, err = readMessage(b, buf)
	mustOK(t, err)
	if n != 3 || info == nil || info.Stream != 3 || info.SSN != 0 || info.Flags != SCTP_UNORDERED || info.PPID != 0x2e000000 || info.Context != 0 || info.TTL != 0 ||
		info.TSN == 0 || info.CumTSN != info.TSN || info.AssocID == 0 {
		t.Errorf("%d octets, %+v", n, info)
	}
	first := info.TSN
	for i := range uint16(2) {
		_, err = a.SCTPWrite([]byte("z"), &SndRcvInfo{Stream: 4})
		mustOK(t, err)
		_, info, err = readMessage(b, buf)
		mustOK(t, err)
		checkEqual(t, "SSN, TSN", []any{info.SSN, info.TSN, info.Flags}, []any{i, first + 1 + uint32(i), uint16(0)})
	}
	in := SndRcvInfo{Stream: 1, SSN: 2, Flags: 3, PPID: 4, Context: 5, TTL: 6, TSN: 7, CumTSN: 8, AssocID: 9}
	out := plain(&in)
	checkEqual(t, "there and back", *named(&out), in)

	wa, wb := NewSCTPSndRcvInfoWrappedConn(a), NewSCTPSndRcvInfoWrappedConn(b)
	m := append(make([]byte, 32), "wrapped"...)
	binary.NativeEndian.PutUint16(m, 5)
	n, err = wa.Write(m)
	checkEqual(t, "wrapped write", []any{n, err}, []any{39, nil})
	n, err = wb.Read(buf)
	if n != 39 || err != nil || binary.NativeEndian.Uint16(buf) != 5 || string(buf[32:n]) != "wrapped" {
		t.Errorf("wrapped read: %q, %v", buf[:n], err)
	}
	for name, f := range map[string]func([]byte) (int, error){"write": wa.Write, "read": wb.Read} {
		n, err = f(make([]byte, 31))
		checkEqual(t, "wrapped "+name+" without room for an info", []any{n, err}, []any{0, error(syscall.EINVAL)})
	}
}

// Deadlines end calls in their direction alone; SetDeadline is both.
func TestDeadlinesEndTheirCalls(t *testing.T) {
	a, _ := connectedPair(t)
	buf := make([]byte, 9)
	passed := time.Now().Add(-time.Second)
	mustOK(t, a.SetReadDeadline(passed))
	_, err := a.Read(buf)
	checkEqual(t, "read", err, os.ErrDeadlineExceeded)
	_, err = a.Write([]byte("x"))
	mustOK(t, err)
	mustOK(t, a.SetDeadline(time.Time{}))
	full := func() error {
		mustOK(t, a.SetWriteBuffer(5000))
		for range 100_000 {
			if _, err := a.Write(make([]byte, 5000)); err != nil {
				return err
			}
		}
		return nil
	}
	mustOK(t, a.SetWriteDeadline(time.Now().Add(50*time.Millisecond)))
	checkEqual(t, "write", full(), os.ErrDeadlineExceeded)
	mustOK(t, a.SetDeadline(passed))
	_, err = a.Read(buf)
	checkEqual(t, "read after SetDeadline", err, os.ErrDeadlineExceeded)
	checkEqual(t, "write after SetDeadline", full(), os.ErrDeadlineExceeded)
}

// Errors are bare errnos, so that all ways to compare them work, those of programs for versions
// that wrap them too.
func TestErrorsAreWhatProgramsCompareWith(t *testing.T) {
	a, b := connectedPair(t)
	l := listenLoopback(t)
	closed, _ := connectedPair(t)
	mustOK(t, closed.Close())
	buf := make([]byte, 9)
	conn := func(_ any, err error) error { return err }
	for name, row := range map[string]struct {
		got  error
		want syscall.Errno
	}{
		"read, closed":       {conn(closed.Read(buf)), syscall.EBADF},
		"write, closed":      {conn(closed.Write(buf)), syscall.EBADF},
		"closed twice":       {closed.Close(), syscall.EBADF},
		"option, closed":     {closed.SubscribeEvents(0), syscall.EBADF},
		"deadline, closed":   {closed.SetDeadline(time.Time{}), syscall.EBADF},
		"address, closed":    {conn(closed.SCTPRemoteAddr(0)), syscall.EBADF},
		"nil":                {(*SCTPConn)(nil).Close(), syscall.EBADF},
		"nothing to write":   {conn(a.Write(nil)), syscall.EINVAL},
		"peeled off":         {conn(a.PeelOff(0)), syscall.EINVAL},
		"nobody listens":     {conn(DialSCTP("sctp", nil, &SCTPAddr{IPAddrs: []net.IPAddr{{IP: net.IPv4(127, 0, 0, 1)}}, Port: 1})), syscall.ECONNREFUSED},
		"a port in use":      {conn(ListenSCTP("sctp", l.Addr().(*SCTPAddr))), syscall.EADDRINUSE},
		"bind, flags":        {SCTPBind(-1, nil, 999), syscall.EINVAL},
		"bind, no socket":    {SCTPBind(-1, l.Addr().(*SCTPAddr), SCTP_BINDX_ADD_ADDR), syscall.EBADF},
		"connect, no socket": {conn(SCTPConnect(-1, l.Addr().(*SCTPAddr))), syscall.EBADF},
	} {
		var no syscall.Errno
		if row.got != error(row.want) || !errors.Is(row.got, row.want) || !errors.As(row.got, &no) || no != row.want {
			t.Errorf("%s: %v, want %v", name, row.got, row.want)
		}
	}
	fd, err := a.socket.Load().Descriptor()
	mustOK(t, err)
	for name, err := range map[string]error{"bind": SCTPBind(fd, nil, SCTP_BINDX_ADD_ADDR), "connect": conn(SCTPConnect(fd, nil)), "dial": conn(DialSCTP("sctp", nil, nil))} {
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s without an address: %v", name, err)
		}
	}
	mustOK(t, b.Close())
	n, err := a.Read(buf)
	checkEqual(t, "the end", []any{n, err}, []any{0, io.EOF})
	if !bytes.Equal(buf, make([]byte, 9)) {
		t.Error("octets were written")
	}
}

func readMessage(c *SCTPConn, b []byte) (int, *SndRcvInfo, error) {
	n, info, _, err := c.SCTPRead(b)
	return n, info, err
}

// Timeouts are seconds and microseconds, of reads or of writes.
func TestTimeoutsAreInTheirUnit(t *testing.T) {
	a, _ := connectedPair(t)
	fd, err := a.socket.Load().Descriptor()
	mustOK(t, err)
	read, write := syscall.Timeval{Sec: 3, Usec: 20_000}, syscall.Timeval{Sec: 2, Usec: 40_000}
	mustOK(t, a.SetReadTimeout(read))
	mustOK(t, a.SetWriteTimeout(write))
	for opt, want := range map[uintptr]syscall.Timeval{syscall.SO_RCVTIMEO: read, syscall.SO_SNDTIMEO: write} {
		var tv syscall.Timeval
		n := uint32(unsafe.Sizeof(tv))
		_, _, e := syscall.Syscall6(syscall.SYS_GETSOCKOPT, uintptr(fd), syscall.SOL_SOCKET, opt, uintptr(unsafe.Pointer(&tv)), uintptr(unsafe.Pointer(&n)), 0)
		checkEqual(t, "timeout", []any{tv, e}, []any{want, syscall.Errno(0)})
	}
	mustOK(t, a.SetReadTimeout(syscall.Timeval{Usec: 20_000}))
	start := time.Now()
	_, err = a.Read(make([]byte, 9))
	checkEqual(t, "read", err, error(syscall.EAGAIN))
	if took := time.Since(start); took < 20*time.Millisecond || took > 10*time.Second {
		t.Errorf("20 ms are %v", took)
	}
	mustOK(t, a.SetReadTimeout(syscall.Timeval{}))
	mustOK(t, a.SetNonBlock(true))
	_, err = a.Read(make([]byte, 9))
	checkEqual(t, "read without waiting", err, error(syscall.EAGAIN))
}

// SCTPRead tells which notification it has read, field by field.
func TestNotificationsAreTold(t *testing.T) {
	l := listenLoopback(t)
	cfg := &SocketConfig{InitMsg: InitMsg{NumOstreams: 7, MaxInstreams: 9}}
	var socket *SCTPConn
	a, err := cfg.Dial("sctp", nil, l.Addr().(*SCTPAddr))
	mustOK(t, err)
	defer a.Close()
	socket, err = l.AcceptSCTP(1000)
	mustOK(t, err)
	mustOK(t, a.SubscribeEvents(SCTP_EVENT_SHUTDOWN|SCTP_EVENT_ASSOCIATION|SCTP_EVENT_SENDER_DRY))
	buf := make([]byte, 99)
	n, _, note, err := a.SCTPRead(buf)
	checkEqual(t, "of another type", []any{n, note, err}, []any{12, Notification(nil), nil})
	mustOK(t, socket.Close())
	n, _, note, err = a.SCTPRead(buf)
	e, is := note.(*SCTPShutdownEvent)
	if !is || n != 12 || err != nil || e.Type() != SCTP_SHUTDOWN_EVENT || e.Flags() != 0 || e.Length() != 12 || e.AssocID() == 0 {
		t.Errorf("%d octets, %+v, %v", n, note, err)
	}
	n, _, note, err = a.SCTPRead(buf)
	c, is := note.(*SCTPAssocChangeEvent)
	if !is || n != 20 || err != nil || c.Type() != SCTP_ASSOC_CHANGE || c.Flags() != 0 || c.Length() != 20 || c.State() != SCTP_SHUTDOWN_COMP ||
		c.AssocID() != e.AssocID() || len(c.Info()) != 0 {
		t.Errorf("%d octets, %+v, %v", n, note, err)
	}
	b := binary.NativeEndian.AppendUint16(nil, uint16(SCTP_ASSOC_CHANGE))
	b = append(b, make([]byte, 18)...)
	binary.NativeEndian.PutUint16(b[2:], 1)
	binary.NativeEndian.PutUint32(b[4:], 22)
	binary.NativeEndian.PutUint16(b[8:], uint16(SCTP_COMM_LOST))
	binary.NativeEndian.PutUint16(b[12:], 7)
	binary.NativeEndian.PutUint16(b[14:], 9)
	binary.NativeEndian.PutUint32(b[16:], 5)
	c = parseNotification(append(b, "hi"...)).(*SCTPAssocChangeEvent)
	checkEqual(t, "fields", []any{c.Flags(), c.Length(), c.State(), c.OutboundStreams(), c.InboundStreams(), c.AssocID(), string(c.Info())},
		[]any{uint16(1), uint32(22), SCTP_COMM_LOST, uint16(7), uint16(9), SCTPAssocID(5), "hi"})
	checkEqual(t, "cut", parseNotification(b[:19]), Notification(nil))
	checkEqual(t, "whole", len(parseNotification(b[:20]).(*SCTPAssocChangeEvent).Info()), 0)
	binary.NativeEndian.PutUint16(b, uint16(SCTP_SHUTDOWN_EVENT))
	binary.NativeEndian.PutUint32(b[8:], 6)
	d := parseNotification(b[:12]).(*SCTPShutdownEvent)
	checkEqual(t, "shutdown", []any{d.Type(), d.Flags(), d.Length(), d.AssocID()},
		[]any{SCTP_SHUTDOWN_EVENT, uint16(1), uint32(22), SCTPAssocID(6)})
	checkEqual(t, "cut", parseNotification(b[:11]), Notification(nil))
	binary.NativeEndian.PutUint16(b, uint16(SCTP_SHUTDOWN_EVENT)+1)
	checkEqual(t, "another", parseNotification(b), Notification(nil))
}

// Close ends an Accept, which then says so by nothing at all; the listener says it is stopped.
func TestAListenerThatIsClosed(t *testing.T) {
	l := listenLoopback(t)
	checkEqual(t, "stopped", l.IsStopped(), false)
	mustOK(t, l.Close())
	c, err := l.AcceptSCTP(1)
	checkEqual(t, "accept", []any{c, err, l.IsStopped()}, []any{(*SCTPConn)(nil), nil, true})
	mustOK(t, l.Close())
	n, err := l.MaxSeg()
	checkEqual(t, "its MaxSeg", []any{n, err}, []any{-1, error(syscall.EBADF)})
}
