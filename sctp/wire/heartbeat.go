package wire

import "encoding/binary"

// Heartbeat is a view of a HEARTBEAT or HEARTBEAT ACK chunk, which share one layout (RFC 9260
// sections 3.3.5 and 3.3.6).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Type = 4, 5  |  Chunk Flags  |       Heartbeat Length        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|    Heartbeat Info Type = 1    |        HB Info Length         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	/                Sender-Specific Heartbeat Info                 /
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Heartbeat []byte

// AsHeartbeat returns c as a HEARTBEAT or HEARTBEAT ACK chunk whose first parameter is a complete
// Heartbeat Info.
func AsHeartbeat(c Chunk) (Heartbeat, error) {
	t := ChunkHeartbeat
	if len(c) > 0 && c.Type() == ChunkHeartbeatAck {
		t = ChunkHeartbeatAck
	}
	if err := asChunk(c, t, ChunkHeaderLen, MaxChunkLen); err != nil {
		return nil, err
	}
	if len(c) == ChunkHeaderLen {
		return nil, ErrParamMissing
	}
	if _, err := tlvLen(c.Value()); err != 0 {
		return nil, err
	}
	if Param(c.Value()).Type() != ParamHeartbeatInfo {
		return nil, ErrParamMissing
	}
	return Heartbeat(c), nil
}

// Type returns ChunkHeartbeat or ChunkHeartbeatAck.
func (h Heartbeat) Type() ChunkType { return ChunkType(h[0]) }

// Info returns the Sender-Specific Heartbeat Info: the whole value of the Heartbeat Info parameter.
func (h Heartbeat) Info() []byte {
	end := ChunkHeaderLen + int(binary.BigEndian.Uint16(h[ChunkHeaderLen+2:]))
	return h[ChunkHeaderLen+paramHeaderLen : end : end]
}

// MaxHeartbeatInfo is the most Sender-Specific Heartbeat Info, in octets, that fits a chunk.
const MaxHeartbeatInfo = MaxChunkLen - ChunkHeaderLen - paramHeaderLen

// AppendHeartbeat appends a HEARTBEAT chunk with that Sender-Specific Heartbeat Info. Info longer
// than MaxHeartbeatInfo is cut.
func AppendHeartbeat(b, info []byte) []byte { return appendHeartbeat(b, ChunkHeartbeat, info) }

// AppendHeartbeatAck appends a HEARTBEAT ACK chunk that returns the Info of a HEARTBEAT unchanged.
func AppendHeartbeatAck(b, info []byte) []byte { return appendHeartbeat(b, ChunkHeartbeatAck, info) }

func appendHeartbeat(b []byte, t ChunkType, info []byte) []byte {
	info = info[:min(len(info), MaxHeartbeatInfo)]
	b = appendChunkHeader(b, t, 0, ChunkHeaderLen+paramHeaderLen+len(info))
	return AppendParam(b, ParamHeartbeatInfo, info)
}
