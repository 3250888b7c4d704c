package rx

import (
	"github.com/rddp-go/rddp/sctp/wire"
)

// Message is a user message, or a piece of one that is longer than the receive buffer. When Receive
// returns it, it is complete; inside the package it may be in assembly.
type Message struct {
	Stream    wire.StreamID
	SSN       wire.SSN // meaningless when Unordered; of I-DATA the low half of the MID
	PPID      uint32
	Unordered bool
	// More says that the message goes on in the next Message. Cut marks the end of a message whose
	// rest will not come, because the association has ended, or the peer has restarted or has given
	// the message up. It has no octets.
	More, Cut bool

	hasBegin, hasEnd bool  // it has its first, its last fragment
	isPlaceholder    bool  // it stands for one that was placed, see MarkDelivered
	mayDrop          bool  // of I-DATA: it is not delivered, and loses chunks for want of room
	level            uint8 // in an orderTree

	// Size is the octets of user data here, Offset those of the message in earlier pieces.
	Size, Offset int

	firstTSN, lastTSN    wire.TSN    // its chunks so far
	order                streamOrder // while it waits for its SSN; the MID of I-DATA
	nextFSN              wire.FSN    // of I-DATA: of the fragment behind its pieces
	headPiece, tailPiece *piece
	fragments            orderTree   // of I-DATA: those beyond a gap, see fragments.go
	children             [2]*Message // in the tree of those that wait for their SSN
	next                 *Message    // in the list of what is ready, or of what is free

	// Where the last CopyTo ended, so that reading on does not start over.
	copyPiece  *piece
	copyOffset int // of copyPiece's first octet in the message
}

// TSN returns the TSN of its first chunk so far.
func (m *Message) TSN() wire.TSN { return m.firstTSN }

// MID returns the Message Identifier of a message that came in I-DATA.
func (m *Message) MID() wire.MID { return wire.MID(m.order) }

// CopyTo copies user data from offset off on into dst. It returns the number of octets, 0 at the
// end.
func (m *Message) CopyTo(dst []byte, off int) int {
	if off < 0 || off >= m.Size {
		return 0
	}
	if m.copyPiece == nil || off < m.copyOffset {
		m.copyPiece, m.copyOffset = m.headPiece, 0
	}
	n := 0
	for m.copyPiece != nil {
		data := m.copyPiece.data
		if n += copy(dst[n:], data[min(off+n-m.copyOffset, len(data)):]); n == len(dst) {
			break
		}
		m.copyOffset += len(data)
		m.copyPiece = m.copyPiece.next
	}
	return n
}

func (m *Message) appendPiece(p *piece) {
	p.prev = m.tailPiece
	if m.tailPiece != nil {
		m.tailPiece.next = p
	} else {
		m.headPiece = p
	}
	m.tailPiece = p
	m.Size += len(p.data)
}

// prependPiece puts p before the first piece that there is.
func (m *Message) prependPiece(p *piece) {
	p.next, m.headPiece.prev, m.headPiece = m.headPiece, p, p
	m.Size += len(p.data)
}

// appendMessage appends what n has to m.
func (m *Message) appendMessage(n *Message) {
	m.tailPiece.next, n.headPiece.prev = n.headPiece, m.tailPiece
	m.tailPiece, m.lastTSN, m.hasEnd = n.tailPiece, n.lastTSN, n.hasEnd
	m.Size += n.Size
}

// messageList is a FIFO of messages.
type messageList struct{ first, last *Message }

func (c *messageList) push(m *Message) {
	if c.first == nil {
		c.first = m
	} else {
		c.last.next = m
	}
	c.last = m
}

func (c *messageList) pop() *Message {
	m := c.first
	if m != nil {
		c.first, m.next = m.next, nil
	}
	if c.first == nil {
		c.last = nil // or it would keep m alive, and later all free ones behind it
	}
	return m
}

// appendList moves everything from d to the end of c.
func (c *messageList) appendList(d *messageList) {
	if d.first != nil {
		c.push(d.first)
		c.last = d.last
		*d = messageList{}
	}
}
