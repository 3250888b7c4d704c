package wire

import "encoding/binary"

// RandomLen is the length in octets of the Random Number in a RANDOM parameter (RFC 4895 section
// 3.1). Append one with AppendParam(b, ParamRandom, number).
const RandomLen = 32

// HMACIDs returns the identifiers of an HMAC-ALGO parameter by falling preference (RFC 4895 section
// 3.3).
func (p Param) HMACIDs() (Uint16List, error) {
	if err := p.checkType(ParamHMACAlgo, paramHeaderLen, MaxParamLen); err != nil {
		return nil, err
	}
	if len(p)%2 != 0 {
		return nil, ErrParamLength
	}
	return Uint16List(p.Value()), nil
}

// AppendHMACAlgo appends an HMAC-ALGO parameter that lists ids by falling preference.
//
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|    Parameter Type = 0x8004    |       Parameter Length        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|       HMAC Identifier 1       |       HMAC Identifier 2       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
func AppendHMACAlgo(b []byte, ids ...HMACID) []byte {
	start := len(b)
	b = appendTLVHeader(b, uint16(ParamHMACAlgo), paramHeaderLen)
	for _, id := range ids {
		b = binary.BigEndian.AppendUint16(b, uint16(id))
	}
	return setLength(b, start)
}

// AppendChunkList appends a CHUNKS parameter that lists the chunk types which the peer must
// authenticate (RFC 4895 section 3.2). INIT, INIT ACK, SHUTDOWN COMPLETE and AUTH must not be
// listed and are left out. Read one with Param.ListsChunk.
//
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|    Parameter Type = 0x8003    |       Parameter Length        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| Chunk Type 1  | Chunk Type 2  | Chunk Type 3  | Chunk Type 4  |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
func AppendChunkList(b []byte, types ...ChunkType) []byte {
	start := len(b)
	b = appendTLVHeader(b, uint16(ParamChunkList), paramHeaderLen)
	for _, t := range types {
		if !neverAuthenticated(t) {
			b = append(b, byte(t))
		}
	}
	return setLength(b, start)
}

func neverAuthenticated(t ChunkType) bool {
	switch t {
	case ChunkInit, ChunkInitAck, ChunkShutdownComplete, ChunkAuth:
		return true
	}
	return false
}
