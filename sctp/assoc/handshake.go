package assoc

import (
	"encoding/binary"
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// setup is what COOKIE-WAIT and COOKIE-ECHOED have in common: INIT or COOKIE ECHO waits for its
// answer.
type setup struct {
	sendDue     bool // INIT or COOKIE ECHO waits to be sent
	resentEarly bool // and goes, or has gone, once more before T1 expires, see resendEarly
	t1ExpiresAt rawio.Time
	retransmits int        // retransmissions of INIT or of COOKIE ECHO
	staleErrors int        // Stale Cookie errors received
	firstSentAt rawio.Time // when INIT or COOKIE ECHO was first sent
	pathIndex   int        // where it goes
	reachAddr   netip.Addr // where own addresses are to be meaningful, see isMeaningfulAt

	refusedAddrs   int   // addresses in a row that this host does not send to, since T1 expired
	refusedRounds  int   // times in a row that this was so of all
	refusalErr     error // why
	refusalMayPass bool  // and that may change by itself
}

// newSetup returns the set-up at the beginning of a state: INIT or COOKIE ECHO is to go.
func newSetup(pathIndex int, reach netip.Addr, staleErrors int) setup {
	return setup{sendDue: true, t1ExpiresAt: rawio.Never, pathIndex: pathIndex, reachAddr: reach,
		staleErrors: staleErrors}
}

// cookieWait is what exists in COOKIE-WAIT.
type cookieWait struct {
	setup
	cookieIncrementMS uint32 // Cookie Preservative of a new INIT, ms; 0 for none
}

// cookieEchoed is what exists in COOKIE-ECHOED.
type cookieEchoed struct {
	setup
	cookie     []byte // the peer's State Cookie
	errorChunk []byte // ERROR chunk about unknown parameters of the INIT ACK, sent behind the cookie
}

// wasSent says whether INIT or COOKIE ECHO was sent: what comes before is no answer to it.
func (s *setup) wasSent() bool { return !s.sendDue || s.resentEarly || s.retransmits > 0 }

// wasSentOnce says whether INIT or COOKIE ECHO was sent once, so that its answer measures a round
// trip.
func (s *setup) wasSentOnce() bool { return s.retransmits == 0 && !s.resentEarly }

// transmitSetup sends INIT or COOKIE ECHO and starts T1-init or T1-cookie.
func (a *Assoc) transmitSetup(now rawio.Time, out *TxBatch) {
	s := a.setup()
	p := a.paths[s.pathIndex]
	if s.sendDue = false; !s.resentEarly {
		s.t1ExpiresAt = now.Add(a.setupRTO(p))
	}
	if s.wasSentOnce() {
		s.firstSentAt = now
	}
	switch own := a.stateData.(type) {
	case *cookieWait:
		a.openPacket(out, 0, p.Local, p, p.MTU())
		b := out.Tail()
		start := len(b)
		b = wire.AppendInit(b, wire.ChunkInit, wire.InitFields{Tag: a.id.localTag, ARwnd: uint32(a.cfg.initialWindow()),
			OutStreams: a.cfg.outStreams(), InStreams: a.cfg.InStreams, TSN: a.life.localTSN})
		if a.cfg.Adaptation != nil {
			b = wire.AppendAdaptationIndication(b, *a.cfg.Adaptation)
		}
		if own.cookieIncrementMS > 0 {
			b = wire.AppendCookiePreservative(b, own.cookieIncrementMS)
		}
		b = appendECNCapable(b, a.cfg.offersECN(a.env))
		b = appendFamilies(b, a.cfg.knownFamilies(p.Remote.Addr(), s.reachAddr))
		if len(a.cfg.LocalAddrs) > 0 {
			b = appendAddrs(b, a.addrs.local, p.Local.Addr(), s.reachAddr, bothFamilies)
		}
		out.Commit(wire.CloseChunk(b, start))
	case *cookieEchoed:
		// A cookie larger than the path MTU has no other way than IP fragmentation.
		a.openPacket(out, a.id.peerTag, p.Local, p, p.MTU())
		out.Commit(wire.AppendCookieEcho(out.Tail(), own.cookie))
		if len(own.errorChunk) <= out.Room() {
			out.Commit(append(out.Tail(), own.errorChunk...))
		}
		if s.retransmits&1 == 1 { // most paths carry it whole, and many no fragments
			a.finishLongPacket(out, p)
			return
		}
	}
	a.finishPacket(out)
}

// setupRTO returns the timeout of INIT or COOKIE ECHO on a path.
func (a *Assoc) setupRTO(p *path) time.Duration {
	if a.cfg.MaxInitRTO > 0 {
		return min(p.RTO(), a.cfg.MaxInitRTO)
	}
	return p.RTO()
}

// handleT1Timeout handles the expiry of T1-init or T1-cookie (section 4 notes 2 and 3).
func (a *Assoc) handleT1Timeout(rawio.Time) {
	s := a.setup()
	s.t1ExpiresAt, s.resentEarly = rawio.Never, false
	if s.retransmits == a.cfg.MaxInitRetrans {
		if a.Refusal() != nil {
			a.endByRefusal(a.paths[s.pathIndex], s.refusalErr)
			return
		}
		a.endAssoc(onEnd, ErrInitTimeout)
		return
	}
	s.retransmits++
	s.startRound(len(a.paths))
	s.sendDue = true
	a.paths[s.pathIndex].Backoff()
	if a.state == CookieWait && s.retransmits > 1 {
		a.switchSource(a.paths[s.pathIndex])
	}
	a.nextSetupPath()
}

// handleInit answers an INIT for an existing association (sections 5.2.1 and 5.2.2). Whatever the
// answer, "the existing association, including its current state, and the corresponding TCB MUST NOT
// be changed". By state:
//
//   - COOKIE-WAIT (5.2.1): the INIT ACK has the tag and TSN of the own INIT. It goes "to an address
//     passed by the upper layer" that the INIT lists (rules 1 and 2).
//   - COOKIE-ECHOED (5.2.1): the same tag and TSN, and tie-tags. A new address is answered by ABORT.
//   - SHUTDOWN-ACK-SENT (9.2): the SHUTDOWN ACK goes again.
//   - The others (5.2.2): a new tag and TSN, and tie-tags. A new address is answered by ABORT.
func (a *Assoc) handleInit(now rawio.Time, in *inbound, c wire.Chunk) {
	a.rareCounters().InitsIn++
	a.stats.workSteps += cookieWorkSteps
	init, err := wire.AsInit(c)
	if err != nil || init.Tag() == 0 {
		a.rareCounters().Malformed++
		return
	}
	if a.state == ShutdownAckSent { // 9.2: "it SHOULD discard the INIT chunk and retransmit the SHUTDOWN ACK chunk"
		a.shutdownState().sendDue = true
		return
	}
	source := in.Remote.Addr().Unmap()
	if a.state == CookieWait && in.path == nil { // unknown to the upper layer: section 5.2.1, rules 1 and 2
		p := a.findListedPath(init, source)
		if p == nil {
			a.rareCounters().ForeignSource++
			return
		}
		pkt := *in.Packet
		pkt.Local, pkt.Remote = p.Local, p.Remote
		in.Packet = &pkt
	}
	to := in.Remote.Addr().Unmap() // where the INIT ACK goes
	var o initParams
	if why, ok := readInitParams(init, source, a.cfg.knownFamilies(to, to)&a.addrs.families, a.env, &o); !ok {
		a.rareCounters().InitsRefused++
		answerWithAbort(&a.outbox, in.Packet, o.tag, why)
		return
	}
	// 5.2.1: "using the same parameters it sent in its original INIT chunk (including its Initiate Tag,
	// unchanged)".
	id := identity{tag: a.id.localTag, tsn: a.life.localTSN}
	if a.state != CookieWait {
		// 5.2.2: "If new addresses are added to the association, the endpoint MUST respond with an
		// ABORT chunk".
		if added := a.addedAddresses(&o, source); added != nil {
			a.rareCounters().InitsRefused++
			answerWithAbort(&a.outbox, in.Packet, o.tag, refusal{code: wire.CauseRestart, info: added})
			return
		}
		if a.state != CookieEchoed {
			if id, err = newIdentity(a.env.Rand); err != nil {
				return
			}
		}
		if !a.ensureTieTags() {
			return
		}
		id.localTieTag, id.peerTieTag = a.life.localTieTag, a.life.peerTieTag
	}
	cfg := *a.cfg
	cfg.OutStreams = max(cfg.outStreams(), a.agreed.outStreams) // as in our INIT or INIT ACK: sections 5.2.1 and 5.2.2
	if !sendInitAck(now, &a.outbox, in.Packet, &o, &cfg, a.env, id) {
		a.rareCounters().InitsRefused++
	} else if id.tag == a.id.localTag {
		a.life.cookieExpiresAt, a.life.cookieMadeAt = max(a.life.cookieExpiresAt, now.Add(a.cfg.cookieLifeFor(o.cookieExtensionMS))),
			now
	}
}

// findListedPath returns the first path to an address that an INIT from source lists.
func (a *Assoc) findListedPath(init wire.Init, source netip.Addr) *path {
	ps := init.Params()
	for prm, more := ps.Next(); more; prm, more = ps.Next() {
		addr, err := prm.Addr()
		if err != nil || !isMeaningfulAt(addr, source) && !addr.IsLinkLocalUnicast() {
			continue
		}
		if p := a.findPath(withZone(addr, source.Zone())); p != nil {
			return p
		}
	}
	return nil
}

// ensureTieTags draws the tie-tags once.
func (a *Assoc) ensureTieTags() bool {
	for a.life.localTieTag == 0 { // which says that there are none
		var b [8]byte
		if _, err := io.ReadFull(a.env.Rand, b[:]); err != nil {
			return false
		}
		a.life.localTieTag, a.life.peerTieTag = binary.BigEndian.Uint32(b[:]), binary.BigEndian.Uint32(b[4:])
	}
	return true
}

// handleInitAck takes the peer's INIT ACK and answers by COOKIE ECHO (section 5.1).
func (a *Assoc) handleInitAck(now rawio.Time, in *inbound, c wire.Chunk) {
	init, err := wire.AsInit(c)
	if a.state != CookieWait || err != nil || !a.setup().wasSent() {
		a.rareCounters().Unexpected++ // 5.2.3: "the endpoint SHOULD discard the INIT ACK chunk"
		return
	}
	if init.Tag() == 0 { // section 3.3.3
		a.rareCounters().Violations++
		Reflect(&a.outbox, in.Packet, false)
		a.endAssoc(onEnd, &AbortError{Causes: []Cause{{Code: wire.CauseInvalidParam}}})
		return
	}
	if init.ARwnd() < minWindow { // section 3.3.3: no change to the association
		a.rareCounters().Malformed++
		answerWithAbort(&a.outbox, in.Packet, init.Tag(), refusal{code: wire.CauseInvalidParam})
		return
	}
	source := in.Remote.Addr().Unmap()
	if !a.hasPathOfFamily(source) { // nor has an INIT gone to an address of its family
		a.rareCounters().ForeignSource++
		return
	}
	var o initParams
	if why, ok := readInitParams(init, source, a.cfg.knownFamilies(source, a.setup().reachAddr), a.env, &o); !ok {
		a.rareCounters().Violations++
		answerWithAbort(&a.outbox, in.Packet, o.tag, why)
		a.endAssoc(onEnd, &AbortError{Causes: []Cause{{Code: why.code, Info: slices.Clone(why.info)}}})
		return
	}
	if err := a.cfg.checkAdaptation(o.adaptation, o.hasAdaptation); err != nil {
		a.rareCounters().Violations++
		answerWithAbort(&a.outbox, in.Packet, o.tag, violationCause(err))
		a.endAssoc(onEnd, err)
		return
	}
	if a.hooks.onAnswer != nil && !a.hooks.onAnswer() {
		a.endAssoc(onEnd, ErrOvertaken)
		return
	}
	if o.ignoredAddrs > 0 {
		a.rareCounters().AddressesIgnored += uint64(o.ignoredAddrs)
	}
	a.id.peerTag = o.tag
	a.agreed.outStreams, a.agreed.inStreams = min(a.cfg.outStreams(), o.inStreams), min(a.cfg.InStreams, o.outStreams)
	a.agreed.peerAdaptation, a.agreed.hasAdaptation = o.adaptation, o.hasAdaptation
	a.setECN(o.ecn && a.cfg.offersECN(a.env))
	a.learnPaths(now, in, &o)
	a.startData(o.rwnd, o.tsn)

	s := a.setup()
	if s.wasSentOnce() {
		a.primaryPath().ObserveProvedRTT(now.Sub(s.firstSentAt)) // it has our tag
	}
	a.changeState(onInitAck, &cookieEchoed{newSetup(a.sender().Primary().Index(), s.reachAddr, s.staleErrors),
		slices.Clone(o.cookie), unknownParamsError(&o)})
}

// OnAnswer sets f, which is asked when the peer has answered the INIT. If f returns false the
// association ends by ErrOvertaken. The peer does not hear of that, and need not, as it keeps
// nothing before the COOKIE ECHO. So of several attempts to reach a host only one succeeds,
// whichever are answered.
func (a *Assoc) OnAnswer(f func() bool) { a.hooks.onAnswer = f }

// learnPaths records the peer's addresses (section 5.1.2). Those that the upper layer did not give
// are unconfirmed. The primary path is the one that the INIT took. If INITs went to several
// addresses, it is most likely the one that the answer came by. The peer knows the own address that
// the INIT left from, which is where its answer came to.
func (a *Assoc) learnPaths(now rawio.Time, in *inbound, o *initParams) {
	source := in.Remote.Addr().Unmap()
	first, own := a.paths[a.setup().pathIndex], localAddrOf(in.Packet)
	a.setKnownAddrs(source, a.setup().reachAddr, own, bothFamilies)
	a.dropUnknownPaths(own)
	a.addPath(own, in.Remote, tx.Unconfirmed)
	for _, addr := range o.addrs[:o.numAddrs] {
		a.addPath(own, netip.AddrPortFrom(addr, in.Remote.Port()), tx.Unconfirmed)
	}
	p := a.findPath(source)
	if p != nil && p.State == tx.Active {
		a.noteArrival(now, p, in.Packet)
	}
	switch {
	case p != nil && p.State == tx.Active && !a.setup().wasSentOnce():
		first = p
	case !slices.Contains(a.paths, first): // it is of the other family
		first = a.paths[0]
	}
	a.sender().SetPrimary(first.Index())
}

// unknownParamsError makes the ERROR chunk about unknown parameters (section 3.2.2), nil without
// any.
func unknownParamsError(o *initParams) []byte {
	if o.numUnknown == 0 {
		return nil
	}
	var list []byte
	for _, u := range o.unknownParams[:o.numUnknown] {
		if len(list)+wire.PaddedLen(len(u)) <= maxReport { // the cause excludes the last padding (section 3.2.1)
			list = append(append(list, wire.Padding(len(list))...), u...)
		}
	}
	return wire.CloseChunk(wire.AppendCause(wire.AppendError(nil), wire.CauseUnrecognizedParams, list), 0)
}

// handleCookieAck ends the handshake on the initiator's side (section 5.1).
func (a *Assoc) handleCookieAck(now rawio.Time, c wire.Chunk) {
	if _, err := wire.AsCookieAck(c); err != nil || a.state != CookieEchoed || !a.setup().wasSent() {
		a.rareCounters().Unexpected++ // 5.2.5: "SHOULD silently discard a received COOKIE ACK chunk"
		return
	}
	if s := a.setup(); s.wasSentOnce() {
		a.paths[s.pathIndex].ObserveRTT(now.Sub(s.firstSentAt))
	}
	a.enterEstablished(now)
}

// enterEstablished ends the handshake.
func (a *Assoc) enterEstablished(now rawio.Time) {
	a.changeState(onCookieAck, nil)
	a.reportEstablished(now)
}

// reportEstablished reports that the association is established.
func (a *Assoc) reportEstablished(now rawio.Time) {
	a.startHeartbeats(now)
	a.pushSetupEvents(now, EventUp)
}

// pushSetupEvents reports a setup that is complete, and what the peer has announced in it.
func (a *Assoc) pushSetupEvents(now rawio.Time, k EventKind) {
	a.lastDataAt = now
	a.events.push(Event{Kind: k, Path: a.primaryPath().Remote})
	if a.agreed.hasAdaptation {
		a.events.push(Event{Kind: EventAdaptation, Adaptation: a.agreed.peerAdaptation})
	}
}

// handleStaleCookie starts over with a new INIT that asks for a longer cookie life (section 5.2.6).
func (a *Assoc) handleStaleCookie(now rawio.Time) {
	if a.state != CookieEchoed || !a.setup().wasSent() {
		a.rareCounters().Unexpected++
		return
	}
	s := a.setup()
	if s.staleErrors == a.cfg.MaxInitRetrans {
		a.endAssoc(onEnd, ErrInitTimeout)
		return
	}
	// The life was short by at most this round trip, and one second is all that may be added.
	rtt := min(max(now.Sub(s.firstSentAt), time.Millisecond), time.Second)
	a.changeState(onStale, &cookieWait{newSetup(s.pathIndex, s.reachAddr, s.staleErrors+1),
		uint32(min(rtt+time.Second, 2*time.Second) / time.Millisecond)})
	a.control.clear() // answers to a tag that is no more
	a.id.peerTag = 0
	a.recv.Close()
	a.recv = nil
}
