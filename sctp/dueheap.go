package sctp

import "github.com/rddp-go/rddp/rawio"

// dueHeap has associations by deadline, the earliest first: of the children of i, from heapChildren*i+1 on, none is due before i is.
//
// What takes time where there are many associations is to look at memory of each of them, and to write to it even more. So the deadlines lie in the heap itself, four
// children side by side, and which place an association has is in a table beside it, at a number that it keeps while it is in the heap.
type dueHeap struct {
	of    []dueConn
	place []int32 // in of, by number less one
	spare []int32 // numbers that no association has
}

type dueConn struct {
	due    rawio.Time
	early  rawio.Time // from when on it may be served
	c      *Conn
	number int32
}

const heapChildren = 4

func (h *dueHeap) len() int { return len(h.of) }

// first returns the earliest deadline, Never if there is none.
func (h *dueHeap) first() rawio.Time {
	if len(h.of) == 0 {
		return rawio.Never
	}
	return h.of[0].due
}

// earlier puts c in, with an earlier deadline than it has in the heap, if any.
func (h *dueHeap) earlier(c *Conn, due, early rawio.Time) {
	if c.heapNumber == 0 {
		c.heapNumber = h.number()
		h.place[c.heapNumber-1] = int32(len(h.of))
		h.of = append(h.of, dueConn{})
	}
	c.inHeap = due
	h.up(int(h.place[c.heapNumber-1]), dueConn{due, early, c, c.heapNumber})
}

// number takes one that no association has.
func (h *dueHeap) number() int32 {
	if n := len(h.spare); n > 0 {
		number := h.spare[n-1]
		h.spare = h.spare[:n-1]
		return number
	}
	h.place = append(h.place, 0)
	return int32(len(h.place))
}

// postpone gives the first a later deadline; Never takes it out.
func (h *dueHeap) postpone(due, early rawio.Time) {
	first := h.of[0]
	if due == rawio.Never {
		h.remove(first.c)
	} else {
		first.c.inHeap = due
		h.down(0, dueConn{due, early, first.c, first.number})
	}
}

// remove takes c out, if it is in.
func (h *dueHeap) remove(c *Conn) {
	if c.heapNumber == 0 {
		return
	}
	i, end := int(h.place[c.heapNumber-1]), len(h.of)-1
	h.spare = append(h.spare, c.heapNumber)
	c.heapNumber, c.inHeap = 0, rawio.Never
	last := h.of[end]
	h.of[end] = dueConn{}
	h.of = h.of[:end]
	if i < end && !h.up(i, last) {
		h.down(i, last)
	}
}

// up puts e at the place i, which is free, or above, and says whether above.
func (h *dueHeap) up(i int, e dueConn) (above bool) {
	for i > 0 && e.due < h.of[(i-1)/heapChildren].due {
		parent := (i - 1) / heapChildren
		h.put(i, h.of[parent])
		i, above = parent, true
	}
	h.put(i, e)
	return above
}

// down puts e at the place i, which is free, or below.
func (h *dueHeap) down(i int, e dueConn) {
	for {
		first := heapChildren*i + 1
		if first >= len(h.of) {
			break
		}
		least := first
		for k := first + 1; k < min(first+heapChildren, len(h.of)); k++ {
			if h.of[k].due < h.of[least].due {
				least = k
			}
		}
		if h.of[least].due >= e.due {
			break
		}
		h.put(i, h.of[least])
		i = least
	}
	h.put(i, e)
}

func (h *dueHeap) put(i int, e dueConn) {
	h.of[i] = e
	h.place[e.number-1] = int32(i)
}
