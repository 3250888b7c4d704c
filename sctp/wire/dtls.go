package wire

import "encoding/binary"

// FlagR is the R bit of a DTLS chunk: a restart key has sealed it.
const FlagR = 0x01

// DTLSHeaderLen is the length of what stands in front of the record: the chunk header and one octet
// of pre-padding.
const DTLSHeaderLen = ChunkHeaderLen + 1

// DTLS is a view of a DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk section 4.2). The payload is one
// DTLSCiphertext, whose header has 3 octets, so that what it encrypts begins at a multiple of 4.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| Type = 0x41   | reserved    |R|         Chunk Length          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Pre-Padding  |                                               |
//	+-+-+-+-+-+-+-+-+            Payload                            |
//	\                                                               \
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type DTLS []byte

// AsDTLS returns c as a DTLS chunk.
func AsDTLS(c Chunk) (DTLS, error) {
	if err := asChunk(c, ChunkDTLS, DTLSHeaderLen, MaxChunkLen); err != nil {
		return nil, err
	}
	return DTLS(c), nil
}

// LoneDTLS returns the chunk of a packet that has a DTLS chunk and nothing else, as far as its
// length says so. p has a whole common header.
func LoneDTLS(p Packet) (DTLS, bool) {
	c := p[CommonHeaderLen:]
	if len(c) <= DTLSHeaderLen || ChunkType(c[0]) != ChunkDTLS {
		return nil, false
	}
	n := int(binary.BigEndian.Uint16(c[2:]))
	if n <= DTLSHeaderLen || n > len(c) || len(c)-n > (-n&3) {
		return nil, false
	}
	return DTLS(c[:n:n]), true
}

// Restart returns the R bit. The other flags are reserved, and not looked at.
func (d DTLS) Restart() bool { return d[1]&FlagR != 0 }

// Record returns the DTLSCiphertext. The pre-padding is not looked at.
func (d DTLS) Record() []byte { return d[DTLSHeaderLen:] }

// AppendDTLSHeader appends the header of a DTLS chunk, and its pre-padding, for a record of that
// many octets. The record and its Padding follow.
func AppendDTLSHeader(b []byte, restart bool, recordLen int) []byte {
	var flags uint8
	if restart {
		flags = FlagR
	}
	return append(appendChunkHeader(b, ChunkDTLS, flags, DTLSHeaderLen+recordLen), 0)
}
