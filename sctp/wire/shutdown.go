package wire

import "encoding/binary"

const shutdownLen = 8

// Shutdown is a view of a SHUTDOWN chunk (RFC 9260 section 3.3.8).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Type = 7    |  Chunk Flags  |          Length = 8           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                      Cumulative TSN Ack                       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Shutdown []byte

// AsShutdown returns c as a SHUTDOWN chunk.
func AsShutdown(c Chunk) (Shutdown, error) {
	if err := asChunk(c, ChunkShutdown, shutdownLen, shutdownLen); err != nil {
		return nil, err
	}
	return Shutdown(c), nil
}

// CumTSN returns the Cumulative TSN Ack.
func (s Shutdown) CumTSN() TSN { return TSN(binary.BigEndian.Uint32(s[4:])) }

// AppendShutdown appends a SHUTDOWN chunk.
func AppendShutdown(b []byte, cumTSN TSN) []byte {
	b = appendChunkHeader(b, ChunkShutdown, 0, shutdownLen)
	return binary.BigEndian.AppendUint32(b, uint32(cumTSN))
}
