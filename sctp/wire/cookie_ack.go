package wire

// CookieAck is a view of a COOKIE ACK chunk (RFC 9260 section 3.3.12).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Type = 11   |  Chunk Flags  |          Length = 4           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type CookieAck []byte

// AsCookieAck returns c as a COOKIE ACK chunk.
func AsCookieAck(c Chunk) (CookieAck, error) {
	if err := asChunk(c, ChunkCookieAck, ChunkHeaderLen, ChunkHeaderLen); err != nil {
		return nil, err
	}
	return CookieAck(c), nil
}

// AppendCookieAck appends a COOKIE ACK chunk.
func AppendCookieAck(b []byte) []byte {
	return appendChunkHeader(b, ChunkCookieAck, 0, ChunkHeaderLen)
}
