package compat

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
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
	watched bool          // guarded by mu: there is a goroutine that brings them
	some    atomic.Bool   // there are any: changed with mu held
	ended   chan struct{} // closed when that goroutine has brought the last
}

// read reads from the first notification, that of the end only if all messages have been read.
func (n *notes) read(b []byte, end bool, rd *waits) (int, bool) {
	if !n.some.Load() {
		return 0, false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	list := &n.list
	if len(*list) == 0 && end {
		list = &n.last
	}
	if len(*list) == 0 {
		return 0, false
	}
	k := copy(b, (*list)[0][n.off:])
	if n.off += k; n.off == len((*list)[0]) {
		*list, n.off = (*list)[1:], 0
	}
	if len(n.list) == 0 {
		rd.tell(false)
	}
	n.some.Store(len(n.list)+len(n.last) > 0)
	return k, true
}

func (n *notes) any(end bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.list) > 0 || end && len(n.last) > 0
}

func (n *notes) push(b []byte, end bool, rd *waits) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case end:
		n.last = append(n.last, b)
	case len(n.list) < maxNotes:
		n.list = append(n.list, b)
		rd.tell(true)
	}
	n.some.Store(true)
}

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
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		for err := error(nil); err == nil; {
			_, err = c.NextEvent(ctx)
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
		down := make(map[netip.Addr]bool)
		for {
			ev, err := c.NextEvent(context.Background())
			if err != nil {
				return
			}
			s.notify(c, &ev, down)
		}
	}()
}

// last is the next notification of the end, for a reader that has read all messages.
func (s *Socket) last(b []byte) (int, bool) {
	s.notes.mu.Lock()
	ended := s.notes.ended
	s.notes.mu.Unlock()
	if ended == nil {
		return 0, false
	}
	<-ended // which is now, since the association has ended
	return s.notes.read(b, true, &s.rd)
}

// notify makes the notification of an event. down has the addresses of the peer that do not answer.
func (s *Socket) notify(c *sctp.Conn, ev *sctp.Event, down map[netip.Addr]bool) {
	s.mu.Lock()
	on, id, shut := s.opts.events, int(s.id), s.shut || s.closed
	s.mu.Unlock()
	push := func(event, kind, flags int, end bool, fill func(f *fields)) {
		if on[event] == 0 {
			return
		}
		var f fields
		f.u16(kind)
		f.u16(flags)
		f.u32(0)
		fill(&f)
		native.PutUint32(f[4:], uint32(len(f)))
		s.notes.push(f, end, &s.rd)
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
			*f = appendSockaddr(*f, netip.AddrPortFrom(ev.Path, c.RemoteAddr().(sctp.Addr).Port()))
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
	case sctp.EventSendFailed:
		const sent = 1 // SCTP_DATA_SENT; 0 is SCTP_DATA_UNSENT
		push(eventSendFailure, noteSendFailed, sent*boolInt(!ev.Unsent), false, func(f *fields) {
			f.u32(causeOf(c.Err()))
			m := SndRcvInfo{Stream: ev.Info.Stream, PPID: Swap(ev.Info.PPID), TTL: uint32(ev.Info.Lifetime.Milliseconds()), AssocID: int32(id)}
			if ev.Info.Unordered {
				m.Flags = flagUnordered
			}
			*f = m.AppendTo(*f)
			f.u32(id)
			*f = append(*f, ev.Message...)
		})
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
