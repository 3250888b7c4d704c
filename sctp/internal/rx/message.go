package rx

import (
	"github.com/rddp-go/rddp/sctp/wire"
)

// Message is a user message, or a piece of one that is longer than the receive buffer: whole, or as much
// as there is to be, when Receive returns it, in assembly inside.
type Message struct {
	Stream    wire.StreamID
	SSN       wire.SSN // meaningless when Unordered
	PPID      uint32
	Unordered bool
	// Size is the octets of user data here, Offset those of the message in earlier pieces. More says
	// that the message goes on in the next Message. Cut is the end of a message whose rest will not
	// come, because the association has ended or the peer has restarted: it has no octets.
	Size, Offset int
	More, Cut    bool

	first, last wire.TSN // its chunks so far
	begin, end  bool     // it has its first, its last fragment
	loose       bool     // it waits for its SSN, but is not held beyond the cumulative TSN
	head, tail  *piece
	next        *Message // in the list of what is ready, or of what is free

	// Where the last CopyTo ended, so that reading on does not start over.
	cur    *piece
	curOff int // of cur's first octet in the message
}

// CopyTo copies user data from offset off on into dst and returns how many octets, 0 at the end.
func (m *Message) CopyTo(dst []byte, off int) int {
	if off < 0 || off >= m.Size {
		return 0
	}
	if m.cur == nil || off < m.curOff {
		m.cur, m.curOff = m.head, 0
	}
	n := 0
	for n < len(dst) && m.cur != nil {
		if skip := off + n - m.curOff; skip < len(m.cur.data) {
			n += copy(dst[n:], m.cur.data[skip:])
			continue
		}
		m.curOff += len(m.cur.data)
		m.cur = m.cur.next
	}
	return n
}

func (m *Message) append(p *piece) {
	p.prev = m.tail
	if m.tail != nil {
		m.tail.next = p
	} else {
		m.head = p
	}
	m.tail = p
	m.Size += len(p.data)
}

func (m *Message) prepend(p *piece) {
	p.next = m.head
	if m.head != nil {
		m.head.prev = p
	} else {
		m.tail = p
	}
	m.head = p
	m.Size += len(p.data)
}

// chain is a FIFO of messages.
type chain struct{ first, last *Message }

func (c *chain) push(m *Message) {
	if c.first == nil {
		c.first = m
	} else {
		c.last.next = m
	}
	c.last = m
}

func (c *chain) pop() *Message {
	m := c.first
	if m != nil {
		c.first, m.next = m.next, nil
	}
	return m
}

// join moves everything from d to the end of c.
func (c *chain) join(d *chain) {
	if d.first != nil {
		c.push(d.first)
		c.last = d.last
		*d = chain{}
	}
}

// list is a list of messages in some order, quick at both ends.
type list struct {
	v    []*Message
	head int
}

func (l *list) len() int          { return len(l.v) - l.head }
func (l *list) at(i int) *Message { return l.v[l.head+i] }

func (l *list) insert(i int, m *Message) {
	if i == 0 && l.head > 0 {
		l.head--
		l.v[l.head] = m
		return
	}
	if len(l.v) == cap(l.v) && l.head > len(l.v)/2 {
		n := copy(l.v, l.v[l.head:])
		clear(l.v[n:])
		l.v, l.head = l.v[:n], 0
	}
	l.v = append(l.v, nil)
	k := l.head + i
	copy(l.v[k+1:], l.v[k:])
	l.v[k] = m
}

func (l *list) remove(i int) {
	k := l.head + i
	if i == 0 {
		l.v[k] = nil
		l.head++
	} else {
		copy(l.v[k:], l.v[k+1:])
		l.v[len(l.v)-1] = nil
		l.v = l.v[:len(l.v)-1]
	}
	if l.head == len(l.v) {
		l.v, l.head = l.v[:0], 0
	}
}
