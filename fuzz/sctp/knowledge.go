package sctp

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/sctp/wire"
)

// observedState is what one who sees all packets knows. A fuzzer does not guess a TSN or a cookie,
// so that without it few of its chunks would get far.
type observedState struct {
	expected wire.TSN // by the victim
	sent     wire.TSN // the highest of the victim
	cookie   []byte   // the last that the victim has given
	offered  uint32   // the tag beside it
	beat     []byte   // of its last HEARTBEAT
}

// learnFrom looks at what a host sends.
func (l *fuzzBed) learnFrom(h *host, pkts []sentPacket) {
	k := &l.known
	for _, pkt := range pkts {
		p, err := wire.ParsePacket(pkt.data)
		if err != nil {
			l.Fatal(err)
		}
		it := p.Chunks()
		for c, ok := it.Next(); ok; c, ok = it.Next() {
			if i, err := wire.AsInit(c); err == nil && h == l.peer {
				k.expected = i.TSN()
			}
			if h == l.victim {
				k.learnFromVictim(c)
			}
		}
		if it.Err() != nil {
			l.Fatalf("malformed: %x: %v", pkt.data, it.Err())
		}
	}
}

// learnFromVictim looks at a chunk of the victim's.
func (k *observedState) learnFromVictim(c wire.Chunk) {
	if i, err := wire.AsInit(c); err == nil {
		if i.Type() == wire.ChunkInit {
			k.sent = i.TSN() - 1
		} else {
			k.offered = i.Tag()
		}
		ps := i.Params()
		for p, ok := ps.Next(); ok; p, ok = ps.Next() {
			if p.Type() == wire.ParamStateCookie {
				k.cookie = p.Value()
			}
		}
	}
	if d, err := wire.AsData(c); err == nil && k.sent.Less(d.TSN()) {
		k.sent = d.TSN()
	}
	if s, err := wire.AsSack(c); err == nil {
		k.expected = s.CumTSN() + 1
	}
	if b, err := wire.AsHeartbeat(c); err == nil && b.Type() == wire.ChunkHeartbeat {
		k.beat = b.Info()
	}
}

// guideChunks makes chunks refer to what there is: a TSN counts, by its last octet, from the one
// that is expected or was sent last; cookies and heartbeats are the victim's own. What is no chunk
// stays as it is.
func (k *observedState) guideChunks(chunks []byte) (out []byte) {
	for len(chunks) >= wire.ChunkHeaderLen {
		n := int(binary.BigEndian.Uint16(chunks[2:]))
		if n < wire.ChunkHeaderLen || n > len(chunks) {
			break
		}
		c := wire.Chunk(chunks[:n])
		start := len(out)
		switch c.Type() {
		case wire.ChunkCookieEcho:
			out = wire.AppendCookieEcho(out, k.cookie)
		case wire.ChunkHeartbeatAck:
			out = wire.AppendHeartbeatAck(out, k.beat)
		default:
			end := min(len(chunks), wire.PaddedLen(n))
			out = append(out, chunks[:end]...)
			k.relativeTSN(out[start : start+n])
		}
		chunks = chunks[min(len(chunks), wire.PaddedLen(n)):]
	}
	return append(out, chunks...)
}

// relativeTSN makes the TSN of a chunk relative.
func (k *observedState) relativeTSN(c wire.Chunk) {
	if len(c) < 8 {
		return
	}
	base := k.sent
	switch c.Type() {
	case wire.ChunkData, wire.ChunkCWR:
		base = k.expected
	case wire.ChunkSack, wire.ChunkShutdown, wire.ChunkECNE:
	default:
		return
	}
	binary.BigEndian.PutUint32(c[4:], uint32(base.Add(uint32(int8(c[7])))))
}
