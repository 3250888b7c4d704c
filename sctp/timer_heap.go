package sctp

import "github.com/rddp-go/rddp/rawio"

// timerHeap has associations by deadline, the earliest first. Of the children of i, from
// heapChildren*i+1 on, none is due before i is.
//
// With many associations, it takes time to look at memory of each of them, and even more to write
// to it. So the deadlines lie in the heap itself, four children side by side. A table beside it has
// the place of each association. Its index is a number that the association keeps while it is in
// the heap.
type timerHeap struct {
	entries   []heapEntry
	positions []int32 // in of, by number less one
	freeIDs   []int32 // numbers that no association has
}

type heapEntry struct {
	dueAt      rawio.Time
	earliestAt rawio.Time // from when on it may be served
	c          *Conn
	id         int32
}

const heapChildren = 4

func (h *timerHeap) len() int { return len(h.entries) }

// firstDeadline returns the earliest deadline, Never if there is none.
func (h *timerHeap) firstDeadline() rawio.Time {
	if len(h.entries) == 0 {
		return rawio.Never
	}
	return h.entries[0].dueAt
}

// moveEarlier puts c in, with an earlier deadline than it has in the heap, if any.
func (h *timerHeap) moveEarlier(c *Conn, due, early rawio.Time) {
	if c.timer.heapID == 0 {
		c.timer.heapID = h.allocID()
		h.positions[c.timer.heapID-1] = int32(len(h.entries))
		h.entries = append(h.entries, heapEntry{})
	}
	c.timer.heapAt = due
	h.siftUp(int(h.positions[c.timer.heapID-1]), heapEntry{due, early, c, c.timer.heapID})
}

// allocID takes an id that no association has.
func (h *timerHeap) allocID() int32 {
	if n := len(h.freeIDs); n > 0 {
		number := h.freeIDs[n-1]
		h.freeIDs = h.freeIDs[:n-1]
		return number
	}
	h.positions = append(h.positions, 0)
	return int32(len(h.positions))
}

// postponeFirst gives the first a later deadline; Never takes it out.
func (h *timerHeap) postponeFirst(due, early rawio.Time) {
	first := h.entries[0]
	if due == rawio.Never {
		h.remove(first.c)
	} else {
		first.c.timer.heapAt = due
		h.siftDown(0, heapEntry{due, early, first.c, first.id})
	}
}

// remove takes c out, if it is in.
func (h *timerHeap) remove(c *Conn) {
	if c.timer.heapID == 0 {
		return
	}
	i, end := int(h.positions[c.timer.heapID-1]), len(h.entries)-1
	h.freeIDs = append(h.freeIDs, c.timer.heapID)
	c.timer.heapID, c.timer.heapAt = 0, rawio.Never
	last := h.entries[end]
	h.entries[end] = heapEntry{}
	h.entries = h.entries[:end]
	if i < end && !h.siftUp(i, last) {
		h.siftDown(i, last)
	}
}

// siftUp puts e at the place i, which is free, or above, and says whether above.
func (h *timerHeap) siftUp(i int, e heapEntry) (above bool) {
	for i > 0 && e.dueAt < h.entries[(i-1)/heapChildren].dueAt {
		parent := (i - 1) / heapChildren
		h.setEntry(i, h.entries[parent])
		i, above = parent, true
	}
	h.setEntry(i, e)
	return above
}

// siftDown puts e at the place i, which is free, or below.
func (h *timerHeap) siftDown(i int, e heapEntry) {
	for {
		first := heapChildren*i + 1
		if first >= len(h.entries) {
			break
		}
		least := first
		for k := first + 1; k < min(first+heapChildren, len(h.entries)); k++ {
			if h.entries[k].dueAt < h.entries[least].dueAt {
				least = k
			}
		}
		if h.entries[least].dueAt >= e.dueAt {
			break
		}
		h.setEntry(i, h.entries[least])
		i = least
	}
	h.setEntry(i, e)
}

func (h *timerHeap) setEntry(i int, e heapEntry) {
	h.entries[i] = e
	h.positions[e.id-1] = int32(i)
}
