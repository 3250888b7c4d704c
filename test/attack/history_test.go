package attack

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/forge"
)

// The conditions behind faults that other stacks had. docs/dev/hostile.md says what each was. The
// two of Linux's cookies, CVE-2026-53224 and CVE-2026-53246, are in sctp/assoc:
// TestCookieOfAnotherLayoutIsRefused.

// CVE-2021-3772: a forged packet with another tag had Linux end the association, by an ABORT of its
// own that bore the right one.
func TestForgedChunksWithTheWrongTagEndNoAssociation(t *testing.T) {
	h := newHand(t)
	h.port = friendPort
	f := h.s.friend
	before := f.conn.a.Stats().State
	for typ := range 256 {
		for _, n := range []int{0, 4, 12, 16, 40} {
			// the last is the one that the victim sends, not the one it wants
			for _, tag := range []uint32{0, 1, f.conn.a.LocalTag()} {
				c := append([]byte{byte(typ), 0, 0, byte(4 + n)}, bytes.Repeat([]byte{0xFF}, n)...)
				h.sendAs(friendAddr, tag, c)
			}
		}
	}
	for end := h.s.ground.Now().Add(time.Minute); h.s.ground.Now() < end && h.s.ground.Step(end); {
		f.checkAnswers()
	}
	check.That(t, h.s.err == nil && !f.conn.gone && f.conn.a.State() == before && h.s.stats.Friend != 0,
		"%v; the friend's association is %v, with %d answers", h.s.err, f.conn.a.State(), h.s.stats.Friend)
}

// CVE-2021-3655: chunks shorter than what was read of them. What lies in the buffer behind the
// packet makes no difference. GHSA-jwjp-4649-v8jp: a SACK whose counts go beyond it; entries were
// read from earlier packets in the buffer.
func TestNothingBehindAChunkIsRead(t *testing.T) {
	var short [][]byte
	for typ := range 256 {
		if typ > 20 && typ&0x3F > 6 { // of unknown types there are four kinds, by their high bits
			continue
		}
		for n := 4; n <= 32; n += 1 + n/12 {
			c := make([]byte, n)
			c[0], c[3] = byte(typ), byte(n)
			short = append(short, c)
		}
	}
	sack := wire.AppendSack(nil, wire.SackFields{CumTSN: 0, ARwnd: 1000})
	for _, counts := range [][2]uint16{{1, 0}, {0, 1}, {100, 0}, {65535, 65535}} {
		c := bytes.Clone(sack)
		binary.BigEndian.PutUint16(c[12:], counts[0])
		binary.BigEndian.PutUint16(c[14:], counts[1])
		short = append(short, c)
	}
	said := func(h *rawPeer, chunk []byte, behind byte) string {
		h.port++
		v := h.setUp()
		if wire.ChunkType(chunk[0]) == wire.ChunkSack && len(chunk) >= 8 {
			chunk = bytes.Clone(chunk)
			binary.BigEndian.PutUint32(chunk[4:], uint32(h.sent))
		}
		b := forge.Packet(h.port, victimPort, h.peer, chunk)
		buf := h.s.pool.Get()
		for i := range buf.B {
			buf.B[i] = behind
		}
		p := rawio.Packet{Data: buf.B[:copy(buf.B, b)], Buf: buf, Remote: netip.AddrPortFrom(h.attacker.addr, 0),
			Local: netip.AddrPortFrom(victimAddr, 0)}
		h.s.victim.Receive(&p)
		p.Release()
		what := fmt.Sprintf("%x %+v", h.receivedChunks(), v.a.Stats())
		v.a.Abort(h.s.victim.Time(), nil)
		v.Pump()
		h.receivedChunks()
		return what
	}
	zeros, ones := newHand(t), newHand(t)
	for _, c := range short {
		a, b := said(zeros, c, 0), said(ones, c, 0xFF)
		check.That(t, a == b, "chunk %x: behind zeros %s, behind ones %s", c, a, b)
	}
}

// CVE-2013-2206: a COOKIE ECHO that comes again, in any state of the association.
func TestCookieEchoThatComesAgainChangesNothing(t *testing.T) {
	for _, tt := range []struct {
		name  string
		state assoc.State
		bring func(h *rawPeer, v *victimConn)
	}{
		{"established", assoc.Established, func(*rawPeer, *victimConn) {}},
		{"with half a message held", assoc.Established, func(h *rawPeer, _ *victimConn) {
			h.sendChunks(h.dataChunk(wire.DataFields{Flags: wire.FlagB | wire.FlagU, TSN: h.next, PPID: 16},
				[]byte("half")))
		}},
		{"with data outstanding", assoc.Established, func(h *rawPeer, _ *victimConn) {
			h.sendChunks(h.dataChunk(wire.DataFields{Flags: 7, TSN: h.next, PPID: 17},
				forge.Control(0, forge.Initiate, nil)))
		}},
		{"while it is shut down from here", assoc.ShutdownSent, func(h *rawPeer, v *victimConn) {
			v.a.Shutdown(h.s.victim.Time())
			v.Pump()
		}},
		{"while the peer shuts it down", assoc.ShutdownAckSent, func(h *rawPeer, _ *victimConn) {
			h.sendChunks(wire.AppendShutdown(nil, h.sent))
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHand(t)
			v := h.setUp()
			tt.bring(h, v)
			for range 5 {
				h.sendChunks(h.cookieEcho)
				h.sendChunks(h.cookieEcho, h.dataChunk(wire.DataFields{Flags: 7, TSN: h.next + 5, PPID: 16},
					[]byte("later")))
			}
			check.That(t, !v.gone && v.a.State() == tt.state && h.s.stats.Restarts == 0 && len(h.s.victim.Conns()) == 2,
				"%v, gone %v, %d restarts, %d associations", v.a.State(), v.gone, h.s.stats.Restarts,
				len(h.s.victim.Conns()))
		})
	}
}

// CVE-2026-52924: Stale Cookie takes an association from COOKIE-ECHOED back to COOKIE-WAIT. Linux
// had DATA under way by then.
func TestStaleCookieAgainAndAgain(t *testing.T) {
	h := newHand(t)
	h.port = 2001
	const local = 31000
	a := must.Get(h.s.victim.EP.Connect(h.s.victim.Time(), &h.s.cfg, local, netip.AddrPort{},
		[]netip.AddrPort{netip.AddrPortFrom(h.attacker.addr, 0)}, h.port))(t)
	v := h.s.adoptAssoc(a, true)
	h.s.victim.Add(v)
	v.Pump()
	send := func(chunks ...[]byte) []wire.Chunk {
		h.s.deliverPacket(h.attacker, forge.Packet(h.port, local, h.peer, chunks...))
		return h.receivedChunks()
	}
	chunks := h.receivedChunks()
	stale := wire.AppendError(nil)
	stale = wire.AppendStaleCookieCause(stale, 1000)
	forge.SetLength(stale, 0)
	for i := range 6 {
		init := must.Get(wire.AsInit(h.onlyChunk(chunks, wire.ChunkInit)))(t)
		h.peer = init.Tag()
		ack := wire.AppendInit(nil, wire.ChunkInitAck,
			wire.InitFields{Tag: h.tag, ARwnd: 1 << 17, OutStreams: 10, InStreams: 10, TSN: h.next})
		ack = wire.AppendAdaptationIndication(wire.AppendParam(ack, wire.ParamStateCookie,
			[]byte("a cookie of four")), 1)
		forge.SetLength(ack, 0)
		h.onlyChunk(send(ack), wire.ChunkCookieEcho)
		if i == 5 {
			break
		}
		chunks = send(stale, h.dataChunk(wire.DataFields{Flags: 7, TSN: h.next, PPID: 16}, []byte("early")))
		must.That(t, v.a.State() == assoc.CookieWait, "behind Stale Cookie %d it is %v", i, v.a.State())
	}
	send(wire.AppendCookieAck(nil))
	check.Equal(t, "state in the end", v.a.State(), assoc.Established)
}

// CVE-2026-49759: an ERROR with more causes than Erlang had room for; it also told what lay behind
// them.
func TestErrorOfManyCauses(t *testing.T) {
	h := newHand(t)
	v := h.setUp()
	for _, code := range []uint16{1, 4, 6, 8, 9, 200} {
		e := wire.AppendError(nil)
		for len(e) < mtu-100 {
			e = binary.BigEndian.AppendUint16(e, code)
			e = append(e, 0, 4)
		}
		forge.SetLength(e, 0)
		reply := h.sendChunks(e)
		check.That(t, len(reply) == 0, "cause %d is answered by %v", code, chunkTypes(reply))
	}
	h.checkAlive(v)
}

// usrsctp 547: FORWARD-TSN over fragments that were held. usrsctp 380 and 386: ASCONF with an
// address that is not all there. None of these chunks is offered here: what is held stays, and
// their sender is told that they are unknown.
func TestChunksOfExtensionsTouchNothingThatIsHeld(t *testing.T) {
	h := newHand(t)
	v := h.setUp()
	session := forge.Control(0, forge.Initiate, []byte("hello"))
	h.sendChunks(h.dataChunk(wire.DataFields{Flags: wire.FlagB | wire.FlagU, TSN: h.next, PPID: 17}, session[:3]))
	forward := forge.Padded(wire.AppendForwardTSN(nil, h.next+1, []wire.Skip{{Stream: 0, SSN: 0}, {Stream: 1, SSN: 7}}))
	for _, tt := range []struct {
		name  string
		chunk []byte
	}{
		{"FORWARD-TSN over a fragment", forward},
		{"FORWARD-TSN far ahead", forge.Padded(wire.AppendForwardTSN(nil, h.next+1<<30, nil))},
		{"ASCONF that adds half an address", append([]byte{0xC1, 0, 0, 24, 0, 0, 0, 1, 0, 5, 0, 8, 10, 0, 1, 1, 0xC0, 1, 0, 8, 0, 0, 0, 1}, nil...)},
		{"ASCONF whose address has no length", []byte{0xC1, 0, 0, 12, 0, 0, 0, 1, 0, 5, 0, 0}},
		{"ASCONF without an address", []byte{0xC1, 0, 0, 8, 0, 0, 0, 1}},
	} {
		reply := h.sendChunks(tt.chunk)
		e, err := wire.AsError(h.onlyChunk(reply, wire.ChunkError))
		must.That(t, err == nil, "%s: %v", tt.name, err)
		cs := e.Causes()
		c, ok := cs.Next()
		check.That(t, ok && c.Code() == wire.CauseUnrecognizedChunkType && bytes.Equal(c.Info(), tt.chunk),
			"%s is answered by %x", tt.name, e)
	}
	h.sendChunks(h.dataChunk(wire.DataFields{Flags: wire.FlagE | wire.FlagU, TSN: h.next + 1, PPID: 17}, session[3:]))
	check.That(t, h.s.stats.Sessions != 0 || v.mux.Sessions() != 0, "the message that was held has not become whole")
	h.checkAlive(v)
}
