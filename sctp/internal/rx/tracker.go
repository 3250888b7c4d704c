package rx

import (
	"unsafe"

	"github.com/rddp-go/rddp/sctp/internal/tsnset"
	"github.com/rddp-go/rddp/sctp/wire"
)

// maxDups bounds the duplicates that one SACK lists.
const maxDups = 64

// Arrival is how a TSN relates to those received before.
type Arrival uint8

const (
	// Fresh: not received yet.
	Fresh Arrival = iota
	// Again: received before.
	Again
	// Beyond: so far ahead that no gap block could report it.
	Beyond
)

// Tracker remembers which TSNs have been received.
type Tracker struct {
	cum      wire.TSN // everything up to here has been received
	high     wire.TSN // the highest received; cum when there is no gap
	set      tsnset.Set
	*reports // nil before there was a gap, or a duplicate
}

// reports is what a SACK says beside the cumulative TSN.
type reports struct {
	dups []wire.TSN
	gaps []wire.GapBlock // scratch of AppendSack
}

// rare makes room for reports.
func (k *Tracker) rare() {
	if k.reports == nil {
		k.reports = new(reports)
	}
}

// NewTracker returns a tracker that expects the peer's Initial TSN first.
func NewTracker(initial wire.TSN) *Tracker { return &Tracker{cum: initial - 1, high: initial - 1} }

// Cum returns the Cumulative TSN: the last before the first gap.
func (k *Tracker) Cum() wire.TSN { return k.cum }

// Highest returns the highest TSN received.
func (k *Tracker) Highest() wire.TSN { return k.high }

// Held returns the octets of memory that the tracker keeps.
func (k *Tracker) Held() int {
	n := k.set.Held()
	if k.reports != nil {
		n += int(unsafe.Sizeof(*k.reports)) + 4*cap(k.dups) + 4*cap(k.gaps)
	}
	return n
}

// Gaps reports whether a TSN is missing below the highest.
func (k *Tracker) Gaps() bool { return k.cum != k.high }

// Dups reports whether duplicates wait to be reported.
func (k *Tracker) Dups() bool { return k.reports != nil && len(k.dups) > 0 }

// Check says whether t is new. It changes nothing.
func (k *Tracker) Check(t wire.TSN) Arrival {
	switch d := uint32(t - k.cum); {
	case t.LessEq(k.cum):
		return Again
	case d >= tsnset.MaxWindow:
		return Beyond
	case d <= uint32(k.high-k.cum) && k.set.Has(t):
		return Again
	}
	return Fresh
}

// Duplicate lists t as a duplicate in the next SACK.
func (k *Tracker) Duplicate(t wire.TSN) {
	if k.rare(); len(k.dups) < maxDups {
		k.dups = append(k.dups, t)
	}
}

// Add counts t, for which Check has said Fresh, as received.
func (k *Tracker) Add(t wire.TSN) {
	if t == k.cum+1 {
		if k.cum == k.high {
			k.cum, k.high = t, t
			return
		}
		k.advance(t)
		return
	}
	if n := int(uint32(t - k.cum)); n > k.set.Cap() {
		k.set.Grow(max(n, 1024), k.cum+1, int(uint32(k.high-k.cum)))
	}
	k.set.Add(t)
	if k.high.Less(t) {
		k.high = t
	}
}

// Skip counts the next n TSNs, above which none was received, as received.
func (k *Tracker) Skip(n int) {
	k.cum += wire.TSN(n)
	k.high = k.cum
}

// advance moves cum to t and on over what follows without a gap.
func (k *Tracker) advance(t wire.TSN) {
	k.cum = k.high
	if g, ok := k.set.NextGap(t+1, int(uint32(k.high-t))); ok {
		k.cum = g - 1
	}
	k.set.RemoveRange(t+1, int(uint32(k.cum-t)))
}

// Remove forgets t, which is above Cum: its DATA was dropped after it had been received.
func (k *Tracker) Remove(t wire.TSN) {
	k.set.Remove(t)
	if t == k.high {
		k.high = k.cum
		if h, ok := k.set.Last(t, int(uint32(t-k.cum))); ok {
			k.high = h
		}
	}
}

// AppendSack appends a SACK of at most room octets, 16 at least: gap blocks from the lowest on, as many as fit,
// then duplicates. It clears the duplicates.
func (k *Tracker) AppendSack(b []byte, arwnd uint32, room int) []byte {
	if !k.Gaps() && !k.Dups() {
		return wire.AppendCumSack(b, k.cum, arwnd)
	}
	return k.appendFullSack(b, arwnd, (room-wire.SackLen(0, 0))/4)
}

// appendFullSack is AppendSack with gap blocks or duplicates, as many as fit.
func (k *Tracker) appendFullSack(b []byte, arwnd uint32, fit int) []byte {
	k.rare()
	k.gaps = k.gaps[:0]
	for t := k.cum; t != k.high && len(k.gaps) < fit; {
		start, _ := k.set.Next(t+1, int(uint32(k.high-t)))
		end := k.high
		if g, ok := k.set.NextGap(start, int(uint32(k.high-start))+1); ok {
			end = g - 1
		}
		k.gaps = append(k.gaps, wire.GapBlock{Start: uint16(start - k.cum), End: uint16(end - k.cum)})
		t = end
	}
	dups := k.dups[:min(len(k.dups), fit-len(k.gaps))]
	b = wire.AppendSack(b, wire.SackFields{CumTSN: k.cum, ARwnd: arwnd, Gaps: k.gaps, Dups: dups})
	k.dups = k.dups[:0]
	return b
}
