package compat

import (
	"bytes"
	"io"
	"net"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestMain(m *testing.M) {
	os.Setenv("RDDP_LINK", "udp") // which needs no privilege
	os.Exit(m.Run())
}

var home = []net.IPAddr{{IP: net.IPv4(127, 0, 0, 1)}}

// listenSocket returns a socket that listens, and what to connect to.
func listenSocket(t *testing.T) (*Socket, []byte) {
	l := NewSocket(false, false)
	must.OK(t, l.Bind(RawAddrs(home, 0), false))
	must.OK(t, l.Listen())
	t.Cleanup(func() { l.Close() })
	at, _ := must.Two(l.LocalAddrs())(t)
	return l, at
}

// newPair returns both ends of an association; the client subscribes to events before it connects.
func newPair(t *testing.T, events ...int) (client, server *Socket) {
	l, at := listenSocket(t)
	client = NewSocket(false, false)
	subscribeEvents(t, client, events...)
	must.Get(client.Connect(at))(t)
	server = must.Get(l.Accept())(t)
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

func subscribeEvents(t *testing.T, s *Socket, events ...int) {
	var b [numEvents]byte
	for _, e := range events {
		b[e] = 1
	}
	must.OK(t, s.Setsockopt(optEvents, b[:]))
}

func checkSame(t *testing.T, got, want any) {
	t.Helper()
	check.That(t, reflect.DeepEqual(got, want), "%+v, want %+v", got, want)
}

// checkSteady compares what a call returns with what the association has at that moment: while it
// measures its paths, that may change between two looks.
func checkSteady(t *testing.T, got, want func() []byte) {
	t.Helper()
	for {
		before := want()
		seen := got()
		if slices.Equal(before, want()) {
			checkSame(t, seen, before)
			return
		}
	}
}

// recv is what Recv returns.
type recv struct {
	text  string
	flags int
	err   error
}

// wholeMessage is what Recv returns of a message, or of its end.
func wholeMessage(text string) recv { return recv{text, MsgEOR, nil} }

func readSocket(s *Socket, octets int) recv {
	b := make([]byte, octets)
	n, _, flags, err := s.Recv(b, new(SndRcvInfo))
	return recv{string(b[:n]), flags, err}
}

// Each row is something that the kernel's socket does.
func TestSocketsBehaveAsThoseOfTheKernel(t *testing.T) {
	send := func(t *testing.T, s *Socket, text string) { must.Get(s.Send([]byte(text), nil))(t) }
	within := func(t *testing.T, s *Socket, d time.Duration) { must.OK(t, s.SetTimeout(false, d)) }
	for name, row := range map[string]func(t *testing.T, a, b *Socket){
		"a message longer than the buffer comes in parts": func(t *testing.T, a, b *Socket) {
			send(t, a, "hello")
			send(t, a, "you")
			checkSame(t, []recv{readSocket(b, 3), readSocket(b, 9), readSocket(b, 9)},
				[]recv{{"hel", 0, nil}, wholeMessage("lo"), wholeMessage("you")})
		},
		"a header and then the rest, of messages of any length": func(t *testing.T, a, b *Socket) {
			for _, octets := range []int{20, 21, 100, 2047, 2048, 2049, 20_000, 100} {
				send(t, a, strings.Repeat("h", min(octets, 20))+strings.Repeat("b", octets-min(octets, 20)))
				head := wholeMessage(strings.Repeat("h", 20))
				if octets > 20 {
					head.flags = 0
				}
				checkSame(t, readSocket(b, 20), head)
				if octets > 20 {
					checkSame(t, readSocket(b, 50_000), wholeMessage(strings.Repeat("b", octets-20)))
				}
			}
		},
		"the rest of a message comes before what has happened since": func(t *testing.T, a, b *Socket) {
			for range 2 { // at the second it is known that the program reads so
				send(t, a, "hello")
				send(t, a, "you")
				checkSame(t, readSocket(b, 3), recv{"hel", 0, nil})
				checkSame(t, readSocket(b, 9), wholeMessage("lo"))
				checkSame(t, readSocket(b, 1), recv{"y", 0, nil})
				b.notifications.pushOctets([]byte("note"), false, &b.readWaits)
				checkSame(t, readSocket(b, 1), recv{"o", 0, nil})
				checkSame(t, readSocket(b, 9), wholeMessage("u"))
				checkSame(t, readSocket(b, 9), recv{"note", MsgNotification | MsgEOR, nil})
			}
		},
		"several that read at a time get all there is": func(t *testing.T, a, b *Socket) {
			got := make(chan int)
			for range 3 {
				go func() {
					for {
						n := len(readSocket(b, 1).text)
						if got <- n; n == 0 {
							return
						}
					}
				}()
			}
			for range 100 {
				send(t, a, "hello")
			}
			sum := 0
			for sum < 500 {
				sum += <-got
			}
			must.OK(t, b.Close())
			for range 3 {
				checkSame(t, <-got, 0)
			}
		},
		"without the event of data there is no info, and with it all fields": func(t *testing.T, a, b *Socket) {
			must.Get(a.Send([]byte("x"), &SndRcvInfo{Stream: 3, PPID: Swap(46), Flags: flagUnordered}))(t)
			var info SndRcvInfo
			_, told, _, err := b.Recv(make([]byte, 9), &info)
			checkSame(t, told, false)
			checkSame(t, info, SndRcvInfo{})
			must.OK(t, err)
			subscribeEvents(t, b, eventData)
			must.Get(a.Send([]byte("x"), &SndRcvInfo{Stream: 3, PPID: Swap(46), Flags: flagUnordered}))(t)
			_, told, _, err = b.Recv(make([]byte, 9), &info)
			must.OK(t, err)
			check.That(t, told && info.Stream == 3 && Swap(info.PPID) == 46 && info.Flags == flagUnordered &&
				info.TSN != 0 && info.AssocID == b.assocID,
				"%+v", info)
		},
		"SO_RCVTIMEO and O_NONBLOCK end a read by EAGAIN": func(t *testing.T, a, b *Socket) {
			within(t, b, time.Millisecond)
			checkSame(t, readSocket(b, 9), recv{err: syscall.EAGAIN})
			within(t, b, 0)
			must.OK(t, b.SetNonblock(true))
			checkSame(t, readSocket(b, 9), recv{err: syscall.EAGAIN})
			must.OK(t, b.SetNonblock(false))
			send(t, a, "x")
			checkSame(t, readSocket(b, 9), wholeMessage("x"))
		},
		"a deadline ends a read, and goes away": func(t *testing.T, a, b *Socket) {
			must.OK(t, b.SetReadDeadline(time.Now()))
			checkSame(t, readSocket(b, 9), recv{err: os.ErrDeadlineExceeded})
			must.OK(t, b.SetReadDeadline(time.Time{}))
			send(t, a, "x")
			checkSame(t, readSocket(b, 9), wholeMessage("x"))
		},
		"Close ends a read under way as the end of the association": func(t *testing.T, a, b *Socket) {
			got := make(chan recv)
			go func() { got <- readSocket(b, 9) }()
			must.OK(t, b.Close())
			r := <-got
			check.That(t, r.err == io.EOF || r.err == syscall.EBADF, "%v", r)
			checkSame(t, readSocket(b, 9), recv{err: syscall.EBADF})
			checkSame(t, b.Close(), error(syscall.EBADF))
		},
		"Close delivers what was sent, and then the peer reads EOF and writes EPIPE": func(t *testing.T, a, b *Socket) {
			send(t, a, "last")
			must.OK(t, a.Close())
			checkSame(t, []recv{readSocket(b, 9), readSocket(b, 9), readSocket(b, 9)},
				[]recv{wholeMessage("last"), {err: io.EOF}, {err: io.EOF}})
			_, err := b.Send([]byte("x"), nil)
			checkSame(t, err, error(syscall.EPIPE))
		},
		"SO_LINGER of 0 aborts: ECONNRESET once, then ENOTCONN and EPIPE": func(t *testing.T, a, b *Socket) {
			a.opts.linger = true
			must.OK(t, a.Close())
			checkSame(t, []recv{readSocket(b, 9), readSocket(b, 9)},
				[]recv{{err: syscall.ECONNRESET}, {err: syscall.ENOTCONN}})
			_, err := b.Send([]byte("x"), nil)
			checkSame(t, err, error(syscall.EPIPE))
		},
		"Close with messages unread aborts": func(t *testing.T, a, b *Socket) {
			subscribeEvents(t, a, eventSenderDry)
			readSocket(a, 99) // nothing is to be sent yet
			send(t, a, "x")
			readSocket(a, 99) // b has it
			must.OK(t, b.Close())
			checkSame(t, readSocket(a, 9), recv{err: syscall.ECONNRESET})
		},
		"SCTP_ABORT aborts": func(t *testing.T, a, b *Socket) {
			must.Get(a.Send([]byte("why"), &SndRcvInfo{Flags: flagAbort}))(t)
			checkSame(t, readSocket(b, 9).err, error(syscall.ECONNRESET))
		},
		"after SCTP_EOF nothing is sent, and what comes is read": func(t *testing.T, a, b *Socket) {
			must.Get(a.Send(nil, &SndRcvInfo{Flags: flagEOF}))(t)
			_, err := a.Send([]byte("x"), nil)
			checkSame(t, err, error(syscall.EPIPE))
			checkSame(t, []recv{readSocket(b, 9), readSocket(a, 9)}, []recv{{err: io.EOF}, {err: io.EOF}})
		},
		"the default send parameters are those of a write without an info": func(t *testing.T, a, b *Socket) {
			subscribeEvents(t, b, eventData)
			want := SndRcvInfo{Stream: 5, PPID: Swap(7), Context: 9}
			must.OK(t, a.Setsockopt(optDefaultSend, want.AppendTo(nil)))
			got := make([]byte, SndRcvInfoSize)
			must.Get(a.Getsockopt(optDefaultSend, got))(t)
			checkSame(t, ParseSndRcvInfo(got), want)
			send(t, a, "x")
			var info SndRcvInfo
			_, _, _, err := b.Recv(got, &info)
			must.OK(t, err)
			checkSame(t, [2]uint32{uint32(info.Stream), Swap(info.PPID)}, [2]uint32{5, 7})
		},
		"what cannot be sent is told by an errno": func(t *testing.T, a, b *Socket) {
			must.OK(t, a.Setsockopt(optDisableFragments, []byte{1, 0, 0, 0}))
			for _, r := range []struct {
				octets int
				info   *SndRcvInfo
				want   syscall.Errno
			}{
				{0, nil, syscall.EINVAL}, {1, &SndRcvInfo{Stream: 10}, syscall.EINVAL}, {1, &SndRcvInfo{Flags: 1 << 12}, syscall.EINVAL},
				{1, &SndRcvInfo{Flags: flagEOF}, syscall.EINVAL}, {1 << 17, nil, syscall.EMSGSIZE}, {2 << 20, nil, syscall.EMSGSIZE},
			} {
				_, err := a.Send(make([]byte, r.octets), r.info)
				check.That(t, err == r.want, "%d octets, %+v: %v, want %v", r.octets, r.info, err, r.want)
			}
		},
		"beyond the partial delivery point a message is read before its end has come": func(t *testing.T, a,
			b *Socket) {
			must.OK(t, b.Setsockopt(optPartialDelivery, []byte{0xb8, 0x0b, 0, 0}))
			send(t, a, strings.Repeat("x", 200_000)) // more than a packet and the point
			sizes, got := []int{}, 0
			for got < 200_000 {
				n := len(readSocket(b, 300_000).text)
				sizes, got = append(sizes, n), got+n
			}
			check.That(t, len(sizes) > 1 && got == 200_000, "%v", sizes)
		},
		"SO_RCVBUF holds at once, and takes nothing back": func(t *testing.T, a, b *Socket) {
			window := b.conn.Stats().RecvWindow
			must.OK(t, b.SetBuffer(false, 100_000))
			size := must.Get(b.Buffer(false))(t)
			check.Equal(t, "the window that the peer knows", b.conn.Stats().RecvWindow, window)
			for sent := 0; sent < window; sent += 100_000 {
				send(t, a, strings.Repeat("x", 100_000))
				for n := 0; n < 100_000; n += len(readSocket(b, 100_000).text) {
				}
			}
			check.Equal(t, "the window when it is used up", b.conn.Stats().RecvWindow, size)
			must.OK(t, a.SetBuffer(true, 20_000))
			_, err := a.Send(make([]byte, 100_000), nil)
			checkSame(t, err, error(syscall.EMSGSIZE))
		},
		"SCTP_PEER_ADDR_PARAMS marks packets, of the socket or of one address": func(t *testing.T, a, b *Socket) {
			of := make([]byte, 4+sockaddrStorageLen)
			marks := func(flags uint32, dscp byte) []byte {
				p := nativeOrder.AppendUint32(append(bytes.Clone(of), make([]byte, 14)...), flags)
				return append(nativeOrder.AppendUint32(p, 0xabcde), dscp, 0)
			}
			see := func(dscp byte) {
				t.Helper()
				got := append(bytes.Clone(of), make([]byte, 24)...)
				must.Get(a.Getsockopt(optPeerAddrParams, got))(t)
				check.That(t, got[4+sockaddrStorageLen+22] == dscp, "DSCP %#x, want %#x",
					got[4+sockaddrStorageLen+22], dscp)
			}
			must.OK(t, a.Setsockopt(optPeerAddrParams, marks(sppDSCP, 46<<2)))
			peer, _ := must.Two(a.RemoteAddrs())(t)
			copy(of[4:], peer)
			see(46 << 2)
			must.OK(t, a.Setsockopt(optPeerAddrParams, marks(sppDSCP|sppFlowLabel, 10<<2)))
			see(10 << 2)
			p := a.conn.Paths()[0]
			check.That(t, p.DSCP == 10 && p.FlowLabel == 0xabcde, "%+v", p)
			clear(of)
			see(46 << 2)
		},
		"an association is not peeled off": func(t *testing.T, a, b *Socket) {
			_, err := a.PeelOff(1)
			checkSame(t, err, error(syscall.EINVAL))
		},
		"connected twice": func(t *testing.T, a, b *Socket) {
			_, err := a.Connect(RawAddrs(home, 1))
			checkSame(t, err, error(syscall.EISCONN))
			checkSame(t, a.Bind(RawAddrs(home, 1), false), error(syscall.EOPNOTSUPP))
			checkSame(t, a.Listen(), error(syscall.EINVAL))
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newPair(t)
			row(t, a, b)
		})
	}
}

func TestSocketsWithoutAnAssociation(t *testing.T) {
	s := NewSocket(false, false)
	checkSame(t, readSocket(s, 9), recv{err: syscall.ENOTCONN})
	_, err := s.Accept()
	checkSame(t, err, error(syscall.EINVAL))
	for to, want := range map[string]syscall.Errno{"127.0.0.1:1": syscall.ECONNREFUSED,
		"127.0.0.1:0": syscall.ECONNREFUSED, "[::1]:1": syscall.EINVAL, "224.0.0.1:1": syscall.EINVAL} {
		list, port := must.Two(ResolveAddr("sctp", to))(t)
		if _, err := s.Connect(RawAddrs(list, port)); err != want {
			t.Errorf("%s: %v, want %v", to, err, want)
		}
	}
	checkSame(t, s.Bind(RawAddrs([]net.IPAddr{{IP: net.IPv4(192, 0, 2, 1)}}, 1), false), error(syscall.EADDRNOTAVAIL))
	checkSame(t, s.Bind([]byte{1}, false), error(syscall.EINVAL))

	l, at := listenSocket(t)
	_, port := must.Two(ParseAddrs(at))(t)
	must.OK(t, s.Bind(RawAddrs(home, port), false))
	checkSame(t, s.Listen(), error(syscall.EADDRINUSE))
	must.OK(t, l.SetTimeout(false, time.Millisecond))
	_, err = l.Accept()
	checkSame(t, err, error(syscall.EAGAIN))
	must.OK(t, l.SetTimeout(false, 0))
	ended := make(chan error)
	go func() { _, err := l.Accept(); ended <- err }()
	must.OK(t, l.Close())
	err = <-ended
	check.That(t, err == syscall.EINVAL || err == syscall.EBADF, "%v", err)
}

// Notifications are those of RFC 6458 octet by octet, in the order in which things were.
func TestNotifications(t *testing.T) {
	a, b := newPair(t, eventData, eventAssociation, eventShutdown, eventSenderDry)
	id := nativeOrder.AppendUint32(nil, uint32(a.assocID))
	note := func(kind int, rest ...byte) recv {
		var f structWriter
		f.appendUint16(kind)
		f.appendUint16(0)
		f.appendUint32(8 + len(rest))
		return recv{string(append(f, rest...)), MsgNotification | MsgEOR, nil}
	}
	change := func(state byte, streams int) recv {
		var f structWriter
		f.appendUint16(int(state))
		f.appendUint16(0)
		f.appendUint16(streams)
		f.appendUint16(streams)
		return note(typeAssocChange, append(f, id...)...)
	}
	up := change(commUp, 10)
	checkSame(t, []recv{readSocket(a, 9), readSocket(a, 99)},
		[]recv{{up.text[:9], MsgNotification, nil}, {up.text[9:], MsgNotification | MsgEOR, nil}})
	must.Get(a.Send([]byte("x"), nil))(t)
	checkSame(t, []recv{readSocket(a, 99), readSocket(b, 9)}, []recv{note(typeSenderDry, id...), wholeMessage("x")})
	must.Get(b.Send([]byte("y"), nil))(t)
	must.OK(t, b.Shutdown())
	checkSame(t, []recv{readSocket(a, 99), readSocket(a, 99), readSocket(a, 99), readSocket(a, 99)},
		[]recv{wholeMessage("y"), note(typeShutdown, id...), change(shutdownComp, 0), {err: io.EOF}})

	a, b = newPair(t, eventAssociation)
	readSocket(a, 99)
	must.Get(b.Send([]byte("why"), &SndRcvInfo{Flags: flagAbort}))(t)
	got := readSocket(a, 99)
	abort := []byte{6, 0, 0, 12, 0, 12, 0, 7, 'w', 'h', 'y', 0}
	text := []byte(got.text)
	check.That(t, len(text) == 20+len(abort) && nativeOrder.Uint16(text[8:]) == commLost &&
		nativeOrder.Uint16(text[10:]) == 12 && bytes.Equal(text[20:], abort), "after an abort: % x", text)
	checkSame(t, readSocket(a, 99).err, error(syscall.ECONNRESET))
}

// Each option is read back as it was set, lengths are those of Linux, and no octet beyond them is
// touched.
func TestOptions(t *testing.T) {
	a, _ := newPair(t)
	u32 := func(v ...int) (b []byte) {
		for _, v := range v {
			b = nativeOrder.AppendUint32(b, uint32(v))
		}
		return b
	}
	for name, row := range map[string]struct {
		opt      int
		set, get []byte
		err      error
	}{
		"RTO":                            {optRTOInfo, u32(0, 300, 4000, 200), u32(0, 300, 4000, 200), nil},
		"RTO, one of them":               {optRTOInfo, u32(0, 0, 0, 250), u32(0, 300, 4000, 250), nil},
		"RTO, maximum below the minimum": {optRTOInfo, u32(0, 0, 10, 20), u32(0, 300, 4000, 250), syscall.EINVAL},
		"too short":                      {optRTOInfo, u32(0, 0, 0), nil, syscall.EINVAL},
		"NODELAY":                        {optNoDelay, u32(1), u32(1), nil},
		"MAXSEG":                         {optMaxSeg, u32(0, 900), u32(0, 900), nil},
		"MAXSEG as an int":               {optMaxSeg, u32(901), u32(901), nil},
		"MAXSEG below that of Linux":     {optMaxSeg, u32(443), nil, syscall.EINVAL},
		"INITMSG": {optInitMsg, []byte{0, 0, 3, 0, 0, 0, 0xf4, 1},
			[]byte{10, 0, 3, 0, 8, 0, 0xf4, 1}, nil},
		"SACK":                            {optDelayedSack, u32(0, 100, 2), u32(0, 100, 2), nil},
		"SACK at once":                    {optDelayedSack, u32(0, 100, 1), u32(0, 0, 1), nil},
		"SACK too late":                   {optDelayedSack, u32(0, 501, 2), nil, syscall.EINVAL},
		"adaptation":                      {optAdaptation, u32(7), u32(7), nil},
		"events, a shorter structure":     {optEvents, []byte{1, 0, 1}, []byte{1, 0, 1}, nil},
		"context":                         {optContext, u32(0, 4), u32(0, 4), nil},
		"of sockets with many":            {optAutoclose, u32(1), nil, syscall.EOPNOTSUPP},
		"authentication, which is absent": {optAuthChunk, u32(1), nil, syscall.EACCES},
		"PARTIAL_DELIVERY_POINT":          {optPartialDelivery, u32(5000), u32(5000), nil},
		"PARTIAL_DELIVERY_POINT, too far": {optPartialDelivery, u32(1<<20 + 1), nil, syscall.EINVAL},
		"a DSCP in the older structure": {optPeerAddrParams,
			nativeOrder.AppendUint32(make([]byte, 146, 160), sppDSCP|sppHeartbeat)[:152], nil, syscall.EINVAL},
		"unknown": {99, u32(1), nil, syscall.ENOPROTOOPT},
	} {
		if name == "RTO, one of them" || name == "RTO, maximum below the minimum" {
			must.OK(t, a.Setsockopt(optRTOInfo, u32(0, 300, 4000, 250)))
		}
		err := a.SetsockoptAt(uintptr(row.opt), uintptr(unsafe.Pointer(&row.set[0])), uintptr(len(row.set)))
		check.Equal(t, name, err, row.err)
		if row.get == nil {
			continue
		}
		memory := bytes.Repeat([]byte{0xee}, len(row.get)+8)
		length := int32(len(row.get))
		must.OK(t, a.GetsockoptAt(uintptr(row.opt), uintptr(unsafe.Pointer(&memory[0])),
			uintptr(unsafe.Pointer(&length))))
		check.That(t, bytes.Equal(memory[:length], row.get) &&
			bytes.Equal(memory[length:], bytes.Repeat([]byte{0xee}, len(memory)-int(length))),
			"%s: % x, %d octets; want % x", name, memory, length, row.get)
	}
	length := int32(-1)
	checkSame(t, a.GetsockoptAt(optNoDelay, 1, uintptr(unsafe.Pointer(&length))), error(syscall.EINVAL))
	length = 4
	checkSame(t, a.GetsockoptAt(optNoDelay, 1, uintptr(unsafe.Pointer(&length))), error(syscall.EFAULT))
	checkSame(t, a.GetsockoptAt(optNoDelay, 1, 0), error(syscall.EFAULT))
	checkSame(t, a.SetsockoptAt(optNoDelay, 0, 4), error(syscall.EFAULT))
}
