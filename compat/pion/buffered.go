package sctp

// BufferedAmount returns the octets that were written on the stream and are not acknowledged.
func (s *Stream) BufferedAmount() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.boundBuffered()
	return s.buffered
}

// boundBuffered bounds the amount by that of the association. Called with mu held.
func (s *Stream) boundBuffered() { s.buffered = min(s.buffered, uint64(s.a.BufferedAmount())) }

// noteWritten counts what is about to be written, noteUnwritten what was not.
func (s *Stream) noteWritten(octets int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.boundBuffered()
	s.buffered += uint64(octets)
}

func (s *Stream) noteUnwritten(octets int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffered -= min(s.buffered, uint64(octets))
}

// noteReleased looks whether the amount has fallen to the threshold.
func (s *Stream) noteReleased() {
	s.mu.Lock()
	before := s.buffered
	s.boundBuffered()
	f := s.onLow
	isLow := before > s.lowThreshold && s.buffered <= s.lowThreshold
	s.mu.Unlock()
	if isLow && f != nil {
		f()
	}
}

// BufferedAmountLowThreshold returns what SetBufferedAmountLowThreshold has set, at first 0.
func (s *Stream) BufferedAmountLowThreshold() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lowThreshold
}

// SetBufferedAmountLowThreshold sets from which amount on little is buffered.
func (s *Stream) SetBufferedAmountLowThreshold(th uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lowThreshold = th
}

// OnBufferedAmountLow sets what is called when the amount falls to the threshold.
func (s *Stream) OnBufferedAmountLow(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onLow = f
}
