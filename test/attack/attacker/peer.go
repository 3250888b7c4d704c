package attacker

import (
	"github.com/rddp-go/rddp/sctp/wire"
)

// Config says whom a Peer attacks.
type Config struct {
	LocalPort, RemotePort uint16 // SCTP ports
	MTU                   int    // octets of the longest packet; default 1400
	// RDMA has the peer set up and break DDP sessions (RFC 5043); else DATA carries anything.
	RDMA bool
	// The victim offers extensions, Interleaving is I-DATA. The attacker counts what their chunks
	// count.
	Extensions, Interleaving bool
	// Careful leaves out what a victim may answer by ending the association, as far as that is
	// known, so that what comes behind is reached. Without it the attacker is careful for part of
	// the time.
	Careful bool
}

// Peer is one attacker at one SCTP port.
type Peer struct {
	*Choices
	cfg    Config
	k      victimState
	mood   moveSet
	left   int // packets until the mood changes
	care   bool
	replay [][]byte // packets sent before
}

// moveSet is which moves a run of packets is made of.
type moveSet uint8

const (
	moodAny moveSet = iota
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
	p.k.beginLife(p.Uint32() | 1)
	return p
}

// Up says whether the peer believes that it has an association.
func (p *Peer) Up() bool { return p.k.up }

// Packet returns the next packet to send, with its checksum, or nil to let time pass.
func (p *Peer) Packet() []byte {
	if p.left--; p.left < 0 {
		p.mood, p.left, p.care = moveSet(p.Below(int(numMoods))), p.Below(12), p.cfg.Careful || p.Below(4) != 0
	}
	var b []byte
	switch {
	case !p.k.up && !p.One(6):
		b = p.setupPacket()
	case p.k.up && p.mood == moodHonest:
		b = p.honestPacket()
	case len(p.replay) > 0 && p.One(24):
		return pickOne(p.Choices, p.replay)
	case p.One(40):
		return nil
	default:
		b = p.attackPacket()
	}
	if b == nil {
		return nil
	}
	if wire.PutPacketChecksum([][]byte{b}); p.cfg.Extensions && p.k.up && p.One(3) {
		wire.PutChecksum(b, 0)
	}
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

// packetHeader begins a packet with the tag that the victim wants to see.
func (p *Peer) packetHeader(tag uint32) []byte {
	return wire.AppendHeader(make([]byte, 0, p.cfg.MTU+64), p.cfg.LocalPort, p.cfg.RemotePort, tag)
}

// setupPacket goes one step further in the setup of an association.
func (p *Peer) setupPacket() []byte {
	switch {
	case p.k.invited && p.One(2): // the victim has sent an INIT: answer it
		p.k.invited = false
		return p.initAck(p.packetHeader(p.k.peerTag))
	case p.k.cookie != nil && !p.One(8):
		b := wire.AppendCookieEcho(p.packetHeader(p.k.peerTag), p.k.cookie)
		if p.One(3) {
			b = p.appendChunks(b, 1+p.Below(4))
		}
		return b
	}
	return p.init(p.packetHeader(0))
}

// attackPacket makes a packet of several moves, and spoils it perhaps.
func (p *Peer) attackPacket() []byte {
	tag := p.k.peerTag
	if p.One(10) { // a packet that must change nothing
		tag = pickOne(p.Choices, []uint32{p.k.localTag, 0, p.k.formerTag, p.Uint32()})
	}
	n := 1 + p.Below(4)
	if p.One(8) {
		n = 1 + p.Below(300)
	}
	b := p.appendChunks(p.packetHeader(tag), n)
	if !p.care && p.One(3) {
		b = p.damagePacket(b)
	}
	return b
}

// appendChunks appends up to n chunks, as far as they fit.
func (p *Peer) appendChunks(b []byte, n int) []byte {
	repeat := p.One(6) // the same move again and again
	var m move
	for range n {
		if m == nil || !repeat {
			m = p.drawMove()
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

// moveTopic is the moves of one kind: those that a victim has to live with, and those that may make
// it end the association.
type moveTopic struct{ careful, rude []move }

var topics = [numMoods]moveTopic{
	moodSetup:     {setupMoves, rudeSetup},
	moodHonest:    {dataMoves, dataMoves},
	moodData:      {dataMoves, rudeData},
	moodSack:      {sackMoves, rudeSack},
	moodControl:   {controlMoves, rudeControl},
	moodExtension: {extensionMoves, rudeExtension},
	moodRDMA:      {dataMoves, rudeData},
}

func (p *Peer) drawMove() move {
	m := p.mood
	if m == moodAny || p.One(5) {
		m = moodSetup + moveSet(p.Below(int(numMoods-moodSetup)))
	}
	switch t := &topics[m]; {
	case m == moodRDMA && p.cfg.RDMA:
		return (*Peer).appendDDP
	case p.care:
		return pickOne(p.Choices, t.careful)
	default:
		return pickOne(p.Choices, t.rude)
	}
}

// honestPacket is what a good peer would send: an acknowledgement, or data in order.
func (p *Peer) honestPacket() []byte {
	b := p.packetHeader(p.k.peerTag)
	if p.k.haveSent {
		b = wire.AppendSack(b, wire.SackFields{CumTSN: p.k.sent, ARwnd: 1 << 20})
	}
	if p.k.beat != nil {
		b = wire.AppendHeartbeatAck(b, p.k.beat)
		p.k.beat = nil
	}
	for range p.Below(3) {
		if p.cfg.RDMA {
			b = p.appendDDP(b)
		} else {
			b = p.inOrder(b)
		}
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
	}
	if len(b) == wire.CommonHeaderLen || len(b) > p.cfg.MTU {
		return wire.AppendHeartbeat(p.packetHeader(p.k.peerTag), []byte("are you there?"))
	}
	return b
}
