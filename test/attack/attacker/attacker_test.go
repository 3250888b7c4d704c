package attacker

import (
	"bytes"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// playAttacker returns the packets of an attacker, and counts the chunks in them.
func playAttacker(c *Choices, cfg Config, n int) (all [][]byte, types map[wire.ChunkType]int) {
	p, tsn := New(c, cfg), wire.TSN(1000)
	types = make(map[wire.ChunkType]int)
	for range n {
		b := p.Packet()
		if b == nil {
			continue
		}
		all = append(all, b)
		if pkt, err := wire.ParsePacket(b); err == nil {
			cs := pkt.Chunks()
			for c, ok := cs.Next(); ok; c, ok = cs.Next() {
				types[c.Type()]++
			}
		}
		if reply := answerSetup(&p.k, cfg.LocalPort, cfg.RemotePort, b, &tsn); reply != nil {
			p.Take(reply)
		}
	}
	return all, types
}

func TestTheSameSeedAttacksTheSameWay(t *testing.T) {
	cfg := Config{LocalPort: 1, RemotePort: 2, RDMA: true}
	a, _ := playAttacker(Seeded(7), cfg, 2000)
	b, _ := playAttacker(Seeded(7), cfg, 2000)
	c, _ := playAttacker(Seeded(8), cfg, 2000)
	check.That(t, bytes.Equal(bytes.Join(a, nil), bytes.Join(b, nil)), "a seed gives two attacks")
	check.That(t, !bytes.Equal(bytes.Join(a, nil), bytes.Join(c, nil)), "two seeds give one attack")
}

func TestEveryChunkTypeIsSentAndNoPacketIsTooLong(t *testing.T) {
	all, types := playAttacker(Seeded(1), Config{LocalPort: 1, RemotePort: 2, MTU: 1400}, 20000)
	for _, want := range []wire.ChunkType{wire.ChunkData, wire.ChunkInit, wire.ChunkInitAck, wire.ChunkSack,
		wire.ChunkHeartbeat, wire.ChunkHeartbeatAck,
		wire.ChunkAbort, wire.ChunkShutdown, wire.ChunkShutdownAck, wire.ChunkError, wire.ChunkCookieEcho,
		wire.ChunkCookieAck, wire.ChunkECNE, wire.ChunkCWR,
		wire.ChunkShutdownComplete, wire.ChunkAuth, wire.ChunkIData, wire.ChunkAsconfAck, wire.ChunkReconfig,
		wire.ChunkPad, wire.ChunkForwardTSN,
		wire.ChunkAsconf, wire.ChunkIForwardTSN} {
		check.That(t, types[want] != 0, "no %v was sent", want)
	}
	for _, b := range all {
		must.That(t, len(b) <= 1400+20, "a packet has %d octets", len(b)) // a few octets may be added to the end of one
	}
}

func TestAFuzzersOctetsEndAndDoNotPanic(t *testing.T) {
	octets := Seeded(3).Octets(4000)
	c := FromOctets(octets)
	playAttacker(c, Config{LocalPort: 1, RemotePort: 2, RDMA: true}, 3000)
	check.That(t, c.Done(), "octets are left after 3000 packets")
}
