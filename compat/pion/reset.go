package sctp

import (
	"context"
	"slices"

	stack "github.com/rddp-go/rddp/sctp"
)

// Close resets this side's direction of the stream, behind what was written (RFC 6525). The peer
// reads io.EOF, and closes the other direction. Nobody waits for the peer's answer.
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
func (a *Association) resetLater(stream uint16) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.toReset = append(a.toReset, stream)
	if len(a.toReset) == 1 && !a.isResetting {
		a.isResetting = true
		go a.resetStreams()
	}
}

// resetStreams resets the streams that are to be, as many at once as there are.
func (a *Association) resetStreams() {
	for {
		a.mu.Lock()
		list := a.toReset
		for i, id := range list { // one that was closed twice begins anew in between
			if slices.Contains(list[:i], id) {
				list = list[:i]
				break
			}
		}
		list, a.toReset = slices.Clone(list), a.toReset[len(list):]
		a.isResetting = len(list) > 0
		a.mu.Unlock()
		if len(list) == 0 {
			return
		}
		if err := a.conn.ResetStreams(context.Background(), stack.Outgoing, list...); err != nil {
			a.log.Debugf("[%s] streams %v are not reset: %v", a.name, list, err)
		}
	}
}
