package ddp

// receivedRanges says which octets of an untagged message have come, up to the segment whose turn
// it was last. The sender sets the place (MO) of each segment. It should send them in order
// (section 5.3); then done says it all. A message is complete only when every octet has come
// (section 5.4): a receive buffer may still hold octets of somebody else.
type receivedRanges struct {
	contiguous uint64 // octets from 0 on without a gap
	beyondGap  [maxGapSpans]span
	numSpans   int // spans in ahead, ascending and apart from each other
}

type span struct{ from, to uint64 }

// maxGapSpans is how many pieces of a message may stand apart beyond a gap. A sender with an order
// of its own makes such.
const maxGapSpans = 8

// addRange notes the octets from from to to. It returns false for one piece too many.
func (c *receivedRanges) addRange(from, to uint64) bool {
	if c.isNext(from) {
		c.contiguous = to
		return true
	}
	if to <= c.contiguous || from == to {
		return true
	}
	return c.insertSpan(span{from, to})
}

// isNext says that what has come ends where a segment begins, and nothing stands apart.
func (c *receivedRanges) isNext(from uint64) bool { return from == c.contiguous && c.numSpans == 0 }

// insertSpan adds a span, joined with those that it meets.
func (c *receivedRanges) insertSpan(s span) bool {
	list := c.beyondGap[:c.numSpans]
	kept := make([]span, 0, maxGapSpans+1)
	for _, old := range list {
		if old.to < s.from || s.to < old.from {
			kept = append(kept, old)
			continue
		}
		s.from, s.to = min(s.from, old.from), max(s.to, old.to)
	}
	if s.from <= c.contiguous {
		c.contiguous = s.to // all others are beyond it
	} else {
		i := 0
		for i < len(kept) && kept[i].from < s.from {
			i++
		}
		kept = append(kept, span{})
		copy(kept[i+1:], kept[i:])
		kept[i] = s
	}
	if len(kept) > maxGapSpans {
		return false
	}
	c.numSpans = copy(c.beyondGap[:], kept)
	return true
}

// isComplete says whether all of a message of n octets has come.
func (c *receivedRanges) isComplete(n uint64) bool { return c.contiguous >= n }

// resetForNext makes c ready for the next message.
func (c *receivedRanges) resetForNext() { c.contiguous, c.numSpans = 0, 0 }
