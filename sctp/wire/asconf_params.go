package wire

import (
	"encoding/binary"
	"net/netip"
)

// correlationLen is the length of parameter header and correlation ID.
const correlationLen = 8

// AddrRequest is a view of an Add IP Address, Delete IP Address or Set Primary Address parameter.
// RFC 5061 has them in sections 4.2.1, 4.2.2 and 4.2.4.
//
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Type = 0xC001, C002, C004   |       Length = Variable       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                 ASCONF-Request Correlation ID                 |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                       Address Parameter                       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type AddrRequest []byte

// AsAddrRequest returns p as a request to add, delete or prefer an address.
func AsAddrRequest(p Param) (AddrRequest, error) {
	if len(p) < paramHeaderLen {
		return nil, ErrParamShort
	}
	switch p.Type() {
	case ParamAddIP, ParamDeleteIP, ParamSetPrimary:
	default:
		return nil, ErrParamType
	}
	if len(p) < correlationLen+paramHeaderLen {
		return nil, ErrParamLength
	}
	addr := Param(p[correlationLen:])
	if int(binary.BigEndian.Uint16(addr[2:])) != len(addr) {
		return nil, ErrParamLength
	}
	if _, err := addr.Addr(); err != nil {
		return nil, err
	}
	return AddrRequest(p), nil
}

// Type returns ParamAddIP, ParamDeleteIP or ParamSetPrimary.
func (r AddrRequest) Type() ParamType { return Param(r).Type() }

// CorrelationID returns the ASCONF-Request Correlation ID.
func (r AddrRequest) CorrelationID() uint32 { return binary.BigEndian.Uint32(r[4:]) }

// Addr returns the address. An unspecified one (0.0.0.0 or ::) stands for the source address of the
// packet, and in ParamDeleteIP for all addresses but that.
func (r AddrRequest) Addr() netip.Addr {
	addr, _ := Param(r[correlationLen:]).Addr() // AsAddrRequest has checked it
	return addr
}

// AppendAddrRequest appends an Add IP Address, Delete IP Address or Set Primary Address parameter,
// as t says. addr must be valid.
func AppendAddrRequest(b []byte, t ParamType, correlationID uint32, addr netip.Addr) []byte {
	start := len(b)
	b = appendCorrelation(b, t, correlationID)
	return setLength(AppendAddressParam(b, addr), start)
}

// AddrResponse is a view of an Error Cause Indication or Success Indication parameter (RFC 5061
// sections 4.2.3 and 4.2.5).
//
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|      Type = 0xC003, C005      |       Length = Variable       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                ASCONF-Response Correlation ID                 |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|          Error Cause(s), or nothing to report success         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type AddrResponse []byte

// AsAddrResponse returns p as a response. The error causes are not checked.
func AsAddrResponse(p Param) (AddrResponse, error) {
	if len(p) < paramHeaderLen {
		return nil, ErrParamShort
	}
	switch t := p.Type(); {
	case t != ParamErrorCause && t != ParamSuccess:
		return nil, ErrParamType
	case len(p) < correlationLen, t == ParamSuccess && len(p) != correlationLen:
		return nil, ErrParamLength
	}
	return AddrResponse(p), nil
}

// Success reports whether this is a Success Indication.
func (r AddrResponse) Success() bool { return Param(r).Type() == ParamSuccess }

// CorrelationID returns the ASCONF-Response Correlation ID.
func (r AddrResponse) CorrelationID() uint32 { return binary.BigEndian.Uint32(r[4:]) }

// Causes returns an iterator over the error causes, of which a Success Indication has none.
func (r AddrResponse) Causes() Causes { return Causes{tlvReader{rest: r[correlationLen:]}} }

// AppendSuccessIndication appends a Success Indication parameter.
func AppendSuccessIndication(b []byte, correlationID uint32) []byte {
	return appendCorrelation(b, ParamSuccess, correlationID)
}

// AppendErrorIndication appends an Error Cause Indication parameter without causes. Append causes
// with AppendCause, then call CloseParam.
func AppendErrorIndication(b []byte, correlationID uint32) []byte {
	return appendCorrelation(b, ParamErrorCause, correlationID)
}

func appendCorrelation(b []byte, t ParamType, id uint32) []byte {
	return binary.BigEndian.AppendUint32(appendTLVHeader(b, uint16(t), correlationLen), id)
}
