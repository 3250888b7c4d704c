package wire

// ShutdownComplete is a view of a SHUTDOWN COMPLETE chunk (RFC 9260 section 3.3.13).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Type = 14   |  Reserved   |T|          Length = 4           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type ShutdownComplete []byte

// AsShutdownComplete returns c as a SHUTDOWN COMPLETE chunk.
func AsShutdownComplete(c Chunk) (ShutdownComplete, error) {
	if err := asChunk(c, ChunkShutdownComplete, ChunkHeaderLen, ChunkHeaderLen); err != nil {
		return nil, err
	}
	return ShutdownComplete(c), nil
}

// T reports whether the Verification Tag of the packet is reflected.
func (s ShutdownComplete) T() bool { return s[1]&FlagT != 0 }

// AppendShutdownComplete appends a SHUTDOWN COMPLETE chunk; t says that the Verification Tag is
// reflected.
func AppendShutdownComplete(b []byte, t bool) []byte {
	return appendChunkHeader(b, ChunkShutdownComplete, flagsWithT(t), ChunkHeaderLen)
}
