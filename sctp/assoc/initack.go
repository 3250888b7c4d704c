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
	if why, ok := readInitParams(init, source, cfg.knownFamilies(source, source), env, &of); !ok {
		answerWithAbort(o, p, of.tag, why)
		return InitRefused, 0
	}
	id, err := newIdentity(env.Rand)
	if err != nil {
		answerWithAbort(o, p, of.tag, refusal{code: wire.CauseOutOfResource})
		return InitRefused, 0
	}
	if !sendInitAck(now, o, p, &of, cfg, env, id) {
		return InitRefused, 0
	}
	return InitAcked, of.ignoredAddrs
}

// sendInitAck sends the INIT ACK for an offer, or an ABORT if the adaptation layer is not the one
// required. It says which.
func sendInitAck(now rawio.Time, o *Outbox, p *rawio.Packet, of *initParams, cfg *Config, env *Env,
	id identity) (acked bool) {
	pkt := wire.Packet(p.Data)
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
		Local: localAddrOf(p).Addr(), NumAddrs: 1,
	}
	c.Addrs[0] = p.Remote.Addr().Unmap()
	if familyOf(of.source)&of.usableFamilies != 0 {
		c.addAddr(of.source)
	}
	for _, a := range of.addrs[:of.numAddrs] {
		c.addAddr(a)
	}
	cookie, ok := env.Cookies.Seal(now, make([]byte, 0, cookieFixedLen+16*MaxPaths+cookieMACLen), &c)
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

// answerWithAbort sends an ABORT with the peer's tag and T = 0 to where p came from. A zero refusal
// has no error cause.
func answerWithAbort(o *Outbox, p *rawio.Packet, tag uint32, why refusal) {
	b, ok := o.openPacket()
	if !ok {
		return
	}
	start := len(b)
	b = wire.AppendAbort(b, false)
	if why.code != 0 {
		b = wire.AppendCause(b, why.code, why.info[:min(len(why.info), maxReport)])
	}
	o.queueAnswer(p, tag, wire.CloseChunk(b, start))
}

// RefuseCookie answers a COOKIE ECHO that cannot become an association by ABORT (section 5.1).
func RefuseCookie(o *Outbox, p *rawio.Packet, c *Cookie) {
	answerWithAbort(o, p, c.PeerTag, refusal{code: wire.CauseOutOfResource})
}

// AnswerStale reports an expired cookie to its sender (section 5.1.5).
func AnswerStale(now rawio.Time, o *Outbox, p *rawio.Packet, c *Cookie) {
	b, ok := o.openPacket()
	if !ok {
		return
	}
	start := len(b)
	b = wire.AppendStaleCookieCause(wire.AppendError(b), c.Staleness(now))
	o.queueAnswer(p, c.PeerTag, wire.CloseChunk(b, start))
}

// Reflect answers a packet out of the blue by a lone ABORT, or a SHUTDOWN ACK by SHUTDOWN COMPLETE.
// The answer carries the packet's own Verification Tag and T = 1 (section 8.4).
func Reflect(o *Outbox, p *rawio.Packet, complete bool) {
	b, ok := o.openPacket()
	if !ok {
		return
	}
	if complete {
		b = wire.AppendShutdownComplete(b, true)
	} else {
		b = wire.AppendAbort(b, true)
	}
	o.queueAnswer(p, wire.Packet(p.Data).VTag(), b)
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
