package attacker

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/forge"
)

// Chunks of extensions. An association with DDP has none of those that are asked for here.
var (
	extensionMoves = []move{(*Peer).forwardTSN, (*Peer).appendReconfig, (*Peer).appendASCONF, (*Peer).asconfAck,
		(*Peer).appendPad,
		(*Peer).packetDropped}
	rudeExtension = []move{(*Peer).forwardTSN, (*Peer).iForwardTSN, (*Peer).appendReconfig, (*Peer).appendASCONF,
		(*Peer).asconfAck, (*Peer).appendAuth, (*Peer).iData, (*Peer).packetDropped}
)

func (p *Peer) forwardTSN(b []byte) []byte {
	v := binary.BigEndian.AppendUint32(nil, uint32(p.k.next)+uint32(p.Below(40))-8)
	if p.One(6) {
		v = binary.BigEndian.AppendUint32(nil, p.Uint32())
	}
	for range p.Below(6) {
		v = binary.BigEndian.AppendUint16(v, uint16(p.Below(4)))
		v = binary.BigEndian.AppendUint16(v, uint16(p.k.ssn[0])+uint16(p.Below(8))-2)
	}
	if !p.One(3) {
		p.k.next = wire.TSN(binary.BigEndian.Uint32(v)) + 1
	}
	return forge.AppendChunk(b, wire.ChunkForwardTSN, p.drawFlags(), p.cutValue(v))
}

func (p *Peer) iForwardTSN(b []byte) []byte {
	v := binary.BigEndian.AppendUint32(nil, uint32(p.k.next)+uint32(p.Below(40))-8)
	for range p.Below(6) {
		v = binary.BigEndian.AppendUint16(v, uint16(p.Below(4)))
		v = append(v, 0, byte(p.Below(4)))
		v = binary.BigEndian.AppendUint32(v, p.Uint32())
	}
	return forge.AppendChunk(b, wire.ChunkIForwardTSN, p.drawFlags(), p.cutValue(v))
}

// iData is DATA with a message identifier (RFC 8260).
func (p *Peer) iData(b []byte) []byte {
	v := binary.BigEndian.AppendUint32(nil, uint32(p.k.next)+uint32(p.Below(4)))
	v = binary.BigEndian.AppendUint16(v, uint16(p.Below(4)))
	v = append(v, 0, 0)
	v = binary.BigEndian.AppendUint32(v, uint32(p.Below(6)))
	v = binary.BigEndian.AppendUint32(v, uint32(p.Below(6)))
	if p.One(2) {
		p.k.next++
	}
	return forge.AppendChunk(b, wire.ChunkIData, byte(p.Below(16)), p.cutValue(append(v, p.drawPayload()...)))
}

// countedReconfig is a RE-CONFIG whose numbers are mostly right.
func (p *Peer) countedReconfig(b []byte) (out []byte) {
	at := len(b)
	b = forge.AppendChunk(b, wire.ChunkReconfig, p.drawFlags(), nil)
	n, seq := 1, p.k.request
	if p.One(4) {
		n = 2
	}
	for range n {
		kind := wire.ParamOutgoingReset + wire.ParamType(p.Below(6))
		of := seq
		switch {
		case kind == wire.ParamReconfigResponse:
			of = p.k.asked
		case p.One(4): // the last one again
			of--
		default:
			seq++
		}
		if p.One(12) {
			of = p.Uint32()
		}
		v := binary.BigEndian.AppendUint32(nil, of)
		switch kind {
		case wire.ParamOutgoingReset:
			v = binary.BigEndian.AppendUint32(v, p.k.asked)
			v = binary.BigEndian.AppendUint32(v, uint32(p.k.next)+uint32(p.Below(6))-1)
			v = p.appendStreams(v)
		case wire.ParamIncomingReset:
			v = p.appendStreams(v)
		case wire.ParamReconfigResponse:
			v = binary.BigEndian.AppendUint32(v, uint32(p.Below(8)))
			if p.One(2) {
				v = binary.BigEndian.AppendUint32(v, uint32(p.k.next)+uint32(p.Below(2))<<31)
				v = binary.BigEndian.AppendUint32(v, uint32(p.k.sent)+1+uint32(p.Below(2))<<31)
			}
		case wire.ParamAddOutStreams, wire.ParamAddInStreams:
			v = append(v, byte(p.Below(2)*p.Below(256)), byte(p.Below(4)), 0, 0)
		}
		if p.One(8) {
			v = p.cutValue(v)
		}
		b = wire.AppendParam(b, kind, v)
	}
	return forge.SetLength(b, at)
}

// appendStreams appends a few streams, or none, which are all.
func (p *Peer) appendStreams(v []byte) []byte {
	for range p.Below(5) {
		v = binary.BigEndian.AppendUint16(v, uint16(p.Below(5)))
	}
	return v
}

// appendReconfig is a RE-CONFIG with parameters that follow its rules at times.
func (p *Peer) appendReconfig(b []byte) (out []byte) {
	if p.cfg.Extensions && !p.One(4) {
		return p.countedReconfig(b)
	}
	at := len(b)
	b = forge.AppendChunk(b, wire.ChunkReconfig, p.drawFlags(), nil)
	for range 1 + p.Below(3) {
		v := binary.BigEndian.AppendUint32(nil, uint32(p.k.next)+uint32(p.Below(3))-1)
		if p.One(3) {
			v = binary.BigEndian.AppendUint32(nil, p.Uint32())
		}
		for range p.Below(4) {
			v = binary.BigEndian.AppendUint32(v, p.Uint32())
		}
		for range p.Below(5) {
			v = binary.BigEndian.AppendUint16(v, uint16(p.Below(5)))
		}
		b = wire.AppendParam(b, wire.ParamOutgoingReset+wire.ParamType(p.Below(6)), p.cutValue(v))
	}
	return forge.SetLength(b, at)
}

// appendASCONF asks for addresses to be added, taken away or made primary.
func (p *Peer) appendASCONF(b []byte) []byte {
	at := len(b)
	b = forge.AppendChunk(b, wire.ChunkAsconf, p.drawFlags(),
		binary.BigEndian.AppendUint32(nil, uint32(p.k.next)+uint32(p.Below(3))-1))
	if !p.One(6) {
		b = wire.AppendAddressParam(b, p.drawAddr())
	}
	for range p.Below(4) {
		t := pickOne(p.Choices, []wire.ParamType{wire.ParamAddIP, wire.ParamDeleteIP, wire.ParamSetPrimary,
			wire.ParamErrorCause, wire.ParamSuccess, wire.ParamAdaptationIndication})
		v := binary.BigEndian.AppendUint32(nil, p.Uint32())
		if !p.One(4) {
			v = wire.AppendAddressParam(v, p.drawAddr())
		}
		b = wire.AppendParam(b, t, p.cutValue(v))
	}
	return forge.SetLength(b, at)
}

func (p *Peer) asconfAck(b []byte) []byte {
	v := binary.BigEndian.AppendUint32(nil, uint32(p.k.sent)+uint32(p.Below(4)))
	return forge.AppendChunk(b, wire.ChunkAsconfAck, p.drawFlags(), append(v, p.paramList(wire.ParamErrorCause)...))
}

func (p *Peer) appendAuth(b []byte) []byte {
	v := binary.BigEndian.AppendUint16(nil, uint16(p.Below(3)))
	v = binary.BigEndian.AppendUint16(v, uint16(p.Below(5)))
	return forge.AppendChunk(b, wire.ChunkAuth, p.drawFlags(), p.cutValue(append(v, p.Octets(p.Length(40))...)))
}

func (p *Peer) appendPad(b []byte) []byte {
	return wire.AppendPad(b, wire.ChunkHeaderLen+p.Length(200))
}

// packetDropped is the PKTDROP that some stacks know (draft-stewart-sctp-pktdrprep): a report with
// a packet in it.
func (p *Peer) packetDropped(b []byte) []byte {
	v := binary.BigEndian.AppendUint32(nil, p.Uint32())
	v = binary.BigEndian.AppendUint32(v, p.Uint32())
	v = binary.BigEndian.AppendUint32(v, uint32(p.Below(200)))
	v = wire.AppendHeader(v, p.cfg.RemotePort, p.cfg.LocalPort, p.k.localTag)
	v = p.appendData(v, wire.DataFields{Flags: whole, TSN: p.k.sent + wire.TSN(p.Below(4))}, p.drawPayload())
	return forge.AppendChunk(b, 0x81, byte(p.Below(16)), p.cutValue(v))
}
