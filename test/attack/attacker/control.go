package attacker

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/sctp/wire"
)

var (
	controlMoves = []move{(*Peer).heartbeat, (*Peer).heartbeatAck, (*Peer).errors, (*Peer).congestion,
		(*Peer).shutdownComplete}
	rudeControl = []move{(*Peer).heartbeat, (*Peer).heartbeatAck, (*Peer).errors, (*Peer).errors, (*Peer).shutdown,
		(*Peer).shutdownAck, (*Peer).abort, (*Peer).soup, (*Peer).soup}
)

// heartbeat has information of any length.
func (p *Peer) heartbeat(b []byte) []byte {
	if p.One(4) {
		return chunk(b, wire.ChunkHeartbeat, p.flags(), p.tlvs(wire.ParamHeartbeatInfo))
	}
	return wire.AppendHeartbeat(b, p.Octets(p.Length(p.cfg.MTU-100)))
}

// heartbeatAck answers what was asked, an older question, or none.
func (p *Peer) heartbeatAck(b []byte) []byte {
	info := p.k.beat
	if len(p.k.beats) > 0 && p.One(3) {
		info = append([]byte(nil), pick(p.Choices, p.k.beats)...)
		if len(info) > 0 && p.One(2) {
			info[p.Below(len(info))] ^= byte(1 + p.Below(255))
		}
	}
	if info == nil || p.One(6) {
		info = p.Octets(p.Length(100))
	}
	return wire.AppendHeartbeatAck(b, info)
}

// errors is an ERROR with several causes.
func (p *Peer) errors(b []byte) []byte {
	return chunk(b, wire.ChunkError, p.flags(), p.causes())
}

func (p *Peer) causes() (v []byte) {
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
		v = p.tlv(v, code, p.Length(30))
		if len(v) > p.cfg.MTU-100 {
			break
		}
	}
	return v
}

// abort ends it, rarely.
func (p *Peer) abort(b []byte) []byte {
	if !p.One(12) {
		return p.heartbeat(b)
	}
	return chunk(b, wire.ChunkAbort, byte(p.Below(2)), p.causes())
}

// congestion is an ECNE or CWR.
func (p *Peer) congestion(b []byte) []byte {
	t, base := wire.ChunkECNE, p.k.sent
	if p.One(2) {
		t, base = wire.ChunkCWR, p.k.next
	}
	v := binary.BigEndian.AppendUint32(nil, uint32(base)+uint32(p.Below(20))-10)
	return chunk(b, t, p.flags(), append(v, p.rarely(12)...))
}

func (p *Peer) shutdown(b []byte) []byte {
	if !p.One(3) {
		return p.honestSack(b)
	}
	return chunk(b, wire.ChunkShutdown, p.flags(),
		append(binary.BigEndian.AppendUint32(nil, uint32(p.k.sent)+uint32(p.Below(3))), p.rarely(8)...))
}

func (p *Peer) shutdownAck(b []byte) []byte {
	return chunk(b, wire.ChunkShutdownAck, p.flags(), p.rarely(8))
}

func (p *Peer) shutdownComplete(b []byte) []byte {
	return chunk(b, wire.ChunkShutdownComplete, byte(p.Below(2)), p.rarely(8))
}

// soup is a chunk of any type with anything in it.
func (p *Peer) soup(b []byte) []byte {
	t := wire.ChunkType(p.Below(256))
	if p.One(2) {
		t = wire.ChunkType(p.Below(20))
	}
	if p.One(2) {
		return chunk(b, t, byte(p.Below(256)), p.tlvs(wire.ParamType(p.Below(20))))
	}
	return chunk(b, t, byte(p.Below(256)), p.Octets(p.Length(80)))
}
