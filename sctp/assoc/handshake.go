package assoc

import (
	"net/netip"
	"slices"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Peer names the two ends of an association to set up.
type Peer struct {
	LocalPort, PeerPort uint16           // SCTP ports
	Local               netip.AddrPort   // own address without Config.LocalAddrs; invalid lets the link choose
	Remotes             []netip.AddrPort // addresses of the peer, the first is tried first; at most MaxPaths
	Inits               *Inits           // nil: the association is set up by a handshake
}

// Connect starts an association: its first PollTransmit sends the INIT (section 5.1). cfg is
// complete, and does not change while the association lives. It fails with ErrNoSource or
// ErrNoMarks, or for lack of randomness.
func Connect(now rawio.Time, cfg *Config, env *Env, peer Peer) (*Assoc, error) {
	if err := cfg.CanMark(env); err != nil {
		return nil, err
	}
	id, err := peer.Inits.identity(env.Rand)
	if err != nil {
		return nil, err
	}
	a := env.newAssoc()
	reach := widestScopeAddr(peer.Remotes)
	a.cfg, a.env = cfg, env
	a.state, a.stateData = CookieWait, &cookieWait{setup: newSetup(0, reach, 0)}
	a.id = associationID{localPort: peer.LocalPort, peerPort: peer.PeerPort, localTag: id.tag}
	a.life = life{incarnation: 1, localTSN: id.tsn}
	if cfg.Protected {
		offer, err := newKeyOffer(env.Rand, true, cfg.Restartable)
		if err != nil {
			return nil, err
		}
		a.ensureRareState().protection = newProtection(offer)
	}
	a.replaceSender()
	a.addrs.peerIsLocal = env.areLocalAddrs(peer.Remotes)
	own := netip.AddrPortFrom(peer.Local.Addr().Unmap(), peer.Local.Port())
	a.addrs.families, a.addrs.local = bothFamilies, a.cfg.localAddrsFor(reach, own.Addr(), bothFamilies)
	for _, r := range peer.Remotes {
		a.addPath(own, r, tx.Active) // section 5.4 rule 1
	}
	if len(a.paths) == 0 {
		return nil, ErrNoSource
	}
	if peer.Inits != nil {
		if err := a.adoptInits(now, peer.Inits); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Accept makes the association that a returned cookie describes, in state ESTABLISHED. p is the
// packet with the COOKIE ECHO: pass it to HandlePacket next.
func Accept(now rawio.Time, cfg *Config, env *Env, c *Cookie, p *rawio.Packet) *Assoc {
	a := env.newAssoc()
	a.cfg, a.env, a.state, a.life.incarnation = cfg, env, Established, 1
	a.id.localPort, a.id.peerPort = c.LocalPort, c.PeerPort
	a.adoptCookie(c)
	a.replaceSender()
	a.adoptPaths(c, p, bothFamilies)
	a.primaryPath().BoundProvedRTT(now.Sub(c.Created)) // the cookie went there
	a.startData(c.PeerRwnd, c.PeerTSN)
	a.reportEstablished(now)
	return a
}

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
		b = a.cfg.appendInit(b, identity{tag: a.id.localTag, tsn: a.life.localTSN})
		if own.cookieIncrementMS > 0 {
			b = wire.AppendCookiePreservative(b, own.cookieIncrementMS)
		}
		b = appendECNCapable(b, a.cfg.offersECN(a.env))
		b = appendExtensions(b, a.cfg.offeredExtensions())
		b = appendZeroChecksum(b, a.env)
		if s := a.protection(); s != nil {
			b = appendKeyOffer(b, &s.local)
		}
		if !a.env.isPointToPoint() { // RFC 8261 section 6.1
			b = appendFamilies(b, a.cfg.knownFamilies(p.Remote.Addr(), s.reachAddr))
		}
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
	usable := a.cfg.knownFamilies(source, a.setup().reachAddr)
	if why, ok := readInitParams(init, source, usable, a.cfg, a.env, &o); !ok {
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
	if s := a.protection(); s != nil && a.cfg.LooseTLS && !o.keyOffer.isThere() {
		a.dropProtection()
	} else if s != nil {
		isClient, why := s.local.isClient(&o.keyOffer)
		if why.code != 0 {
			a.rareCounters().Violations++
			answerWithAbort(&a.outbox, in.Packet, o.tag, why)
			a.endAssoc(onEnd, &AbortError{Causes: []Cause{{Code: why.code}}})
			return
		}
		s.peer, s.isClient = o.keyOffer, isClient
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
	a.agreed.extensions = o.agreeOn(a.cfg)
	a.learnPaths(now, in, &o)
	a.startData(o.rwnd, o.tsn)

	s := a.setup()
	if s.wasSentOnce() {
		a.primaryPath().ObserveProvedRTT(now.Sub(s.firstSentAt)) // it has our tag
	}
	a.changeState(onInitAck, &cookieEchoed{newSetup(a.sender().Primary().Index(), s.reachAddr, s.staleErrors),
		slices.Clone(o.cookie), unknownParamsError(&o)})
	a.askForRestartKeys()
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
	if a.protection() != nil {
		a.startKeys(now) // EventUp follows when there are keys
		return
	}
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
	a.sendInitAnew(uint32(min(rtt+time.Second, 2*time.Second) / time.Millisecond))
}

// sendInitAnew begins the set-up again. The peer is asked for a cookie that lives longer by so many
// milliseconds.
func (a *Assoc) sendInitAnew(cookieIncrementMS uint32) {
	s := a.setup()
	a.changeState(onStale, &cookieWait{newSetup(s.pathIndex, s.reachAddr, s.staleErrors+1), cookieIncrementMS})
	a.control.clear() // answers to a tag that is no more
	a.id.peerTag = 0
	a.recv.Close()
	a.recv = nil
}
