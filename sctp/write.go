package sctp

import (
	"net"
	"os"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// quickAnswerTime is how soon a program answers that answers at once. While it does, and has more
// to read, it will send more.
const quickAnswerTime = 200 * time.Microsecond

// sendSide is the messages between WriteMsg and their acknowledgement. Owner only, but for writable
// and deadline.
type sendSide struct {
	buffer      sendBuf
	loose       *looseMessages // the messages that are not in buffer; nil before there is one
	firstWriter *waitingWriter // the first of the calls that wait for space
	writable    signal         // without a channel until a goroutine has waited for it
	deadline    deadline       // of writes; Streams and Sockets have deadlines of their own for them
}

// isByStream reports whether a scheduler chooses among the streams.
func (s *sendSide) isByStream() bool { return s.loose != nil && s.loose.byStream }

// looseBuffer returns loose, which it makes if need be.
func (s *sendSide) looseBuffer() *looseMessages {
	if s.loose == nil {
		s.loose = new(looseMessages)
	}
	return s.loose
}

// get returns a message that is not freed yet.
func (s *sendSide) get(token uint64) *bufferedMessage {
	if token&looseToken != 0 {
		return s.loose.get(token)
	}
	return s.buffer.get(token)
}

// freeMessage releases a message.
func (s *sendSide) freeMessage(token uint64) {
	if token&looseToken != 0 {
		s.loose.freeMessage(token)
	} else {
		s.buffer.freeMessage(token)
	}
}

// heldOctets returns the octets of memory that messages keep.
func (s *sendSide) heldOctets() int { return s.buffer.heldOctets() + s.loose.heldOctets() }

// trimIdle gives back what was not used for a while.
func (s *sendSide) trimIdle() {
	s.buffer.trimIdle()
	s.loose.trimIdle()
}

// messageSource is the Conn as the association's Source. WriteMsg queues messages, and only their
// acknowledgements come back.
type messageSource Conn

// Next never has anything: WriteMsg queues messages in the association.
func (s *messageSource) Next(rawio.Time, int, *assoc.Message) bool { return false }

// Idle is true for the same reason.
func (s *messageSource) Idle() bool { return true }

// Acked frees the buffer of a message that has arrived. Waiting writers wait on until there is room
// for several messages, so that they are not woken for each.
func (s *messageSource) Acked(_ rawio.Time, _ wire.StreamID, token uint64) {
	s.send.freeMessage(token)
	(*Conn)(s).noteRoom()
}

// resizeSendBuffer makes the send buffer as large as the association's, which grows. While memory
// is short it has its first size. Owner only.
func (c *Conn) resizeSendBuffer() {
	if c.send.buffer.maxOctets = c.core.SendBuffer(); c.memory.underPressure.Load() {
		c.send.buffer.maxOctets = c.send.buffer.baseOctets
	}
}

// sendBufferHasRoom reports whether the send buffer has space for several messages. Owner only.
func (c *Conn) sendBufferHasRoom() bool {
	if !c.send.buffer.hasQuarterFree() {
		c.resizeSendBuffer()
	}
	return c.send.buffer.hasQuarterFree()
}

// WriteMsg sends p as one message. It returns when the message is copied into the send buffer, and
// blocks while that is full. It fails with ErrEmptyMessage, ErrMessageTooLong, ErrInvalidStream, or
// ErrNoPath for a SendInfo.Dest that is not the peer's. It also fails with os.ErrDeadlineExceeded,
// net.ErrClosed after Close, ErrClosing, or the reason why the association has ended.
func (c *Conn) WriteMsg(p []byte, info SendInfo) (n int, err error) {
	return c.writeMessage(p, info, nil)
}

// writeMessage is WriteMsg under a deadline, nil: the association's own.
func (c *Conn) writeMessage(p []byte, info SendInfo, d *deadline) (n int, err error) {
	if len(p) == 0 {
		return 0, assoc.ErrEmptyMessage
	}
	if info.Abandon > AbandonForRoom || info.Abandon == AbandonExpired && info.Lifetime <= 0 {
		return 0, ErrAbandonPolicy
	}
	var m assoc.Message
	m.Policy, m.Limit = info.Abandon, info.Limit
	m.Stream, m.PPID, m.Unordered, m.SackNow, m.NoBundle = wire.StreamID(info.Stream), info.PPID, info.Unordered,
		info.SackNow, info.NoBundle
	var memory writePrefetch
	memory.beforeLock(c)
	var room ring           // for the buffer, if it is to be larger
	var turn *waitingWriter // of this call, once it has waited
	for late := false; ; {
		a, now := c.lock()
		memory.afterLock(c)
		err := c.end.closedErr()
		if d != nil && d.streamClosed {
			err = net.ErrClosed
		}
		if err == nil && late {
			err = os.ErrDeadlineExceeded
		}
		if err == nil && len(p) > c.send.buffer.baseOctets {
			err = ErrMessageTooLong
		}
		if err == nil && info.Dest.IsValid() {
			m.Path, err = a.PathTo(info.Dest)
		}
		if err != nil {
			if turn != nil {
				c.send.unqueueWriter(turn)
				c.afterUnlock.tasks |= taskWakeWriters // others that wait
			}
			c.unlock()
			return 0, err
		}
		if info.Lifetime > 0 && m.Expires == 0 {
			m.Expires = now.Add(info.Lifetime)
		}
		if c.memory.underPressure.Load() || !c.send.buffer.hasRoomFor(len(p)) {
			c.resizeSendBuffer()
		}
		if m.Policy == AbandonForRoom && c.send.isFirst(turn) {
			a.MakeRoom(now, len(p), m.Limit)
		}
		isTurn := c.isTurnOf(turn, &m, len(p))
		if !isTurn && turn != nil && !c.send.isByStream() {
			c.afterUnlock.tasks |= taskWakeWriters // it was woken in place of the first
		}
		isLoose := c.send.isByStream() || info.Abandon != AbandonNever
		if isTurn && !isLoose {
			if size := c.ringSizeFor(len(p)); size > 0 {
				if size != len(room.octets) {
					c.unlock()
					room = newRing(size)
					continue
				}
				c.send.buffer.switchRing(room)
				room = ring{}
			}
		}
		if isTurn {
			c.expectAnswers(now)
			if isLoose {
				err = c.sendLoose(now, p, &info, &m)
			} else {
				err = c.sendFromRing(now, p, &info, &m, &memory)
			}
			if err != assoc.ErrSendBufferFull {
				if turn != nil {
					c.send.unqueueWriter(turn)
				}
				c.noteRoom() // for the next that waits
				if len(p) <= shortWorkOctets {
					c.unlockAt(now)
				} else {
					c.unlock()
				}
				if err != nil {
					return 0, err
				}
				return len(p), nil
			}
		}
		if turn == nil {
			turn = &waitingWriter{stream: m.Stream, octets: len(p)}
		}
		ready := c.queueWriter(turn)
		c.unlock()
		if d == nil {
			d = &c.send.deadline
		}
		late = d.wait(ready)
	}
}

// expectAnswers tells the association whether the program will write more at once, as it answers
// what it has read. Owner only.
func (c *Conn) expectAnswers(now rawio.Time) {
	expects := c.recv.inbox.first() != nil && now.Sub(c.recv.lastReadAt) < quickAnswerTime
	if expects != c.recv.expectsWrites.Load() { // to store is what costs
		c.recv.expectsWrites.Store(expects)
	}
	c.core.Expect(expects)
}

// sendFromRing sends a message that goes into the ring. Owner only.
func (c *Conn) sendFromRing(now rawio.Time, p []byte, info *SendInfo, m *assoc.Message, memory *writePrefetch) error {
	w, token, ok := c.send.buffer.putMessage(p, info)
	if !ok {
		return assoc.ErrSendBufferFull
	}
	m.Body[0], m.Body[1], m.Token = w.body[0], w.body[1], token
	memory.beforeSend(c)
	err := c.core.Send(now, m)
	if err != nil {
		c.send.buffer.undoPut()
	}
	return err
}

// ringSizeFor returns what that of the buffer says, and 0 too if there is no memory for more, and
// messages on their way will free some. Owner only.
func (c *Conn) ringSizeFor(n int) int {
	b := &c.send.buffer
	size := b.ringSizeFor(n)
	if size > len(b.ring) && b.usedOctets > 0 && !c.canAfford(size) {
		return 0
	}
	return size
}

// sendLoose sends a message that does not go into the ring. Owner only.
func (c *Conn) sendLoose(now rawio.Time, p []byte, info *SendInfo, m *assoc.Message) error {
	l := c.send.looseBuffer()
	if l.usedOctets > 0 && !l.hasMemoryFor(len(p)) && !c.canAfford(len(p)) ||
		c.memory.underPressure.Load() && l.usedOctets+len(p) > c.send.buffer.baseOctets {
		return assoc.ErrSendBufferFull
	}
	w, token := l.putMessage(p, info)
	m.Body[0], m.Token = w.body[0], token
	err := c.core.Send(now, m)
	if err != nil {
		l.freeMessage(token)
	}
	return err
}
