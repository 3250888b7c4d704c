package wire

import "encoding/binary"

// HMACID is an HMAC Identifier (RFC 4895 section 3.3).
type HMACID uint16

// HMAC identifiers of RFC 4895.
const (
	HMACSHA1   HMACID = 1
	HMACSHA256 HMACID = 3
)

// Size returns the length of the HMAC in octets, and 0 for an unknown identifier.
func (id HMACID) Size() int {
	switch id {
	case HMACSHA1:
		return 20
	case HMACSHA256:
		return 32
	}
	return 0
}

// authLen is the length of an AUTH chunk in front of the HMAC.
const authLen = 8

// Auth is a view of an AUTH chunk (RFC 4895 section 5.1).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Type = 0x0F  |    Flags=0    |            Length             |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|     Shared Key Identifier     |        HMAC Identifier        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	\                             HMAC                              /
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Auth []byte

// AsAuth returns c as an AUTH chunk. For a known HMAC Identifier the HMAC has the length of its
// algorithm.
func AsAuth(c Chunk) (Auth, error) {
	if err := asChunk(c, ChunkAuth, authLen, MaxChunkLen); err != nil {
		return nil, err
	}
	a := Auth(c)
	if n := a.HMACID().Size(); n != 0 && len(a) != authLen+n {
		return nil, ErrChunkLength
	}
	return a, nil
}

// KeyID returns the Shared Key Identifier.
func (a Auth) KeyID() uint16 { return binary.BigEndian.Uint16(a[4:]) }

// HMACID returns the HMAC Identifier, which may be one that is not known here.
func (a Auth) HMACID() HMACID { return HMACID(binary.BigEndian.Uint16(a[6:])) }

// HMAC returns the HMAC field.
func (a Auth) HMAC() []byte { return a[authLen:] }

// AppendAuth appends an AUTH chunk whose HMAC field is id.Size() zero octets. When the packet is
// complete, compute the HMAC over this chunk and all after it. Copy it into the HMAC field (RFC
// 4895 section 6.2).
func AppendAuth(b []byte, keyID uint16, id HMACID) []byte {
	b = appendChunkHeader(b, ChunkAuth, 0, authLen+id.Size())
	b = binary.BigEndian.AppendUint16(b, keyID)
	b = binary.BigEndian.AppendUint16(b, uint16(id))
	return appendZeros(b, id.Size())
}
