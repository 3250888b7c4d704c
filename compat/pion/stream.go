package sctp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
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

	readMu sync.Mutex  // held while a message is read
	kept   keptMessage // guarded by readMu

	mu       sync.Mutex
	isClosed bool      // guarded by mu: this side has closed it
	endErr   error     // guarded by mu: that of the association, which reads return when nothing is left
	low      lowBuffer // guarded by mu
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
	if !s.kept.isBegun {
		n, info, err := s.stream.ReadMsg(payload)
		if err == nil && !info.More {
			return n, PayloadProtocolIdentifier(info.PPID), nil
		}
		if err != nil && !errors.Is(err, stack.ErrCutOff) {
			return 0, 0, s.readError(err)
		}
		if err == nil {
			s.kept = keptMessage{isBegun: true, octets: append(make([]byte, 0, len(payload)+minRest), payload[:n]...)}
		}
	}
	for !s.kept.isWhole {
		if err := s.readPiece(); err != nil {
			return 0, 0, s.readError(err)
		}
	}
	if len(payload) < len(s.kept.octets) {
		return len(s.kept.octets), 0, io.ErrShortBuffer
	}
	n, ppi := copy(payload, s.kept.octets), s.kept.payloadType
	s.kept = keptMessage{}
	return n, ppi, nil
}

// keptMessage is a message that a buffer was too short for, or what has come of it.
type keptMessage struct {
	octets           []byte
	payloadType      PayloadProtocolIdentifier
	isBegun, isWhole bool
}

// minRest is the room for the rest of a message, in octets.
const minRest = 4 << 10

// readPiece reads more of the message that is kept. One that the peer has given up is forgotten.
// Called with readMu held.
func (s *Stream) readPiece() error {
	k := &s.kept
	k.octets = slices.Grow(k.octets, minRest)
	n, info, err := s.stream.ReadMsg(k.octets[len(k.octets):cap(k.octets)])
	switch {
	case errors.Is(err, stack.ErrCutOff):
		*k = keptMessage{}
		return nil
	case err != nil:
		return err
	}
	k.octets = k.octets[:len(k.octets)+n]
	k.isBegun, k.isWhole, k.payloadType = true, !info.More, PayloadProtocolIdentifier(info.PPID)
	return nil
}

// readError is an error of the stack as the original has it.
func (s *Stream) readError(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return ErrReadDeadlineExceeded
	case s.stream.IsReset():
		return io.EOF
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
	case s.State() != StreamStateOpen:
		return 0, ErrStreamClosed
	case errors.Is(err, os.ErrDeadlineExceeded):
		return 0, context.DeadlineExceeded
	}
	return 0, fmt.Errorf("%w: %w", ErrPayloadDataStateNotExist, err)
}

// end is the end of the association.
func (s *Stream) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.endErr == nil {
		s.endErr = err
	}
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
