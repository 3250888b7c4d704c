package tx

import "unsafe"

// Held returns the octets of memory that the sender keeps now. The users' messages do not count, as
// they are not its own.
func (s *Sender) Held() int {
	if !s.outstanding.firstUnacked.Less(s.detached.upTo) {
		s.detached.octets = 0
	}
	flights := 0
	for _, p := range s.paths {
		flights += p.flight.tsns.Held() + p.rateSampler.packetStatesMemory()
	}
	return int(unsafe.Sizeof(*s)) + s.outstanding.memoryOctets + flights +
		len(s.queue.waiting.ring)*int(unsafe.Sizeof(Message{})) +
		s.queue.streams.held() + s.outstanding.extras.held() + s.streams.held() + s.window.held() +
		s.recovery.held() + s.detached.octets +
		cap(s.sack.chunk) + cap(s.outstanding.retransmitLog.entries)*int(unsafe.Sizeof(transmission{}))
}
