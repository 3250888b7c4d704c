package rx

import (
	"unsafe"

	"github.com/rddp-go/rddp/sctp/internal/tsnset"
	"github.com/rddp-go/rddp/sctp/wire"
)

// lastTSNIndex finds messages by their last TSN: those in assembly, and complete ones beyond the
// cumulative TSN that wait for their SSN. All last TSNs lie in a window of tsnset.MaxWindow TSNs
// from baseTSN on. Every step takes the same time, however many messages there are. endsAtBase is
// the message in assembly that ends at baseTSN, as when fragments come in order. Tables have the
// others.
type lastTSNIndex struct {
	baseTSN    wire.TSN // the cumulative TSN as last known, advanced by TSNs that have come since
	restTSN    wire.TSN // where a message goes on that a reset of TSNs has cut; 0: nowhere
	endsAtBase *Message
	count      int // messages in the tables
	// A power of two; TSN t is in the place t/64 mod len. If it is nil, the following fields are
	// empty.
	pageTable      []*slotPage
	lastTSNs       tsnset.Set // last TSNs
	incompleteTSNs tsnset.Set // last TSNs of messages in assembly
	sparePages     *slotPage
	numSpare       int32 // pages in sparePages
	numPages       int32 // pages in pageTable or sparePages
}

// slotPage holds the messages that end at 64 neighbouring TSNs. Only those in lastTSNs are there.
type slotPage struct {
	messages [64]*Message
	next     *slotPage
}

// maxSparePages bounds the empty pages that are kept for reuse.
const maxSparePages = 16

// minWindowTSNs is the least window in TSNs, once anything was held.
const minWindowTSNs = 1024

func (h *lastTSNIndex) isEmpty() bool { return h.count == 0 && h.endsAtBase == nil }

func (h *lastTSNIndex) has(t wire.TSN) bool {
	return uint32(t-h.baseTSN) < uint32(h.lastTSNs.Cap()) && h.lastTSNs.Has(t)
}

func (h *lastTSNIndex) pageOf(t wire.TSN) **slotPage {
	return &h.pageTable[int(t>>6)&(len(h.pageTable)-1)]
}

// messageEndingAt returns the message that ends at t, or nil.
func (h *lastTSNIndex) messageEndingAt(t wire.TSN) *Message {
	if t == h.baseTSN {
		return h.endsAtBase
	}
	if !h.has(t) {
		return nil
	}
	return (*h.pageOf(t)).messages[t&63]
}

// firstMessageFrom returns the message in the tables with the lowest last TSN from t on.
func (h *lastTSNIndex) firstMessageFrom(t wire.TSN) *Message {
	if u, ok := h.lastTSNs.Next(t, h.lastTSNs.Cap()-int(uint32(t-h.baseTSN))); ok {
		return h.messageEndingAt(u)
	}
	return nil
}

// highestMessage returns the message in the tables with the highest last TSN.
func (h *lastTSNIndex) highestMessage() *Message {
	n := h.lastTSNs.Cap()
	if t, ok := h.lastTSNs.Last(h.baseTSN+wire.TSN(n)-1, n); ok {
		return h.messageEndingAt(t)
	}
	return nil
}

// firstIncomplete returns the message in assembly with the lowest last TSN.
func (h *lastTSNIndex) firstIncomplete() *Message {
	if h.endsAtBase != nil {
		return h.endsAtBase
	}
	if t, ok := h.incompleteTSNs.Next(h.baseTSN, h.incompleteTSNs.Cap()); ok {
		return h.messageEndingAt(t)
	}
	return nil
}

// put enters a message. One that begins right after baseTSN needs no tables.
func (h *lastTSNIndex) put(m *Message) {
	switch n := int(uint32(m.lastTSN - h.baseTSN)); {
	case n == 0:
		return // complete, and baseTSN has moved on with it
	case n == 1 && m.hasBegin:
		h.baseTSN, h.endsAtBase = m.lastTSN, m
		return
	case h.pageTable == nil || n >= h.lastTSNs.Cap():
		h.growWindow(max(n+1, minWindowTSNs))
	}
	s := h.pageOf(m.lastTSN)
	if *s == nil {
		*s = h.newPage()
	}
	(*s).messages[m.lastTSN&63] = m
	if !h.lastTSNs.Has(m.lastTSN) {
		h.lastTSNs.Add(m.lastTSN)
		h.count++
	}
	if !m.hasBegin || !m.hasEnd {
		h.incompleteTSNs.Add(m.lastTSN)
	}
}

// take removes the message that ends at t.
func (h *lastTSNIndex) take(t wire.TSN) {
	if t == h.baseTSN {
		h.endsAtBase = nil
		return
	}
	h.count--
	h.lastTSNs.Remove(t)
	h.incompleteTSNs.Remove(t)
	s := h.pageOf(t)
	(*s).messages[t&63] = nil
	if !h.lastTSNs.HasNear(t) {
		h.freePage(*s)
		*s = nil
	}
}

// moveMessage enters a message again whose last TSN was was.
func (h *lastTSNIndex) moveMessage(m *Message, was wire.TSN) {
	h.take(was)
	h.put(m)
}

// advanceBase moves the window on to cum. Complete messages up to there only wait for their SSN
// from now on. Of the messages that leave the window, at most one is in assembly: one that ends at
// cum.
func (h *lastTSNIndex) advanceBase(cum wire.TSN) {
	from, n := h.baseTSN, min(int(uint32(cum-h.baseTSN))+1, h.lastTSNs.Cap())
	var edge *Message
	for t, ok := h.lastTSNs.Next(from, n); ok; t, ok = h.lastTSNs.Next(t+1, n-int(uint32(t+1-from))) {
		if h.incompleteTSNs.Has(t) {
			edge = h.messageEndingAt(t)
		}
		h.take(t)
	}
	h.baseTSN, h.endsAtBase = cum, edge
}

func (h *lastTSNIndex) newPage() *slotPage {
	s := h.sparePages
	if s == nil {
		h.numPages++
		return new(slotPage)
	}
	h.sparePages, s.next = s.next, nil
	h.numSpare--
	return s
}

func (h *lastTSNIndex) freePage(s *slotPage) {
	if h.numSpare >= maxSparePages {
		h.numPages--
		return
	}
	*s = slotPage{next: h.sparePages}
	h.sparePages = s
	h.numSpare++
}

// growWindow widens the window to n TSNs at least.
func (h *lastTSNIndex) growWindow(n int) {
	old := *h
	h.count = 0
	h.lastTSNs.Grow(n, h.baseTSN, 0)
	h.incompleteTSNs.Grow(n, h.baseTSN, 0)
	h.pageTable = make([]*slotPage, h.lastTSNs.Cap()/64)
	for m := old.firstMessageFrom(h.baseTSN + 1); m != nil; m = old.firstMessageFrom(m.lastTSN + 1) {
		h.put(m)
	}
	for _, s := range old.pageTable {
		if s != nil {
			h.freePage(s)
		}
	}
}

func (h *lastTSNIndex) memorySize() int {
	if h.pageTable == nil {
		return 0
	}
	const page = int(unsafe.Sizeof(slotPage{}))
	return h.lastTSNs.Held() + h.incompleteTSNs.Held() + 8*cap(h.pageTable) + int(h.numPages)*page
}
