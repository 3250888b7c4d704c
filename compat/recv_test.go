package compat

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp"
)

// readNow is read for one who does not wait.
func readNow(t *testing.T, s *Socket, octets int) recv {
	t.Helper()
	must.OK(t, s.SetNonblock(true))
	defer func() { must.OK(t, s.SetNonblock(false)) }()
	return readSocket(s, octets)
}

// longMessagePair returns an association over which b takes 20,000 octets at a time, and the point
// from which on it reads messages in pieces.
func longMessagePair(t *testing.T) (a, b *Socket) {
	l := NewSocket(false, false)
	must.OK(t, l.SetBuffer(false, 10_000))
	must.OK(t, l.Setsockopt(optPartialDelivery, nativeOrder.AppendUint32(nil, 3000)))
	must.OK(t, l.Bind(RawAddrs(home, 0), false))
	must.OK(t, l.Listen())
	at, _ := must.Two(l.LocalAddrs())(t)
	a = NewSocket(false, false)
	// else each chunk is longer than the window
	must.OK(t, a.Setsockopt(optMaxSeg, nativeOrder.AppendUint32(nil, 1000)))
	must.Get(a.Connect(at))(t)
	b = must.Get(l.Accept())(t)
	t.Cleanup(func() { l.Close(); a.Close(); b.Close() })
	return a, b
}

// MSG_EOR marks the last part of a message, and of a notification, however either is read.
func TestTheEndOfARecordIsMarked(t *testing.T) {
	for name, row := range map[string]func(t *testing.T, a, b *Socket){
		"a message that fits": func(t *testing.T, a, b *Socket) {
			must.Get(a.Send([]byte("hello"), nil))(t)
			checkSame(t, readSocket(b, 5), wholeMessage("hello"))
		},
		"a message in parts, as long as the octets": func(t *testing.T, a, b *Socket) {
			for range 2 { // at the second it is known that the program reads so
				must.Get(a.Send([]byte("hello"), nil))(t)
				checkSame(t, []recv{readSocket(b, 2), readSocket(b, 2), readSocket(b, 1)},
					[]recv{{"he", 0, nil}, {"ll", 0, nil}, wholeMessage("o")})
			}
		},
		"a message in parts of different lengths": func(t *testing.T, a, b *Socket) {
			must.Get(a.Send([]byte("hi"), nil))(t)
			readSocket(b, 1)
			readSocket(b, 1)
			must.Get(a.Send(bytes.Repeat([]byte("x"), 2*partialReadOctets), nil))(t)
			for i, octets := range []int{1, partialReadOctets - 1, partialReadOctets - 1} {
				r := readSocket(b, octets)
				check.That(t, len(r.text) == octets && r.flags == 0, "part %d: %d octets, flags %#x", i, len(r.text),
					r.flags)
			}
			checkSame(t, readSocket(b, 99), wholeMessage("x"))
		},
		"a notification in parts": func(t *testing.T, a, b *Socket) {
			subscribeEvents(t, a, eventSenderDry)
			checkSame(t, []int{readSocket(a, 11).flags, readSocket(a, 1).flags},
				[]int{MsgNotification, MsgNotification | MsgEOR})
			subscribeEvents(t, a, eventSenderDry)
			checkSame(t, readSocket(a, 12).flags, MsgNotification|MsgEOR)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newPair(t)
			row(t, a, b)
		})
	}
	a, b := longMessagePair(t) // what is longer than the buffer comes in pieces as it arrives
	go a.Send(bytes.Repeat([]byte("x"), 200_000), nil)
	got, ends := 0, 0
	for got < 200_000 {
		r := readSocket(b, 300_000)
		got += len(r.text)
		ends += r.flags / MsgEOR
		check.That(t, r.err == nil && (r.flags == MsgEOR) == (got == 200_000), "%d octets so far, flags %#x, %v", got,
			r.flags, r.err)
	}
	check.Equal(t, "ends of one message", ends, 1)
}

// The end of a message that was read in part will not come: the program hears of it, before
// anything else.
func TestAMessageThatIsCutOffIsReported(t *testing.T) {
	a, b := longMessagePair(t)
	subscribeEvents(t, b, eventPartial, eventAssociation, eventSenderDry)
	readSocket(b, 99) // sender dry
	go a.Send(bytes.Repeat([]byte("x"), 200_000), &SndRcvInfo{Stream: 3})
	first := readSocket(b, 2000)
	check.That(t, len(first.text) == 2000 && first.flags == 0, "%d octets, flags %#x", len(first.text), first.flags)

	// Notifications wait for the end, and nothing turns in circles for them.
	b.pushNotification(append(newNotification(typeSenderDry, 0), 1, 2, 3, 4), false)
	b.readWaits.mu.Lock()
	check.That(t, !b.readWaits.lookAgain && b.readWaits.armedDeadline.IsZero(),
		"a call that waits for the end of the message is woken for a notification: %+v", b.readWaits.armedDeadline)
	b.readWaits.mu.Unlock()
	for read := readNow(t, b, 100_000); read.err != syscall.EAGAIN; read = readNow(t, b, 100_000) {
		check.That(t, read.err == nil && read.flags == 0, "flags %#x, %v: in the middle of a message", read.flags,
			read.err)
	}

	a.conn.Abort("why")
	last := readSocket(b, 99)
	for last.flags == 0 && last.err == nil { // what has come since
		last = readSocket(b, 100_000)
	}
	var f structWriter
	f.appendUint16(typePartialDelivery)
	f.appendUint16(0)
	f.appendUint32(24)
	f.appendUint32(0) // SCTP_PARTIAL_DELIVERY_ABORTED
	f.appendUint32(int(b.assocID))
	f.appendUint32(3) // the stream
	f.appendUint32(0) // its first message
	checkSame(t, last, recv{string(f), MsgNotification | MsgEOR, nil})
	b.notifications.mu.Lock()
	check.That(t, !b.notifications.midMessage, "notifications wait for the end of the message for ever")
	b.notifications.mu.Unlock()
	dry := readSocket(b, 99)
	check.That(t, dry.flags == MsgNotification|MsgEOR && nativeOrder.Uint16([]byte(dry.text)) == typeSenderDry,
		"%q, %#x", dry.text, dry.flags)
	lost := readSocket(b, 99)
	check.That(t, lost.flags == MsgNotification|MsgEOR && nativeOrder.Uint16([]byte(lost.text)) == typeAssocChange,
		"%q, %#x", lost.text, lost.flags)
	checkSame(t, readSocket(b, 99).err, error(syscall.ECONNRESET))

	a, b = longMessagePair(t) // to the only subscription there is
	subscribeEvents(t, b, eventPartial)
	go a.Send(bytes.Repeat([]byte("x"), 200_000), &SndRcvInfo{Stream: 3})
	readSocket(b, 2000)
	a.conn.Abort("why")
	for last = readSocket(b, 100_000); last.flags == 0 && last.err == nil; last = readSocket(b, 100_000) {
	}
	copy(f[12:], uint32s(int(b.assocID)))
	checkSame(t, []recv{last, readSocket(b, 99)}, []recv{{string(f), MsgNotification | MsgEOR, nil},
		{err: syscall.ECONNRESET}})

	a, b = longMessagePair(t) // without a subscription there is no word of it
	go a.Send(bytes.Repeat([]byte("x"), 200_000), nil)
	readSocket(b, 2000)
	a.conn.Abort("why")
	for last = readSocket(b, 100_000); last.err == nil; last = readSocket(b, 100_000) {
		checkSame(t, last.flags, 0)
	}
	checkSame(t, last.err, error(syscall.ECONNRESET))
}

// A program that asks to be told that nothing is to be sent is told at once where that is so (RFC
// 6458 section 6.1.9), and else when it is.
func TestSenderDryAtTheSubscription(t *testing.T) {
	one := func(event int, on byte) []byte {
		return append(nativeOrder.AppendUint16(make([]byte, 4), uint16(typeData+event)), on, 0)
	}
	dry := func(t *testing.T, s *Socket) recv {
		f := newNotification(typeSenderDry, 0)
		f.appendUint32(int(s.assocID))
		nativeOrder.PutUint32(f[4:], 12)
		return recv{string(f), MsgNotification | MsgEOR, nil}
	}
	none := recv{err: syscall.EAGAIN}
	for name, row := range map[string]func(t *testing.T, a, b *Socket){
		"by SCTP_EVENTS": func(t *testing.T, a, b *Socket) {
			subscribeEvents(t, a, eventSenderDry)
			checkSame(t, []recv{readSocket(a, 99), readNow(t, a, 99)}, []recv{dry(t, a), none})
		},
		"by SCTP_EVENT": func(t *testing.T, a, b *Socket) {
			must.OK(t, a.Setsockopt(optEvent, one(eventSenderDry, 1)))
			checkSame(t, []recv{readSocket(a, 99), readNow(t, a, 99)}, []recv{dry(t, a), none})
		},
		"of the side that was accepted": func(t *testing.T, a, b *Socket) {
			subscribeEvents(t, b, eventSenderDry)
			checkSame(t, []recv{readSocket(b, 99), readNow(t, b, 99)}, []recv{dry(t, b), none})
		},
		"again": func(t *testing.T, a, b *Socket) {
			for range 2 {
				subscribeEvents(t, a, eventSenderDry)
				checkSame(t, []recv{readSocket(a, 99), readNow(t, a, 99)}, []recv{dry(t, a), none})
			}
		},
		"twice before it is read": func(t *testing.T, a, b *Socket) {
			subscribeEvents(t, a, eventSenderDry)
			subscribeEvents(t, a, eventSenderDry)
			checkSame(t, []recv{readSocket(a, 99), readNow(t, a, 99)}, []recv{dry(t, a), none})
		},
		"not by another event": func(t *testing.T, a, b *Socket) {
			subscribeEvents(t, a, eventShutdown)
			must.OK(t, a.Setsockopt(optEvent, one(eventAssociation, 1)))
			checkSame(t, readNow(t, a, 99), none)
		},
		"not by a structure that does not know it": func(t *testing.T, a, b *Socket) {
			must.OK(t, a.Setsockopt(optEvents, make([]byte, eventSenderDry)))
			must.OK(t, a.Setsockopt(optEvents, make([]byte, 1)))
			checkSame(t, readNow(t, a, 99), none)
		},
		"not when it is taken back": func(t *testing.T, a, b *Socket) {
			must.OK(t, a.Setsockopt(optEvent, one(eventSenderDry, 0)))
			subscribeEvents(t, a)
			checkSame(t, readNow(t, a, 99), none)
		},
		"not while something is on its way": func(t *testing.T, a, b *Socket) {
			b.conn.Upper().Lock() // nothing is acknowledged
			must.Get(a.Send([]byte("x"), nil))(t)
			subscribeEvents(t, a, eventSenderDry)
			got := readNow(t, a, 99)
			b.conn.Upper().Unlock()
			checkSame(t, []recv{got, readSocket(a, 99), readNow(t, a, 99)}, []recv{none, dry(t, a), none})
		},
		"wakes a call that waits": func(t *testing.T, a, b *Socket) {
			got := make(chan recv)
			go func() { got <- readSocket(a, 99) }()
			subscribeEvents(t, a, eventSenderDry)
			checkSame(t, <-got, dry(t, a))
		},
		"not of an association that has ended": func(t *testing.T, a, b *Socket) {
			a.conn.Abort("")
			subscribeEvents(t, a, eventSenderDry)
			checkSame(t, readSocket(a, 99).flags, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newPair(t)
			row(t, a, b)
		})
	}
	l, at := listenSocket(t)
	s := NewSocket(false, false)
	defer s.Close()
	subscribeEvents(t, s, eventSenderDry)
	must.Get(s.Connect(at))(t)
	b := must.Get(l.Accept())(t)
	defer b.Close()
	checkSame(t, readNow(t, s, 99), none) // before there was an association, nothing
	must.Get(s.Send([]byte("x"), nil))(t)
	checkSame(t, []recv{readSocket(s, 99), readSocket(b, 9)}, []recv{dry(t, s), wholeMessage("x")})
}

// Each field of sctp_sndrcvinfo is what RFC 6458 section 5.3.2 says of the receiving side.
func TestTheInfoOfAMessage(t *testing.T) {
	a, b := newPair(t)
	subscribeEvents(t, b, eventData)
	info := func() (in SndRcvInfo) {
		_, told, _, err := b.Recv(make([]byte, 9), &in)
		check.That(t, told && err == nil, "%v, %v", told, err)
		return in
	}
	must.Get(a.Send([]byte("x"), nil))(t)
	first := info()
	check.That(t, first.TSN != 0 && first.CumTSN == first.TSN, "the only message: %+v", first)
	must.OK(t, b.Setsockopt(optContext, append(make([]byte, 4), 7, 0, 0, 0)))
	for i, sent := range []SndRcvInfo{
		{Stream: 3, PPID: Swap(46), Context: 99, TTL: 60_000}, {Stream: 3, Flags: flagUnordered, PPID: 1}, {Stream: 3, PPID: Swap(47)}, {Stream: 4, Flags: flagSackNow},
		{Flags: flagAddrOver}, {Flags: flagSendAll},
	} {
		must.Get(a.Send([]byte("x"), &sent))(t)
		ssn := []uint16{0, 0, 1, 0, 1, 2}[i]
		tsn := first.TSN + 1 + uint32(i)
		checkSame(t, info(), SndRcvInfo{Stream: sent.Stream, SSN: ssn, Flags: sent.Flags & flagUnordered,
			PPID:    sent.PPID,
			Context: 7, TSN: tsn, CumTSN: tsn, AssocID: b.assocID})
	}
	// The cumulative TSN is that of now, beyond the message that is read; and each part of one has
	// the same info.
	must.Get(a.Send([]byte("hello"), nil))(t)
	must.Get(a.Send([]byte("x"), nil))(t)
	tsn := first.TSN + 7
	for b.conn.Stats().Buffered < 6 {
		runtime.Gosched()
	}
	for range 5 {
		var in SndRcvInfo
		_, _, _, err := b.Recv(make([]byte, 1), &in)
		must.OK(t, err)
		check.That(t, in.TSN == tsn && in.CumTSN == tsn+1 && in.SSN == 3, "%+v, want TSN %d", in, tsn)
	}
	checkSame(t, info().TSN, tsn+1)
}

// A message that fails comes back with what it was sent with.
func TestAFailedMessageComesBack(t *testing.T) {
	for name, events := range map[string][]int{"the older notification": {eventSendFailure},
		"the newer": {eventSendFailed}, "both": {eventSendFailure, eventSendFailed}} {
		t.Run(name, func(t *testing.T) {
			l, at := listenSocket(t)
			a := NewSocket(false, false)
			a.opts.cfg.RFC9260 = true // what has a TSN is sent
			subscribeEvents(t, a, events...)
			must.OK(t, a.Setsockopt(optNoDelay, []byte{1, 0, 0, 0}))
			must.Get(a.Connect(at))(t)
			b := must.Get(l.Accept())(t)
			t.Cleanup(func() { a.Close(); b.Close() })
			b.conn.Upper().Lock() // nothing is acknowledged
			must.Get(a.Send([]byte("sent"), &SndRcvInfo{Stream: 3, PPID: Swap(46), Context: 77, TTL: 60_000}))(t)
			must.Get(a.Send([]byte("later"), &SndRcvInfo{Flags: flagUnordered | flagSackNow, Context: 78}))(t)
			for a.conn.Stats().Unacked < 2 {
				runtime.Gosched()
			}
			a.conn.Abort("why")
			b.conn.Upper().Unlock()
			for i, text := range []string{"sent", "later"} {
				sent := []SndRcvInfo{{Stream: 3, Flags: 3, PPID: Swap(46), Context: 77, TTL: 60_000,
					AssocID: a.assocID}, {Flags: 3 | 4 | 8, Context: 78, AssocID: a.assocID}}[i]
				for _, event := range events {
					f := newNotification(typeSendFailed, 1)
					if event == eventSendFailure {
						f.appendUint32(12) // User Initiated Abort
						f = sent.AppendTo(f)
					} else {
						f = newNotification(typeSendFailedEvent, 1)
						f.appendUint32(12)
						f.appendUint16(int(sent.Stream))
						f.appendUint16(int(sent.Flags))
						f.appendUint32(int(sent.PPID))
						f.appendUint32(int(sent.Context))
						f.appendUint32(int(a.assocID))
					}
					f.appendUint32(int(a.assocID))
					f = append(f, text...)
					nativeOrder.PutUint32(f[4:], uint32(len(f)))
					checkSame(t, readSocket(a, 99), recv{string(f), MsgNotification | MsgEOR, nil})
				}
			}
			r := readSocket(a, 99)
			check.That(t, r.err != nil && r.err != io.EOF, "behind them: %+v", r)
		})
	}
	t.Run("that was never sent", func(t *testing.T) {
		a, b := longMessagePair(t)
		subscribeEvents(t, a, eventSendFailure)
		must.Get(a.Send([]byte(strings.Repeat("x", 60_000)), nil))(t)                   // closes the window
		must.Get(a.Send([]byte("late"), &SndRcvInfo{Stream: 2, TTL: 1, Context: 5}))(t) // milliseconds
		f := newNotification(typeSendFailed, 0)                                         // SCTP_DATA_UNSENT
		f.appendUint32(0)
		f = (&SndRcvInfo{Stream: 2, Flags: 3, TTL: 1, Context: 5, AssocID: a.assocID}).AppendTo(f)
		f.appendUint32(int(a.assocID))
		f = append(f, "late"...)
		nativeOrder.PutUint32(f[4:], uint32(len(f)))
		checkSame(t, readSocket(a, 99), recv{string(f), MsgNotification | MsgEOR, nil})
		b.conn.Abort("") // which reads nothing
	})
}

// What is kept of a message for programs that read it in parts is returned without asking the
// association, and without waiting for what has not come.
func TestPartsThatAreKept(t *testing.T) {
	a, b := newPair(t)
	for i, want := range []int{0, 4} { // at the second it is known that the program reads so
		must.Get(a.Send([]byte("hello"), nil))(t)
		checkSame(t, readSocket(b, 1), recv{"h", 0, nil})
		check.Equal(t, "octets that are kept", len(b.leftover.unread), want)
		check.That(t, b.leftover.isUseful, "it is not known, at message %d", i)
		checkSame(t, readSocket(b, 9), wholeMessage("ello"))
	}
	must.Get(a.Send([]byte("you"), nil))(t)
	checkSame(t, readSocket(b, partialReadOctets), wholeMessage("you")) // a large one is read into at once
	check.Equal(t, "octets that are kept", len(b.leftover.unread), 0)
	// Size is 0: not all of it has come
	p := &partialMessage{unread: []byte("rest"), info: sctp.RecvInfo{More: true, Stream: 3}}
	buf := make([]byte, 9)
	n, info, err := p.readMsg(nil, buf)
	check.That(t, string(buf[:n]) == "rest" && info.More && info.Stream == 3 && err == nil && len(p.unread) == 0,
		"%q, %+v, %v", buf[:n], info, err)
	p = &partialMessage{unread: []byte("rest"), info: sctp.RecvInfo{More: true, Size: 99}}
	n, info, err = p.readMsg(nil, buf[:3])
	check.That(t, string(buf[:n]) == "res" && info.More && err == nil && string(p.unread) == "t", "%q, %+v, %v",
		buf[:n], info, err)
	p = &partialMessage{unread: []byte("rest")}
	n, info, err = p.readMsg(nil, buf[:3])
	check.That(t, string(buf[:n]) == "res" && info.More && err == nil, "%q, %+v, %v", buf[:n], info, err)
	n, info, err = p.readMsg(nil, buf[:3])
	check.That(t, string(buf[:n]) == "t" && !info.More && err == nil, "%q, %+v, %v", buf[:n], info, err)

	must.Get(a.Send(bytes.Repeat([]byte("x"), 3*partialReadOctets), nil))(t)
	for b.conn.Stats().Buffered < 3*partialReadOctets {
		runtime.Gosched()
	}
	checkSame(t, len(readSocket(b, 9).text), 9)
	b.conn.Abort("")
	got := readSocket(b, 50_000)
	check.That(t, got.err != nil && got.flags == 0, "the rest of a message that was thrown away: %d octets, %v",
		len(got.text), got.err)
}

// A call that has ended waits no more: it leaves no deadline, in either direction, and no news that
// is old.
func TestCallsLeaveNothing(t *testing.T) {
	a, b := newPair(t, eventSenderDry)
	for _, s := range []*Socket{a, b} {
		must.OK(t, s.SetTimeout(false, time.Hour))
		must.OK(t, s.SetTimeout(true, time.Hour))
		must.Get(s.Send([]byte("x"), nil))(t)
	}
	checkSame(t, readSocket(b, 9), wholeMessage("x"))
	for range 2 {
		readSocket(a, 99)
	}
	for _, s := range []*Socket{a, b} {
		check.That(t, len(s.readWaits.callEnds) == 0 && len(s.writeWaits.callEnds) == 0,
			"%d reads and %d writes wait", len(s.readWaits.callEnds), len(s.writeWaits.callEnds))
		check.That(t, !s.readWaits.lookAgain && !s.writeWaits.lookAgain && s.readWaits.armedDeadline.IsZero() &&
			s.writeWaits.armedDeadline.IsZero(), "news %v, %v; deadlines %v, %v", s.readWaits.lookAgain,
			s.writeWaits.lookAgain, s.readWaits.armedDeadline, s.writeWaits.armedDeadline)
	}
	for name, row := range map[string]struct {
		w    eventWatcher
		past bool
	}{
		"nothing has failed":                      {eventWatcher{}, false},
		"nothing has failed, and the end is near": {eventWatcher{moreExpected: true}, false},
		"a message may have expired":              {eventWatcher{failedMessages: make([]sctp.Event, 1)}, true},
		"a message has failed by the end": {eventWatcher{failedMessages: make([]sctp.Event, 1),
			moreExpected: true}, false},
	} {
		check.Equal(t, name+": it waits for nothing", row.w.nextEventContext().Err() != nil, row.past)
	}
}
