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

// Fields of sctp_event_subscribe (RFC 6458 section 6.2.1), in its order.
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
	eventStreamReset // of RFC 6525, as are the two behind it: they never come
	eventAssocReset
	eventStreamChange
	eventSendFailed // of section 6.1.11, instead of that of section 6.1.4
	numEvents
)

// Types of notifications on Linux.
const (
	noteAssocChange = 1<<15 + 1 + iota
	notePeerAddrChange
	noteSendFailed
	noteRemoteError
	noteShutdown
	notePartialDelivery
	noteAdaptation
	noteAuthentication
	noteSenderDry
	_
	_
	_
	noteSendFailedEvent
	noteData = noteAssocChange - 1 // the event of data, for SCTP_EVENT: it has no notification
)

// States of association changes, and of addresses of the peer.
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

// maxNotes is how many notifications a socket keeps that nobody has read.
const maxNotes = 256

// notes are the notifications of a socket, as octets. Those of the end wait until all messages have been read, as the kernel keeps their order.
type notes struct {
	mu      sync.Mutex
	list    [][]byte      // guarded by mu
	last    [][]byte      // guarded by mu: of the end
	off     int           // guarded by mu: octets of the first that have been read
	amid    bool          // guarded by mu: a message was read in part
	watched bool          // guarded by mu: there is a goroutine that brings them
	some    atomic.Bool   // there are any: changed with mu held
	ended   chan struct{} // closed when that goroutine has brought the last
}

// read reads from the first notification, that of the end only if all messages have been read. It returns the flags of Recv, 0 if there is none.
func (n *notes) read(b []byte, end bool, rd *waits) (octets, flags int) {
	if !n.some.Load() {
		return 0, 0
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	list := &n.list
	if len(*list) == 0 && end {
		list = &n.last
	}
	if len(*list) == 0 {
		return 0, 0
	}
	k := copy(b, (*list)[0][n.off:])
	n.off += k
	more := n.off < len((*list)[0])
	if !more {
		*list, n.off = (*list)[1:], 0
	}
	if len(n.list) == 0 {
		rd.tell(false)
	}
	n.some.Store(len(n.list)+len(n.last) > 0)
	return k, MsgNotification | endFlag(more)
}

// push adds one. A second of sender dry would say no more than the first.
func (n *notes) push(b []byte, end bool, rd *waits) {
	n.mu.Lock()
	defer n.mu.Unlock()
	dry := native.Uint16(b) == noteSenderDry
	switch last := len(n.list) - 1; {
	case end:
		n.last = append(n.last, b)
	case last+1 == maxNotes, dry && last >= 0 && native.Uint16(n.list[last]) == noteSenderDry: // enough are there
	default:
		n.list = append(n.list, b)
		n.tell(rd)
	}
	n.some.Store(true)
}

// hush has what comes wait for the end of a message of which a part was read (section 8.1.20, level 0), or no more.
func (n *notes) hush(amid bool, rd *waits) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.amid = amid
	n.tell(rd)
}

// tell has calls that wait look for notifications, if there are any for them. Called with mu held.
func (n *notes) tell(rd *waits) { rd.tell(!n.amid && len(n.list) > 0) }

// subscribed says which notifications there are, without that of data.
func (o *options) subscribed() bool {
	for _, on := range o.events[eventAssociation:] {
		if on != 0 {
			return true
		}
	}
	return false
}

// subscribe is called when the subscriptions have changed.
func (s *Socket) subscribe(c *sctp.Conn) {
	s.notes.mu.Lock()
	watched := s.notes.watched
	s.notes.mu.Unlock()
	if c != nil && !watched { // what was before is not wanted
		for err := error(nil); err == nil; {
			_, err = c.NextEvent(past)
		}
	}
	s.watch()
}

// watch has the events of the association become notifications, once somebody has subscribed to some.
func (s *Socket) watch() {
	s.mu.Lock()
	c, on := s.conn, s.opts.subscribed()
	s.mu.Unlock()
	if c == nil || !on {
		return
	}
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	if s.notes.watched {
		return
	}
	s.notes.watched, s.notes.ended = true, make(chan struct{})
	go func() {
		defer close(s.notes.ended)
		w := watcher{s: s, c: c, down: make(map[netip.Addr]bool)}
		for w.next() {
		}
	}()
}

// watcher makes notifications of the events of an association.
type watcher struct {
	s      *Socket
	c      *sctp.Conn
	down   map[netip.Addr]bool // addresses of the peer that do not answer
	failed []sctp.Event        // messages, as long as it is not known why: the end of the association follows on those that it takes along
	waits  bool                // something follows for certain
}

// expired says whether a message may have failed because its life was over.
func expired(ev *sctp.Event) bool { return ev.Unsent && ev.Info.Lifetime > 0 }

// patience ends the wait for the next event: at once where messages have failed and what is there already may say why.
func (w *watcher) patience() context.Context {
	if len(w.failed) > 0 && !w.waits {
		return past
	}
	return context.Background()
}

// next makes the next one, and says whether there may be another.
func (w *watcher) next() bool {
	ev, err := w.c.NextEvent(w.patience())
	if ev.Kind == sctp.EventSendFailed {
		w.failed, w.waits = append(w.failed, ev), w.waits || !expired(&ev)
		return true
	}
	for i := range w.failed {
		w.s.sendFailed(&w.failed[i], causeOf(ev.Err))
	}
	w.failed, w.waits = nil, false
	if err == nil {
		w.s.notify(w.c, &ev, w.down)
	}
	return err == nil || err == past.Err()
}

// past is a context that has ended.
var past = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// last is the next notification of the end, for a reader that has read all messages.
func (s *Socket) last(b []byte) (octets, flags int) {
	s.notes.mu.Lock()
	ended := s.notes.ended
	s.notes.mu.Unlock()
	if ended == nil {
		return 0, 0
	}
	<-ended // which is now, since the association has ended
	return s.notes.read(b, true, &s.rd)
}

// note is a notification but for its length.
func note(kind, flags int) fields {
	var f fields
	f.u16(kind)
	f.u16(flags)
	f.u32(0)
	return f
}

// push adds a notification with the length that it has.
func (s *Socket) push(f fields, end bool) {
	native.PutUint32(f[4:], uint32(len(f)))
	s.notes.push(f, end, &s.rd)
}

// dry makes the notification that there is nothing to be sent, at the subscription to it (section 6.1.9).
func (s *Socket) dry(c *sctp.Conn) {
	if st := c.Stats(); c.Err() == nil && st.Unacked == 0 && st.Queued == 0 {
		f := note(noteSenderDry, 0)
		f.u32(int(s.id))
		s.push(f, false)
	}
}

// cutOff makes the notification of a message that was read in part and has no end (section 6.1.7), in Linux's order. It goes before those that
// have waited for that end.
func (s *Socket) cutOff(r *sctp.RecvInfo) {
	s.mu.Lock()
	on, id := s.opts.events[eventPartial] != 0, s.id
	s.mu.Unlock()
	const aborted = 0 // SCTP_PARTIAL_DELIVERY_ABORTED
	f := note(notePartialDelivery, 0)
	f.u32(aborted)
	f.u32(int(id))
	f.u32(int(r.Stream))
	f.u32(int(r.SSN))
	n := &s.notes
	n.mu.Lock()
	if on {
		native.PutUint32(f[4:], uint32(len(f)))
		n.list = slices.Insert(n.list, 0, []byte(f))
		n.some.Store(true)
	}
	n.mu.Unlock()
	n.hush(false, &s.rd)
}

// notify makes the notification of an event. down has the addresses of the peer that do not answer.
func (s *Socket) notify(c *sctp.Conn, ev *sctp.Event, down map[netip.Addr]bool) {
	s.mu.Lock()
	on, id, shut := s.opts.events, int(s.id), s.shut || s.closed
	s.mu.Unlock()
	push := func(event, kind, flags int, end bool, fill func(f *fields)) {
		if on[event] != 0 {
			f := note(kind, flags)
			fill(&f)
			s.push(f, end)
		}
	}
	change := func(state int, end bool) {
		var st sctp.Stats
		if !end {
			st = c.Stats()
		}
		push(eventAssociation, noteAssocChange, 0, end, func(f *fields) {
			f.u16(state)
			f.u16(causeOf(ev.Err))
			f.u16(st.OutStreams)
			f.u16(st.InStreams)
			f.u32(id)
			if a := new(sctp.AbortError); errors.As(ev.Err, &a) && a.ByPeer {
				*f = appendChunk(*f, wire.ChunkAbort, a.Causes)
			}
		})
	}
	addr := func(state int) {
		push(eventAddress, notePeerAddrChange, 0, false, func(f *fields) {
			*f = appendSockaddr(*f, s.shown(netip.AddrPortFrom(ev.Path, c.RemoteAddr().(sctp.Addr).Port())))
			f.zero(8 + sizeStorage)
			f.u32(state)
			f.u32(0)
			f.u32(id)
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
			push(eventShutdown, noteShutdown, 0, true, func(f *fields) { f.u32(id) })
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
		push(eventAdaptation, noteAdaptation, 0, false, func(f *fields) {
			f.u32(int(ev.Adaptation))
			f.u32(id)
		})
	case sctp.EventSenderDry:
		push(eventSenderDry, noteSenderDry, 0, false, func(f *fields) { f.u32(id) })
	case sctp.EventPeerError:
		var e *sctp.PeerError
		if errors.As(ev.Err, &e) && len(e.Causes) > 0 {
			push(eventPeerError, noteRemoteError, 0, false, func(f *fields) {
				*f = append(*f, byte(e.Causes[0].Code>>8), byte(e.Causes[0].Code)) // in network byte order
				f.u16(0)
				f.u32(id)
				*f = appendChunk(*f, wire.ChunkError, e.Causes)
			})
		}
	}
}

// sendFailed makes the notifications of a message that was not delivered: that of section 6.1.4, and that of section 6.1.11.
func (s *Socket) sendFailed(ev *sctp.Event, cause int) {
	const whole, unordered, sackNow = 1<<0 | 1<<1, 1 << 2, 1 << 3 // of a DATA chunk: SCTP_DATA_NOT_FRAG, ...
	s.mu.Lock()
	on, id := s.opts.events, int(s.id)
	s.mu.Unlock()
	info := &ev.Info
	flags := whole | unordered*boolInt(info.Unordered) | sackNow*boolInt(info.SackNow)
	tell := func(kind int, with []byte) {
		f := note(kind, boolInt(!ev.Unsent)) // SCTP_DATA_SENT is 1
		f.u32(cause)
		f = append(f, with...)
		f.u32(id)
		s.push(append(f, ev.Message...), false)
	}
	if on[eventSendFailure] != 0 {
		m := SndRcvInfo{Stream: info.Stream, Flags: uint16(flags), PPID: Swap(info.PPID), Context: info.Context, TTL: uint32(info.Lifetime.Milliseconds()),
			AssocID: int32(id)}
		tell(noteSendFailed, m.AppendTo(nil))
	}
	if on[eventSendFailed] != 0 {
		var f fields // a sctp_sndinfo
		f.u16(int(info.Stream))
		f.u16(flags)
		f.u32(int(Swap(info.PPID)))
		f.u32(int(info.Context))
		f.u32(id)
		tell(noteSendFailedEvent, f)
	}
}

// causeOf returns the code of the first cause of an end, 0 if it has none.
func causeOf(err error) int {
	if a := new(sctp.AbortError); errors.As(err, &a) && len(a.Causes) > 0 {
		return int(a.Causes[0].Code)
	}
	return 0
}

// appendChunk appends an ABORT or ERROR chunk as it was on the wire (RFC 9260 section 3.3.7), but for what exceeds 256 octets of a cause.
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
