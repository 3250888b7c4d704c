package wire

import "encoding/binary"

// Lengths of chunks in octets.
const (
	// ChunkHeaderLen is the length of type, flags and length.
	ChunkHeaderLen = 4
	// MaxChunkLen is the largest Chunk Length.
	MaxChunkLen = 1<<16 - 1
)

// FlagT is the T bit of ABORT and SHUTDOWN COMPLETE: the Verification Tag is reflected.
const FlagT = 0x01

// Chunk is a view of one chunk: header and value without the final padding (RFC 9260 section 3.2).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Chunk Type  |  Chunk Flags  |         Chunk Length          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	\                                                               \
//	/                          Chunk Value                          /
//	\                                                               \
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Chunk []byte

// Type returns the Chunk Type.
func (c Chunk) Type() ChunkType { return ChunkType(c[0]) }

// Flags returns the Chunk Flags.
func (c Chunk) Flags() uint8 { return c[1] }

// Value returns the octets after the chunk header, without padding.
func (c Chunk) Value() []byte { return c[ChunkHeaderLen:] }

// Chunks walks the chunks of a packet. Copying it copies the position.
type Chunks struct {
	rest []byte
	err  FormatError
}

// Next returns the next chunk, and false at the end of the packet. It also returns false at a
// malformed chunk, whose length is below 4 or goes past the end. Err distinguishes the two. The
// padding of the last chunk may be missing, and the contents of padding are not looked at.
func (cs *Chunks) Next() (Chunk, bool) {
	b := cs.rest
	if len(b) < ChunkHeaderLen {
		if len(b) != 0 {
			cs.stopWith(ErrChunkShort)
		}
		return nil, false
	}
	n := int(binary.BigEndian.Uint16(b[2:]))
	if n < ChunkHeaderLen {
		cs.stopWith(ErrChunkShort)
		return nil, false
	}
	if n > len(b) {
		cs.stopWith(ErrChunkPartial)
		return nil, false
	}
	cs.rest = b[min(PaddedLen(n), len(b)):]
	return Chunk(b[:n:n]), true
}

func (cs *Chunks) stopWith(e FormatError) { cs.rest, cs.err = nil, e }

// Err returns nil when Next has reached the proper end of the packet. Otherwise the rest of the
// packet is malformed and dropped: ErrChunkShort or ErrChunkPartial (RFC 9260 section 6.10).
func (cs *Chunks) Err() error {
	if cs.err == 0 {
		return nil
	}
	return cs.err
}

// PaddedLen returns n octets rounded up to a multiple of 4.
func PaddedLen(n int) int { return (n + 3) &^ 3 }

// Padding returns the 0 to 3 zero octets that pad n octets to a multiple of 4, as a piece of a
// vector. The result is shared: do not write to it.
func Padding(n int) []byte {
	k := -n & 3
	return zeros[:k:k]
}

func appendPadding(b []byte, n int) []byte { return append(b, Padding(n)...) }

// AppendChunk appends a chunk of any type with its final padding. A value longer than
// MaxChunkLen-ChunkHeaderLen octets is cut to that length.
func AppendChunk(b []byte, t ChunkType, flags uint8, value []byte) []byte {
	value = value[:min(len(value), MaxChunkLen-ChunkHeaderLen)]
	b = appendChunkHeader(b, t, flags, ChunkHeaderLen+len(value))
	b = append(b, value...)
	return appendPadding(b, len(value))
}

func appendChunkHeader(b []byte, t ChunkType, flags uint8, length int) []byte {
	return append(b, byte(t), flags, byte(length>>8), byte(length))
}

// CloseChunk completes the chunk that starts at b[start], after parameters or error causes were
// appended to it. It sets the Chunk Length, which counts the padding of every parameter but the
// last (RFC 9260 section 3.2), and pads the chunk. Parameters that would take the chunk past
// MaxChunkLen are left out, whole.
func CloseChunk(b []byte, start int) []byte {
	return closeTLVs(b, start, fixedPartLen(ChunkType(b[start])))
}

// fixedPartLen returns the length of what stands in front of the parameters or error causes of a
// chunk, chunk header included.
func fixedPartLen(t ChunkType) int {
	switch t {
	case ChunkInit, ChunkInitAck:
		return initLen
	case ChunkAsconf, ChunkAsconfAck:
		return asconfLen
	}
	return ChunkHeaderLen
}

// asChunk checks that c is of type t and has a length from least to most octets.
func asChunk(c Chunk, t ChunkType, least, most int) error {
	if len(c) < ChunkHeaderLen {
		return ErrChunkShort
	}
	if c.Type() != t {
		return ErrChunkType
	}
	if len(c) < least || len(c) > most {
		return ErrChunkLength
	}
	return nil
}
