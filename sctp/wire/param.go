package wire

import "encoding/binary"

// Param is a view of one parameter: header and value without padding (RFC 9260 section 3.2.1).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|        Parameter Type         |       Parameter Length        |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	/                        Parameter Value                        /
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Param []byte

// Type returns the Parameter Type.
func (p Param) Type() ParamType { return ParamType(binary.BigEndian.Uint16(p)) }

// Value returns the octets after the parameter header, without padding.
func (p Param) Value() []byte { return p[paramHeaderLen:] }

// Params walks parameters. Copying it copies the position.
type Params struct{ tlvs tlvReader }

// Next returns the next parameter, and false at the end or at a malformed parameter; Err tells the
// two apart.
func (ps *Params) Next() (Param, bool) {
	p, ok := ps.tlvs.next()
	return p, ok
}

// Err returns nil when Next has reached the proper end, else ErrParamShort or ErrParamPartial.
func (ps *Params) Err() error { return ps.tlvs.asError() }

// AppendParam appends a parameter with its padding. A value longer than MaxParamLen-4 octets is cut
// to that length.
func AppendParam(b []byte, t ParamType, value []byte) []byte { return appendTLV(b, uint16(t), value) }

// checkType returns an error unless p is of type t and its length is from least to most octets,
// header included.
func (p Param) checkType(t ParamType, least, most int) error {
	if len(p) < paramHeaderLen {
		return ErrParamShort
	}
	if p.Type() != t {
		return ErrParamType
	}
	if len(p) < least || len(p) > most {
		return ErrParamLength
	}
	return nil
}

// readUint32 returns the value of a parameter of type t and length 8.
func (p Param) readUint32(t ParamType) (uint32, error) {
	if err := p.checkType(t, 8, 8); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint32(p[4:]), nil
}

func appendUint32Param(b []byte, t ParamType, v uint32) []byte {
	return binary.BigEndian.AppendUint32(appendTLVHeader(b, uint16(t), 8), v)
}
