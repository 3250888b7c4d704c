package attacker

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/forge"
)

var (
	controlMoves = []move{(*Peer).appendHeartbeat, (*Peer).heartbeatAck, (*Peer).appendErrors, (*Peer).appendECN,
		(*Peer).shutdownComplete}
	rudeControl = []move{(*Peer).appendHeartbeat, (*Peer).heartbeatAck, (*Peer).appendErrors, (*Peer).appendErrors,
		(*Peer).appendShutdown,
		(*Peer).shutdownAck, (*Peer).appendAbort, (*Peer).randomChunk, (*Peer).randomChunk}
)

// appendHeartbeat has information of any length.
func (p *Peer) appendHeartbeat(b []byte) []byte {
	if p.One(4) {
		return forge.AppendChunk(b, wire.ChunkHeartbeat, p.drawFlags(), p.paramList(wire.ParamHeartbeatInfo))
	}
	return wire.AppendHeartbeat(b, p.Octets(p.Length(p.cfg.MTU-100)))
}

// heartbeatAck answers what was asked, an older question, or none.
func (p *Peer) heartbeatAck(b []byte) []byte {
	info := p.k.beat
	if len(p.k.beats) > 0 && p.One(3) {
		info = append([]byte(nil), pickOne(p.Choices, p.k.beats)...)
		if len(info) > 0 && p.One(2) {
			info[p.Below(len(info))] ^= byte(1 + p.Below(255))
		}
	}
	if info == nil || p.One(6) {
		info = p.Octets(p.Length(100))
	}
	return wire.AppendHeartbeatAck(b, info)
}

// appendErrors is an ERROR with several causes.
func (p *Peer) appendErrors(b []byte) []byte {
	return forge.AppendChunk(b, wire.ChunkError, p.drawFlags(), p.drawCauses())
}

func (p *Peer) drawCauses() (v []byte) {
	n := p.Below(4)
	if p.One(6) {
		n = p.Below(200)
	}
	for range n {
		code := uint16(1 + p.Below(13))
		switch p.Below(8) {
		case 0:
			code = uint16(0xa0 + p.Below(6)) // of RFC 5061
		case 1:
			code = uint16(p.Uint32())
		}
		v = p.appendTLV(v, code, p.Length(30))
		if len(v) > p.cfg.MTU-100 {
			break
		}
	}
	return v
}

// appendAbort ends it, rarely.
func (p *Peer) appendAbort(b []byte) []byte {
	if !p.One(12) {
		return p.appendHeartbeat(b)
	}
	return forge.AppendChunk(b, wire.ChunkAbort, byte(p.Below(2)), p.drawCauses())
}

// appendECN is an ECNE or CWR.
func (p *Peer) appendECN(b []byte) []byte {
	t, base := wire.ChunkECNE, p.k.sent
	if p.One(2) {
		t, base = wire.ChunkCWR, p.k.next
	}
	v := binary.BigEndian.AppendUint32(nil, uint32(base)+uint32(p.Below(20))-10)
	return forge.AppendChunk(b, t, p.drawFlags(), append(v, p.drawRareValue(12)...))
}

func (p *Peer) appendShutdown(b []byte) []byte {
	if !p.One(3) {
		return p.honestSack(b)
	}
	return forge.AppendChunk(b, wire.ChunkShutdown, p.drawFlags(),
		append(binary.BigEndian.AppendUint32(nil, uint32(p.k.sent)+uint32(p.Below(3))), p.drawRareValue(8)...))
}

func (p *Peer) shutdownAck(b []byte) []byte {
	return forge.AppendChunk(b, wire.ChunkShutdownAck, p.drawFlags(), p.drawRareValue(8))
}

func (p *Peer) shutdownComplete(b []byte) []byte {
	return forge.AppendChunk(b, wire.ChunkShutdownComplete, byte(p.Below(2)), p.drawRareValue(8))
}

// randomChunk is a chunk of any type with anything in it.
func (p *Peer) randomChunk(b []byte) []byte {
	t := wire.ChunkType(p.Below(256))
	if p.One(2) {
		t = wire.ChunkType(p.Below(20))
	}
	if p.One(2) {
		return forge.AppendChunk(b, t, byte(p.Below(256)), p.paramList(wire.ParamType(p.Below(20))))
	}
	return forge.AppendChunk(b, t, byte(p.Below(256)), p.Octets(p.Length(80)))
}
