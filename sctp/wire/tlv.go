package wire

import "encoding/binary"

// paramHeaderLen is the length of the type (or cause code) and length of a parameter or error
// cause.
const paramHeaderLen = 4

// MaxParamLen is the largest length of a parameter or error cause in octets, header included.
const MaxParamLen = 1<<16 - 1

// tlvReader walks Type-Length-Value fields: parameters and error causes share the form of RFC 9260
// section 3.2.1.
type tlvReader struct {
	rest []byte
	err  FormatError
}

// next returns header and value of the next field without padding. A chunk length may or may not
// count the last field's padding (RFC 9260 section 3.2).
func (ts *tlvReader) next() ([]byte, bool) {
	b := ts.rest
	if len(b) == 0 {
		return nil, false
	}
	n, err := tlvLen(b)
	if err != 0 {
		ts.rest, ts.err = nil, err
		return nil, false
	}
	ts.rest = b[min(PaddedLen(n), len(b)):]
	return b[:n:n], true
}

func (ts *tlvReader) asError() error {
	if ts.err == 0 {
		return nil
	}
	return ts.err
}

// tlvLen returns the length of the field at the start of b, which lies within b.
func tlvLen(b []byte) (int, FormatError) {
	if len(b) < paramHeaderLen {
		return 0, ErrParamShort
	}
	n := int(binary.BigEndian.Uint16(b[2:]))
	if n < paramHeaderLen {
		return 0, ErrParamShort
	}
	if n > len(b) {
		return 0, ErrParamPartial
	}
	return n, 0
}

// appendTLV appends a field with its padding. A value that does not fit MaxParamLen is cut.
func appendTLV(b []byte, t uint16, value []byte) []byte {
	value = value[:min(len(value), MaxParamLen-paramHeaderLen)]
	b = appendTLVHeader(b, t, paramHeaderLen+len(value))
	b = append(b, value...)
	return appendPadding(b, len(value))
}

func appendTLVHeader(b []byte, t uint16, length int) []byte {
	return append(b, byte(t>>8), byte(t), byte(length>>8), byte(length))
}

// CloseParam completes the parameter or error cause that starts at b[start], after others were
// appended to it, as CloseChunk does for a chunk. The length counts the padding of every inner one
// but the last. Those that would take it past MaxParamLen are left out, whole.
//
//	start := len(b)
//	b = wire.AppendCause(b, wire.CauseRestart, nil)
//	b = wire.AppendAddressParam(b, added)
//	b = wire.CloseParam(b, start)
func CloseParam(b []byte, start int) []byte {
	fixed := paramHeaderLen
	switch Param(b[start:]).Type() {
	case ParamAddIP, ParamDeleteIP, ParamErrorCause, ParamSetPrimary, ParamSuccess:
		fixed = correlationLen
	}
	return closeTLVs(b, start, fixed)
}

// closeTLVs sets the 16-bit length at b[start+2], its place in chunks and parameters alike. It
// covers fixed octets and the Type-Length-Value fields after them. closeTLVs pads with zeros.
func closeTLVs(b []byte, start, fixed int) []byte {
	rest := tlvReader{rest: b[start+fixed:]}
	end := fixed // the end of the last field, without its padding
	for {
		f, ok := rest.next()
		if !ok || PaddedLen(end)+len(f) > MaxParamLen {
			break
		}
		end = PaddedLen(end) + len(f)
	}
	return setLength(b[:start+end], start)
}

// setLength sets the 16-bit length at b[start+2] to all of b[start:] and pads with zeros.
func setLength(b []byte, start int) []byte {
	n := len(b) - start
	binary.BigEndian.PutUint16(b[start+2:], uint16(n))
	return appendPadding(b, n)
}

// Uint16List is a view of consecutive 16-bit numbers in network byte order: stream numbers, HMAC
// identifiers, address or parameter types.
type Uint16List []byte

// Len returns how many numbers there are. A last odd octet does not count.
func (l Uint16List) Len() int { return len(l) / 2 }

// At returns number i, 0 <= i < Len.
func (l Uint16List) At(i int) uint16 { return binary.BigEndian.Uint16(l[2*i:]) }
