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
	request  uint32   // the number that it expects of the next RE-CONFIG request
	asked    uint32   // the number of its own last one
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
				k.expected, k.request = i.TSN(), uint32(i.TSN())
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
	if d, err := wire.AsIData(c); err == nil && k.sent.Less(d.TSN()) {
		k.sent = d.TSN()
	}
	if r, err := wire.AsReconfig(c); err == nil {
		k.learnRequests(r)
	}
	if s, err := wire.AsSack(c); err == nil {
		k.expected = s.CumTSN() + 1
	}
	if b, err := wire.AsHeartbeat(c); err == nil && b.Type() == wire.ChunkHeartbeat {
		k.beat = b.Info()
	}
}

// learnRequests learns the numbers of requests: its own, and those that it has answered.
func (k *observedState) learnRequests(r wire.Reconfig) {
	ps := r.Params()
	for p, ok := ps.Next(); ok; p, ok = ps.Next() {
		if len(p) < 8 {
			continue
		}
		if seq := binary.BigEndian.Uint32(p[4:]); p.Type() != wire.ParamReconfigResponse {
			k.asked = seq
		} else if int32(seq-k.request) >= 0 {
			k.request = seq + 1
		}
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
			if k.relativeTSN(out[start : start+n]); c.Type() == wire.ChunkReconfig {
				k.relativeRequests(out[start+wire.ChunkHeaderLen : start+n])
			}
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
	case wire.ChunkData, wire.ChunkIData, wire.ChunkForwardTSN, wire.ChunkIForwardTSN, wire.ChunkCWR:
		base = k.expected
	case wire.ChunkSack, wire.ChunkShutdown, wire.ChunkECNE:
	default:
		return
	}
	binary.BigEndian.PutUint32(c[4:], uint32(base.Add(uint32(int8(c[7])))))
}

// relativeRequests makes the numbers in RE-CONFIG parameters relative: those of requests to the next
// one that the victim expects, those of responses to its own last one, and TSNs likewise.
func (k *observedState) relativeRequests(params []byte) {
	for len(params) >= 8 {
		kind, n := wire.ParamType(binary.BigEndian.Uint16(params)), int(binary.BigEndian.Uint16(params[2:]))
		if n < 8 || n > len(params) {
			return
		}
		p := params[:n]
		set := func(at int, base uint32) {
			if len(p) >= at+4 {
				binary.BigEndian.PutUint32(p[at:], base+uint32(int8(p[at+3])))
			}
		}
		switch kind {
		case wire.ParamReconfigResponse:
			set(4, k.asked)
			set(12, uint32(k.expected))
			set(16, uint32(k.sent))
		case wire.ParamOutgoingReset:
			set(4, k.request)
			set(8, k.asked)
			set(12, uint32(k.expected))
		default:
			set(4, k.request)
		}
		params = params[min(len(params), wire.PaddedLen(n)):]
	}
}
