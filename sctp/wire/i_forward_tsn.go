package wire

import "encoding/binary"

// IForwardTSN is a view of an I-FORWARD-TSN chunk (RFC 8260 section 2.3.1).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Type = 194  | Flags = 0x00  |      Length = Variable        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                      New Cumulative TSN                       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|       Stream Identifier       |          Reserved           |U|
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                      Message Identifier                       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	\                              ...                              \
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type IForwardTSN []byte

// AsIForwardTSN returns c as an I-FORWARD-TSN chunk.
func AsIForwardTSN(c Chunk) (IForwardTSN, error) {
	if err := asChunk(c, ChunkIForwardTSN, forwardTSNLen, MaxChunkLen); err != nil {
		return nil, err
	}
	if (len(c)-forwardTSNLen)%8 != 0 {
		return nil, ErrChunkLength
	}
	return IForwardTSN(c), nil
}

// NewCumTSN returns the New Cumulative TSN.
func (f IForwardTSN) NewCumTSN() TSN { return TSN(binary.BigEndian.Uint32(f[4:])) }

// NumSkips returns how many entries there are.
func (f IForwardTSN) NumSkips() int { return (len(f) - forwardTSNLen) / 8 }

// Skip returns entry i, 0 <= i < NumSkips.
func (f IForwardTSN) Skip(i int) ISkip {
	e := f[forwardTSNLen+8*i:]
	return ISkip{
		Stream: StreamID(binary.BigEndian.Uint16(e)),
		U:      e[3]&1 != 0,
		MID:    MID(binary.BigEndian.Uint32(e[4:])),
	}
}

// ISkip is one entry of an I-FORWARD-TSN chunk. It has the largest MID skipped among the ordered
// messages of a stream, or among its unordered ones when U is set.
type ISkip struct {
	Stream StreamID
	U      bool
	MID    MID
}

// AppendIForwardTSN appends an I-FORWARD-TSN chunk. Skips that would take it past MaxChunkLen are
// left out from the end.
func AppendIForwardTSN(b []byte, newCumTSN TSN, skips []ISkip) []byte {
	skips = skips[:min(len(skips), (MaxChunkLen-forwardTSNLen)/8)]
	b = appendChunkHeader(b, ChunkIForwardTSN, 0, forwardTSNLen+8*len(skips))
	b = binary.BigEndian.AppendUint32(b, uint32(newCumTSN))
	for _, s := range skips {
		b = binary.BigEndian.AppendUint16(b, uint16(s.Stream))
		b = append(b, 0, 0)
		if s.U {
			b[len(b)-1] = 1
		}
		b = binary.BigEndian.AppendUint32(b, uint32(s.MID))
	}
	return b
}
