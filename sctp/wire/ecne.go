package wire

import "encoding/binary"

const ecnLen = 8

// ECNE is a view of an ECN Echo chunk. RFC 9260 section 3.2 reserves the type; the layout is that
// of RFC 4960 appendix A.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Type = 12   |   Flags = 0   |          Length = 8           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                       Lowest TSN Number                       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type ECNE []byte

// AsECNE returns c as an ECN Echo chunk. Some senders add a count of marked packets after the TSN,
// which is ignored.
func AsECNE(c Chunk) (ECNE, error) {
	if err := asChunk(c, ChunkECNE, ecnLen, MaxChunkLen); err != nil {
		return nil, err
	}
	return ECNE(c), nil
}

// TSN returns the lowest TSN of the packet that carried the congestion mark.
func (e ECNE) TSN() TSN { return TSN(binary.BigEndian.Uint32(e[4:])) }

// AppendECNE appends an ECN Echo chunk.
func AppendECNE(b []byte, lowest TSN) []byte {
	b = appendChunkHeader(b, ChunkECNE, 0, ecnLen)
	return binary.BigEndian.AppendUint32(b, uint32(lowest))
}
