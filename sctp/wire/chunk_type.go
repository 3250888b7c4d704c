package wire

import "fmt"

// ChunkType is the first octet of a chunk (RFC 9260 section 3.2).
type ChunkType uint8

// Chunk types of RFC 9260, then those of its extensions.
const (
	ChunkData             ChunkType = 0
	ChunkInit             ChunkType = 1
	ChunkInitAck          ChunkType = 2
	ChunkSack             ChunkType = 3
	ChunkHeartbeat        ChunkType = 4
	ChunkHeartbeatAck     ChunkType = 5
	ChunkAbort            ChunkType = 6
	ChunkShutdown         ChunkType = 7
	ChunkShutdownAck      ChunkType = 8
	ChunkError            ChunkType = 9
	ChunkCookieEcho       ChunkType = 10
	ChunkCookieAck        ChunkType = 11
	ChunkECNE             ChunkType = 12
	ChunkCWR              ChunkType = 13
	ChunkShutdownComplete ChunkType = 14

	ChunkAuth        ChunkType = 0x0f // RFC 4895
	ChunkIData       ChunkType = 0x40 // RFC 8260
	ChunkDTLS        ChunkType = 0x41 // draft-ietf-tsvwg-sctp-dtls-chunk
	ChunkAsconfAck   ChunkType = 0x80 // RFC 5061
	ChunkReconfig    ChunkType = 0x82 // RFC 6525
	ChunkPad         ChunkType = 0x84 // RFC 4820
	ChunkForwardTSN  ChunkType = 0xc0 // RFC 3758
	ChunkAsconf      ChunkType = 0xc1 // RFC 5061
	ChunkIForwardTSN ChunkType = 0xc2 // RFC 8260
)

// UnknownAction says what to do with a chunk of unknown type, from the two high bits of the type
// (RFC 9260 section 3.2). stop: discard this chunk and all after it; else skip this chunk only.
// report: send an ERROR with CauseUnrecognizedChunkType.
func (t ChunkType) UnknownAction() (stop, report bool) { return t&0x80 == 0, t&0x40 != 0 }

// String returns the name of the RFC, such as "INIT ACK", or the number of an unknown type.
func (t ChunkType) String() string {
	switch t {
	case ChunkData:
		return "DATA"
	case ChunkInit:
		return "INIT"
	case ChunkInitAck:
		return "INIT ACK"
	case ChunkSack:
		return "SACK"
	case ChunkHeartbeat:
		return "HEARTBEAT"
	case ChunkHeartbeatAck:
		return "HEARTBEAT ACK"
	case ChunkAbort:
		return "ABORT"
	case ChunkShutdown:
		return "SHUTDOWN"
	case ChunkShutdownAck:
		return "SHUTDOWN ACK"
	case ChunkError:
		return "ERROR"
	case ChunkCookieEcho:
		return "COOKIE ECHO"
	case ChunkCookieAck:
		return "COOKIE ACK"
	case ChunkECNE:
		return "ECNE"
	case ChunkCWR:
		return "CWR"
	case ChunkShutdownComplete:
		return "SHUTDOWN COMPLETE"
	case ChunkAuth:
		return "AUTH"
	case ChunkIData:
		return "I-DATA"
	case ChunkDTLS:
		return "DTLS"
	case ChunkAsconfAck:
		return "ASCONF-ACK"
	case ChunkReconfig:
		return "RE-CONFIG"
	case ChunkPad:
		return "PAD"
	case ChunkForwardTSN:
		return "FORWARD-TSN"
	case ChunkAsconf:
		return "ASCONF"
	case ChunkIForwardTSN:
		return "I-FORWARD-TSN"
	}
	return fmt.Sprintf("chunk type %d", uint8(t))
}
