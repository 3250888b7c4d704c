package ddp

// Teardown, section 6.2: the stream never ends by itself. It ends when the ULP asks (CloseSend,
// Abort) or when the LLP says so (HalfClosed, Closed).

// CloseSend is the ULP's graceful teardown of its own direction (section 6.2.1). What was submitted
// is still sent; further messages are refused with ErrClosing. When the last one is acknowledged,
// the LLP is asked to finish. Reception goes on.
func (s *Stream) CloseSend() {
	s.closeRequested = true
	s.finishIfDrained()
}

func (s *Stream) finishIfDrained() {
	if s.closeRequested && s.outMessages.n == 0 && s.llp != nil && !s.finishCalled && !s.aborted && !s.closed {
		s.finishCalled = true
		s.llp.Finish()
	}
}

// Abort is the ULP's abortive teardown (section 6.2.2). Nothing more is received, delivered or cut,
// and the LLP is asked to end the stream. Messages with segments still at the LLP fail when it
// answers with Closed.
func (s *Stream) Abort() {
	if s.aborted || s.closed {
		return
	}
	s.aborted, s.receiving = true, false
	s.withdrawUnsent(ErrClosed)
	if s.llp == nil {
		s.Closed(nil)
		return
	}
	s.llp.Abort()
}

// HalfClosed is called by the LLP: the peer has closed its direction gracefully, and all data
// before that was delivered (section 6.2.1). The own direction still sends. Data that arrives
// nevertheless is a fatal error and ends the stream abortively.
func (s *Stream) HalfClosed() {
	if s.peerClosed || s.aborted || s.closed {
		return
	}
	s.peerClosed = true
	s.ulp.PeerClosed()
}

// LLPFailed is called by the LLP. It has found an error in what came, for which it has a code, and
// passes nothing more on. It still sends (RFC 5044 section 8). The ULP gets Fatal with TypeLLP and
// the code, unless an error was reported before, and may submit one more message.
func (s *Stream) LLPFailed(code uint8, cause error) {
	if s.receiving {
		s.reportFatal(&Error{Type: TypeLLP, Code: code, Cause: cause})
	}
}

// Closed is called by the LLP: its stream is gone in both directions, and it refers to no message
// memory any more. err is nil after a graceful or requested end.
//
// With an err the ULP gets Fatal (TypeLLP), unless an error was reported before or the ULP asked
// for the end. Every message that is not completed fails (section 6.2.2).
func (s *Stream) Closed(err error) {
	if s.closed {
		return
	}
	s.closed, s.receiving = true, false
	failure := ErrClosed
	if err != nil {
		lost := &Error{Type: TypeLLP, Cause: err}
		failure = lost
		if !s.errorReported && !s.aborted {
			s.ulp.Fatal(lost)
		}
	}
	for i := range s.outMessages.nextToCut {
		m := s.outMessages.at(i)
		m.unackedSegments = 0
		if m.err == nil {
			m.err = failure
		}
	}
	if s.Pending() {
		s.outMessages.at(s.outMessages.nextToCut).unackedSegments = 0
	}
	s.withdrawUnsent(failure)
}
