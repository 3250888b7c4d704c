package wire

import (
	"encoding/binary"
	"net/netip"
)

// asconfLen is the length of ASCONF and ASCONF-ACK in front of the first parameter.
const asconfLen = 8

// Asconf is a view of an ASCONF chunk (RFC 5061 section 4.1.1).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Type = 0xC1  |  Chunk Flags  |         Chunk Length          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                        Sequence Number                        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                       Address Parameter                       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	\                      ASCONF Parameter #1..N                   \
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Asconf []byte

// AsAsconf returns c as an ASCONF chunk that starts with an IPv4 or IPv6 Address parameter. The
// ASCONF parameters are not checked.
func AsAsconf(c Chunk) (Asconf, error) {
	if err := asChunk(c, ChunkAsconf, asconfLen, MaxChunkLen); err != nil {
		return nil, err
	}
	if len(c) == asconfLen {
		return nil, ErrParamMissing
	}
	params := Params{tlvReader{rest: c[asconfLen:]}}
	addr, ok := params.Next()
	if !ok {
		return nil, params.Err()
	}
	if _, err := addr.Addr(); err != nil {
		return nil, ErrParamMissing
	}
	return Asconf(c), nil
}

// Seq returns the Sequence Number.
func (a Asconf) Seq() uint32 { return binary.BigEndian.Uint32(a[4:]) }

// Addr returns the address by which to look up the association. An unspecified address (0.0.0.0 or
// ::) means to look it up by other means.
func (a Asconf) Addr() netip.Addr {
	params := Params{tlvReader{rest: a[asconfLen:]}}
	p, _ := params.Next()
	addr, _ := p.Addr() // AsAsconf has checked it
	return addr
}

// Params returns an iterator over the ASCONF parameters that follow the Address parameter.
func (a Asconf) Params() Params {
	params := Params{tlvReader{rest: a[asconfLen:]}}
	params.Next()
	return params
}

// AppendAsconf appends an ASCONF chunk with its Address parameter. Append requests, then call
// CloseChunk. addr must be valid.
func AppendAsconf(b []byte, seq uint32, addr netip.Addr) []byte {
	start := len(b)
	b = appendChunkHeader(b, ChunkAsconf, 0, asconfLen)
	b = binary.BigEndian.AppendUint32(b, seq)
	return setLength(AppendAddressParam(b, addr), start)
}
