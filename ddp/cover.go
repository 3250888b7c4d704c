package ddp

// cover says which octets of an untagged message have come, up to the segment whose turn it was last. The sender gives
// each segment its place (MO) itself, and should send them in order (section 5.3): then done is all there is to it. A
// receive buffer may hold what was written for somebody else before, so that a message is only a message when
// every octet of it has come (section 5.4).
type cover struct {
	done  uint64 // octets from 0 on without a gap
	ahead [maxAhead]span
	n     int // spans in ahead, ascending and apart from each other
}

type span struct{ from, to uint64 }

// maxAhead is how many pieces of a message may stand apart beyond a gap, for a sender that goes by an order of its own.
const maxAhead = 8

// add notes the octets from from to to. It returns false for one piece too many.
func (c *cover) add(from, to uint64) bool {
	if c.follows(from) {
		c.done = to
		return true
	}
	if to <= c.done || from == to {
		return true
	}
	return c.insert(span{from, to})
}

// follows says that what has come ends where a segment begins, and nothing stands apart.
func (c *cover) follows(from uint64) bool { return from == c.done && c.n == 0 }

// insert adds a span, joined with those that it meets.
func (c *cover) insert(s span) bool {
	list := c.ahead[:c.n]
	kept := make([]span, 0, maxAhead+1)
	for _, old := range list {
		if old.to < s.from || s.to < old.from {
			kept = append(kept, old)
			continue
		}
		s.from, s.to = min(s.from, old.from), max(s.to, old.to)
	}
	if s.from <= c.done {
		c.done = s.to // all others are beyond it
	} else {
		i := 0
		for i < len(kept) && kept[i].from < s.from {
			i++
		}
		kept = append(kept, span{})
		copy(kept[i+1:], kept[i:])
		kept[i] = s
	}
	if len(kept) > maxAhead {
		return false
	}
	c.n = copy(c.ahead[:], kept)
	return true
}

// whole says whether all of a message of n octets has come.
func (c *cover) whole(n uint64) bool { return c.done >= n }

// next makes c ready for the next message.
func (c *cover) next() { c.done, c.n = 0, 0 }
