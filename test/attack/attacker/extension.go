package attacker

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/sctp/wire"
)

// Chunks of extensions: rddp offers none of them; others do.
var (
	extensionMoves = []move{(*Peer).forwardTSN, (*Peer).reconfig, (*Peer).asconf, (*Peer).asconfAck, (*Peer).pad,
		(*Peer).packetDropped}
	rudeExtension = []move{(*Peer).forwardTSN, (*Peer).iForwardTSN, (*Peer).reconfig, (*Peer).asconf,
		(*Peer).asconfAck, (*Peer).auth, (*Peer).iData, (*Peer).packetDropped}
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
	return chunk(b, wire.ChunkForwardTSN, p.flags(), p.cut(v))
}

func (p *Peer) iForwardTSN(b []byte) []byte {
	v := binary.BigEndian.AppendUint32(nil, uint32(p.k.next)+uint32(p.Below(40))-8)
	for range p.Below(6) {
		v = binary.BigEndian.AppendUint16(v, uint16(p.Below(4)))
		v = append(v, 0, byte(p.Below(4)))
		v = binary.BigEndian.AppendUint32(v, p.Uint32())
	}
	return chunk(b, wire.ChunkIForwardTSN, p.flags(), p.cut(v))
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
	return chunk(b, wire.ChunkIData, byte(p.Below(16)), p.cut(append(v, p.payload()...)))
}

// reconfig is a RE-CONFIG with parameters that follow its rules at times.
func (p *Peer) reconfig(b []byte) (out []byte) {
	at := len(b)
	b = chunk(b, wire.ChunkReconfig, p.flags(), nil)
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
		b = wire.AppendParam(b, wire.ParamOutgoingReset+wire.ParamType(p.Below(6)), p.cut(v))
	}
	return closed(b, at)
}

// asconf asks for addresses to be added, taken away or made primary.
func (p *Peer) asconf(b []byte) []byte {
	at := len(b)
	b = chunk(b, wire.ChunkAsconf, p.flags(), binary.BigEndian.AppendUint32(nil, uint32(p.k.next)+uint32(p.Below(3))-1))
	if !p.One(6) {
		b = wire.AppendAddressParam(b, p.addr())
	}
	for range p.Below(4) {
		t := pick(p.Choices, []wire.ParamType{wire.ParamAddIP, wire.ParamDeleteIP, wire.ParamSetPrimary,
			wire.ParamErrorCause, wire.ParamSuccess, wire.ParamAdaptationIndication})
		v := binary.BigEndian.AppendUint32(nil, p.Uint32())
		if !p.One(4) {
			v = wire.AppendAddressParam(v, p.addr())
		}
		b = wire.AppendParam(b, t, p.cut(v))
	}
	return closed(b, at)
}

func (p *Peer) asconfAck(b []byte) []byte {
	v := binary.BigEndian.AppendUint32(nil, uint32(p.k.sent)+uint32(p.Below(4)))
	return chunk(b, wire.ChunkAsconfAck, p.flags(), append(v, p.tlvs(wire.ParamErrorCause)...))
}

func (p *Peer) auth(b []byte) []byte {
	v := binary.BigEndian.AppendUint16(nil, uint16(p.Below(3)))
	v = binary.BigEndian.AppendUint16(v, uint16(p.Below(5)))
	return chunk(b, wire.ChunkAuth, p.flags(), p.cut(append(v, p.Octets(p.Length(40))...)))
}

func (p *Peer) pad(b []byte) []byte { return wire.AppendPad(b, wire.ChunkHeaderLen+p.Length(200)) }

// packetDropped is the PKTDROP that some stacks know (draft-stewart-sctp-pktdrprep): a report with
// a packet in it.
func (p *Peer) packetDropped(b []byte) []byte {
	v := binary.BigEndian.AppendUint32(nil, p.Uint32())
	v = binary.BigEndian.AppendUint32(v, p.Uint32())
	v = binary.BigEndian.AppendUint32(v, uint32(p.Below(200)))
	v = wire.AppendHeader(v, p.cfg.RemotePort, p.cfg.LocalPort, p.k.localTag)
	v = p.data(v, wire.DataFields{Flags: whole, TSN: p.k.sent + wire.TSN(p.Below(4))}, p.payload())
	return chunk(b, 0x81, byte(p.Below(16)), p.cut(v))
}
