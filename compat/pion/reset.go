package sctp

import (
	"time"

	stack "github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Close resets this side's direction of the stream, behind what was written (RFC 6525). The peer
// reads io.EOF, and closes the other direction. Nobody waits for the peer's answer. Writes that
// wait for room fail.
func (s *Stream) Close() error {
	s.mu.Lock()
	wasClosed := s.isClosed
	s.isClosed = true
	s.mu.Unlock()
	switch {
	case wasClosed:
		return nil
	case s.a.hasEnded():
		return ErrResetPacketInStateNotExist
	}
	_ = s.stream.SetWriteDeadline(time.Unix(1, 0))
	s.a.resetLater(s.StreamIdentifier())
	return nil
}

// State returns how far the end of the stream has come.
func (s *Stream) State() StreamState {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.isClosed:
		return StreamStateOpen
	case s.endErr == nil && !s.stream.IsReset():
		return StreamStateClosing
	}
	return StreamStateClosed
}

// resetLater has a stream reset, behind what was written, once the requests before it are answered.
// What is written behind it waits for that.
func (a *Association) resetLater(stream uint16) {
	core, now := a.conn.Upper().Lock()
	_, err := core.StartInTurn(now,
		assoc.StreamRequest{ResetOut: true, Streams: []wire.StreamID{wire.StreamID(stream)}})
	a.conn.Upper().Unlock()
	if err != nil {
		a.log.Debugf("[%s] stream %d is not reset: %v", a.name, stream, err)
	}
}

// noteReset writes that the peer has refused to reset streams.
func (a *Association) noteReset(ev *stack.Event) {
	if ev.Err != nil {
		a.log.Debugf("[%s] streams %v are not reset: %v", a.name, ev.Change.Streams, ev.Err)
	}
}
