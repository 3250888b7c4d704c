package rx

import (
	"unsafe"

	"github.com/rddp-go/rddp/sctp/internal/tsnset"
	"github.com/rddp-go/rddp/sctp/wire"
)

// held finds messages by their last TSN: those in assembly, and complete ones beyond the cumulative TSN that wait for
// their SSN. All last TSNs lie in a window of tsnset.MaxWindow TSNs from base on. Every step takes the same time
// however many there are. The one in assembly that ends at base, as it is when fragments come in order, is edge; tables
// have the others.
type held struct {
	base  wire.TSN // the cumulative TSN of before, or that and TSNs behind it that have come since
	edge  *Message
	n     int        // messages in the tables
	dir   []*slots   // a power of two; TSN t is in the place t/64 mod len. Without it there is nothing in what follows
	ends  tsnset.Set // last TSNs
	parts tsnset.Set // last TSNs of messages in assembly
	spare *slots
	kept  int // slots in spare
	pages int // slots in dir or spare
}

// slots are the messages that end at 64 neighbouring TSNs. Only those that ends has are there.
type slots struct {
	at   [64]*Message
	next *slots
}

// spareSlots bounds the empty slots that are kept for reuse.
const spareSlots = 16

// least is the window in TSNs that there is room for at least, once anything was held.
const least = 1024

func (h *held) has(t wire.TSN) bool { return uint32(t-h.base) < uint32(h.ends.Cap()) && h.ends.Has(t) }

func (h *held) place(t wire.TSN) **slots { return &h.dir[int(t>>6)&(len(h.dir)-1)] }

// at returns the message that ends at t, or nil.
func (h *held) at(t wire.TSN) *Message {
	if t == h.base {
		return h.edge
	}
	if !h.has(t) {
		return nil
	}
	return (*h.place(t)).at[t&63]
}

// from returns the message in the tables with the lowest last TSN from t on.
func (h *held) from(t wire.TSN) *Message {
	if u, ok := h.ends.Next(t, h.ends.Cap()-int(uint32(t-h.base))); ok {
		return h.at(u)
	}
	return nil
}

// highest returns the message in the tables with the highest last TSN.
func (h *held) highest() *Message {
	n := h.ends.Cap()
	if t, ok := h.ends.Last(h.base+wire.TSN(n)-1, n); ok {
		return h.at(t)
	}
	return nil
}

// part returns the message in assembly with the lowest last TSN.
func (h *held) part() *Message {
	if h.edge != nil {
		return h.edge
	}
	if t, ok := h.parts.Next(h.base, h.parts.Cap()); ok {
		return h.at(t)
	}
	return nil
}

// put enters a message. That no TSN is missing before one that begins behind base needs no tables.
func (h *held) put(m *Message) {
	switch n := int(uint32(m.last - h.base)); {
	case n == 0:
		return // complete, and base has moved on with it
	case n == 1 && m.begin:
		h.base, h.edge = m.last, m
		return
	case h.dir == nil || n >= h.ends.Cap():
		h.grow(max(n+1, least))
	}
	s := h.place(m.last)
	if *s == nil {
		*s = h.slots()
	}
	(*s).at[m.last&63] = m
	if !h.ends.Has(m.last) {
		h.ends.Add(m.last)
		h.n++
	}
	if !m.begin || !m.end {
		h.parts.Add(m.last)
	}
}

// take removes the message that ends at t.
func (h *held) take(t wire.TSN) {
	if t == h.base {
		h.edge = nil
		return
	}
	h.n--
	h.ends.Remove(t)
	h.parts.Remove(t)
	s := h.place(t)
	(*s).at[t&63] = nil
	if !h.ends.Near(t) {
		h.giveBack(*s)
		*s = nil
	}
}

// move enters a message again that was held to end at was.
func (h *held) move(m *Message, was wire.TSN) {
	h.take(was)
	h.put(m)
}

// advance moves the window on to cum. What is complete up to there only waits for its SSN from now on; of messages in
// assembly none but one that ends at cum may be among what the window leaves.
func (h *held) advance(cum wire.TSN) {
	from, n := h.base, min(int(uint32(cum-h.base))+1, h.ends.Cap())
	var edge *Message
	for t, ok := h.ends.Next(from, n); ok; t, ok = h.ends.Next(t+1, n-int(uint32(t+1-from))) {
		if h.parts.Has(t) {
			edge = h.at(t)
		}
		h.take(t)
	}
	h.base, h.edge = cum, edge
}

func (h *held) slots() *slots {
	s := h.spare
	if s == nil {
		h.pages++
		return new(slots)
	}
	h.spare, s.next = s.next, nil
	h.kept--
	return s
}

func (h *held) giveBack(s *slots) {
	if h.kept >= spareSlots {
		h.pages--
		return
	}
	*s = slots{next: h.spare}
	h.spare = s
	h.kept++
}

// grow widens the window to n TSNs at least.
func (h *held) grow(n int) {
	old := *h
	h.n = 0
	h.ends.Grow(n, h.base, 0)
	h.parts.Grow(n, h.base, 0)
	h.dir = make([]*slots, h.ends.Cap()/64)
	for m := old.from(h.base + 1); m != nil; m = old.from(m.last + 1) {
		h.put(m)
	}
	for _, s := range old.dir {
		if s != nil {
			h.giveBack(s)
		}
	}
}

func (h *held) octets() int {
	if h.dir == nil {
		return 0
	}
	return h.ends.Held() + h.parts.Held() + 8*cap(h.dir) + h.pages*int(unsafe.Sizeof(slots{}))
}
