package wire

// ShutdownAck is a view of a SHUTDOWN ACK chunk (RFC 9260 section 3.3.9).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Type = 8    |  Chunk Flags  |          Length = 4           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type ShutdownAck []byte

// AsShutdownAck returns c as a SHUTDOWN ACK chunk.
func AsShutdownAck(c Chunk) (ShutdownAck, error) {
	if err := asChunk(c, ChunkShutdownAck, ChunkHeaderLen, ChunkHeaderLen); err != nil {
		return nil, err
	}
	return ShutdownAck(c), nil
}

// AppendShutdownAck appends a SHUTDOWN ACK chunk.
func AppendShutdownAck(b []byte) []byte {
	return appendChunkHeader(b, ChunkShutdownAck, 0, ChunkHeaderLen)
}
