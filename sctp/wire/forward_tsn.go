package wire

import "encoding/binary"

// forwardTSNLen is the length of FORWARD-TSN and I-FORWARD-TSN in front of the skipped streams.
const forwardTSNLen = 8

// ForwardTSN is a view of a FORWARD-TSN chunk (RFC 3758 section 3.2).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Type = 192  |  Flags = 0x00 |        Length = Variable      |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                      New Cumulative TSN                       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           Stream-1            |       Stream Sequence-1       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	\                                                               /
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|           Stream-N            |       Stream Sequence-N       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type ForwardTSN []byte

// AsForwardTSN returns c as a FORWARD-TSN chunk.
func AsForwardTSN(c Chunk) (ForwardTSN, error) {
	if err := asChunk(c, ChunkForwardTSN, forwardTSNLen, MaxChunkLen); err != nil {
		return nil, err
	}
	if (len(c)-forwardTSNLen)%4 != 0 {
		return nil, ErrChunkLength
	}
	return ForwardTSN(c), nil
}

// NewCumTSN returns the New Cumulative TSN.
func (f ForwardTSN) NewCumTSN() TSN { return TSN(binary.BigEndian.Uint32(f[4:])) }

// NumSkips returns how many streams are listed.
func (f ForwardTSN) NumSkips() int { return (len(f) - forwardTSNLen) / 4 }

// Skip returns entry i, 0 <= i < NumSkips.
func (f ForwardTSN) Skip(i int) Skip {
	e := f[forwardTSNLen+4*i:]
	return Skip{StreamID(binary.BigEndian.Uint16(e)), SSN(binary.BigEndian.Uint16(e[2:]))}
}

// Skip is one stream of a FORWARD-TSN chunk and the largest SSN skipped in it.
type Skip struct {
	Stream StreamID
	SSN    SSN
}

// AppendForwardTSN appends a FORWARD-TSN chunk. Skips that would take it past MaxChunkLen are left
// out from the end.
func AppendForwardTSN(b []byte, newCumTSN TSN, skips []Skip) []byte {
	skips = skips[:min(len(skips), (MaxChunkLen-forwardTSNLen)/4)]
	b = appendChunkHeader(b, ChunkForwardTSN, 0, forwardTSNLen+4*len(skips))
	b = binary.BigEndian.AppendUint32(b, uint32(newCumTSN))
	for _, s := range skips {
		b = binary.BigEndian.AppendUint16(b, uint16(s.Stream))
		b = binary.BigEndian.AppendUint16(b, uint16(s.SSN))
	}
	return b
}
