package wire

import "slices"

// Pad is a view of a PAD chunk (RFC 4820 section 3). A receiver ignores flags and contents.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Type = 0x84  |    Flags=0    |            Length             |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	\                         Padding Data                          /
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Pad []byte

// AsPad returns c as a PAD chunk.
func AsPad(c Chunk) (Pad, error) {
	if err := asChunk(c, ChunkPad, ChunkHeaderLen, MaxChunkLen); err != nil {
		return nil, err
	}
	return Pad(c), nil
}

// Padding returns the Padding Data, which means nothing.
func (p Pad) Padding() []byte { return p[ChunkHeaderLen:] }

// MaxPadLen is the most octets that one PAD chunk adds to a packet.
const MaxPadLen = 1 << 16

// AppendPad appends a PAD chunk that makes the packet size octets longer. size is taken as a
// multiple of 4, rounded down, from ChunkHeaderLen to MaxPadLen.
func AppendPad(b []byte, size int) []byte {
	size = min(max(size&^3, ChunkHeaderLen), MaxPadLen)
	return appendZeros(AppendPadHeader(b, size-ChunkHeaderLen), size-ChunkHeaderLen)
}

// AppendPadHeader appends the header of a PAD chunk with size octets of Padding Data, which the
// caller appends. size is a multiple of 4 of at most MaxPadLen - ChunkHeaderLen.
func AppendPadHeader(b []byte, size int) []byte {
	return appendChunkHeader(b, ChunkPad, 0, min(ChunkHeaderLen+size, MaxChunkLen))
}

// AppendPaddingParam appends a PAD parameter that makes an INIT chunk size octets longer (RFC 4820
// section 4). size is taken as for AppendPad. It may stand in INIT only.
func AppendPaddingParam(b []byte, size int) []byte {
	size = min(max(size&^3, paramHeaderLen), MaxPadLen)
	b = appendTLVHeader(b, uint16(ParamPadding), min(size, MaxParamLen))
	return appendZeros(b, size-paramHeaderLen)
}

func appendZeros(b []byte, n int) []byte {
	b = slices.Grow(b, n)
	end := len(b) + n
	clear(b[len(b):end])
	return b[:end]
}
