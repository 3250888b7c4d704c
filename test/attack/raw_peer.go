package attack

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/attacker"
	"github.com/rddp-go/rddp/test/attack/forge"
)

// rawPeer is a peer made by hand.
type rawPeer struct {
	t          *testing.T
	s          *Simulation
	attacker   *attackerHost
	port       uint16
	tag, peer  uint32
	next       wire.TSN
	sent       wire.TSN // the victim's Initial TSN, less one
	cookieEcho []byte
}

func newHand(t *testing.T) *rawPeer {
	t.Helper()
	s := New(attacker.FromOctets(nil)) // whose attackers do nothing
	return &rawPeer{t: t, s: s, attacker: s.attackers[0], port: 2000, tag: 0x1234567, next: 100}
}

// sendChunks delivers a packet with the victim's tag, and returns the chunks that come back.
func (h *rawPeer) sendChunks(chunks ...[]byte) []wire.Chunk {
	return h.sendAs(h.attacker.addr, h.peer, chunks...)
}

func (h *rawPeer) sendAs(from netip.Addr, tag uint32, chunks ...[]byte) []wire.Chunk {
	h.t.Helper()
	b := forge.Packet(h.port, victimPort, tag, chunks...)
	h.attacker.box = nil
	h.s.deliverPacket(&attackerHost{addr: from}, b)
	must.That(h.t, h.s.err == nil, "%v", h.s.err)
	return h.receivedChunks()
}

// receivedChunks returns the chunks that have come.
func (h *rawPeer) receivedChunks() (all []wire.Chunk) {
	for _, b := range h.attacker.box {
		p, err := wire.ParsePacket(b)
		must.OK(h.t, err)
		cs := p.Chunks()
		for c, ok := cs.Next(); ok; c, ok = cs.Next() {
			all = append(all, c)
		}
	}
	h.attacker.box = nil
	return all
}

// onlyChunk returns the chunk of a type among others.
func (h *rawPeer) onlyChunk(all []wire.Chunk, t wire.ChunkType) wire.Chunk {
	h.t.Helper()
	i := slices.IndexFunc(all, func(c wire.Chunk) bool { return c.Type() == t })
	if i < 0 {
		h.t.Fatalf("no %v among %v", t, chunkTypes(all))
	}
	return all[i]
}

func chunkTypes(all []wire.Chunk) (s []string) {
	for _, c := range all {
		s = append(s, c.Type().String())
	}
	return s
}

// setUp sets an association up.
func (h *rawPeer) setUp() *victimConn {
	h.t.Helper()
	at := wire.AppendInit(nil, wire.ChunkInit, wire.InitFields{Tag: h.tag, ARwnd: 1 << 17, OutStreams: 10,
		InStreams: 10, TSN: h.next})
	init := forge.SetLength(wire.AppendAdaptationIndication(at, 1), 0)
	ack, err := wire.AsInit(h.onlyChunk(h.sendAs(h.attacker.addr, 0, init), wire.ChunkInitAck))
	must.OK(h.t, err)
	h.peer, h.sent = ack.Tag(), ack.TSN()-1
	ps := ack.Params()
	for p, ok := ps.Next(); ok; p, ok = ps.Next() {
		if p.Type() == wire.ParamStateCookie {
			h.cookieEcho = forge.Padded(wire.AppendCookieEcho(nil, p.Value()))
		}
	}
	h.onlyChunk(h.sendChunks(h.cookieEcho), wire.ChunkCookieAck)
	return h.victimSide()
}

// victimSide is the association at the other end.
func (h *rawPeer) victimSide() *victimConn {
	for _, c := range h.s.victim.Conns() {
		if c.Assoc().PeerPort() == h.port {
			return c.(*victimConn)
		}
	}
	return nil
}

// checkAlive sees to it that the association still is one, and takes a message.
func (h *rawPeer) checkAlive(v *victimConn) {
	h.t.Helper()
	must.That(h.t, !v.gone && h.victimSide() == v && v.a.State() == assoc.Established,
		"the association has come to its end, or to %v", v.a.State())
	reply := h.sendChunks(forge.Padded(wire.AppendHeartbeat(nil, []byte("alive?"))))
	h.onlyChunk(reply, wire.ChunkHeartbeatAck)
}

func (h *rawPeer) dataChunk(f wire.DataFields, payload []byte) []byte {
	return forge.AppendData(nil, f, payload)
}
