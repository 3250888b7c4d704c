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
	b, err = l.AcceptSCTP()
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

	mustOK(t, c.SetSackTimer(&SackTimer{SackDelay: 100, SackFrequency: 2}))
	timer, err := c.GetSackTimer()
	mustOK(t, err)
	checkEqual(t, "GetSackTimer", *timer, SackTimer{SackDelay: 100, SackFrequency: 2})
	checkEqual(t, "DELAYED_SACK", rawOption(t, c, SCTP_DELAYED_SACK, 12), u32(0, 100, 2))
	status, err := c.GetStatus()
	mustOK(t, err)
	if status.AssocID == 0 || status.State != SCTP_ESTABLISHED || status.RWND == 0 || status.Unackdata != 0 || status.Penddata != 0 || status.Instreams != 65535 ||
		status.Ostreams != 65535 || status.FragmentationPoint == 0 || status.PrimaryPeerAddr.State != SCTP_INACTIVE || status.PrimaryPeerAddr.MTU == 0 || status.PrimaryPeerAddr.CWND == 0 {
		t.Errorf("%+v", status)
	}

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
	_, err = a.SCTPWrite([]byte("yes"), &SndRcvInfo{Stream: 3, Flags: SCTP_UNORDERED, PPID: 46, Context: 9, TTL: 60_000})
	mustOK(t, err)
	n, info, err = readMessage(b, buf)
	mustOK(t, err)
	if n != 3 || info == nil || info.Stream != 3 || info.SSN != 0 || info.Flags != SCTP_UNORDERED || info.PPID != 46 || info.Context != 0 || info.TTL != 0 ||
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

func readMessage(c *SCTPConn, b []byte) (int, *SndRcvInfo, error) { return c.SCTPRead(b) }

// A handler gets the notifications, which else come among the messages.
func TestNotificationsGoToTheHandler(t *testing.T) {
	l := listenLoopback(t)
	var got []uint16
	fails := errors.New("no more")
	a, err := (&SocketConfig{NotificationHandler: func(b []byte) error {
		got = append(got, binary.NativeEndian.Uint16(b))
		if len(got) == 2 {
			return fails
		}
		return nil
	}}).Dial("sctp", nil, l.Addr().(*SCTPAddr))
	mustOK(t, err)
	defer a.Close()
	b, err := l.AcceptSCTP()
	mustOK(t, err)
	defer b.Close()
	mustOK(t, a.SubscribeEvents(SCTP_EVENT_SENDER_DRY))
	_, err = b.Write([]byte("x"))
	mustOK(t, err)
	buf := make([]byte, 99)
	n, _, err := a.SCTPRead(buf)
	checkEqual(t, "behind a notification", []any{n, err, got}, []any{1, nil, []uint16{uint16(SCTP_SENDER_DRY_EVENT)}})
	mustOK(t, a.SubscribeEvents(SCTP_EVENT_SENDER_DRY))
	n, _, err = a.SCTPRead(buf)
	checkEqual(t, "the handler's error", []any{n, err}, []any{0, fails})
	mustOK(t, b.SubscribeEvents(SCTP_EVENT_SENDER_DRY))
	n, _, err = b.SCTPRead(buf)
	checkEqual(t, "without a handler", []any{n, err, binary.NativeEndian.Uint16(buf)}, []any{12, nil, uint16(SCTP_SENDER_DRY_EVENT)})
}

// What is set on the descriptor is in the units of the kernel.
func TestTheDescriptorTakesTimeouts(t *testing.T) {
	a, _ := connectedPair(t)
	c, err := a.SyscallConn()
	mustOK(t, err)
	mustOK(t, c.Control(func(fd uintptr) {
		mustOK(t, syscall.SetsockoptTimeval(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVTIMEO, &syscall.Timeval{Usec: 20_000}))
	}))
	start := time.Now()
	_, err = a.Read(make([]byte, 9))
	checkEqual(t, "read", err, error(syscall.EAGAIN))
	if took := time.Since(start); took < 20*time.Millisecond || took > 10*time.Second {
		t.Errorf("20 ms are %v", took)
	}
}
