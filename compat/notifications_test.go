package compat

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp"
)

// takeNotifications takes what a socket has been told and nobody has read: that of the end behind
// the rest.
func takeNotifications(s *Socket) (list, last [][]byte) {
	n := &s.notifications
	n.mu.Lock()
	defer n.mu.Unlock()
	list, last = n.pending, n.endList
	n.pending, n.endList = nil, nil
	n.hasAny.Store(false)
	return list, last
}

// Each event becomes the notification of RFC 6458 section 6.1, field by field, where its own
// subscription is on, and nothing where all others are.
func TestEachEventIsANotification(t *testing.T) {
	a, b := newPair(t)
	a.assocID = 0x01020304
	id := uint32s(0x01020304)
	peer := a.conn.RemoteAddr().(sctp.Addr)
	st := a.conn.Stats()
	other := netip.MustParseAddr("192.0.2.1")
	causes := []sctp.Cause{{Code: 13, Info: []byte("one")}, {Code: 0x1234, Info: []byte("four")}}
	chunk := func(kind byte) []byte {
		return append([]byte{kind, 0, 0, 20, 0, 13, 0, 7}, "one\x00\x12\x34\x00\x08four"...)
	}
	join := func(parts ...[]byte) []byte { return slices.Concat(parts...) }
	change := func(state, cause int, chunk []byte) []byte {
		out, in := int(st.OutStreams), int(st.InStreams)
		if state == commLost || state == shutdownComp {
			out, in = 0, 0
		}
		return join(uint16s(typeAssocChange, 0), uint32s(20+len(chunk)), uint16s(state, cause, out, in), id, chunk)
	}
	address := func(state int, of netip.Addr) []byte {
		sockaddr := appendSockaddr(nil, netip.AddrPortFrom(of, peer.Port()))
		return join(uint16s(typePeerAddrChange, 0), uint32s(148), sockaddr, make([]byte, 128-len(sockaddr)), uint32s(state, 0), id)
	}
	for _, row := range []struct {
		name  string
		event int // that is subscribed to
		ev    sctp.Event
		want  []byte // nil: none
		end   bool
	}{
		{"up", eventAssociation, sctp.Event{Kind: sctp.EventUp}, change(commUp, 0, nil), false},
		{"restart", eventAssociation, sctp.Event{Kind: sctp.EventRestart}, change(restarted, 0, nil), false},
		{"shutdown", eventAssociation, sctp.Event{Kind: sctp.EventDown, Err: sctp.ErrShutdown}, change(shutdownComp, 0, nil), true},
		{"shutdown, as it is told", eventAssociation, sctp.Event{Kind: sctp.EventDown, Err: fmt.Errorf("it ended: %w", sctp.ErrShutdown)}, change(shutdownComp, 0, nil), true},
		{"no answer", eventAssociation, sctp.Event{Kind: sctp.EventDown, Err: syscall.ETIMEDOUT}, change(commLost, 0, nil), true},
		{"ABORT of the peer", eventAssociation, sctp.Event{Kind: sctp.EventDown, Err: &sctp.AbortError{ByPeer: true, Causes: causes}}, change(commLost, 13, chunk(6)), true},
		{"ABORT without a cause", eventAssociation, sctp.Event{Kind: sctp.EventDown, Err: &sctp.AbortError{ByPeer: true}}, change(commLost, 0, []byte{6, 0, 0, 4}), true},
		{"ABORT of this side", eventAssociation, sctp.Event{Kind: sctp.EventDown, Err: &sctp.AbortError{Causes: causes}}, change(commLost, 13, nil), true},
		{"SHUTDOWN of the peer", eventShutdown, sctp.Event{Kind: sctp.EventPeerShutdown}, join(uint16s(typeShutdown, 0), uint32s(12), id), true},
		{"an address that answers first", eventAddress, sctp.Event{Kind: sctp.EventPathUp, Path: peer.Addr()}, address(addrConfirmed, peer.Addr()), false},
		{"an address that fails at times", eventAddress, sctp.Event{Kind: sctp.EventPathPotentiallyFailed, Path: other}, address(addrPotentiallyFailed, other), false},
		{"and answers again", eventAddress, sctp.Event{Kind: sctp.EventPathUp, Path: other}, address(addrAvailable, other), false},
		{"and goes on answering", eventAddress, sctp.Event{Kind: sctp.EventPathUp, Path: other}, address(addrConfirmed, other), false},
		{"an address that fails", eventAddress, sctp.Event{Kind: sctp.EventPathDown, Path: other}, address(addrUnreachable, other), false},
		{"and answers once more", eventAddress, sctp.Event{Kind: sctp.EventPathUp, Path: other}, address(addrAvailable, other), false},
		{"another primary address", eventAddress, sctp.Event{Kind: sctp.EventPrimary, Path: other}, address(addrMadePrimary, other), false},
		{"adaptation", eventAdaptation, sctp.Event{Kind: sctp.EventAdaptation, Adaptation: 0xfeedbeef}, join(uint16s(typeAdaptation, 0), uint32s(16, 0xfeedbeef), id), false},
		{"sender dry", eventSenderDry, sctp.Event{Kind: sctp.EventSenderDry}, join(uint16s(typeSenderDry, 0), uint32s(12), id), false},
		{"ERROR of the peer", eventPeerError, sctp.Event{Kind: sctp.EventPeerError, Err: &sctp.PeerError{Causes: causes}},
			join(uint16s(typeRemoteError, 0), uint32s(36), []byte{0, 13}, uint16s(0), id, chunk(9)), false},
		{"ERROR of a cause of two octets", eventPeerError, sctp.Event{Kind: sctp.EventPeerError, Err: &sctp.PeerError{Causes: causes[1:]}},
			join(uint16s(typeRemoteError, 0), uint32s(28), []byte{0x12, 0x34}, uint16s(0), id, append([]byte{9, 0, 0, 12, 0x12, 0x34, 0, 8}, "four"...)), false},
		{"ERROR without a cause", eventPeerError, sctp.Event{Kind: sctp.EventPeerError, Err: new(sctp.PeerError)}, nil, false},
		{"ERROR of another kind", eventPeerError, sctp.Event{Kind: sctp.EventPeerError, Err: errors.New("other")}, nil, false},
		{"another MTU", eventAddress, sctp.Event{Kind: sctp.EventMTUChanged}, nil, false},
	} {
		down := map[netip.Addr]bool{}
		switch row.name {
		case "and answers again", "and answers once more":
			down[other] = true
		}
		for _, on := range []bool{true, false} {
			for i := range a.opts.events {
				a.opts.events[i] = byte(boolInt((i == row.event) == on))
			}
			takeNotifications(a)
			a.notifyEvent(a.conn, &row.ev, down)
			list, last := takeNotifications(a)
			got := list
			if row.end {
				got, list = last, list[:0:0]
			}
			if want := on && row.want != nil; !want {
				check.That(t, len(got) == 0 && len(last) == 0, "%s, where it is not subscribed to: % x", row.name, got)
			} else {
				check.That(t, len(got) == 1 && slices.Equal(got[0], row.want) && len(list)+len(last) == 1, "%s: % x, of the end % x; want % x", row.name, list, last, row.want)
			}
			if failed := row.ev.Kind == sctp.EventPathDown || row.ev.Kind == sctp.EventPathPotentiallyFailed; failed {
				check.That(t, down[other], "%s: it is not known to be down", row.name)
			} else if row.ev.Kind == sctp.EventPathUp {
				check.That(t, len(down) == 0, "%s: it is still down", row.name)
			}
		}
	}
	a.opts.events = [numEvents]byte{eventShutdown: 1}
	for name, set := range map[string]func(on bool){"shut down": func(on bool) { a.sendingShut = on }, "closed": func(on bool) { a.closed = on }} {
		set(true)
		a.notifyEvent(a.conn, &sctp.Event{Kind: sctp.EventPeerShutdown}, nil)
		set(false)
		list, last := takeNotifications(a)
		check.That(t, len(list)+len(last) == 0, "SHUTDOWN of the peer, of a socket that is %s: % x", name, last)
	}
	must.OK(t, b.Close())
}

// Notifications are read in their order, those of the end when all messages have been; at most 256
// are kept, and of several dry ones behind each other one.
func TestNotificationsInTheirOrder(t *testing.T) {
	var n notificationQueue
	rd := new(callWaits)
	next := func(end bool) string {
		b := make([]byte, 9)
		k, flags := n.readNext(b, end, rd)
		check.That(t, flags == 0 && k == 0 || flags == MsgNotification|MsgEOR, "flags %#x", flags)
		return string(b[:k])
	}
	dry := string(uint16s(typeSenderDry))
	n.pushOctets([]byte("last"), true, rd)
	check.Equal(t, "news", rd.lookAgain, false)
	for _, text := range []string{dry, "one", dry, dry, "two"} {
		n.pushOctets([]byte(text), false, rd)
	}
	n.pushOctets([]byte("end"), true, rd)
	check.Equal(t, "news", rd.lookAgain, true)
	for _, want := range []string{dry, "one", dry, "two", "", ""} {
		check.Equal(t, "in order", next(false), want)
	}
	check.Equal(t, "news, when all are read", rd.lookAgain, false)
	n.pushOctets([]byte("late"), false, rd)
	for _, want := range []string{"late", "last", "end", ""} {
		check.Equal(t, "at the end", next(true), want)
	}
	check.Equal(t, "some", n.hasAny.Load(), false)
	for i := range maxNotifications + 1 {
		n.pushOctets([]byte{byte(i), byte(i >> 8)}, false, rd)
	}
	check.Equal(t, "kept", len(n.pending), maxNotifications)
	n.pushOctets([]byte("end"), true, rd)
	check.Equal(t, "of the end, beyond them", len(n.endList), 1)

	n = notificationQueue{}
	n.setMidMessage(true, rd) // in the middle of a message
	n.pushOctets([]byte("note"), false, rd)
	check.Equal(t, "news in the middle of a message", rd.lookAgain, false)
	n.setMidMessage(false, rd)
	check.Equal(t, "news behind it", rd.lookAgain, true)
}

// A message fails for a reason that is yet to come, unless its life may have been over before it
// was sent.
func TestWhatMayHaveExpired(t *testing.T) {
	for name, row := range map[string]struct {
		ev   sctp.Event
		want bool
	}{
		"not sent, with a lifetime":    {sctp.Event{Unsent: true, Info: sctp.SendInfo{Lifetime: 1}}, true},
		"not sent, without a lifetime": {sctp.Event{Unsent: true}, false},
		"sent, with a lifetime":        {sctp.Event{Info: sctp.SendInfo{Lifetime: 1}}, false},
		"sent, without a lifetime":     {sctp.Event{}, false},
	} {
		check.Equal(t, name, mayHaveExpired(&row.ev), row.want)
	}
}

// A message that fails with the association is told behind the reason, which is its end's, and one
// whose life is over at once.
func TestWhyAMessageFailed(t *testing.T) {
	all, _, out := overMemory(t, 1)
	s := all[0]
	s.opts.events = [numEvents]byte{eventSendFailure: 1}
	w := eventWatcher{socket: s, conn: s.conn, downAddrs: make(map[netip.Addr]bool)}
	for _, err := s.conn.NextEvent(endedContext); err == nil; _, err = s.conn.NextEvent(endedContext) {
	}
	out.Lose.Store(true)
	must.Get(s.Send([]byte("x"), nil))(t)
	s.conn.Abort("why")
	check.That(t, w.notifyNext() && len(w.failedMessages) == 1 && w.moreExpected, "a failed message is not kept for its reason: %+v", w)
	for w.notifyNext() {
	}
	list, last := takeNotifications(s)
	check.That(t, len(list) == 1 && len(last) == 0 && nativeOrder.Uint16(list[0]) == typeSendFailed && nativeOrder.Uint32(list[0][8:]) == 12 && list[0][len(list[0])-1] == 'x', "% x", list)
	check.That(t, len(w.failedMessages) == 0 && !w.moreExpected, "%+v is kept", w)
}
