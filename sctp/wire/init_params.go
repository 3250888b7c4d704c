package wire

import (
	"encoding/binary"
	"net/netip"
)

// Addr returns the address of an IPv4 Address (length 8) or IPv6 Address (length 20) parameter (RFC
// 9260 sections 3.3.2.1.1 and 3.3.2.1.2). An IPv4-mapped IPv6 address, which a peer must not send,
// is returned as IPv4, so that one host has one netip.Addr.
//
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|          Type = 5, 6          |        Length = 8, 20         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|              IPv4 Address, 4 octets; IPv6 Address, 16         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
func (p Param) Addr() (netip.Addr, error) {
	if len(p) < paramHeaderLen {
		return netip.Addr{}, ErrParamShort
	}
	switch p.Type() {
	case ParamIPv4:
		if len(p) != 8 {
			return netip.Addr{}, ErrParamLength
		}
		return netip.AddrFrom4([4]byte(p[4:])), nil
	case ParamIPv6:
		if len(p) != 20 {
			return netip.Addr{}, ErrParamLength
		}
		return netip.AddrFrom16([16]byte(p[4:])).Unmap(), nil
	}
	return netip.Addr{}, ErrParamType
}

// AppendAddressParam appends an IPv4 or IPv6 Address parameter. An IPv4-mapped IPv6 address goes
// out as IPv4 (RFC 9260 section 3.3.2.1.2) and a zone is left out. The zero Addr, which is no
// address, appends nothing.
func AppendAddressParam(b []byte, addr netip.Addr) []byte {
	addr = addr.Unmap()
	switch {
	case addr.Is4():
		a := addr.As4()
		return append(appendTLVHeader(b, uint16(ParamIPv4), 8), a[:]...)
	case addr.Is6():
		a := addr.As16()
		return append(appendTLVHeader(b, uint16(ParamIPv6), 20), a[:]...)
	}
	return b
}

// CookieIncrement returns the Suggested Cookie Life-Span Increment in milliseconds of a Cookie
// Preservative parameter (RFC 9260 section 3.3.2.1.3).
func (p Param) CookieIncrement() (uint32, error) { return p.readUint32(ParamCookiePreservative) }

// AppendCookiePreservative appends a Cookie Preservative parameter of ms milliseconds.
func AppendCookiePreservative(b []byte, ms uint32) []byte {
	return appendUint32Param(b, ParamCookiePreservative, ms)
}

// SupportsAddrType reports whether a Supported Address Types parameter lists the address type t,
// ParamIPv4 or ParamIPv6 (RFC 9260 section 3.3.2.1.5). It is false for ParamHostName, which a
// receiver ignores. A chunk without this parameter supports all types.
func (p Param) SupportsAddrType(t ParamType) (bool, error) {
	if err := p.checkType(ParamSupportedAddrTypes, paramHeaderLen, MaxParamLen); err != nil {
		return false, err
	}
	types := Uint16List(p.Value())
	for i := range types.Len() {
		if ParamType(types.At(i)) == t && t != ParamHostName {
			return true, nil
		}
	}
	return false, nil
}

// AppendSupportedAddrTypes appends a Supported Address Types parameter: ParamIPv4, ParamIPv6 or
// both. ParamHostName must not be listed and is left out.
func AppendSupportedAddrTypes(b []byte, types ...ParamType) []byte {
	start := len(b)
	b = appendTLVHeader(b, uint16(ParamSupportedAddrTypes), paramHeaderLen)
	for _, t := range types {
		if t != ParamHostName {
			b = binary.BigEndian.AppendUint16(b, uint16(t))
		}
	}
	return setLength(b, start)
}

// AdaptationIndication returns the code point of an Adaptation Layer Indication parameter. SCTP
// passes it to the upper layer unread (RFC 5061 section 4.2.6).
func (p Param) AdaptationIndication() (uint32, error) { return p.readUint32(ParamAdaptationIndication) }

// AppendAdaptationIndication appends an Adaptation Layer Indication parameter.
//
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|         Type = 0xC006         |          Length = 8           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                     Adaptation Code point                     |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
func AppendAdaptationIndication(b []byte, codePoint uint32) []byte {
	return appendUint32Param(b, ParamAdaptationIndication, codePoint)
}

// ListsChunk reports whether a Supported Extensions (RFC 5061 section 4.2.7) or CHUNKS (RFC 4895
// section 3.2) parameter lists the chunk type t. In CHUNKS the types INIT, INIT ACK, SHUTDOWN
// COMPLETE and AUTH are ignored.
func (p Param) ListsChunk(t ChunkType) (bool, error) {
	if len(p) < paramHeaderLen {
		return false, ErrParamShort
	}
	switch p.Type() {
	case ParamSupportedExtensions:
	case ParamChunkList:
		if neverAuthenticated(t) {
			return false, nil
		}
	default:
		return false, ErrParamType
	}
	for _, v := range p.Value() {
		if ChunkType(v) == t {
			return true, nil
		}
	}
	return false, nil
}

// AppendSupportedExtensions appends a Supported Extensions parameter that lists the chunk types of
// extensions. An INIT or INIT ACK has one at most.
func AppendSupportedExtensions(b []byte, types ...ChunkType) []byte {
	start := len(b)
	b = appendTLVHeader(b, uint16(ParamSupportedExtensions), paramHeaderLen)
	for _, t := range types {
		b = append(b, byte(t))
	}
	return setLength(b, start)
}

// AppendForwardTSNSupported appends a Forward-TSN-Supported parameter (RFC 3758 section 3.1).
func AppendForwardTSNSupported(b []byte) []byte { return AppendParam(b, ParamForwardTSN, nil) }
