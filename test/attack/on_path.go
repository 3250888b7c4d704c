package attack

import (
	"bytes"
	"encoding/binary"
	"net/netip"

	"github.com/rddp-go/rddp/internal/test/simulation"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/attacker"
	"github.com/rddp-go/rddp/test/attack/forge"
)

// sealedPort is where the victim takes encrypted associations.
const sealedPort = 5044

// onPath is what an attacker on the path has: it sees what the victim and an encrypted friend say to
// each other, and adds to it. Nothing of that may be delivered, change anything or end anything.
type onPath struct {
	s    *Simulation
	keys *simulation.Keys
	seen [2][][]byte // packets to the victim, and to the friend, the newest last
}

const mostSeen = 64

// NewOnPath returns a siege whose friend is encrypted, and whose attackers are also on its path.
func NewOnPath(c *attacker.Choices) *Simulation {
	return newSimulation(c, func(s *Simulation) {
		s.path = &onPath{s: s, keys: simulation.NewKeys(s.ground, simnet.NewRand(6))}
		cfg := s.cfg
		cfg.Protected, cfg.Restartable = true, true
		s.friendCfg, s.friendTo = cfg, sealedPort
		if err := s.victim.EP.Listen(sealedPort, &s.friendCfg); err != nil {
			s.recordFailure("listen: %v", err)
		}
	})
}

// see keeps a packet of the two.
func (p *onPath) see(toFriend int, pkt *rawio.Packet) {
	if p == nil {
		return
	}
	if wrong := p.keys.Note(pkt); wrong != "" {
		p.s.recordFailure("to %v: %s", pkt.Remote, wrong)
	}
	list := append(p.seen[toFriend], bytes.Join(pkt.Vec, nil))
	p.seen[toFriend] = list[max(len(list)-mostSeen, 0):]
}

// attack adds packets to what the two say to each other. b is what an attacker would say to the
// victim.
func (p *onPath) attack(b []byte) {
	if p == nil || p.s.err != nil {
		return
	}
	for range p.s.c.Below(3) {
		to := p.s.c.Below(2)
		if pkt := p.make(to, b); len(pkt) > 0 {
			p.s.stats.OnPath++
			p.deliver(to, pkt)
		}
	}
	if p.s.c.One(200) {
		f := p.s.friend
		f.conn.a.Rekey(f.node.Time())
		f.conn.Pump()
	}
}

// pick returns a copy of a packet that was seen.
func (p *onPath) pick(to int) []byte {
	list := p.seen[to]
	return bytes.Clone(list[p.s.c.Below(len(list))])
}

// make makes up a packet to one of the two.
func (p *onPath) make(to int, b []byte) []byte {
	c, real := p.s.c, p.pick(to)
	switch c.Below(6) {
	case 0: // what others say, with ports and tag of the association
		if len(b) < wire.CommonHeaderLen {
			return nil
		}
		pkt := bytes.Clone(b)
		if copy(pkt[:8], real[:8]); c.One(4) {
			clear(pkt[4:8])
		}
		return resum(pkt)
	case 1: // again
		return real
	case 2, 3: // with other bits
		for range 1 + c.Below(3) {
			at := c.Below(8 * len(real))
			if c.One(2) {
				at %= 8 * 24 // in headers
			}
			real[at/8] ^= 1 << (at % 8)
		}
		return resum(real)
	case 4: // with what was for the other, or is older
		other := p.pick(c.Below(2))
		return resum(append(real[:wire.CommonHeaderLen:wire.CommonHeaderLen], other[wire.CommonHeaderLen:]...))
	default: // a record that nobody has sealed, of a restart too
		n := []int{17, 20, 100, 1400}[c.Below(4)]
		chunk := append(wire.AppendDTLSHeader(nil, c.One(2), n), 0x28|byte(c.Below(4)))
		chunk = append(chunk, c.Octets(n-1)...)
		pkt := wire.Packet(real)
		return forge.Packet(pkt.SrcPort(), pkt.DstPort(), pkt.VTag(), append(chunk, wire.Padding(len(chunk))...))
	}
}

// resum has a packet have the right checksum.
func resum(b []byte) []byte {
	clear(b[8:12])
	wire.PutChecksum(b, wire.ChecksumBytes(b))
	return b
}

// deliver hands a packet to one of the two in the name of the other, or a report about one that it has
// sent.
func (p *onPath) deliver(to int, b []byte) {
	nodes := [2]*simulation.Node{p.s.victim, p.s.friend.node}
	addrs := [2]netip.Addr{victimAddr, friendAddr}
	buf := p.s.pool.Get()
	pkt := rawio.Packet{Data: buf.B[:copy(buf.B, b)], Buf: buf, Remote: netip.AddrPortFrom(addrs[1-to], 0),
		Local: netip.AddrPortFrom(addrs[to], 0)}
	if c := p.s.c; c.One(8) { // of ICMP
		pkt.Kind = []rawio.Kind{rawio.KindProtoUnreachable, rawio.KindPacketTooBig}[c.Below(2)]
		pkt.MTU = 1280 + c.Below(300)
		pkt.Data = pkt.Data[:8]
		own := p.pick(1 - to)
		copy(pkt.Data, own[:8])
		binary.BigEndian.PutUint16(pkt.Data, binary.BigEndian.Uint16(own))
	}
	nodes[to].Receive(&pkt)
	pkt.Release()
}
