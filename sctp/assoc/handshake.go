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

// setup is what exists in COOKIE-WAIT and COOKIE-ECHOED only.
type setup struct {
	own      any  // what exists in one of them: *waiting or *echoing
	due      bool // INIT or COOKIE ECHO waits to be sent
	hurried  bool // and has gone once more, or does, before T1 expires, see hasten
	deadline rawio.Time
	tries    int        // retransmissions of INIT or of COOKIE ECHO
	stale    int        // Stale Cookie errors received
	sent     rawio.Time // when INIT or COOKIE ECHO was first sent
	path     int        // where it goes
	reach    netip.Addr // where own addresses are to be meaningful, see meaningful

	unroutable int   // addresses in a row that this host does not send to, since T1 expired
	rounds     int   // times in a row that this was so of all
	refused    error // why
	passes     bool  // and that may change by itself
}

// waiting is what exists in COOKIE-WAIT only.
type waiting struct {
	preserve uint32 // Cookie Preservative of a new INIT, ms; 0 for none
}

// echoing is what exists in COOKIE-ECHOED only.
type echoing struct {
	cookie []byte // the peer's State Cookie
	report []byte // ERROR chunk about unknown parameters of the INIT ACK, sent behind the cookie
}

// asked says whether INIT or COOKIE ECHO was sent: what comes before is no answer to it.
func (s *setup) asked() bool { return !s.due || s.hurried || s.tries > 0 }

// once says whether INIT or COOKIE ECHO was sent once, so that its answer measures a round trip.
func (s *setup) once() bool { return s.tries == 0 && !s.hurried }

// transmitSetup sends INIT or COOKIE ECHO and starts T1-init or T1-cookie.
func (a *Assoc) transmitSetup(now rawio.Time, out *TxBatch) {
	s := a.setup
	p := a.paths[s.path]
	if s.due = false; !s.hurried {
		s.deadline = now.Add(a.setupRTO(p))
	}
	if s.once() {
		s.sent = now
	}
	switch own := s.own.(type) {
	case *waiting:
		a.open(out, 0, p.Local, p, p.MTU())
		b := out.Tail()
		start := len(b)
		b = wire.AppendInit(b, wire.ChunkInit, wire.InitFields{Tag: a.localTag, ARwnd: uint32(a.cfg.window()),
			OutStreams: a.cfg.outStreams(), InStreams: a.cfg.InStreams, TSN: a.localTSN})
		if a.cfg.Adaptation != nil {
			b = wire.AppendAdaptationIndication(b, *a.cfg.Adaptation)
		}
		if own.preserve > 0 {
			b = wire.AppendCookiePreservative(b, own.preserve)
		}
		b = appendECN(b, a.cfg.ecnCapable(a.env))
		b = appendFamilies(b, a.cfg.families(p.Remote.Addr(), s.reach))
		if len(a.cfg.LocalAddrs) > 0 {
			b = appendAddrs(b, a.locals, p.Local.Addr(), s.reach, bothFamilies)
		}
		out.Commit(wire.CloseChunk(b, start))
	case *echoing:
		// A cookie larger than the path MTU has no other way than IP fragmentation.
		a.open(out, a.peerTag, p.Local, p, p.MTU())
		out.Commit(wire.AppendCookieEcho(out.Tail(), own.cookie))
		if len(own.report) <= out.Room() {
			out.Commit(append(out.Tail(), own.report...))
		}
		if s.tries&1 == 1 { // most paths carry it whole, and many no fragments
			a.endLong(out, p)
			return
		}
	}
	a.end(out)
}

// setupRTO is the timeout of INIT or COOKIE ECHO on a path.
func (a *Assoc) setupRTO(p *path) time.Duration {
	if a.cfg.MaxInitRTO > 0 {
		return min(p.RTO(), a.cfg.MaxInitRTO)
	}
	return p.RTO()
}

// setupTimeout is the expiry of T1-init or T1-cookie (section 4 notes 2 and 3).
func (a *Assoc) setupTimeout() {
	s := a.setup
	s.deadline, s.hurried = rawio.Never, false
	if s.tries == a.cfg.MaxInitRetrans {
		if a.Refusal() != nil {
			a.endRefused(a.paths[s.path], s.refused)
			return
		}
		a.down(onEnd, ErrInitTimeout)
		return
	}
	s.tries++
	s.beginRound(len(a.paths))
	s.due = true
	a.paths[s.path].Backoff()
	if a.state == CookieWait && s.tries > 1 {
		a.reroute(a.paths[s.path])
	}
	a.nextSetupPath()
}

// handleInit answers an INIT for an existing association (sections 5.2.1 and 5.2.2), which never
// changes the association.
func (a *Assoc) handleInit(now rawio.Time, in *inbound, c wire.Chunk) {
	a.rare().InitsIn++
	a.steps += cookieSteps
	init, err := wire.AsInit(c)
	if err != nil || init.Tag() == 0 {
		a.rare().Malformed++
		return
	}
	if a.state == ShutdownAckSent { // section 9.2
		a.closing.due = true
		return
	}
	source := in.Remote.Addr().Unmap()
	if a.state == CookieWait && in.path == nil { // not an address that the upper layer gave: section 5.2.1, rules 1 and 2
		p := a.listedPath(init, source)
		if p == nil {
			a.rare().ForeignSource++
			return
		}
		pkt := *in.Packet
		pkt.Local, pkt.Remote = p.Local, p.Remote
		in.Packet = &pkt
	}
	to := in.Remote.Addr().Unmap() // where the INIT ACK goes
	var o offer
	if why, ok := readOffer(init, source, a.cfg.families(to, to)&a.families, a.env, &o); !ok {
		a.rare().InitsRefused++
		refuse(&a.outbox, in.Packet, o.tag, why)
		return
	}
	id := identity{tag: a.localTag, tsn: a.localTSN}
	if a.state != CookieWait {
		if added := a.addsAddress(&o, source); added != nil {
			a.rare().InitsRefused++
			refuse(&a.outbox, in.Packet, o.tag, refusal{code: wire.CauseRestart, info: added})
			return
		}
		if a.state != CookieEchoed {
			if id, err = newIdentity(a.env.Rand); err != nil {
				return
			}
		}
		if !a.makeTies() {
			return
		}
		id.tieLocal, id.tiePeer = a.tieLocal, a.tiePeer
	}
	cfg := *a.cfg
	cfg.OutStreams = max(cfg.outStreams(), a.outStreams) // what the own INIT has said, or INIT ACK: sections 5.2.1 and 5.2.2
	if !answerOffer(now, &a.outbox, in.Packet, &o, &cfg, a.env, id) {
		a.rare().InitsRefused++
	} else if id.tag == a.localTag {
		a.cookieUntil, a.cookieMade = max(a.cookieUntil, now.Add(a.cfg.cookieLife(o.extend))), now
	}
}

// listedPath returns the first path to an address that an INIT from source lists.
func (a *Assoc) listedPath(init wire.Init, source netip.Addr) *path {
	ps := init.Params()
	for prm, more := ps.Next(); more; prm, more = ps.Next() {
		addr, err := prm.Addr()
		if err != nil || !meaningful(addr, source) && !addr.IsLinkLocalUnicast() {
			continue
		}
		if p := a.pathOf(inZone(addr, source.Zone())); p != nil {
			return p
		}
	}
	return nil
}

// makeTies draws the tie-tags once.
func (a *Assoc) makeTies() bool {
	for a.tieLocal == 0 { // which says that there are none
		var b [8]byte
		if _, err := io.ReadFull(a.env.Rand, b[:]); err != nil {
			return false
		}
		a.tieLocal, a.tiePeer = binary.BigEndian.Uint32(b[:]), binary.BigEndian.Uint32(b[4:])
	}
	return true
}

// handleInitAck takes the peer's INIT ACK and answers by COOKIE ECHO (section 5.1).
func (a *Assoc) handleInitAck(now rawio.Time, in *inbound, c wire.Chunk) {
	init, err := wire.AsInit(c)
	if a.state != CookieWait || err != nil || !a.setup.asked() {
		a.rare().Unexpected++ // section 5.2.3
		return
	}
	if init.Tag() == 0 { // section 3.3.3
		a.rare().Violations++
		Reflect(&a.outbox, in.Packet, false)
		a.down(onEnd, &AbortError{Causes: []Cause{{Code: wire.CauseInvalidParam}}})
		return
	}
	if init.ARwnd() < minWindow { // section 3.3.3: no change to the association
		a.rare().Malformed++
		refuse(&a.outbox, in.Packet, init.Tag(), refusal{code: wire.CauseInvalidParam})
		return
	}
	source := in.Remote.Addr().Unmap()
	if !a.reaches(source) { // nor has an INIT gone to an address of its family
		a.rare().ForeignSource++
		return
	}
	var o offer
	if why, ok := readOffer(init, source, a.cfg.families(source, a.setup.reach), a.env, &o); !ok {
		a.rare().Violations++
		refuse(&a.outbox, in.Packet, o.tag, why)
		a.down(onEnd, &AbortError{Causes: []Cause{{Code: why.code, Info: slices.Clone(why.info)}}})
		return
	}
	if err := a.cfg.checkAdaptation(o.adaptation, o.hasAdaptation); err != nil {
		a.rare().Violations++
		refuse(&a.outbox, in.Packet, o.tag, violation(err))
		a.down(onEnd, err)
		return
	}
	if a.proceed != nil && !a.proceed() {
		a.down(onEnd, ErrOvertaken)
		return
	}
	if o.ignored > 0 {
		a.rare().AddressesIgnored += uint64(o.ignored)
	}
	a.peerTag = o.tag
	a.outStreams, a.inStreams = min(a.cfg.outStreams(), o.in), min(a.cfg.InStreams, o.out)
	a.peerAdaptation, a.hasAdaptation = o.adaptation, o.hasAdaptation
	a.useECN(o.ecn && a.cfg.ecnCapable(a.env))
	a.learnPaths(now, in, &o)
	a.startData(o.rwnd, o.tsn)

	s := a.setup
	if s.once() {
		a.primary().Proved(now.Sub(s.sent)) // it has our tag
	}
	*s = setup{own: &echoing{slices.Clone(o.cookie), reportParams(&o)}, due: true, deadline: rawio.Never,
		stale: s.stale, path: a.sender().Primary().Index(), reach: s.reach}
	a.enter(onInitAck)
}

// OnAnswer has f asked when the peer has answered the INIT: false ends the association by ErrOvertaken. The peer does not hear of that, and
// needs not, as it keeps nothing before the COOKIE ECHO. So of several attempts to reach a host one comes to be, whichever are answered.
func (a *Assoc) OnAnswer(f func() bool) { a.proceed = f }

// learnPaths records the peer's addresses (section 5.1.2); those that the upper layer did not give
// are unconfirmed. The primary path is the one that the INIT took: after several, to several
// addresses, most likely the one that the answer came by. The peer knows the own address that the
// INIT left from, which is where its answer came to.
func (a *Assoc) learnPaths(now rawio.Time, in *inbound, o *offer) {
	source := in.Remote.Addr().Unmap()
	first, own := a.paths[a.setup.path], ownOf(in.Packet)
	a.knownTo(source, a.setup.reach, own, bothFamilies)
	a.keepKnown(own)
	a.addPath(own, in.Remote, tx.Unconfirmed)
	for _, addr := range o.addrs[:o.numAddrs] {
		a.addPath(own, netip.AddrPortFrom(addr, in.Remote.Port()), tx.Unconfirmed)
	}
	p := a.pathOf(source)
	if p != nil && p.State == tx.Active {
		a.arrived(now, p, in.Packet)
	}
	switch {
	case p != nil && p.State == tx.Active && !a.setup.once():
		first = p
	case !slices.Contains(a.paths, first): // it is of the other family
		first = a.paths[0]
	}
	a.sender().SetPrimary(first.Index())
}

// reportParams makes the ERROR chunk about unknown parameters (section 3.2.2), nil without any.
func reportParams(o *offer) []byte {
	if o.numUnknown == 0 {
		return nil
	}
	var list []byte
	for _, u := range o.unknown[:o.numUnknown] {
		if len(list)+wire.PaddedLen(len(u)) <= maxReport { // the padding of the last one is not the cause's (section 3.2.1)
			list = append(append(list, wire.Padding(len(list))...), u...)
		}
	}
	return wire.CloseChunk(wire.AppendCause(wire.AppendError(nil), wire.CauseUnrecognizedParams, list), 0)
}

// handleCookieAck ends the handshake on the initiator's side (section 5.1).
func (a *Assoc) handleCookieAck(now rawio.Time, c wire.Chunk) {
	if _, err := wire.AsCookieAck(c); err != nil || a.state != CookieEchoed || !a.setup.asked() {
		a.rare().Unexpected++ // section 5.2.5
		return
	}
	if s := a.setup; s.once() {
		a.paths[s.path].ObserveRTT(now.Sub(s.sent))
	}
	a.established(now)
}

// established ends the handshake.
func (a *Assoc) established(now rawio.Time) {
	a.enter(onCookieAck)
	a.begin(now)
}

// begin reports that the association is established.
func (a *Assoc) begin(now rawio.Time) {
	a.startBeats(now)
	a.pushUp(now, EventUp)
}

// pushUp reports a setup that is complete, and what the peer has announced in it.
func (a *Assoc) pushUp(now rawio.Time, k EventKind) {
	a.moved = now
	a.events.push(Event{Kind: k, Path: a.primary().Remote})
	if a.hasAdaptation {
		a.events.push(Event{Kind: EventAdaptation, Adaptation: a.peerAdaptation})
	}
}

// handleStale starts over with a new INIT that asks for a longer cookie life (section 5.2.6).
func (a *Assoc) handleStale(now rawio.Time) {
	if a.state != CookieEchoed || !a.setup.asked() {
		a.rare().Unexpected++
		return
	}
	s := a.setup
	if s.stale == a.cfg.MaxInitRetrans {
		a.down(onEnd, ErrInitTimeout)
		return
	}
	// The life was short by at most this round trip, and one second is all that may be added.
	rtt := min(max(now.Sub(s.sent), time.Millisecond), time.Second)
	own := &waiting{preserve: uint32(min(rtt+time.Second, 2*time.Second) / time.Millisecond)}
	*s = setup{own: own, due: true, deadline: rawio.Never, stale: s.stale + 1, path: s.path, reach: s.reach}
	a.enter(onStale)
	a.control.clear() // answers to a tag that is no more
	a.peerTag = 0
	a.recv.Close()
	a.recv = nil
}
