package sched

import "slices"

// Priority lets the most important active stream send (RFC 8260 section 3.4). The value of a stream
// is its rank: 0, the default, is the most important, and a higher value less. Streams of one rank
// go around.
func Priority() Scheduler { return &priority{values: map[uint16]uint16{}} }

type priority struct {
	values map[uint16]uint16
	ranks  []rank // those with active streams, the most important first
}

type rank struct {
	value uint16
	turns rotation
}

// find returns where the rank of a value is, or would be.
func (p *priority) find(value uint16) (at int, found bool) {
	return slices.BinarySearchFunc(p.ranks, value, func(r rank, v uint16) int { return int(r.value) - int(v) })
}

func (p *priority) Activate(stream uint16) {
	v := p.values[stream]
	at, found := p.find(v)
	if !found {
		p.ranks = slices.Insert(p.ranks, at, rank{value: v})
	}
	p.ranks[at].turns.add(stream)
}

func (p *priority) Deactivate(stream uint16) { p.leave(stream, p.values[stream]) }

// leave takes an active stream out of a rank, if it is there.
func (p *priority) leave(stream, value uint16) (wasActive bool) {
	at, found := p.find(value)
	if !found {
		return false
	}
	turns := &p.ranks[at].turns
	if wasActive = turns.remove(stream); turns.length == 0 {
		p.ranks = slices.Delete(p.ranks, at, at+1)
	}
	return wasActive
}

func (p *priority) Next(bool) (uint16, bool) { return p.ranks[0].turns.first(), true }

func (p *priority) Sent(stream uint16, _ int, _ bool) {
	if at, found := p.find(p.values[stream]); found {
		p.ranks[at].turns.moveToEnd(stream)
	}
}

func (p *priority) SetValue(stream, value uint16) {
	wasActive := p.leave(stream, p.values[stream])
	if p.values[stream] = value; value == 0 {
		delete(p.values, stream)
	}
	if wasActive {
		p.Activate(stream)
	}
}
