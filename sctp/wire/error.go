package wire

// Error is a view of an ERROR chunk, Operation Error (RFC 9260 section 3.3.10). It is not a Go
// error.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Type = 9    |  Chunk Flags  |            Length             |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	\                                                               \
//	/                    one or more Error Causes                   /
//	\                                                               \
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Error []byte

// AsError returns c as an ERROR chunk. The error causes are not checked.
func AsError(c Chunk) (Error, error) {
	if err := asChunk(c, ChunkError, ChunkHeaderLen, MaxChunkLen); err != nil {
		return nil, err
	}
	return Error(c), nil
}

// Causes returns an iterator over the error causes.
func (e Error) Causes() Causes { return Causes{tlvReader{rest: e[ChunkHeaderLen:]}} }

// AppendError appends the header of an ERROR chunk. Append one or more causes, then call
// CloseChunk.
func AppendError(b []byte) []byte { return appendChunkHeader(b, ChunkError, 0, ChunkHeaderLen) }
