package compat

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/wire"
)

// These are the fields of sctp_event_subscribe (RFC 6458 section 6.2.1), in its order.
const (
	eventData = iota
	eventAssociation
	eventAddress
	eventSendFailure
	eventPeerError
	eventShutdown
	eventPartial
	eventAdaptation
	eventAuthentication
	eventSenderDry
	eventStreamReset // of RFC 6525 section 6.1, as the two below
	eventAssocReset
	eventStreamChange
	eventSendFailed // of section 6.1.11; it replaces that of section 6.1.4
	numEvents
)

// These are the types of notifications on Linux.
const (
	typeAssocChange = 1<<15 + 1 + iota
	typePeerAddrChange
	typeSendFailed
	typeRemoteError
	typeShutdown
	typePartialDelivery
	typeAdaptation
	typeAuthentication
	typeSenderDry
	typeStreamReset
	typeAssocReset
	typeStreamChange
	typeSendFailedEvent
	typeData = typeAssocChange - 1 // the event of data, for SCTP_EVENT; it has no notification
)

// These are the states of association changes, and of addresses of the peer.
const (
	commUp = iota
	commLost
	restarted
	shutdownComp
	cantStart
)

const (
	addrAvailable = iota
	addrUnreachable
	addrRemoved
	addrAdded
	addrMadePrimary
	addrConfirmed
	addrPotentiallyFailed
)

// maxNotifications is how many unread notifications a socket keeps.
const maxNotifications = 256

// notificationQueue has the notifications of a socket, as octets. Those of the end of the
// association wait until all messages have been read. This is the kernel's order.
type notificationQueue struct {
	mu          sync.Mutex
	pending     [][]byte      // guarded by mu
	endList     [][]byte      // guarded by mu: of the end
	readOffset  int           // guarded by mu: octets of the first that have been read
	midMessage  bool          // guarded by mu: a message was read in part
	hasWatcher  bool          // guarded by mu: a goroutine brings them
	hasAny      atomic.Bool   // there are any: changed with mu held
	watcherDone chan struct{} // closed when that goroutine has brought the last
}

// readNext reads from the first notification. It reads that of the end only if all messages have
// been read. It returns the flags of Recv, or 0 if there is none.
func (n *notificationQueue) readNext(b []byte, end bool, rd *callWaits) (octets, flags int) {
	if !n.hasAny.Load() {
		return 0, 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	list := &n.pending
	if len(*list) == 0 && end {
		list = &n.endList
	}
	if len(*list) == 0 {
		return 0, 0
	}
	k := copy(b, (*list)[0][n.readOffset:])
	n.readOffset += k
	more := n.readOffset < len((*list)[0])
	if !more {
		*list, n.readOffset = (*list)[1:], 0
	}
	if len(n.pending) == 0 {
		rd.setLookAgain(false)
	}
	n.hasAny.Store(len(n.pending)+len(n.endList) > 0)
	return k, MsgNotification | endFlag(more)
}

// pushOctets adds one notification. It drops a second sender-dry notification, which would say no
// more than the first.
func (n *notificationQueue) pushOctets(b []byte, end bool, rd *callWaits) {
	n.mu.Lock()
	defer n.mu.Unlock()
	dry := nativeOrder.Uint16(b) == typeSenderDry
	switch last := len(n.pending) - 1; {
	case end:
		n.endList = append(n.endList, b)
	case last+1 == maxNotifications, dry && last >= 0 && nativeOrder.Uint16(n.pending[last]) == typeSenderDry: // enough
	default:
		n.pending = append(n.pending, b)
		n.wakeReaders(rd)
	}
	n.hasAny.Store(true)
}

// setMidMessage starts or ends the wait for the rest of a message that was read in part. New
// notifications wait until that message ends (section 8.1.20, level 0).
func (n *notificationQueue) setMidMessage(inMessage bool, rd *callWaits) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.midMessage = inMessage
	n.wakeReaders(rd)
}

// wakeReaders makes waiting calls look for notifications, if there are any for them. Called with mu
// held.
func (n *notificationQueue) wakeReaders(rd *callWaits) {
	rd.setLookAgain(!n.midMessage && len(n.pending) > 0)
}

// hasSubscription reports whether any notification is subscribed to. The event of data does not
// count.
func (o *socketOptions) hasSubscription() bool {
	for _, on := range o.events[eventAssociation:] {
		if on != 0 {
			return true
		}
	}
	return false
}

// updateSubscriptions applies a change of the subscriptions.
func (s *Socket) updateSubscriptions(c *sctp.Conn) {
	s.notifications.mu.Lock()
	watched := s.notifications.hasWatcher
	s.notifications.mu.Unlock()
	if c != nil && !watched { // earlier events are not wanted
		for err := error(nil); err == nil; {
			_, err = c.NextEvent(endedContext)
		}
	}
	s.startWatcher()
}

// startWatcher turns the events of the association into notifications, once there is a
// subscription.
func (s *Socket) startWatcher() {
	s.mu.Lock()
	c, on := s.conn, s.opts.hasSubscription()
	s.mu.Unlock()
	if c == nil || !on {
		return
	}
	s.notifications.mu.Lock()
	defer s.notifications.mu.Unlock()
	if s.notifications.hasWatcher {
		return
	}
	s.notifications.hasWatcher, s.notifications.watcherDone = true, make(chan struct{})
	go func() {
		defer close(s.notifications.watcherDone)
		w := eventWatcher{socket: s, conn: c, downAddrs: make(map[netip.Addr]bool)}
		for w.notifyNext() {
		}
	}()
}

// eventWatcher makes notifications from the events of an association.
type eventWatcher struct {
	socket         *Socket
	conn           *sctp.Conn
	downAddrs      map[netip.Addr]bool // addresses of the peer that do not answer
	failedMessages []sctp.Event        // of unknown cause so far; an end comes after the messages it takes along
	moreExpected   bool                // something follows for certain
}

// mayHaveExpired reports whether a message may have failed because its lifetime was over.
func mayHaveExpired(ev *sctp.Event) bool { return ev.Unsent && ev.Info.Lifetime > 0 }

// nextEventContext returns the context for the next event. If messages have failed, it has already
// ended: the events that are there may tell the cause.
func (w *eventWatcher) nextEventContext() context.Context {
	if len(w.failedMessages) > 0 && !w.moreExpected {
		return endedContext
	}
	return context.Background()
}

// notifyNext makes the next notification, and reports whether there may be another.
func (w *eventWatcher) notifyNext() bool {
	ev, err := w.conn.NextEvent(w.nextEventContext())
	if ev.Kind == sctp.EventSendFailed {
		w.failedMessages, w.moreExpected = append(w.failedMessages, ev), w.moreExpected || !mayHaveExpired(&ev)
		return true
	}
	for i := range w.failedMessages {
		w.socket.notifySendFailed(&w.failedMessages[i], causeOf(ev.Err))
	}
	w.failedMessages, w.moreExpected = nil, false
	if err == nil {
		w.socket.notifyEvent(w.conn, &ev, w.downAddrs)
	}
	return err == nil || err == endedContext.Err()
}

// endedContext is a context that has ended.
var endedContext = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// readEndNotification reads the next notification of the end, for a reader that has read all
// messages.
func (s *Socket) readEndNotification(b []byte) (octets, flags int) {
	s.notifications.mu.Lock()
	ended := s.notifications.watcherDone
	s.notifications.mu.Unlock()
	if ended == nil {
		return 0, 0
	}
	<-ended // at once, since the association has ended
	return s.notifications.readNext(b, true, &s.readWaits)
}

// newNotification returns a notification without its length.
func newNotification(kind, flags int) structWriter {
	var f structWriter
	f.appendUint16(kind)
	f.appendUint16(flags)
	f.appendUint32(0)
	return f
}

// pushNotification sets the length of a notification and adds it.
func (s *Socket) pushNotification(f structWriter, end bool) {
	nativeOrder.PutUint32(f[4:], uint32(len(f)))
	s.notifications.pushOctets(f, end, &s.readWaits)
}

// notifySenderDry reports, at the subscription, that nothing is left to send (section 6.1.9).
func (s *Socket) notifySenderDry(c *sctp.Conn) {
	if st := c.Stats(); c.Err() == nil && st.Unacked == 0 && st.Queued == 0 {
		f := newNotification(typeSenderDry, 0)
		f.appendUint32(int(s.assocID))
		s.pushNotification(f, false)
	}
}

// notifyCutOff makes the notification of a message that was read in part and has no end (section
// 6.1.7). Its order is Linux's. It goes before the notifications that have waited for that end.
func (s *Socket) notifyCutOff(r *sctp.RecvInfo) {
	s.mu.Lock()
	on, id := s.opts.events[eventPartial] != 0, s.assocID
	s.mu.Unlock()
	const aborted = 0 // SCTP_PARTIAL_DELIVERY_ABORTED
	f := newNotification(typePartialDelivery, 0)
	f.appendUint32(aborted)
	f.appendUint32(int(id))
	f.appendUint32(int(r.Stream))
	f.appendUint32(int(r.SSN))
	n := &s.notifications
	n.mu.Lock()
	if on {
		nativeOrder.PutUint32(f[4:], uint32(len(f)))
		n.pending = slices.Insert(n.pending, 0, []byte(f))
		n.hasAny.Store(true)
	}
	n.mu.Unlock()
	n.setMidMessage(false, &s.readWaits)
}

// notifyEvent makes the notification of an event. down has the addresses of the peer that do not
// answer.
func (s *Socket) notifyEvent(c *sctp.Conn, ev *sctp.Event, down map[netip.Addr]bool) {
	s.mu.Lock()
	on, id, shut := s.opts.events, int(s.assocID), s.sendingShut || s.closed
	s.mu.Unlock()
	push := func(event, kind, flags int, end bool, fill func(f *structWriter)) {
		if on[event] != 0 {
			f := newNotification(kind, flags)
			fill(&f)
			s.pushNotification(f, end)
		}
	}
	change := func(state int, end bool) {
		var st sctp.Stats
		if !end {
			st = c.Stats()
		}
		push(eventAssociation, typeAssocChange, 0, end, func(f *structWriter) {
			f.appendUint16(state)
			f.appendUint16(causeOf(ev.Err))
			f.appendUint16(st.OutStreams)
			f.appendUint16(st.InStreams)
			f.appendUint32(id)
			if a := new(sctp.AbortError); errors.As(ev.Err, &a) && a.ByPeer {
				*f = appendChunk(*f, wire.ChunkAbort, a.Causes)
			}
		})
	}
	addr := func(state int) {
		push(eventAddress, typePeerAddrChange, 0, false, func(f *structWriter) {
			*f = appendSockaddr(*f, s.presentedAddr(netip.AddrPortFrom(ev.Path, c.RemoteAddr().(sctp.Addr).Port())))
			f.padTo(8 + sockaddrStorageLen)
			f.appendUint32(state)
			f.appendUint32(0)
			f.appendUint32(id)
		})
	}
	switch ev.Kind {
	case sctp.EventUp:
		change(commUp, false)
	case sctp.EventRestart:
		change(restarted, false)
	case sctp.EventDown:
		if errors.Is(ev.Err, sctp.ErrShutdown) {
			change(shutdownComp, true)
		} else {
			change(commLost, true)
		}
	case sctp.EventPeerShutdown:
		if !shut { // this side has not begun it
			push(eventShutdown, typeShutdown, 0, true, func(f *structWriter) { f.appendUint32(id) })
		}
	case sctp.EventPathUp:
		if down[ev.Path] {
			addr(addrAvailable)
		} else {
			addr(addrConfirmed)
		}
		delete(down, ev.Path)
	case sctp.EventPathDown:
		down[ev.Path] = true
		addr(addrUnreachable)
	case sctp.EventPathPotentiallyFailed:
		down[ev.Path] = true
		addr(addrPotentiallyFailed)
	case sctp.EventPrimary:
		addr(addrMadePrimary)
	case sctp.EventAdaptation:
		push(eventAdaptation, typeAdaptation, 0, false, func(f *structWriter) {
			f.appendUint32(int(ev.Adaptation))
			f.appendUint32(id)
		})
	case sctp.EventStreamsReset, sctp.EventTSNsReset, sctp.EventStreamsAdded:
		if event, n := streamNotification(ev, id); on[event] != 0 {
			s.pushNotification(n, false)
		}
	case sctp.EventSenderDry:
		push(eventSenderDry, typeSenderDry, 0, false, func(f *structWriter) { f.appendUint32(id) })
	case sctp.EventPeerError:
		var e *sctp.PeerError
		if errors.As(ev.Err, &e) && len(e.Causes) > 0 {
			push(eventPeerError, typeRemoteError, 0, false, func(f *structWriter) {
				*f = append(*f, byte(e.Causes[0].Code>>8), byte(e.Causes[0].Code)) // in network byte order
				f.appendUint16(0)
				f.appendUint32(id)
				*f = appendChunk(*f, wire.ChunkError, e.Causes)
			})
		}
	}
}

// notifySendFailed makes the notifications of a message that was not delivered: those of section
// 6.1.4 and section 6.1.11.
func (s *Socket) notifySendFailed(ev *sctp.Event, cause int) {
	const whole, unordered, sackNow = 1<<0 | 1<<1, 1 << 2, 1 << 3 // of a DATA chunk: SCTP_DATA_NOT_FRAG, ...
	s.mu.Lock()
	on, id := s.opts.events, int(s.assocID)
	s.mu.Unlock()
	info := &ev.Info
	flags := whole | unordered*boolInt(info.Unordered) | sackNow*boolInt(info.SackNow)
	tell := func(kind int, with []byte) {
		f := newNotification(kind, boolInt(!ev.Unsent)) // SCTP_DATA_SENT is 1
		f.appendUint32(cause)
		f = append(f, with...)
		f.appendUint32(id)
		s.pushNotification(append(f, ev.Message...), false)
	}
	if on[eventSendFailure] != 0 {
		m := SndRcvInfo{Stream: info.Stream, Flags: uint16(flags), PPID: Swap(info.PPID), Context: info.Context,
			TTL:     uint32(info.Lifetime.Milliseconds()),
			AssocID: int32(id)}
		tell(typeSendFailed, m.AppendTo(nil))
	}
	if on[eventSendFailed] != 0 {
		var f structWriter // a sctp_sndinfo
		f.appendUint16(int(info.Stream))
		f.appendUint16(flags)
		f.appendUint32(int(Swap(info.PPID)))
		f.appendUint32(int(info.Context))
		f.appendUint32(id)
		tell(typeSendFailedEvent, f)
	}
}

// causeOf returns the code of the first cause of an end, or 0 if it has none.
func causeOf(err error) int {
	if a := new(sctp.AbortError); errors.As(err, &a) && len(a.Causes) > 0 {
		return int(a.Causes[0].Code)
	}
	return 0
}

// appendChunk appends an ABORT or ERROR chunk as it was on the wire (RFC 9260 section 3.3.7). What
// exceeds 256 octets of a cause is missing.
func appendChunk(b []byte, kind wire.ChunkType, causes []sctp.Cause) []byte {
	at := len(b)
	b = append(b, byte(kind), 0, 0, 0)
	for _, c := range causes {
		b = binary.BigEndian.AppendUint16(b, uint16(c.Code))
		b = binary.BigEndian.AppendUint16(b, uint16(4+len(c.Info)))
		b = append(b, c.Info...)
		b = append(b, make([]byte, -len(c.Info)&3)...)
	}
	binary.BigEndian.PutUint16(b[at+2:], uint16(len(b)-at))
	return b
}
