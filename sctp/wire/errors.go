package wire

import "fmt"

// FormatError says what is wrong with the form of received octets. Values are constants: compare
// them with == or errors.Is.
type FormatError uint8

const (
	// ErrPacketShort: there is no complete common header. Discard the packet.
	ErrPacketShort FormatError = iota + 1
	// ErrChunkShort: fewer than 4 octets are left where a chunk header should be, or a Chunk
	// Length is below 4. Discard the rest of the packet; chunks before it stay valid.
	ErrChunkShort
	// ErrChunkPartial: a Chunk Length goes past the end of the packet. Discard the rest of the
	// packet (RFC 9260 section 6.10).
	ErrChunkPartial
	// ErrChunkType: the chunk is not of the type asked for. Look at Chunk.Type first.
	ErrChunkType
	// ErrChunkLength: the Chunk Length does not fit the chunk's fixed fields and counts. Discard
	// the chunk.
	ErrChunkLength
	// ErrParamShort: fewer than 4 octets are left where a parameter or error cause header should
	// be, or its length is below 4. Ignore the rest of the chunk.
	ErrParamShort
	// ErrParamPartial: a parameter or error cause goes past the end of its chunk. Ignore the rest
	// of the chunk.
	ErrParamPartial
	// ErrParamType: the parameter is not of the type asked for. Look at Param.Type first.
	ErrParamType
	// ErrParamLength: a parameter's length does not fit its type. Ignore the parameter.
	ErrParamLength
	// ErrParamMissing: a parameter that the chunk must carry is missing. Discard the chunk.
	ErrParamMissing
	// ErrCauseCode: the error cause does not have the code asked for. Look at Cause.Code first.
	ErrCauseCode
	// ErrCauseLength: an error cause's length does not fit its code. Ignore the cause.
	ErrCauseLength
	// ErrReconfigCombination: a RE-CONFIG chunk holds parameters that may not stand together.
	// Answer with an ERROR chunk and CauseProtocolViolation (RFC 6525 section 3.1).
	ErrReconfigCombination
)

var formatErrors = [...]string{
	ErrPacketShort:         "packet has no complete common header; discard it",
	ErrChunkShort:          "no complete chunk header, or chunk length below 4; discard the rest of the packet",
	ErrChunkPartial:        "chunk goes past the end of the packet; discard the rest of the packet",
	ErrChunkType:           "chunk is of another type; check Chunk.Type first",
	ErrChunkLength:         "chunk length does not fit its fields; discard the chunk",
	ErrParamShort:          "no complete parameter header, or parameter length below 4; ignore the rest of the chunk",
	ErrParamPartial:        "parameter goes past the end of its chunk; ignore the rest of the chunk",
	ErrParamType:           "parameter is of another type; check Param.Type first",
	ErrParamLength:         "parameter length does not fit its type; ignore the parameter",
	ErrParamMissing:        "mandatory parameter is missing; discard the chunk",
	ErrCauseCode:           "error cause has another code; check Cause.Code first",
	ErrCauseLength:         "error cause length does not fit its code; ignore the cause",
	ErrReconfigCombination: "parameters may not stand together in RE-CONFIG; answer ERROR with Protocol Violation",
}

// Error returns the fault and what to do about it.
func (e FormatError) Error() string {
	if int(e) < len(formatErrors) && formatErrors[e] != "" {
		return "wire: " + formatErrors[e]
	}
	return fmt.Sprintf("wire: format error %d", uint8(e))
}
