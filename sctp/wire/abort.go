package wire

// Abort is a view of an ABORT chunk (RFC 9260 section 3.3.7).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Type = 6    |  Reserved   |T|            Length             |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	\                                                               \
//	/                   zero or more Error Causes                   /
//	\                                                               \
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Abort []byte

// AsAbort returns c as an ABORT chunk whose error causes are all well formed. Silently discard one
// with a format error.
func AsAbort(c Chunk) (Abort, error) {
	if err := asChunk(c, ChunkAbort, ChunkHeaderLen, MaxChunkLen); err != nil {
		return nil, err
	}
	causes := Abort(c).Causes()
	for _, ok := causes.Next(); ok; _, ok = causes.Next() {
	}
	if err := causes.Err(); err != nil {
		return nil, err
	}
	return Abort(c), nil
}

// T reports whether the Verification Tag of the packet is reflected: the same as in the packet that
// caused the ABORT.
func (a Abort) T() bool { return a[1]&FlagT != 0 }

// Causes returns an iterator over the error causes.
func (a Abort) Causes() Causes { return Causes{tlvReader{rest: a[ChunkHeaderLen:]}} }

// AppendAbort appends an ABORT chunk without error causes; t says that the Verification Tag is
// reflected. To add causes, append them and then call CloseChunk.
func AppendAbort(b []byte, t bool) []byte {
	return appendChunkHeader(b, ChunkAbort, flagsWithT(t), ChunkHeaderLen)
}

func flagsWithT(t bool) uint8 {
	if t {
		return FlagT
	}
	return 0
}
