package attacker

import (
	"encoding/binary"
	"net/netip"

	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/forge"
)

var (
	setupMoves = []move{(*Peer).cookieEcho, (*Peer).cookieAck}
	rudeSetup  = []move{(*Peer).initAgain, (*Peer).initAck, (*Peer).cookieEcho, (*Peer).cookieAck, (*Peer).shutdownAck}
)

// init makes an INIT, now and then for a new life: to the victim a restart.
func (p *Peer) init(b []byte) []byte {
	if p.One(4) {
		up := p.k.up
		p.k.beginLife(p.Uint32() | 1)
		p.k.up = up && p.One(2)
	}
	return p.initChunk(b, wire.ChunkInit)
}

// initAgain is an INIT within an association, or in a collision.
func (p *Peer) initAgain(b []byte) []byte {
	if p.One(3) {
		binary.BigEndian.PutUint32(b[4:], 0)
	}
	return p.initChunk(b, wire.ChunkInit)
}

// initAck answers an INIT; its cookie is the peer's own, or one of the victim's.
func (p *Peer) initAck(b []byte) []byte { return p.initChunk(b, wire.ChunkInitAck) }

func (p *Peer) initChunk(b []byte, t wire.ChunkType) []byte {
	f := wire.InitFields{Tag: p.k.localTag, ARwnd: 1 << 20, OutStreams: 65535, InStreams: 65535, TSN: p.k.next}
	if p.One(6) {
		f.Tag = p.Uint32()
	}
	if p.One(4) {
		f.ARwnd = p.Uint32()
	}
	if p.One(4) {
		f.OutStreams, f.InStreams = uint16(p.Uint32()), uint16(p.Uint32())
	}
	if p.One(8) {
		f.TSN = wire.TSN(p.Uint32())
		p.k.next, p.k.acked = f.TSN, f.TSN-1
	}
	at := len(b)
	b = wire.AppendInit(b, t, f)
	if t == wire.ChunkInitAck && !p.One(12) {
		cookie := []byte("whatever the victim is to return")
		switch {
		case len(p.k.cookies) > 0 && p.One(2):
			cookie = pickOne(p.Choices, p.k.cookies)
		case p.One(6):
			cookie = p.Octets(p.Length(600))
		}
		b = wire.AppendParam(b, wire.ParamStateCookie, cookie)
	}
	if p.cfg.RDMA && !p.One(10) {
		b = wire.AppendAdaptationIndication(b, 1)
	}
	if p.cfg.Extensions && !p.One(3) {
		b = wire.AppendZeroChecksumAcceptable(b, wire.ErrorDetectionMethod(1+p.Below(8)/7))
	}
	isListed := !p.One(3)
	p.k.interleaves = isListed && p.cfg.Interleaving
	p.k.request = uint32(f.TSN)
	if isListed { // what the extensions need to be on, where the victim has them
		b = wire.AppendForwardTSNSupported(b)
		b = wire.AppendSupportedExtensions(b, wire.ChunkForwardTSN, wire.ChunkReconfig, wire.ChunkAsconf,
			wire.ChunkAsconfAck,
			wire.ChunkAuth, wire.ChunkIData, wire.ChunkIForwardTSN)
	}
	for range p.Below(4) {
		b = p.initParam(b)
	}
	if p.One(10) {
		for range p.Below(80) {
			b = wire.AppendAddressParam(b, p.drawAddr())
		}
	}
	return forge.SetLength(b, at)
}

// initParam appends a parameter of an INIT, right or wrong.
func (p *Peer) initParam(b []byte) []byte {
	switch p.Below(8) {
	case 0:
		return wire.AppendAddressParam(b, p.drawAddr())
	case 1:
		return wire.AppendCookiePreservative(b, p.Uint32())
	case 2:
		return wire.AppendParam(b, wire.ParamSupportedAddrTypes, p.Octets(p.Length(12)))
	case 3:
		return wire.AppendParam(b, wire.ParamECNCapable, nil)
	case 4:
		return wire.AppendParam(b, wire.ParamHostName, append(p.Octets(p.Length(40)), 0))
	case 5:
		return wire.AppendAdaptationIndication(b, p.Uint32())
	}
	return p.appendParam(b, 0)
}

// drawAddr is any address, of the victim's own network now and then.
func (p *Peer) drawAddr() netip.Addr {
	switch p.Below(4) {
	case 0:
		return netip.AddrFrom4([4]byte(p.Octets(4)))
	case 1:
		return netip.AddrFrom16([16]byte(p.Octets(16)))
	case 2:
		return netip.AddrFrom4([4]byte{127, 0, 0, byte(p.Below(256))})
	}
	return netip.AddrFrom4([4]byte{10, byte(p.Below(2)), 0, byte(p.Below(4))})
}

// cookieEcho returns a cookie of the victim's: the last one, an older one, one that is changed, or
// the peer's own.
func (p *Peer) cookieEcho(b []byte) []byte {
	var cookie []byte
	if len(p.k.cookies) > 0 {
		cookie = p.k.cookies[len(p.k.cookies)-1]
	}
	switch p.Below(6) {
	case 0:
		if len(p.k.cookies) > 0 {
			cookie = pickOne(p.Choices, p.k.cookies)
		}
	case 1:
		if len(p.k.mine) > 0 {
			cookie = pickOne(p.Choices, p.k.mine)
		}
	case 2:
		cookie = append([]byte(nil), cookie...)
		if len(cookie) > 0 {
			cookie[p.Below(len(cookie))] ^= 1 << p.Below(8)
		}
	case 3:
		cookie = cookie[:p.Below(len(cookie)+1)]
	}
	if p.One(12) {
		cookie = p.Octets(p.Length(p.cfg.MTU - 40))
	}
	return forge.AppendChunk(b, wire.ChunkCookieEcho, p.drawFlags(), cookie)
}

func (p *Peer) cookieAck(b []byte) []byte {
	return forge.AppendChunk(b, wire.ChunkCookieAck, p.drawFlags(), p.drawRareValue(8))
}

// drawFlags are mostly 0.
func (p *Peer) drawFlags() byte {
	if p.One(8) {
		return byte(p.Below(256))
	}
	return 0
}

// drawRareValue is a value where there should be none.
func (p *Peer) drawRareValue(most int) []byte {
	if p.One(8) {
		return p.Octets(p.Length(most))
	}
	return nil
}
