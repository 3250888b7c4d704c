package sched

// RoundRobin goes around the active streams (RFC 8260 section 3.2). A turn is a message, or a chunk
// where messages are interleaved. It has no values.
func RoundRobin() Scheduler { return new(roundRobin) }

type roundRobin struct{ turns rotation }

func (r *roundRobin) Activate(stream uint16)   { r.turns.add(stream) }
func (r *roundRobin) Deactivate(stream uint16) { r.turns.remove(stream) }
func (r *roundRobin) SetValue(uint16, uint16)  {}

func (r *roundRobin) Next(bool) (uint16, bool) { return r.turns.first(), true }

func (r *roundRobin) Sent(stream uint16, _ int, _ bool) { r.turns.moveToEnd(stream) }

// RoundRobinPerPacket goes around the active streams packet by packet (RFC 8260 section 3.3). All
// chunks of a packet are of one stream, so that a lost packet delays no other. It has no values.
func RoundRobinPerPacket() Scheduler { return new(perPacket) }

type perPacket struct {
	turns   rotation
	last    uint16 // that has sent last
	hasSent bool
}

func (r *perPacket) Activate(stream uint16)   { r.turns.add(stream) }
func (r *perPacket) Deactivate(stream uint16) { r.turns.remove(stream) }
func (r *perPacket) SetValue(uint16, uint16)  {}

// Next stays with a stream for a packet. The stream has moved to the end, where the next packet
// does not find it.
func (r *perPacket) Next(bundled bool) (uint16, bool) {
	if !bundled || !r.hasSent {
		return r.turns.first(), true
	}
	return r.last, r.turns.indexOf(r.last) >= 0
}

func (r *perPacket) Sent(stream uint16, _ int, _ bool) {
	r.last, r.hasSent = stream, true
	r.turns.moveToEnd(stream)
}
