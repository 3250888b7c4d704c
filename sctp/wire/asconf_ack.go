package wire

import "encoding/binary"

// AsconfAck is a view of an ASCONF-ACK chunk (RFC 5061 section 4.1.2).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Type = 0x80  |  Chunk Flags  |         Chunk Length          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                        Sequence Number                        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	\               ASCONF Parameter Response #1..N                 \
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type AsconfAck []byte

// AsAsconfAck returns c as an ASCONF-ACK chunk. The responses are not checked.
func AsAsconfAck(c Chunk) (AsconfAck, error) {
	if err := asChunk(c, ChunkAsconfAck, asconfLen, MaxChunkLen); err != nil {
		return nil, err
	}
	return AsconfAck(c), nil
}

// Seq returns the Sequence Number of the ASCONF chunk that is acknowledged.
func (a AsconfAck) Seq() uint32 { return binary.BigEndian.Uint32(a[4:]) }

// Params returns an iterator over the responses: ParamErrorCause and ParamSuccess. A request
// without a response succeeded.
func (a AsconfAck) Params() Params { return Params{tlvReader{rest: a[asconfLen:]}} }

// AppendAsconfAck appends an ASCONF-ACK chunk without responses, which reports success. Append
// responses, then call CloseChunk.
func AppendAsconfAck(b []byte, seq uint32) []byte {
	b = appendChunkHeader(b, ChunkAsconfAck, 0, asconfLen)
	return binary.BigEndian.AppendUint32(b, seq)
}
