package attacker

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/sctp/wire"
)

// Config says whom a Peer attacks.
type Config struct {
	LocalPort, RemotePort uint16 // SCTP ports
	MTU                   int    // octets of the longest packet; default 1400
	// RDMA has the peer set up and break DDP sessions (RFC 5043); else DATA carries anything.
	RDMA bool
	// Careful leaves out what a victim may answer by ending the association, as far as that is
	// known, so that what comes behind is reached. Without it the attacker is careful for part of
	// the time.
	Careful bool
}

// Peer is one attacker at one SCTP port.
type Peer struct {
	*Choices
	cfg    Config
	k      knowledge
	mood   mood
	left   int // packets until the mood changes
	care   bool
	replay [][]byte // packets sent before
}

// mood is which moves a run of packets is made of.
type mood uint8

const (
	moodAny mood = iota
	moodSetup
	moodHonest
	moodData
	moodSack
	moodControl
	moodExtension
	moodRDMA
	numMoods
)

// New returns a peer that acts as c chooses.
func New(c *Choices, cfg Config) *Peer {
	if cfg.MTU == 0 {
		cfg.MTU = 1400
	}
	p := &Peer{Choices: c, cfg: cfg}
	p.k.forget(p.Uint32() | 1)
	return p
}

// Up says whether the peer believes that it has an association.
func (p *Peer) Up() bool { return p.k.up }

// Packet returns the next packet to send, with its checksum, or nil to let time pass.
func (p *Peer) Packet() []byte {
	if p.left--; p.left < 0 {
		p.mood, p.left, p.care = mood(p.Below(int(numMoods))), p.Below(12), p.cfg.Careful || p.Below(4) != 0
	}
	var b []byte
	switch {
	case !p.k.up && !p.One(6):
		b = p.begin()
	case p.k.up && p.mood == moodHonest:
		b = p.honest()
	case len(p.replay) > 0 && p.One(24):
		return pick(p.Choices, p.replay)
	case p.One(40):
		return nil
	default:
		b = p.attack()
	}
	if b == nil {
		return nil
	}
	wire.PutPacketChecksum([][]byte{b})
	if p.One(200) {
		b[8+p.Below(4)] ^= 1 << p.Below(8)
	}
	if p.One(16) {
		if len(p.replay) < 32 {
			p.replay = append(p.replay, b)
		} else {
			p.replay[p.Below(len(p.replay))] = b
		}
	}
	return b
}

// header begins a packet with the tag that the victim wants to see.
func (p *Peer) header(tag uint32) []byte {
	return wire.AppendHeader(make([]byte, 0, p.cfg.MTU+64), p.cfg.LocalPort, p.cfg.RemotePort, tag)
}

// begin goes one step further in the setup of an association.
func (p *Peer) begin() []byte {
	switch {
	case p.k.invited && p.One(2): // the victim has sent an INIT: answer it
		p.k.invited = false
		return p.initAck(p.header(p.k.peerTag))
	case p.k.cookie != nil && !p.One(8):
		b := wire.AppendCookieEcho(p.header(p.k.peerTag), p.k.cookie)
		if p.One(3) {
			b = p.chunks(b, 1+p.Below(4))
		}
		return b
	}
	return p.init(p.header(0))
}

// attack makes a packet of several moves, and spoils it perhaps.
func (p *Peer) attack() []byte {
	tag := p.k.peerTag
	if p.One(10) { // a packet that must change nothing
		tag = pick(p.Choices, []uint32{p.k.localTag, 0, p.k.formerTag, p.Uint32()})
	}
	n := 1 + p.Below(4)
	if p.One(8) {
		n = 1 + p.Below(300)
	}
	b := p.chunks(p.header(tag), n)
	if !p.care && p.One(3) {
		b = p.spoil(b)
	}
	return b
}

// chunks appends up to n chunks, as far as they fit.
func (p *Peer) chunks(b []byte, n int) []byte {
	repeat := p.One(6) // the same move again and again
	var m move
	for range n {
		if m == nil || !repeat {
			m = p.move()
		}
		next := m(p, b)
		for len(next)%4 != 0 {
			next = append(next, 0)
		}
		if len(next) > p.cfg.MTU {
			if len(b) > wire.CommonHeaderLen {
				break
			}
			next = next[:p.cfg.MTU&^3]
		}
		b = next
	}
	return b
}

// move makes one chunk.
type move func(*Peer, []byte) []byte

// topic is the moves of one kind: those that a victim has to live with, and those that may make it
// end the association.
type topic struct{ careful, rude []move }

var topics = [numMoods]topic{
	moodSetup:     {setupMoves, rudeSetup},
	moodHonest:    {dataMoves, dataMoves},
	moodData:      {dataMoves, rudeData},
	moodSack:      {sackMoves, rudeSack},
	moodControl:   {controlMoves, rudeControl},
	moodExtension: {extensionMoves, rudeExtension},
	moodRDMA:      {dataMoves, rudeData},
}

func (p *Peer) move() move {
	m := p.mood
	if m == moodAny || p.One(5) {
		m = moodSetup + mood(p.Below(int(numMoods-moodSetup)))
	}
	switch t := &topics[m]; {
	case m == moodRDMA && p.cfg.RDMA:
		return (*Peer).message
	case p.care:
		return pick(p.Choices, t.careful)
	default:
		return pick(p.Choices, t.rude)
	}
}

// honest is what a good peer would send: an acknowledgement, or data in order.
func (p *Peer) honest() []byte {
	b := p.header(p.k.peerTag)
	if p.k.haveSent {
		b = wire.AppendSack(b, wire.SackFields{CumTSN: p.k.sent, ARwnd: 1 << 20})
	}
	if p.k.beat != nil {
		b = wire.AppendHeartbeatAck(b, p.k.beat)
		p.k.beat = nil
	}
	for range p.Below(3) {
		if p.cfg.RDMA {
			b = p.message(b)
		} else {
			b = p.inOrder(b)
		}
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
	}
	if len(b) == wire.CommonHeaderLen || len(b) > p.cfg.MTU {
		return wire.AppendHeartbeat(p.header(p.k.peerTag), []byte("are you there?"))
	}
	return b
}

// chunk appends a chunk of any content.
func chunk(b []byte, t wire.ChunkType, flags byte, value []byte) []byte {
	b = append(b, byte(t), flags)
	b = binary.BigEndian.AppendUint16(b, uint16(wire.ChunkHeaderLen+len(value)))
	return append(b, value...)
}
