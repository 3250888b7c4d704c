package sctp

import (
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/internal/prefetch"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// SendInfo says how a message is to be sent. The zero value is an ordered message on stream 0.
type SendInfo struct {
	Stream    uint16
	PPID      uint32 // payload protocol identifier, host order; SCTP does not interpret it
	Unordered bool   // may overtake and be overtaken
	SackNow   bool   // ask the peer to acknowledge at once (I bit, RFC 7053)
	Context   uint32 // for the program alone: EventSendFailed gives it back with the message

	// Lifetime is how long after the call of WriteMsg the message is worth sending; 0 means without
	// limit. If no part of it was sent by then, it never is, and EventSendFailed reports it. What
	// was sent once is retransmitted for as long as it takes, unless Abandon is AbandonExpired.
	Lifetime time.Duration
	// Abandon gives the message up although it was sent, where both ends have agreed on that
	// (Config.PartialReliability, Conn.Extensions). AbandonExpired does so when Lifetime is over,
	// AbandonResent when a part of it would be sent again more than Limit times, and AbandonForRoom
	// when a message of such a policy and a lower Limit finds the send buffer full. EventSendFailed
	// reports it. Without the peer's consent the error is ErrNoPartialReliability. Default
	// AbandonNever.
	Abandon AbandonPolicy
	// Limit is how often a part of the message is sent again under AbandonResent; 0 means that it
	// is sent once. Under AbandonForRoom it is the priority, 0 the highest (RFC 7496 section 3.3).
	// Default 0.
	Limit uint32
	// Dest is an address of the peer: the message goes there while that path is active (section
	// 6.4). The zero address stands for the primary path.
	Dest netip.Addr
	// NoBundle sends the message in packets of its own, and at once; see also Config.NoDelay.
	NoBundle bool
}

// RecvInfo describes a received message.
type RecvInfo struct {
	Stream    uint16
	SSN       uint16 // stream sequence number of an ordered message
	TSN       uint32 // of its first DATA chunk
	CumTSN    uint32 // no TSN up to it is missing, when the message is read; of a Socket, when it has come
	PPID      uint32
	Unordered bool
	// Size is the octets of the whole message. It is 0 while that is unknown: the message is longer
	// than Config.RecvBuffer and the rest is yet to come.
	Size int
	// More says that the message goes on: the next read returns more of it. Where Interleaving is
	// agreed on that is the next read of its stream.
	More bool
}

// recvSide is the messages that wait for the program. Owner only, but for readable, deadline,
// expectsWrites and blockedReader.
type recvSide struct {
	inbox          inbox        // messages of streams that are not in use as a Stream
	streams        *streamTable // the ones that are
	socket         *Socket      // one-to-many style: the Socket that gets the messages instead
	unreadInSocket int32        // messages that wait there
	expectsWrites  atomic.Bool  // the program is about to write; only the owner changes it
	lastReadAt     rawio.Time   // when a message was last read to its end
	deadline       deadline     // of reads
	readable       signal
	blockedReader  prefetch.BlockedGoroutine // the goroutine that waits for readable
}

// inbox holds received messages that are unread. Owner only.
type inbox struct {
	queue        []*assoc.Received
	head         int
	readOffset   int                // octets of the first message already read
	streamClosed bool               // of a Stream that was closed
	isReset      bool               // of a Stream that the peer has reset
	resetAt      wire.TSN           // the first of what comes behind that
	firstSlot    [1]*assoc.Received // that q begins with: usually there is one at most
}

func (b *inbox) push(r *assoc.Received) {
	if b.head > len(b.queue)/2 { // it may never be empty
		b.queue, b.head = slices.Delete(b.queue, 0, b.head), 0
	}
	if b.queue == nil {
		b.queue = b.firstSlot[:0]
	}
	b.queue = append(b.queue, r)
}

func (b *inbox) first() *assoc.Received {
	if b.head == len(b.queue) {
		return nil
	}
	return b.queue[b.head]
}

// readFirst copies from the first message into p. It returns the message when it has been read to
// its end, for the caller to release.
func (b *inbox) readFirst(p []byte, info *RecvInfo) (n int, finished *assoc.Received) {
	r := b.queue[b.head]
	n = r.CopyTo(p, b.readOffset)
	b.readOffset += n
	info.setFrom(r, b.readOffset)
	if b.readOffset == r.Size {
		finished = b.popFirst()
	}
	return n, finished
}

// popFirst takes the first message off.
func (b *inbox) popFirst() *assoc.Received {
	r := b.queue[b.head]
	b.queue[b.head] = nil
	b.readOffset = 0
	if b.head++; b.head == len(b.queue) {
		b.queue, b.head = b.queue[:0], 0
	}
	return r
}

// skipRests releases what is the rest of messages of which a reader has had enough.
func (b *inbox) skipRests(a *assoc.Assoc) {
	for r := b.first(); r != nil && r.Offset > 0; r = b.first() {
		a.Release(b.popFirst())
	}
}

// takeStream moves the messages of a stream from another inbox, but for one of which something has
// been read.
func (b *inbox) takeStream(from *inbox, id wire.StreamID) {
	kept := from.queue[:from.head]
	for i, r := range from.queue[from.head:] {
		if r.Stream == id && (i > 0 || from.readOffset == 0) {
			b.push(r)
		} else {
			kept = append(kept, r)
		}
	}
	clear(from.queue[len(kept):])
	from.queue = kept
}

// discardAll releases every message.
func (b *inbox) discardAll(a *assoc.Assoc) {
	for b.first() != nil {
		a.Release(b.popFirst())
	}
}

// distributeMessages distributes complete messages to the inboxes of streams that are in use and
// the common one. left says that the slice was over before it had all.
func (c *Conn) distributeMessages() (left bool) {
	for {
		if c.sliceIsOver(sliceTime) {
			return true
		}
		if !c.distributeMessage() {
			return false
		}
	}
}

// distributeMessage distributes one message, if there is any.
func (c *Conn) distributeMessage() bool {
	r, ok := c.core.Receive()
	if !ok {
		return false
	}
	// it will not be read; its window lets the peer go on to its shutdown
	if c.end.closing || c.end.failed && c.end.unreadLostErr != nil {
		c.core.Release(r)
		return true
	}
	if c.recv.socket != nil {
		c.recv.socket.pushMessage(c, r)
		c.afterUnlock.tasks |= taskWakeSocket
		return true
	}
	s := c.recv.streams.get(r.Stream)
	if s != nil && s.inbox.isReset && !r.TSN().Less(s.inbox.resetAt) {
		c.recv.streams.detach(s)
		s = nil
	}
	if s == nil && c.recv.streams != nil && c.recv.streams.accepts {
		s = c.beginStream(r.Stream)
	}
	if s != nil {
		s.inbox.push(r)
		c.afterUnlock.wakeStream(s)
		return true
	}
	c.recv.inbox.push(r)
	c.afterUnlock.tasks |= taskWakeReaders
	return true
}

// wakeStream makes runUnlockTasks wake the reader of s.
func (u *unlockWork) wakeStream(s *Stream) {
	u.tasks |= taskDrainLists
	if u.streamsToWake == nil {
		if u.streamsToWake = u.spareWakeList.Swap(nil); u.streamsToWake == nil {
			u.streamsToWake = new([]*Stream)
		}
	}
	list := u.streamsToWake
	if n := len(*list); n == 0 || (*list)[n-1] != s {
		*list = append(*list, s)
	}
}

// ReadMsg reads one message, or the next piece of one that is longer than p. Message boundaries are
// kept, and More says whether the message goes on. It blocks until a message is complete, or has
// filled the receive buffer. A message longer than Config.RecvBuffer comes in pieces as it arrives,
// and nothing else comes in between (RFC 9260 section 6.9). Where Interleaving is agreed on, pieces
// of other streams may; within a stream nothing does. Config.MaxMessage sets a limit. It
// returns io.EOF after the peer has shut the association down, or io.ErrUnexpectedEOF if the peer
// has not sent all by then. It returns the reason when the association failed. Before these it
// returns ErrCutOff if the end, or a restart of the peer, came before the end of a message, or if
// the peer has given the message up. After ErrCutOff reading goes on.
func (c *Conn) ReadMsg(p []byte) (n int, info RecvInfo, err error) {
	return c.readFrom(p, &c.recv.inbox, &c.recv.readable, &c.recv.deadline, false)
}

// setFrom fills i, which is zero, for a message, or piece of one, of which n octets have been read.
func (i *RecvInfo) setFrom(r *assoc.Received, n int) {
	i.Stream, i.SSN, i.TSN, i.PPID, i.Unordered, i.More = uint16(r.Stream), uint16(r.SSN), uint32(r.TSN()), r.PPID,
		r.Unordered, r.More || n < r.Size
	if !r.More {
		i.Size = r.Offset + r.Size
	}
}

// readFrom reads from an inbox. With cut, what does not fit p of a message is dropped.
func (c *Conn) readFrom(p []byte, in *inbox, ready *signal, d *deadline, cut bool) (n int, info RecvInfo, err error) {
	late := false
	if !ready.isSet() && !c.recv.expectsWrites.Load() { // it is set while there is anything
		if c.t.manyAssocs.Load() {
			c.recv.blockedReader.SetCaller()
		}
		late = d.wait(ready)
	}
	for {
		c.acquireLock()
		if cut {
			in.skipRests(&c.core)
		}
		r := in.first()
		if r != nil && !c.end.closing {
			if r.Cut {
				err = ErrCutOff
			}
			var finished *assoc.Received
			n, finished = in.readFirst(p, &info)
			info.CumTSN = uint32(c.core.CumTSN())
			if cut && finished == nil {
				finished = in.popFirst()
			}
			left := finished == nil || in.first() != nil || late || c.end.failed || in.streamClosed || in.isReset
			if !left {
				d.clearSignal(ready)
			}
			if finished == nil { // nothing follows from that
				c.unlockWithoutFlush()
			} else {
				c.core.Release(finished)
				c.recv.lastReadAt = c.t.now()
				c.unlockAfterRead(c.recv.lastReadAt)
			}
			if left {
				ready.passOn()
			}
			return n, info, err
		}
		now := c.t.now()
		err := c.end.readErr()
		switch {
		case in.streamClosed:
			err = net.ErrClosed
		case in.isReset:
			err = io.EOF
		}
		if c.recv.expectsWrites.Load() {
			c.recv.expectsWrites.Store(false)
			c.core.Expect(false)
			c.unlock()
		} else {
			c.unlockAfterRead(now)
		}
		if err == nil && late {
			err = os.ErrDeadlineExceeded
		}
		if err != nil {
			ready.Set() // for others that wait
			return 0, RecvInfo{}, err
		}
		late = d.wait(ready)
	}
}
