package sctp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	stack "github.com/rddp-go/rddp/sctp"
)

// Stream is one stream of an association, in both directions.
type Stream struct {
	a           *Association
	stream      *stack.Stream
	defaultType atomic.Uint32
	reliability atomic.Pointer[reliability]

	readMu   sync.Mutex // held while a message is read
	rest     []byte     // guarded by readMu: a message for which a buffer was too short
	restType PayloadProtocolIdentifier

	mu     sync.Mutex
	state  StreamState // guarded by mu
	endErr error       // guarded by mu: what reads return when nothing is left
	low    lowBuffer   // guarded by mu
}

// StreamState is how far the end of a stream has come.
type StreamState int

// States of a stream.
const (
	StreamStateOpen    StreamState = iota
	StreamStateClosing             // this side has closed it
	StreamStateClosed              // and so has the peer
)

func (ss StreamState) String() string {
	switch ss {
	case StreamStateOpen:
		return "open"
	case StreamStateClosing:
		return "closing"
	case StreamStateClosed:
		return "closed"
	}
	return "unknown"
}

// Errors of streams and associations.
var (
	ErrOutboundPacketTooLarge = errors.New("message longer than MaxMessageSize")
	ErrStreamClosed           = errors.New("stream closed")
	ErrReadDeadlineExceeded   = fmt.Errorf("read deadline exceeded: %w", os.ErrDeadlineExceeded)

	ErrPayloadDataStateNotExist   = errors.New("association is not established")
	ErrResetPacketInStateNotExist = errors.New("stream reset while the association is not established")

	ErrShutdownNonEstablished      = errors.New("shutdown of an association that is not established")
	ErrAssociationClosedBeforeConn = errors.New("connection closed before the association was established")
	ErrAssociationClosed           = errors.New("association closed")
	ErrAssociationRestarted        = errors.New("association restarted by the peer")
	ErrHandshakeInitAck            = errors.New("no INIT ACK")
	ErrHandshakeCookieEcho         = errors.New("no COOKIE ACK")
	ErrChunk                       = errors.New("association aborted by the peer")
	ErrUserInitiatedAbort          = errors.New("aborted by the program of the peer")
)

// StreamIdentifier returns the stream's number.
func (s *Stream) StreamIdentifier() uint16 { return s.stream.ID() }

// SetDefaultPayloadType sets the payload type of Write.
func (s *Stream) SetDefaultPayloadType(defaultPayloadType PayloadProtocolIdentifier) {
	s.defaultType.Store(uint32(defaultPayloadType))
}

// Read reads a message, and forgets its payload type.
func (s *Stream) Read(p []byte) (int, error) {
	n, _, err := s.ReadSCTP(p)
	return n, err
}

// ReadSCTP reads a message and its payload type. If payload is too short, the error is
// io.ErrShortBuffer, the result is the length of the message, and the next call reads it. When the
// peer has reset the stream, and nothing is left, the error is io.EOF.
func (s *Stream) ReadSCTP(payload []byte) (int, PayloadProtocolIdentifier, error) {
	s.readMu.Lock()
	defer s.readMu.Unlock()
	if s.rest == nil {
		n, ppi, whole, err := s.readMessage(payload)
		if err != nil || whole {
			return n, ppi, err
		}
	}
	if len(payload) < len(s.rest) {
		return len(s.rest), 0, io.ErrShortBuffer
	}
	n, ppi := copy(payload, s.rest), s.restType
	s.rest = nil
	return n, ppi, nil
}

// readMessage reads a message. One that p does not hold is kept in rest. Called with readMu held.
func (s *Stream) readMessage(p []byte) (n int, ppi PayloadProtocolIdentifier, whole bool, err error) {
	for {
		k, info, err := s.stream.ReadMsg(p[n:])
		if err != nil {
			return 0, 0, false, s.readError(err)
		}
		ppi = PayloadProtocolIdentifier(info.PPID)
		if n += k; !info.More {
			return n, ppi, true, nil
		}
		if n == len(p) {
			break
		}
	}
	rest := append(make([]byte, 0, 2*len(p)+minRest), p...)
	for {
		if len(rest) == cap(rest) {
			rest = append(make([]byte, 0, 2*cap(rest)), rest...)
		}
		k, info, err := s.stream.ReadMsg(rest[len(rest):cap(rest)])
		if err != nil {
			return 0, 0, false, s.readError(err)
		}
		if rest = rest[:len(rest)+k]; !info.More {
			s.rest, s.restType = rest, ppi
			return 0, 0, false, nil
		}
	}
}

// minRest is the room for the rest of a message, in octets.
const minRest = 4 << 10

// readError is an error of the stack as the original has it.
func (s *Stream) readError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ErrReadDeadlineExceeded
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.endErr != nil {
		return s.endErr
	}
	return s.a.endOf(err)
}

// Write sends a message with the default payload type.
func (s *Stream) Write(payload []byte) (n int, err error) {
	return s.WriteSCTP(payload, PayloadProtocolIdentifier(s.defaultType.Load()))
}

// WriteSCTP sends a message with a payload type.
func (s *Stream) WriteSCTP(payload []byte, ppi PayloadProtocolIdentifier) (int, error) {
	if limit := s.a.MaxMessageSize(); uint64(len(payload)) > uint64(limit) {
		return 0, fmt.Errorf("%w: %d octets", ErrOutboundPacketTooLarge, limit)
	}
	if s.State() != StreamStateOpen {
		return 0, ErrStreamClosed
	}
	if len(payload) == 0 {
		return 0, nil
	}
	n, err := s.stream.WriteMsg(payload, s.sendInfo(ppi))
	if err == nil {
		return n, nil
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, context.DeadlineExceeded
	case s.State() != StreamStateOpen:
		return 0, ErrStreamClosed
	}
	return 0, fmt.Errorf("%w: %w", ErrPayloadDataStateNotExist, err)
}

// Close closes this side's direction of the stream, behind what was written. The peer reads io.EOF,
// and closes the other direction.
func (s *Stream) Close() error {
	s.mu.Lock()
	if s.state != StreamStateOpen {
		s.mu.Unlock()
		return nil
	}
	if s.state = StreamStateClosing; s.endErr != nil {
		s.state = StreamStateClosed
	}
	s.mu.Unlock()
	if s.a.hasEnded() {
		return ErrResetPacketInStateNotExist
	}
	return s.resetOutgoing()
}

// end is the end of the association.
func (s *Stream) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.endErr == nil {
		s.endErr = err
	}
}

// State returns how far the end of the stream has come.
func (s *Stream) State() StreamState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// SetDeadline sets the deadlines of reads and writes.
func (s *Stream) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// SetReadDeadline sets the deadline of reads that wait.
func (s *Stream) SetReadDeadline(deadline time.Time) error {
	_ = s.stream.SetReadDeadline(deadline) // a stream that has ended has no use for one
	return nil
}

// SetWriteDeadline sets the deadline of writes that wait, see WithBlockWrite.
func (s *Stream) SetWriteDeadline(deadline time.Time) error {
	_ = s.stream.SetWriteDeadline(deadline)
	return nil
}
