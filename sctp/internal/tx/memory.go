package tx

import "unsafe"

// Held returns the octets of memory that the sender keeps now. The users' messages do not count, as
// they are not its own.
func (s *Sender) Held() int {
	if !s.outstanding.firstUnacked.Less(s.detachedUpTo) {
		s.detachedOctets = 0
	}
	flights := 0
	for _, p := range s.paths {
		flights += p.inFlightTSNs.Held() + p.rateSampler.packetStatesMemory()
	}
	return int(unsafe.Sizeof(*s)) + s.outstanding.memoryOctets + flights +
		len(s.queue.ring)*int(unsafe.Sizeof(Message{})) +
		s.nextSSN.Held() + s.lastOfStream.Held() + s.ssnBlocksMemory() + s.sentSpansMemory() + s.detachedOctets +
		cap(s.sack.chunk) + cap(s.outstanding.retransmitLog.entries)*int(unsafe.Sizeof(transmission{})) +
		s.recentLossesMemory()
}
