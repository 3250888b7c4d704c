package assoc

import (
	"encoding/binary"
	"io"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// identity is how this side introduces itself in an INIT ACK and its cookie.
type identity struct {
	tag                     uint32
	tsn                     wire.TSN
	localTieTag, peerTieTag uint32
}

// newIdentity draws a tag, which is not 0, and an initial TSN (section 5.3.1).
func newIdentity(rand io.Reader) (id identity, err error) {
	var b [8]byte
	for id.tag == 0 {
		if _, err = io.ReadFull(rand, b[:]); err != nil {
			return identity{}, err
		}
		id.tag = binary.BigEndian.Uint32(b[:])
	}
	id.tsn = wire.TSN(binary.BigEndian.Uint32(b[4:]))
	return id, nil
}

// appendInit appends an INIT with the parameters of the upper layer. Others follow.
func (c *Config) appendInit(b []byte, id identity) []byte {
	b = wire.AppendInit(b, wire.ChunkInit, wire.InitFields{Tag: id.tag, ARwnd: uint32(c.initialWindow()),
		OutStreams: c.outStreams(), InStreams: c.InStreams, TSN: id.tsn})
	if c.Adaptation != nil {
		b = wire.AppendAdaptationIndication(b, *c.Adaptation)
	}
	return b
}

// InitAnswer is what became of an INIT.
type InitAnswer uint8

// Answers to an INIT.
const (
	InitDiscarded InitAnswer = iota // none
	InitRefused                     // ABORT
	InitAcked                       // INIT ACK
)

// AnswerInit answers an INIT for which no association exists by INIT ACK or ABORT (section 5.1),
// and keeps nothing. It returns what the answer was, and how many addresses in the INIT were too
// many. p is a packet with Verification Tag 0 and c its only chunk. cfg is complete (see
// Config.Complete), or nil if nobody listens on the port.
func AnswerInit(now rawio.Time, o *Outbox, p *rawio.Packet, c wire.Chunk, cfg *Config, env *Env) (how InitAnswer,
	ignored int) {
	init, err := wire.AsInit(c)
	if err != nil || init.Tag() == 0 {
		return InitDiscarded, 0 // section 3.3.2
	}
	if cfg == nil {
		answerWithAbort(o, p, init.Tag(), refusal{})
		return InitRefused, 0
	}
	var of initParams
	source := p.Remote.Addr().Unmap()
	if why, ok := readInitParams(init, source, cfg.knownFamilies(source, source), cfg, env, &of); !ok {
		answerWithAbort(o, p, of.tag, why)
		return InitRefused, 0
	}
	id, err := newIdentity(env.Rand)
	if err != nil {
		answerWithAbort(o, p, of.tag, refusal{code: wire.CauseOutOfResource})
		return InitRefused, 0
	}
	own, err := cfg.newListenerOffer(env)
	if err != nil {
		answerWithAbort(o, p, of.tag, refusal{code: wire.CauseOutOfResource})
		return InitRefused, 0
	}
	if !sendInitAck(now, o, p, &of, cfg, env, id, &own) {
		return InitRefused, 0
	}
	return InitAcked, of.ignoredAddrs
}

// sendInitAck sends the INIT ACK for an offer, or an ABORT if the adaptation layer is not the one
// required. It says which.
func sendInitAck(now rawio.Time, o *Outbox, p *rawio.Packet, of *initParams, cfg *Config, env *Env,
	id identity, own *keyOffer) (acked bool) {
	pkt := wire.Packet(p.Data)
	if own.isThere() {
		fitting, why := own.fitTo(&of.keyOffer, cfg.LooseTLS)
		if why.code != 0 {
			answerWithAbort(o, p, of.tag, why)
			return false
		}
		if own = &fitting; !own.isThere() {
			of.keyOffer = keyOffer{}
		}
	}
	if err := cfg.checkAdaptation(of.adaptation, of.hasAdaptation); err != nil {
		answerWithAbort(o, p, of.tag, violationCause(err))
		return false
	}
	out, in := cfg.streamsFor(of)
	c := Cookie{
		Created: now, Life: cfg.cookieLifeFor(of.cookieExtensionMS),
		LocalPort: pkt.DstPort(), PeerPort: pkt.SrcPort(),
		LocalTag: id.tag, PeerTag: of.tag, LocalTie: id.localTieTag, PeerTie: id.peerTieTag,
		LocalTSN: id.tsn, PeerTSN: of.tsn, PeerRwnd: of.rwnd,
		OutStreams: out, InStreams: min(in, of.outStreams),
		PeerAdaptation: of.adaptation, HasAdaptation: of.hasAdaptation, ECN: of.ecn && cfg.offersECN(env),
		Extensions: of.agreeOn(cfg),
		Local:      localAddrOf(p).Addr(), NumAddrs: 1,
		localOffer: *own, peerOffer: of.keyOffer,
	}
	c.Addrs[0] = p.Remote.Addr().Unmap()
	if familyOf(of.source)&of.usableFamilies != 0 {
		c.addAddr(of.source)
	}
	for _, a := range of.addrs[:of.numAddrs] {
		c.addAddr(a)
	}
	cookie, ok := env.Cookies.Seal(now, make([]byte, 0, maxCookieLen), &c)
	if !ok {
		answerWithAbort(o, p, of.tag, refusal{code: wire.CauseOutOfResource})
		return false
	}
	b, ok := o.openPacket()
	if !ok {
		return true // the queue counts it
	}
	start := len(b)
	b = wire.AppendInit(b, wire.ChunkInitAck, wire.InitFields{
		Tag: id.tag, ARwnd: uint32(cfg.initialWindow()), OutStreams: out, InStreams: in, TSN: id.tsn,
	})
	b = wire.AppendParam(b, wire.ParamStateCookie, cookie)
	if cfg.Adaptation != nil {
		b = wire.AppendAdaptationIndication(b, *cfg.Adaptation)
	}
	b = appendECNCapable(b, c.ECN)
	b = appendExtensions(b, cfg.offeredExtensions())
	b = appendZeroChecksum(b, env)
	b = appendKeyOffer(b, own)
	b = appendAddrs(b, cfg.LocalAddrs, c.Local, c.Addrs[0], of.peerFamilies())
	limit := 0 // asked for only if need be: it may cost a system call, and the next INIT has another source
	for _, u := range of.unknownParams[:of.numUnknown] {
		size := wire.CommonHeaderLen + len(b) - start + 4 + wire.PaddedLen(len(u))
		if size > minPathMTU && limit == 0 {
			limit = cfg.firstMTU(env, cfg.mtuLimits(env, p.Local, p.Remote, 0))
		}
		if size <= max(limit, minPathMTU) {
			b = wire.AppendParam(b, wire.ParamUnrecognizedParam, u)
		}
	}
	o.queueMarkedAnswer(p, of.tag, cfg.packetMark(), wire.CloseChunk(b, start))
	return true
}

// cookieLifeFor returns how long a cookie lives if the peer asks for extend more milliseconds. A
// peer asks because it has found an earlier one stale (section 3.3.2.1.3). The life is at most
// twice the usual.
func (c *Config) cookieLifeFor(extend uint32) time.Duration {
	return min(c.CookieLife+min(time.Duration(extend)*time.Millisecond, c.CookieLife), keyLifetime)
}

// addedAddresses returns the addresses of an INIT, and of its packet's source, that the association
// does not have. They are the information of a Restart of an Association with New Addresses cause.
func (a *Assoc) addedAddresses(o *initParams, source netip.Addr) (added []byte) {
	if a.findPath(source) == nil {
		added = wire.AppendAddressParam(added, source)
	}
	for _, addr := range o.addrs[:o.numAddrs] {
		// Of more addresses than are kept, some were ignored at the setup too.
		if a.findPath(addr) == nil && len(a.paths) < MaxPaths {
			added = wire.AppendAddressParam(added, addr)
		}
	}
	return added
}

// handleInit answers an INIT for an existing association (sections 5.2.1 and 5.2.2). Whatever the
// answer, "the existing association, including its current state, and the corresponding TCB MUST
// NOT be changed". By state:
//
//   - COOKIE-WAIT (5.2.1): the INIT ACK has the tag and TSN of the own INIT. It goes "to an address
//     passed by the upper layer" that the INIT lists (rules 1 and 2).
//   - COOKIE-ECHOED (5.2.1): the same tag and TSN, and tie-tags. A new address is answered by
//     ABORT.
//   - SHUTDOWN-ACK-SENT (9.2): the SHUTDOWN ACK goes again. A peer that has lost its keys cannot open
//     it: where it may have others for a restart there is an answer as in other states, too.
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
		if s := a.protection(); s == nil || !s.canRestart() {
			return
		}
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
	if why, ok := readInitParams(init, source, a.cfg.knownFamilies(to, to)&a.addrs.families, a.cfg, a.env, &o); !ok {
		a.rareCounters().InitsRefused++
		answerWithAbort(&a.outbox, in.Packet, o.tag, why)
		return
	}
	// 5.2.1: "using the same parameters it sent in its original INIT chunk (including its Initiate
	// Tag, unchanged)".
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
	own, err := a.offerToPeer()
	if err != nil {
		return
	}
	cfg := *a.cfg
	cfg.OutStreams = max(cfg.outStreams(), a.agreed.outStreams) // as in our INIT or INIT ACK: sections 5.2.1 and 5.2.2
	if !sendInitAck(now, &a.outbox, in.Packet, &o, &cfg, a.env, id, &own) {
		a.rareCounters().InitsRefused++
	} else if id.tag == a.id.localTag {
		a.life.noteCookie(now, now.Add(a.cfg.cookieLifeFor(o.cookieExtensionMS)))
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
