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
	// SeenBefore: received before.
	SeenBefore
	// TooFarAhead: so far ahead that no gap block could report it.
	TooFarAhead
)

// Tracker remembers which TSNs have been received.
type Tracker struct {
	cumTSN       wire.TSN // everything up to here has been received
	highTSN      wire.TSN // the highest received; cum when there is no gap
	aboveCum     tsnset.Set
	*sackReports // nil before there was a gap, or a duplicate
}

// sackReports is what a SACK says beside the cumulative TSN.
type sackReports struct {
	dups []wire.TSN
	gaps []wire.GapBlock // scratch of AppendSack
}

// ensureReports makes room for reports.
func (k *Tracker) ensureReports() {
	if k.sackReports == nil {
		k.sackReports = new(sackReports)
	}
}

// NewTracker returns a tracker that expects the peer's Initial TSN first.
func NewTracker(initial wire.TSN) *Tracker {
	return &Tracker{cumTSN: initial - 1, highTSN: initial - 1}
}

// Cum returns the Cumulative TSN: the last before the first gap.
func (k *Tracker) Cum() wire.TSN { return k.cumTSN }

// Highest returns the highest TSN received.
func (k *Tracker) Highest() wire.TSN { return k.highTSN }

// Held returns the octets of memory that the tracker keeps.
func (k *Tracker) Held() int {
	n := k.aboveCum.Held()
	if k.sackReports != nil {
		n += int(unsafe.Sizeof(*k.sackReports)) + 4*cap(k.dups) + 4*cap(k.gaps)
	}
	return n
}

// HasGaps reports whether a TSN is missing below the highest.
func (k *Tracker) HasGaps() bool { return k.cumTSN != k.highTSN }

// HasDups reports whether duplicates wait to be reported.
func (k *Tracker) HasDups() bool { return k.sackReports != nil && len(k.dups) > 0 }

// Check says whether t is new. It changes nothing.
func (k *Tracker) Check(t wire.TSN) Arrival {
	switch d := uint32(t - k.cumTSN); {
	case t.LessEq(k.cumTSN):
		return SeenBefore
	case d >= tsnset.MaxWindow:
		return TooFarAhead
	case d <= uint32(k.highTSN-k.cumTSN) && k.aboveCum.Has(t):
		return SeenBefore
	}
	return Fresh
}

// NoteDuplicate lists t as a duplicate in the next SACK.
func (k *Tracker) NoteDuplicate(t wire.TSN) {
	if k.ensureReports(); len(k.dups) < maxDups {
		k.dups = append(k.dups, t)
	}
}

// Add counts t, for which Check has said Fresh, as received.
func (k *Tracker) Add(t wire.TSN) {
	if t == k.cumTSN+1 {
		if k.cumTSN == k.highTSN {
			k.cumTSN, k.highTSN = t, t
			return
		}
		k.advanceCum(t)
		return
	}
	if n := int(uint32(t - k.cumTSN)); n > k.aboveCum.Cap() {
		k.aboveCum.Grow(max(n, 1024), k.cumTSN+1, int(uint32(k.highTSN-k.cumTSN)))
	}
	k.aboveCum.Add(t)
	if k.highTSN.Less(t) {
		k.highTSN = t
	}
}

// AddInOrder counts the next n TSNs, above which none was received, as received.
func (k *Tracker) AddInOrder(n int) {
	k.cumTSN += wire.TSN(n)
	k.highTSN = k.cumTSN
}

// advanceCum moves cum to t, and on over the TSNs that follow without a gap.
func (k *Tracker) advanceCum(t wire.TSN) {
	k.cumTSN = k.highTSN
	if g, ok := k.aboveCum.NextGap(t+1, int(uint32(k.highTSN-t))); ok {
		k.cumTSN = g - 1
	}
	k.aboveCum.RemoveRange(t+1, int(uint32(k.cumTSN-t)))
}

// Remove forgets t, which is above Cum: its DATA was dropped after it had been received.
func (k *Tracker) Remove(t wire.TSN) {
	k.aboveCum.Remove(t)
	if t == k.highTSN {
		k.highTSN = k.cumTSN
		if h, ok := k.aboveCum.Last(t, int(uint32(t-k.cumTSN))); ok {
			k.highTSN = h
		}
	}
}

// AppendSack appends a SACK of at most room octets, 16 at least: gap blocks from the lowest on, as
// many as fit, then duplicates. It clears the duplicates.
func (k *Tracker) AppendSack(b []byte, arwnd uint32, room int) []byte {
	if !k.HasGaps() && !k.HasDups() {
		return wire.AppendCumSack(b, k.cumTSN, arwnd)
	}
	return k.appendFullSack(b, arwnd, (room-wire.SackLen(0, 0))/4)
}

// appendFullSack is AppendSack with gap blocks or duplicates, as many as fit.
func (k *Tracker) appendFullSack(b []byte, arwnd uint32, fit int) []byte {
	k.ensureReports()
	k.gaps = k.gaps[:0]
	for t := k.cumTSN; t != k.highTSN && len(k.gaps) < fit; {
		start, _ := k.aboveCum.Next(t+1, int(uint32(k.highTSN-t)))
		end := k.highTSN
		if g, ok := k.aboveCum.NextGap(start, int(uint32(k.highTSN-start))+1); ok {
			end = g - 1
		}
		k.gaps = append(k.gaps, wire.GapBlock{Start: uint16(start - k.cumTSN), End: uint16(end - k.cumTSN)})
		t = end
	}
	dups := k.dups[:min(len(k.dups), fit-len(k.gaps))]
	b = wire.AppendSack(b, wire.SackFields{CumTSN: k.cumTSN, ARwnd: arwnd, Gaps: k.gaps, Dups: dups})
	k.dups = k.dups[:0]
	return b
}
