package attacker

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/sctp/wire"
)

// cutValue shortens a value now and then, so that it ends within a field.
func (p *Peer) cutValue(v []byte) []byte {
	if p.One(5) {
		return v[:p.Below(len(v)+1)]
	}
	return v
}

// appendTLV appends a parameter or cause; its length may be a lie.
func (p *Peer) appendTLV(b []byte, t uint16, n int) []byte {
	length := 4 + n
	if p.One(12) {
		length = int(uint16(p.Uint32()))
	} else if p.One(12) {
		length += p.Below(9) - 4
	}
	b = binary.BigEndian.AppendUint16(b, t)
	b = binary.BigEndian.AppendUint16(b, uint16(max(length, 0)))
	b = append(b, p.Octets(n)...)
	for len(b)%4 != 0 && !p.One(10) {
		b = append(b, 0)
	}
	return b
}

var paramTypes = []wire.ParamType{wire.ParamHeartbeatInfo, wire.ParamIPv4, wire.ParamIPv6, wire.ParamStateCookie,
	wire.ParamUnrecognizedParam,
	wire.ParamCookiePreservative, wire.ParamHostName, wire.ParamSupportedAddrTypes, wire.ParamECNCapable,
	wire.ParamOutgoingReset,
	wire.ParamIncomingReset, wire.ParamTSNReset, wire.ParamReconfigResponse, wire.ParamAddOutStreams,
	wire.ParamAddInStreams, wire.ParamRandom,
	wire.ParamChunkList, wire.ParamHMACAlgo, wire.ParamPadding, wire.ParamSupportedExtensions, wire.ParamForwardTSN,
	wire.ParamAddIP,
	wire.ParamDeleteIP, wire.ParamErrorCause, wire.ParamSetPrimary, wire.ParamSuccess, wire.ParamAdaptationIndication,
	0x8001, 0xFFFF, 0, 0x3FFF, 0x7FFF}

// appendParam appends any parameter, or one within another.
func (p *Peer) appendParam(b []byte, depth int) []byte {
	t := uint16(pickOne(p.Choices, paramTypes))
	if p.One(8) {
		t = uint16(p.Uint32())
	}
	if depth < 2 && p.One(6) {
		inner := p.appendParam(nil, depth+1)
		b = binary.BigEndian.AppendUint16(b, t)
		b = binary.BigEndian.AppendUint16(b, uint16(4+len(inner)))
		return append(b, inner...)
	}
	return p.appendTLV(b, t, p.Length(40))
}

// paramList is a list of parameters that begins with one of type t.
func (p *Peer) paramList(t wire.ParamType) []byte {
	b := p.appendTLV(nil, uint16(t), p.Length(40))
	for range p.Below(3) {
		b = p.appendParam(b, 0)
	}
	return b
}

// damagePacket damages a packet behind its header.
func (p *Peer) damagePacket(b []byte) []byte {
	body := b[wire.CommonHeaderLen:]
	if len(body) == 0 {
		return b
	}
	switch p.Below(6) {
	case 0: // an octet
		for range 1 + p.Below(4) {
			body[p.Below(len(body))] = byte(p.Below(256))
		}
	case 1: // the packet ends early
		return b[:wire.CommonHeaderLen+p.Below(len(body)+1)]
	case 2: // or late
		return append(b, p.Octets(1+p.Length(16))...)
	case 3, 4: // the length of one of its chunks
		n := p.Below(8)
		for at := 0; at+wire.ChunkHeaderLen <= len(body); n-- {
			length := int(binary.BigEndian.Uint16(body[at+2:]))
			if next := at + wire.PaddedLen(max(length, 4)); n > 0 && next+wire.ChunkHeaderLen <= len(body) {
				at = next
				continue
			}
			switch p.Below(3) {
			case 0:
				length = p.Below(5)
			case 1:
				length += p.Below(9) - 4
			default:
				length = int(uint16(p.Uint32()))
			}
			binary.BigEndian.PutUint16(body[at+2:], uint16(max(length, 0)))
			break
		}
	default: // two octets that may be a length
		if len(body) > 2 {
			binary.BigEndian.PutUint16(body[p.Below(len(body)-1):], uint16(p.Uint32()))
		}
	}
	return b
}
