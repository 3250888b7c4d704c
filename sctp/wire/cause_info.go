package wire

import "encoding/binary"

// checkCode returns an error unless c has that code and at least that length, header included.
func (c Cause) checkCode(code CauseCode, least int) error {
	if len(c) < paramHeaderLen {
		return ErrParamShort
	}
	if c.Code() != code {
		return ErrCauseCode
	}
	if len(c) < least {
		return ErrCauseLength
	}
	return nil
}

// InvalidStream returns the Stream Identifier of a CauseInvalidStream (RFC 9260 section 3.3.10.1).
//
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|        Cause Code = 1         |       Cause Length = 8        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|       Stream Identifier       |          (Reserved)           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
func (c Cause) InvalidStream() (StreamID, error) {
	if err := c.checkCode(CauseInvalidStream, 8); err != nil {
		return 0, err
	}
	return StreamID(binary.BigEndian.Uint16(c[4:])), nil
}

// AppendInvalidStreamCause appends a CauseInvalidStream.
func AppendInvalidStreamCause(b []byte, s StreamID) []byte {
	b = appendTLVHeader(b, uint16(CauseInvalidStream), 8)
	b = binary.BigEndian.AppendUint16(b, uint16(s))
	return append(b, 0, 0)
}

// MissingParams returns the parameter types of a CauseMissingParam (RFC 9260 section 3.3.10.2).
//
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|        Cause Code = 2         |   Cause Length = 8 + N * 2    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                 Number of missing params = N                  |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|     Missing Param Type #1     |     Missing Param Type #2     |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
func (c Cause) MissingParams() (Uint16List, error) {
	if err := c.checkCode(CauseMissingParam, 8); err != nil {
		return nil, err
	}
	types := Uint16List(c[8:])
	n := binary.BigEndian.Uint32(c[4:])
	if uint64(n) > uint64(types.Len()) {
		return nil, ErrCauseLength
	}
	return types[:2*n], nil
}

// AppendMissingParamsCause appends a CauseMissingParam that lists types.
func AppendMissingParamsCause(b []byte, types ...ParamType) []byte {
	types = types[:min(len(types), (MaxParamLen-8)/2)]
	start := len(b)
	b = appendTLVHeader(b, uint16(CauseMissingParam), 8)
	b = binary.BigEndian.AppendUint32(b, uint32(len(types)))
	for _, t := range types {
		b = binary.BigEndian.AppendUint16(b, uint16(t))
	}
	return setLength(b, start)
}

// Staleness returns the Measure of Staleness in microseconds of a CauseStaleCookie, 0 when the peer
// does not tell (RFC 9260 section 3.3.10.3).
func (c Cause) Staleness() (uint32, error) { return c.readUint32(CauseStaleCookie) }

// AppendStaleCookieCause appends a CauseStaleCookie; usec is how long ago the cookie expired in
// microseconds, rounded up, or 0 not to tell.
func AppendStaleCookieCause(b []byte, usec uint32) []byte {
	return appendUint32Cause(b, CauseStaleCookie, usec)
}

// NoUserData returns the TSN of a CauseNoUserData (RFC 9260 section 3.3.10.9).
func (c Cause) NoUserData() (TSN, error) {
	t, err := c.readUint32(CauseNoUserData)
	return TSN(t), err
}

// AppendNoUserDataCause appends a CauseNoUserData with the TSN of the empty DATA chunk.
func AppendNoUserDataCause(b []byte, t TSN) []byte {
	return appendUint32Cause(b, CauseNoUserData, uint32(t))
}

// UnrecognizedChunk returns the chunk that a CauseUnrecognizedChunkType quotes (RFC 9260 section
// 3.3.10.6). The peer may have cut it short.
func (c Cause) UnrecognizedChunk() (Chunk, error) {
	if err := c.checkCode(CauseUnrecognizedChunkType, paramHeaderLen+ChunkHeaderLen); err != nil {
		return nil, err
	}
	return Chunk(c.Info()), nil
}

// Params returns an iterator over the parameters that a cause quotes. That is for
// CauseUnresolvableAddress, CauseUnrecognizedParams and CauseRestart (RFC 9260 sections 3.3.10.5,
// 3.3.10.8 and 3.3.10.11), and for the causes of RFC 5061 (section 4.3). For other causes the
// result means nothing.
func (c Cause) Params() Params { return Params{tlvReader{rest: c.Info()}} }

// UnsupportedHMAC returns the identifier of a CauseUnsupportedHMAC (RFC 4895 section 4.1).
//
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|      Cause Code = 0x0105      |       Cause Length = 6        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|        HMAC Identifier        |            Padding            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
func (c Cause) UnsupportedHMAC() (HMACID, error) {
	if err := c.checkCode(CauseUnsupportedHMAC, 6); err != nil {
		return 0, err
	}
	return HMACID(binary.BigEndian.Uint16(c[4:])), nil
}

// AppendUnsupportedHMACCause appends a CauseUnsupportedHMAC.
func AppendUnsupportedHMACCause(b []byte, id HMACID) []byte {
	b = appendTLVHeader(b, uint16(CauseUnsupportedHMAC), 6)
	b = binary.BigEndian.AppendUint16(b, uint16(id))
	return append(b, 0, 0)
}

// readUint32 returns the information of a cause with that code and one 32-bit field.
func (c Cause) readUint32(code CauseCode) (uint32, error) {
	if err := c.checkCode(code, 8); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(c[4:]), nil
}

func appendUint32Cause(b []byte, code CauseCode, v uint32) []byte {
	return binary.BigEndian.AppendUint32(appendTLVHeader(b, uint16(code), 8), v)
}
