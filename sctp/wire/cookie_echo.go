package wire

// CookieEcho is a view of a COOKIE ECHO chunk (RFC 9260 section 3.3.11).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Type = 10   |  Chunk Flags  |            Length             |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	/                            Cookie                             /
//	\                                                               \
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type CookieEcho []byte

// AsCookieEcho returns c as a COOKIE ECHO chunk.
func AsCookieEcho(c Chunk) (CookieEcho, error) {
	if err := asChunk(c, ChunkCookieEcho, ChunkHeaderLen, MaxChunkLen); err != nil {
		return nil, err
	}
	return CookieEcho(c), nil
}

// Cookie returns the cookie, the value of the State Cookie parameter that came with INIT ACK.
func (c CookieEcho) Cookie() []byte { return c[ChunkHeaderLen:] }

// AppendCookieEcho appends a COOKIE ECHO chunk with the exact octets of the State Cookie's value.
func AppendCookieEcho(b, cookie []byte) []byte { return AppendChunk(b, ChunkCookieEcho, 0, cookie) }
