package rx

import "github.com/rddp-go/rddp/sctp/wire"

// waiting finds messages that wait for their SSN, by that and their stream: a digital search tree, in which
// a message lies somewhere on the way that the bits of its key describe, the lowest of the SSN first. No way is longer
// than a key has bits, whichever keys a peer chooses; the links are part of the messages.
type waiting struct {
	root *Message
	n    int
}

func key(id wire.StreamID, n wire.SSN) uint32 { return uint32(id)<<16 | uint32(n) }

func (m *Message) key() uint32 { return key(m.Stream, m.SSN) }

// find returns where the message with key k is linked to, or would be, and how many steps that took.
func (w *waiting) find(k uint32) (link **Message, steps int) {
	link = &w.root
	for bit := k; *link != nil && (*link).key() != k; bit >>= 1 {
		link = &(*link).kids[bit&1]
		steps++
	}
	return link, steps + 1
}

// unlink removes the message that link leads to. One below takes its place.
func (w *waiting) unlink(link **Message) (steps int) {
	m, last := *link, link
	for {
		steps++
		switch d := *last; {
		case d.kids[0] != nil:
			last = &d.kids[0]
		case d.kids[1] != nil:
			last = &d.kids[1]
		default:
			*last = nil
			if d != m {
				d.kids = m.kids
				*link = d
			}
			m.kids = [2]*Message{}
			w.n--
			return steps
		}
	}
}

// any returns the link of one of the messages, nil when there is none.
func (w *waiting) any() **Message {
	if w.root == nil {
		return nil
	}
	return &w.root
}

// each goes through all of them.
func (w *waiting) each(f func(*Message)) {
	var walk func(*Message)
	walk = func(m *Message) {
		if m != nil {
			f(m)
			walk(m.kids[0])
			walk(m.kids[1])
		}
	}
	walk(w.root)
}
