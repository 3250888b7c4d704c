package wire

import "encoding/binary"

// sackLen is the length of a SACK chunk without gap blocks and duplicates.
const sackLen = 16

// maxSackEntries is how many gap blocks and duplicates together one SACK can hold.
const maxSackEntries = (MaxChunkLen - sackLen) / 4

// Sack is a view of a SACK chunk (RFC 9260 section 3.3.4).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Type = 3    |  Chunk Flags  |         Chunk Length          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                      Cumulative TSN Ack                       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|          Advertised Receiver Window Credit (a_rwnd)           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| Number of Gap Ack Blocks = N  |  Number of Duplicate TSNs = M |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|    Gap Ack Block #1 Start     |     Gap Ack Block #1 End      |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	\                              ...                              \
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                        Duplicate TSN 1                        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	\                              ...                              \
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Sack []byte

// AsSack returns c as a SACK chunk, if its length is that of the gap blocks and duplicates it
// counts. The blocks themselves are not checked: a hostile one may start at 0, end before it
// starts, or overlap another.
func AsSack(c Chunk) (Sack, error) {
	if err := asChunk(c, ChunkSack, sackLen, MaxChunkLen); err != nil {
		return nil, err
	}
	s := Sack(c)
	if len(s) != SackLen(s.NumGaps(), s.NumDups()) {
		return nil, ErrChunkLength
	}
	return s, nil
}

// CumTSN returns the Cumulative TSN Ack.
func (s Sack) CumTSN() TSN { return TSN(binary.BigEndian.Uint32(s[4:])) }

// ARwnd returns the Advertised Receiver Window Credit in octets.
func (s Sack) ARwnd() uint32 { return binary.BigEndian.Uint32(s[8:]) }

// NumGaps returns the Number of Gap Ack Blocks.
func (s Sack) NumGaps() int { return int(binary.BigEndian.Uint16(s[12:])) }

// NumDups returns the Number of Duplicate TSNs.
func (s Sack) NumDups() int { return int(binary.BigEndian.Uint16(s[14:])) }

// Gap returns Gap Ack Block i, 0 <= i < NumGaps. It has the block's first and last TSN as offsets
// from CumTSN.
func (s Sack) Gap(i int) (start, end uint16) {
	both := binary.BigEndian.Uint32(s[sackLen+4*i:])
	return uint16(both >> 16), uint16(both)
}

// Dup returns Duplicate TSN i, 0 <= i < NumDups.
func (s Sack) Dup(i int) TSN {
	return TSN(binary.BigEndian.Uint32(s[sackLen+4*s.NumGaps()+4*i:]))
}

// GapBlock is a Gap Ack Block: offsets from the Cumulative TSN Ack, both inclusive.
type GapBlock struct{ Start, End uint16 }

// SackFields are the fields of a SACK chunk.
type SackFields struct {
	CumTSN TSN
	ARwnd  uint32 // octets
	Gaps   []GapBlock
	Dups   []TSN
}

// SackLen returns the length in octets of a SACK chunk with that many gap blocks and duplicates.
func SackLen(gaps, dups int) int { return sackLen + 4*gaps + 4*dups }

// AppendCumSack appends a SACK chunk without gap blocks and duplicates, as nearly all are.
func AppendCumSack(b []byte, cum TSN, arwnd uint32) []byte {
	return appendSackHead(b, cum, arwnd, 0, 0)
}

func appendSackHead(b []byte, cum TSN, arwnd uint32, gaps, dups int) []byte {
	b = appendChunkHeader(b, ChunkSack, 0, SackLen(gaps, dups))
	b = binary.BigEndian.AppendUint32(b, uint32(cum))
	b = binary.BigEndian.AppendUint32(b, arwnd)
	b = binary.BigEndian.AppendUint16(b, uint16(gaps))
	return binary.BigEndian.AppendUint16(b, uint16(dups))
}

// AppendSack appends a SACK chunk. Duplicates, then gap blocks, that would take it past MaxChunkLen
// are left out from the end.
func AppendSack(b []byte, f SackFields) []byte {
	gaps := f.Gaps[:min(len(f.Gaps), maxSackEntries)]
	dups := f.Dups[:min(len(f.Dups), maxSackEntries-len(gaps))]
	b = appendSackHead(b, f.CumTSN, f.ARwnd, len(gaps), len(dups))
	for _, g := range gaps {
		b = binary.BigEndian.AppendUint16(b, g.Start)
		b = binary.BigEndian.AppendUint16(b, g.End)
	}
	for _, d := range dups {
		b = binary.BigEndian.AppendUint32(b, uint32(d))
	}
	return b
}
