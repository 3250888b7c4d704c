package wire

import "encoding/binary"

// CWR is a view of a Congestion Window Reduced chunk. RFC 9260 section 3.2 reserves the type; the
// layout is that of RFC 4960 appendix A.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Type = 13   |   Flags = 0   |          Length = 8           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                       Lowest TSN Number                       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type CWR []byte

// AsCWR returns c as a Congestion Window Reduced chunk.
func AsCWR(c Chunk) (CWR, error) {
	if err := asChunk(c, ChunkCWR, ecnLen, ecnLen); err != nil {
		return nil, err
	}
	return CWR(c), nil
}

// TSN returns the TSN of the ECNE chunk that this chunk answers.
func (c CWR) TSN() TSN { return TSN(binary.BigEndian.Uint32(c[4:])) }

// AppendCWR appends a Congestion Window Reduced chunk.
func AppendCWR(b []byte, lowest TSN) []byte {
	b = appendChunkHeader(b, ChunkCWR, 0, ecnLen)
	return binary.BigEndian.AppendUint32(b, uint32(lowest))
}
