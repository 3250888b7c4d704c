package ddp

import (
	"errors"
	"fmt"
)

// ErrorType is the 4-bit error type of RFC 5041 section 7.2.
type ErrorType uint8

// The error types of RFC 5041 section 7.2.
const (
	TypeLocal    ErrorType = 0x0 // local catastrophic error; its only code is 0x00
	TypeTagged   ErrorType = 0x1 // tagged buffer error
	TypeUntagged ErrorType = 0x2 // untagged buffer error
	TypeLLP      ErrorType = 0x3 // reserved for the lower layer; Cause says why
)

// Codes of TypeTagged, RFC 5041 section 7.2.
const (
	CodeInvalidSTag   uint8 = 0x00 // also: the STag grants no access of the kind needed
	CodeBaseBounds    uint8 = 0x01
	CodeNotAssociated uint8 = 0x02
	CodeTOWrap        uint8 = 0x03
	CodeTaggedVersion uint8 = 0x04
)

// Codes of TypeUntagged, RFC 5041 section 7.2. Code 0x00 is unused.
const (
	CodeInvalidQN       uint8 = 0x01
	CodeNoBuffer        uint8 = 0x02
	CodeMSNRange        uint8 = 0x03
	CodeInvalidMO       uint8 = 0x04
	CodeTooLong         uint8 = 0x05
	CodeUntaggedVersion uint8 = 0x06
)

// Error is a fatal error of a DDP Stream with the report that section 7.1 asks for.
type Error struct {
	Type ErrorType
	// Code is that of the type. With TypeLLP it is one of the lower layer: 0 says that the stream
	// was lost, another that the lower layer has found an error in what came (Stream.LLPFailed).
	Code uint8
	// Header[:HeaderLen] is the DDP header of the segment at fault; HeaderLen is 0 where there is
	// none.
	Header    [MaxHeaderLen]byte
	HeaderLen int
	// SegmentLen is the length of that segment in octets, header included.
	SegmentLen int
	// Cause, when not nil, is the error of the layer below (device, lower layer) or above. The
	// ULP's own refusal in AdmitTagged needs no Type and Code then.
	Cause error
}

// Error says in plain words what the peer or the local system did wrong.
func (e *Error) Error() string {
	s := "DDP: " + e.describe()
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is matches an *Error of the same type and code, whatever its header and cause.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Type == e.Type && t.Code == e.Code
}

func (e *Error) describe() string {
	switch e.Type {
	case TypeLocal:
		return "local catastrophic error"
	case TypeTagged:
		switch e.Code {
		case CodeInvalidSTag:
			return "the STag is not valid for this access"
		case CodeBaseBounds:
			return "the tagged segment lies outside the registered range"
		case CodeNotAssociated:
			return "the STag belongs to another stream or protection domain"
		case CodeTOWrap:
			return "tagged offset and length wrap around 64 bits"
		case CodeTaggedVersion:
			return "the tagged segment has a DDP version other than 1"
		}
	case TypeUntagged:
		switch e.Code {
		case CodeInvalidQN:
			return "the queue number is not valid for this stream"
		case CodeNoBuffer:
			return "no receive buffer is posted for the message"
		case CodeMSNRange:
			return "the message sequence number is out of range"
		case CodeInvalidMO:
			return "the message offset lies outside the receive buffer"
		case CodeTooLong:
			return "the message is too long for the receive buffer"
		case CodeUntaggedVersion:
			return "the untagged segment has a DDP version other than 1"
		}
	case TypeLLP:
		if e.Code != 0 {
			return "the lower layer found an error in what came"
		}
		return "the lower layer lost the stream"
	}
	return fmt.Sprintf("error type %#x code %#02x", uint8(e.Type), e.Code)
}

// Errors of local requests; match them with errors.Is.
var (
	// ErrMessageTooLong refuses a message of 2^32 octets or more (section 5.2).
	ErrMessageTooLong = errors.New("ddp: message longer than 2^32-1 octets; split it")
	// ErrIncomplete is the cause of an Error: the last segment of an untagged message has come, but
	// earlier ones are missing. Its buffer may hold octets of others, so it is not delivered.
	ErrIncomplete = errors.New("ddp: untagged message without all of its segments")
	// ErrScattered is the cause of an Error: the segments of an untagged message come too far out
	// of order to track what is missing. A sender should send them in order (section 5.3).
	ErrScattered = errors.New("ddp: segments of an untagged message too far out of order")
	// ErrClosing refuses a message after graceful teardown was asked for (section 6.2.1).
	ErrClosing = errors.New("ddp: stream is being closed; no further message can be sent")
	// ErrClosed refuses a message, or fails an outstanding one, because the stream has ended.
	ErrClosed = errors.New("ddp: stream closed")
	// ErrFaulted refuses a message: a fatal error was reported, and the one further message of
	// section 7.1 has been submitted.
	ErrFaulted = errors.New("ddp: stream has failed; only one more message may be sent")
	// ErrCanceled fails a message that Stream.CancelUnsent withdrew.
	ErrCanceled = errors.New("ddp: message withdrawn before it was sent")
	// ErrRevoked fails a message whose memory belongs to a region that was invalidated.
	ErrRevoked = errors.New("ddp: memory region is invalid; register it again")
	// ErrRange refuses a piece, region or tagged offset that does not fit its memory or address
	// space.
	ErrRange = errors.New("ddp: range lies outside the memory or wraps")
	// ErrQueueNumber refuses a message to a queue number that the stream was not configured with.
	ErrQueueNumber = errors.New("ddp: queue number not configured for this stream")
	// ErrQueueFull refuses a receive buffer: all places of the queue are taken.
	ErrQueueFull = errors.New("ddp: receive queue full")
	// ErrTooManyRegions refuses a registration beyond Table.MaxPerPD (section 8.3.2).
	ErrTooManyRegions = errors.New("ddp: protection domain has reached its limit of regions; deregister some")
	// ErrNoSuchRegion refuses to change a region that was deregistered or belongs to another table.
	ErrNoSuchRegion = errors.New("ddp: region is not registered in this table")
	// ErrWindow refuses what a memory window cannot do: be bound again, or have a window bound to
	// it.
	ErrWindow = errors.New("ddp: the region is a memory window; bind a new window to a registered buffer")
	// ErrRights refuses a window that would let the peer change memory that the local user may not.
	ErrRights = errors.New("ddp: a window for remote writes or atomics needs a region with LocalWrite")
	// ErrScope refuses a window on a region that is not the stream's: of another stream or
	// Protection Domain.
	ErrScope = errors.New("ddp: the region belongs to another stream or protection domain")
	// ErrUnaligned refuses an atomic operation on an address that is not a multiple of 8 octets.
	ErrUnaligned = errors.New("ddp: atomic operations need an address that is a multiple of 8 octets")
	// ErrShortSegment is the cause of an Error about a segment shorter than its header.
	ErrShortSegment = errors.New("ddp: segment shorter than its header")
	// ErrDataAfterClose is the cause of an Error about data that arrived after the peer's graceful
	// teardown (section 6.2.1).
	ErrDataAfterClose = errors.New("ddp: data after the peer closed its half of the stream")
)
