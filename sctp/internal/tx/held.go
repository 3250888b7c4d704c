package tx

import "unsafe"

// Held returns the octets of memory that the sender keeps now, without the users' messages, which are not its own.
func (s *Sender) Held() int {
	if !s.ledger.base.Less(s.copiedTo) {
		s.copied = 0
	}
	flights := 0
	for _, p := range s.paths {
		flights += p.inflight.Held() + p.rates.held()
	}
	return int(unsafe.Sizeof(*s)) + s.ledger.octets + flights + len(s.queue.ring)*int(unsafe.Sizeof(Message{})) +
		s.ssn.Held() + s.last.Held() + s.blocksHeld() + s.spansHeld() + s.copied + cap(s.later.sack) + cap(s.ledger.again.v)*int(unsafe.Sizeof(sentAt{})) + s.resentHeld()
}
