package sctp

// BufferedAmount returns the octets that were written on the stream and are not acknowledged.
func (s *Stream) BufferedAmount() uint64 { return uint64(s.a.conn.UnackedOf(s.StreamIdentifier())) }

// BufferedAmountLowThreshold returns what SetBufferedAmountLowThreshold has set, at first 0.
func (s *Stream) BufferedAmountLowThreshold() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.low.threshold
}

// SetBufferedAmountLowThreshold sets from which amount on little is buffered.
func (s *Stream) SetBufferedAmountLowThreshold(th uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.low.threshold = th
	s.setLowMark()
}

// OnBufferedAmountLow sets what is called, in a goroutine of its own, when the amount falls to the
// threshold.
func (s *Stream) OnBufferedAmountLow(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.low.call = f
	s.setLowMark()
}

// lowBuffer is who hears that little is buffered.
type lowBuffer struct {
	threshold uint64
	call      func() // nil: nobody
	calls     int    // that are to be made, or under way
}

// setLowMark has the stack tell. Called with mu held.
func (s *Stream) setLowMark() {
	mark := -1
	if s.low.call != nil {
		mark = int(min(s.low.threshold, unbounded))
	}
	_ = s.a.conn.SetLowMark(s.StreamIdentifier(), mark) // of an association that has ended, nobody hears
}

// noteLow is called when the amount has fallen to the threshold.
func (s *Stream) noteLow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.low.calls++; s.low.calls == 1 {
		go s.callLow()
	}
}

// callLow makes the calls, one after the other.
func (s *Stream) callLow() {
	for {
		s.mu.Lock()
		call := s.low.call
		s.mu.Unlock()
		if call != nil {
			call()
		}
		s.mu.Lock()
		s.low.calls--
		left := s.low.calls
		s.mu.Unlock()
		if left == 0 {
			return
		}
	}
}
