package endpoint

import (
	"cmp"
	"encoding/binary"
	"io"
	"math"
	"net/netip"

	"github.com/rddp-go/rddp/internal/quota"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// HandleUnmatched handles a packet that Lookup passed but found no association for (section 8.4). A
// valid COOKIE ECHO makes an association (isNew): set its upper layer, then pass it this same
// packet. An INIT may turn out to be for an existing association, by an address that it lists: pass
// it on. HandleUnmatched is Screen, Find, Answer and MakeAssoc, one after the other.
func (e *Endpoint) HandleUnmatched(now rawio.Time, p *rawio.Packet) (a *assoc.Assoc, isNew bool) {
	var s UnmatchedPacket
	if !e.Screen(now, p, &s) {
		return nil, false
	}
	if a = e.Find(&s); a != nil || !e.Answer(now, &s) {
		return a, false
	}
	return e.MakeAssoc(now, &s)
}

// UnmatchedPacket is a packet of no association that Lookup knows, on its way through Screen, Find,
// Answer and MakeAssoc.
type UnmatchedPacket struct {
	packet         *rawio.Packet
	pkt            wire.Packet
	firstChunk     wire.Chunk
	summary        chunkSummary
	listenerConfig *assoc.Config // of the listener on its port
	cookie         assoc.Cookie
	listedAddrs    [maxListedAddrs]netip.Addr // by an INIT
	numListed      int                        // of them
	ended          *ended                     // the association that a sealed packet was for
}

// maxListedAddrs is how many addresses of an INIT are looked at, to find an association that has
// one of them.
const maxListedAddrs = 4 * assoc.MaxPaths

// Screen is the first look at a packet, before anything costly. It says whether there is time for
// the packet, and whether it can be anything. It needs the part of the endpoint that sets up: see
// Endpoint.
func (e *Endpoint) Screen(now rawio.Time, p *rawio.Packet, s *UnmatchedPacket) bool {
	pkt, err := wire.ParsePacket(p.Data)
	if err != nil || p.Kind != rawio.KindSCTP {
		return false // an association that was there a moment ago was meant
	}
	if !e.setupBudget.allow(now, len(p.Data), e.randUint64) {
		e.stats.OverBudget++
		return false
	}
	source := p.Remote.Addr().Unmap()
	// Rule 1: "If the OOTB packet is to or from a non-unicast address, a receiver SHOULD silently
	// discard the packet."
	if !assoc.Unicast(source) || isNotUnicast(p.Local) {
		e.stats.BadAddress++
		return false
	}
	cs := pkt.Chunks()
	first, ok := cs.Next()
	if !ok {
		e.stats.Malformed++
		return false
	}
	s.packet, s.pkt, s.firstChunk, s.summary, s.numListed, s.ended = p, pkt, first, summarizeChunks(pkt), 0, nil
	if s.isInit() {
		if !e.allowAnswer(now, p) {
			return false
		}
		s.collectListed()
	}
	return true
}

// isInit says whether it is a correct INIT (sections 8.5.1 A and 12.3).
func (s *UnmatchedPacket) isInit() bool {
	return s.summary.hasInit && s.pkt.VTag() == 0 && s.summary.numChunks == 1
}

// collectListed records the addresses that an INIT lists.
func (s *UnmatchedPacket) collectListed() {
	init, err := wire.AsInit(s.firstChunk)
	if err != nil {
		return
	}
	ps := init.Params()
	for prm, ok := ps.Next(); ok && s.numListed < maxListedAddrs; prm, ok = ps.Next() {
		if addr, err := prm.Addr(); err == nil {
			s.listedAddrs[s.numListed] = addr
			s.numListed++
		}
	}
}

// Find returns the association that a packet turns out to belong to. It was set up a moment ago, or
// the tag shows it, or an INIT lists its address (section 5.1.2). Find needs the tables of the
// endpoint, and only reads them.
func (e *Endpoint) Find(s *UnmatchedPacket) *assoc.Assoc {
	pkt := s.pkt
	k := newPeerKey(s.packet, pkt)
	if a := cmp.Or(e.findByPeerOrTag(k, k.Hash(), pkt), e.findByClaim(k, pkt)); a != nil {
		return a
	}
	if s.isInit() {
		for _, addr := range s.listedAddrs[:s.numListed] {
			if a := getAssoc(&e.byPeer, peerKey{addr, pkt.DstPort(), pkt.SrcPort()}); a != nil {
				return a
			}
		}
	}
	if s.firstChunk.Type() == wire.ChunkDTLS {
		s.ended = e.remains.byTag[tagKey{pkt.VTag(), k.local, k.peer}]
	}
	s.listenerConfig = e.findListener(pkt.DstPort(), s.packet.Local.Addr())
	return nil
}

// Answer answers a packet of no association, or says that it brings a valid cookie for MakeAssoc.
// It follows rules 2 to 8 of section 8.4. Rule 1 is Screen's. It needs the part of the endpoint
// that sets up.
func (e *Endpoint) Answer(now rawio.Time, s *UnmatchedPacket) (valid bool) {
	p, pkt, first, g := s.packet, s.pkt, s.firstChunk, &s.summary
	switch {
	// What is in the clear, and not a lone DTLS chunk, is believed as little as by the association.
	case s.ended != nil:
		e.answerForEnded(now, s.ended, p)

	// Rule 2: "If the OOTB packet contains an ABORT chunk, the receiver MUST silently discard the
	// OOTB packet and take no further action."
	case g.hasAbort:
		e.stats.OutOfBlue++

	// Rule 3: "If the packet contains an INIT chunk with a Verification Tag set to 0, it SHOULD be
	// processed as described in Section 5.1." It is the only chunk (sections 8.5.1 A and 12.3).
	case g.hasInit:
		if pkt.VTag() == 0 && g.numChunks == 1 {
			if !e.awaitsOpen(s) {
				e.handleInit(now, p, first, s.listenerConfig)
			}
			return false
		}
		e.stats.OutOfBlue++

	// Section 8.5.1 A: with a tag of 0 there is nothing but an INIT.
	case pkt.VTag() == 0:
		e.stats.OutOfBlue++

	// Rule 4: "If the packet contains a COOKIE ECHO chunk as the first chunk, it MUST be processed
	// as described in Section 5.1."
	case first.Type() == wire.ChunkCookieEcho:
		return e.handleCookieEcho(now, p, first, &s.cookie)

	// Rule 5: "If the packet contains a SHUTDOWN ACK chunk, the receiver SHOULD respond to the
	// sender of the OOTB packet with a SHUTDOWN COMPLETE chunk."
	case g.hasShutdownAck:
		e.answerOutOfBlue(now, p, true)

	// Rule 6: "If the packet contains a SHUTDOWN COMPLETE chunk, the receiver SHOULD silently
	// discard the packet". Rule 7 says the same of a Stale Cookie ERROR and of a COOKIE ACK.
	case g.getsNoAnswer:
		e.stats.OutOfBlue++

	// Rule 8: "The receiver SHOULD respond to the sender of the OOTB packet with an ABORT chunk."
	default:
		e.answerOutOfBlue(now, p, false)
	}
	return false
}

// awaitsOpen says whether an INIT is for a port that this side has yet to open. Over a link to one
// peer both sides may open, the one before the other. An ABORT would end what the other side has
// begun. It sends its INIT again, and answers that of this side (section 5.2.1).
func (e *Endpoint) awaitsOpen(s *UnmatchedPacket) bool {
	return s.listenerConfig == nil && e.cfg.Features&rawio.PointToPoint != 0
}

// allowAnswer says whether the source of a packet may get an answer.
func (e *Endpoint) allowAnswer(now rawio.Time, p *rawio.Packet) bool {
	ok := e.answerRates.allow(now, p.Remote.Addr().Unmap(), e.randUint64)
	if !ok {
		e.stats.RateLimited++
	}
	return ok
}

// randUint64 draws a number that nobody can guess.
func (e *Endpoint) randUint64() uint64 {
	if e.cfg.Chance != nil {
		return e.cfg.Chance()
	}
	var b [8]byte
	if _, err := io.ReadFull(e.cfg.Rand, b[:]); err != nil {
		return math.MaxUint64
	}
	return binary.BigEndian.Uint64(b[:])
}

// answerOutOfBlue answers a packet out of the blue: see assoc.Reflect.
func (e *Endpoint) answerOutOfBlue(now rawio.Time, p *rawio.Packet, complete bool) {
	e.stats.OutOfBlue++
	if e.allowAnswer(now, p) {
		e.stats.Reflected++
		assoc.Reflect(&e.answers, p, complete)
	}
}

// chunkSummary holds what the rules for packets out of the blue depend on.
type chunkSummary struct {
	numChunks                                       int
	hasAbort, hasInit, hasShutdownAck, getsNoAnswer bool
}

func summarizeChunks(pkt wire.Packet) (g chunkSummary) {
	cs := pkt.Chunks()
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		g.numChunks++
		switch c.Type() {
		case wire.ChunkAbort:
			g.hasAbort = true
		case wire.ChunkInit:
			g.hasInit = true
		case wire.ChunkShutdownAck:
			g.hasShutdownAck = true
		case wire.ChunkShutdownComplete, wire.ChunkCookieAck:
			g.getsNoAnswer = true
		case wire.ChunkError:
			g.getsNoAnswer = g.getsNoAnswer || reportsStaleCookie(c)
		}
	}
	return g
}

func reportsStaleCookie(c wire.Chunk) bool {
	e, _ := wire.AsError(c) // none is too short
	cs := e.Causes()
	for cause, ok := cs.Next(); ok; cause, ok = cs.Next() {
		if cause.Code() == wire.CauseStaleCookie {
			return true
		}
	}
	return false
}

func isNotUnicast(local netip.AddrPort) bool {
	return local.IsValid() && !assoc.Unicast(local.Addr().Unmap())
}

// handleInit answers an INIT for the listener that cfg belongs to, if there is one.
func (e *Endpoint) handleInit(now rawio.Time, p *rawio.Packet, c wire.Chunk, cfg *assoc.Config) {
	switch how, ignored := assoc.AnswerInit(now, &e.answers, p, c, cfg, &e.env); how {
	case assoc.InitAcked:
		e.stats.InitAcks++
		e.stats.AddressesIgnored += uint64(ignored)
	case assoc.InitRefused:
		e.stats.InitsRefused++
	default:
		e.stats.InitsMalformed++
	}
}

// handleCookieEcho says whether a COOKIE ECHO brings a valid cookie (section 5.1.5). It follows the
// steps there: the MAC, then ports and Verification Tag, then the life.
func (e *Endpoint) handleCookieEcho(now rawio.Time, p *rawio.Packet, c wire.Chunk, ck *assoc.Cookie) bool {
	echo, err := wire.AsCookieEcho(c)
	if err != nil || !e.env.Cookies.Open(now, echo.Cookie(), ck) || !ck.Matches(p) {
		e.stats.BadCookies++
		return false // steps 2 and 3: silently discarded, with everything behind it
	}
	if ck.Expired(now) { // step 4: discarded, and a Stale Cookie error answers it
		e.answerStaleCookie(now, p, ck)
		return false
	}
	return true
}

// answerStaleCookie answers a cookie that no longer counts.
func (e *Endpoint) answerStaleCookie(now rawio.Time, p *rawio.Packet, ck *assoc.Cookie) {
	e.stats.StaleCookies++
	if e.allowAnswer(now, p) { // the peer may have listed somebody else's address
		assoc.AnswerStale(now, &e.answers, p, ck)
	}
}

// MakeAssoc makes an association of a valid cookie (section 5.1.5), and no second one when that has
// ended. Each has a tag of its own (section 5.3.1). It needs the whole endpoint.
func (e *Endpoint) MakeAssoc(now rawio.Time, s *UnmatchedPacket) (*assoc.Assoc, bool) {
	e.remains.expire(now)
	p, ck := s.packet, &s.cookie
	if a := getAssoc(&e.byPeer, peerKey{p.Remote.Addr().Unmap(), ck.LocalPort, ck.PeerPort}); a != nil {
		return a, false // one that came right behind the first: Find has seen both before there was an association
	}
	tag := tagKey{ck.LocalTag, ck.LocalPort, ck.PeerPort}
	if e.usedTags.has(now, tag) { // as any packet of an association that has ended: section 8.4 rule 8
		e.answerOutOfBlue(now, p, false)
		return nil, false
	}
	// An honest peer that is so late sends INIT anew (section 5.2.6) and gets a valid cookie.
	if e.usedTags.mayHaveForgotten(ck.Created) {
		e.answerStaleCookie(now, p, ck)
		return nil, false
	}
	cfg := e.findListener(ck.LocalPort, ck.Local) // the listener that has answered the INIT
	switch source := quota.HostKey(ck.Addrs[0]); {
	case cfg == nil || getAssoc(&e.byTag, tag) != nil:
		e.stats.CookiesRefused++
	case len(e.entries) >= e.cfg.MaxAssocs, e.cfg.MaxPerSource > 0 &&
		e.perSource.IsAtLimit(source, int64(e.cfg.MaxPerSource)):
		e.stats.AssocsRefused++
	case e.cfg.Admits != nil && !e.cfg.Admits(source),
		e.cfg.Accepts != nil && !e.cfg.Accepts(netip.AddrPortFrom(ck.Local, ck.LocalPort), ck.Addrs[0]):
		e.stats.AssocsRefused++
	default:
		e.stats.AssocsAccepted++
		a := assoc.Accept(now, cfg, &e.env, ck, p)
		e.addAccepted(a, source)
		return a, true
	}
	if e.allowAnswer(now, p) {
		assoc.RefuseCookie(&e.answers, p, ck)
	}
	return nil, false
}
