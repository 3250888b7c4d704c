package endpoint

import (
	"cmp"
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Lookup finds the association of p. ok is false for a packet to drop: malformed, or with a wrong
// checksum (section 6.8). When ok and the association is nil, pass p to HandleUnmatched. Lookup writes
// nothing but atomic counters.
func (e *Endpoint) Lookup(p *rawio.Packet) (a *assoc.Assoc, ok bool) {
	return e.LookupNext(p, new(Before))
}

// Before is what LookupNext keeps of one packet for the next. Its zero value is for the first.
type Before struct {
	sum  wire.HeaderSum
	peer peerKey
	a    *assoc.Assoc
}

// LookupNext is Lookup for the next of several packets, which as a rule come from one peer. Nothing else
// happens to the endpoint from the first to the last.
func (e *Endpoint) LookupNext(p *rawio.Packet, b *Before) (a *assoc.Assoc, ok bool) {
	if p.Kind != rawio.KindSCTP {
		if a = e.lookupQuote(p); a == nil {
			e.strays.Add(1)
		}
		return a, a != nil
	}
	pkt, err := wire.ParsePacket(p.Data)
	if err != nil || pkt.SrcPort() == 0 || pkt.DstPort() == 0 {
		e.malformed.Add(1)
		return nil, false
	}
	if !b.sum.OK(pkt) {
		e.checksum.Add(1)
		return nil, false
	}
	k := peerKey{p.Remote.Addr().Unmap(), pkt.DstPort(), pkt.SrcPort()}
	if b.a != nil && k == b.peer {
		return b.a, true
	}
	if a = e.byPeer[k]; a != nil {
		b.peer, b.a = k, a
	} else if pkt.VTag() != 0 {
		// An address of the peer that only its INIT ACK has named, or that could not be verified.
		if a = e.byTag[tagKey{pkt.VTag(), pkt.DstPort(), pkt.SrcPort()}]; a == nil && !setsUp(pkt) {
			a = e.byClaim[k] // such as the ABORT of a host that knows nothing of the association
		}
	}
	return a, true
}

// setsUp says whether a packet brings a cookie: an unverified address does not say whose that is.
func setsUp(pkt wire.Packet) bool {
	cs := pkt.Chunks()
	c, ok := cs.Next()
	return ok && c.Type() == wire.ChunkCookieEcho
}

// lookupQuote finds the association whose packet an ICMP report quotes (section 10, ICMP5).
func (e *Endpoint) lookupQuote(p *rawio.Packet) *assoc.Assoc {
	if len(p.Data) < 8 {
		return nil
	}
	src, dst := binary.BigEndian.Uint16(p.Data), binary.BigEndian.Uint16(p.Data[2:])
	k := peerKey{p.Remote.Addr().Unmap(), src, dst}
	return cmp.Or(e.byPeer[k], e.byClaim[k])
}

// HandleUnmatched handles a packet that Lookup passed but found no association for (section 8.4). A
// valid COOKIE ECHO makes an association: isNew; set its upper layer, then pass it this same packet.
// An INIT may turn out to be for an existing association, by an address that it lists: pass it on.
func (e *Endpoint) HandleUnmatched(now rawio.Time, p *rawio.Packet) (a *assoc.Assoc, isNew bool) {
	pkt, err := wire.ParsePacket(p.Data)
	if err != nil || p.Kind != rawio.KindSCTP {
		return nil, false // an association that was there a moment ago was meant
	}
	source := p.Remote.Addr().Unmap()
	if !assoc.Unicast(source) || multicast(p.Local) { // rule 1
		e.stats.BadAddress++
		return nil, false
	}
	cs := pkt.Chunks()
	first, ok := cs.Next()
	if !ok {
		e.stats.Malformed++
		return nil, false
	}
	g := look(pkt)
	switch {
	case g.abort: // rule 2
		e.stats.OutOfBlue++
	case g.init: // rule 3; sections 8.5.1 A and 12.3 for what an INIT must look like
		if pkt.VTag() == 0 && g.chunks == 1 {
			return e.handleInit(now, p, pkt, first), false
		}
		e.stats.OutOfBlue++
	case pkt.VTag() == 0: // section 8.5.1 A
		e.stats.OutOfBlue++
	case first.Type() == wire.ChunkCookieEcho: // rule 4
		return e.handleCookieEcho(now, p, first)
	case g.shutdownAck: // rule 5
		e.reflect(now, p, wire.ChunkShutdownComplete)
	case g.silent: // rules 6 and 7
		e.stats.OutOfBlue++
	default: // rule 8
		e.reflect(now, p, wire.ChunkAbort)
	}
	return nil, false
}

// allowed says whether the source of a packet may get an answer.
func (e *Endpoint) allowed(now rawio.Time, p *rawio.Packet) bool {
	ok := e.rates.allow(now, p.Remote.Addr().Unmap())
	if !ok {
		e.stats.RateLimited++
	}
	return ok
}

// reflect answers a packet out of the blue.
func (e *Endpoint) reflect(now rawio.Time, p *rawio.Packet, t wire.ChunkType) {
	e.stats.OutOfBlue++
	if e.allowed(now, p) {
		e.stats.Reflected++
		assoc.Reflect(&e.out, p, t)
	}
}

// glance is what the rules for packets out of the blue depend on.
type glance struct {
	chunks                           int
	abort, init, shutdownAck, silent bool
}

func look(pkt wire.Packet) (g glance) {
	cs := pkt.Chunks()
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		g.chunks++
		switch c.Type() {
		case wire.ChunkAbort:
			g.abort = true
		case wire.ChunkInit:
			g.init = true
		case wire.ChunkShutdownAck:
			g.shutdownAck = true
		case wire.ChunkShutdownComplete, wire.ChunkCookieAck:
			g.silent = true
		case wire.ChunkError:
			g.silent = g.silent || reportsStale(c)
		}
	}
	return g
}

func reportsStale(c wire.Chunk) bool {
	e, err := wire.AsError(c)
	if err != nil {
		return false
	}
	cs := e.Causes()
	for cause, ok := cs.Next(); ok; cause, ok = cs.Next() {
		if cause.Code() == wire.CauseStaleCookie {
			return true
		}
	}
	return false
}

func multicast(local netip.AddrPort) bool {
	return local.IsValid() && !assoc.Unicast(local.Addr().Unmap())
}

// handleInit answers an INIT. One that lists an address of an existing association between the same
// ports belongs to that (section 5.1.2).
func (e *Endpoint) handleInit(now rawio.Time, p *rawio.Packet, pkt wire.Packet, c wire.Chunk) *assoc.Assoc {
	if init, err := wire.AsInit(c); err == nil {
		ps := init.Params()
		for prm, ok := ps.Next(); ok; prm, ok = ps.Next() {
			if addr, err := prm.Addr(); err == nil {
				if a := e.byPeer[peerKey{addr, pkt.DstPort(), pkt.SrcPort()}]; a != nil {
					return a
				}
			}
		}
	}
	cfg := e.listeners[pkt.DstPort()]
	if cfg != nil && len(cfg.LocalAddrs) > 0 && !slices.Contains(cfg.LocalAddrs, p.Local.Addr().Unmap()) {
		cfg = nil // another SCTP endpoint of this host (section 1.3)
	}
	if !e.allowed(now, p) {
		return nil
	}
	switch how, ignored := assoc.AnswerInit(now, &e.out, p, c, cfg, &e.env); how {
	case assoc.InitAcked:
		e.stats.InitAcks++
		e.stats.AddressesIgnored += uint64(ignored)
	case assoc.InitRefused:
		e.stats.InitsRefused++
	default:
		e.stats.InitsMalformed++
	}
	return nil
}

// handleCookieEcho makes an association of a valid cookie (section 5.1.5), and no second one when that has ended: each
// has a tag of its own (section 5.3.1).
func (e *Endpoint) handleCookieEcho(now rawio.Time, p *rawio.Packet, c wire.Chunk) (*assoc.Assoc, bool) {
	var ck assoc.Cookie
	echo, err := wire.AsCookieEcho(c)
	if err != nil || !e.env.Cookies.Open(now, echo.Cookie(), &ck) || !ck.Matches(p) {
		e.stats.BadCookies++
		return nil, false // silently discarded, with everything behind it
	}
	if ck.Expired(now) {
		e.stats.StaleCookies++
		if e.allowed(now, p) { // who signed for it may have listed somebody else's address
			assoc.AnswerStale(now, &e.out, p, &ck)
		}
		return nil, false
	}
	if a := e.byPeer[peerKey{p.Remote.Addr().Unmap(), ck.LocalPort, ck.PeerPort}]; a != nil {
		return a, false // one that came right behind the first: Lookup has seen both before there was an association
	}
	tag := tagKey{ck.LocalTag, ck.LocalPort, ck.PeerPort}
	if e.spent.has(now, tag) { // as any packet of an association that has ended: section 8.4 rule 8
		e.reflect(now, p, wire.ChunkAbort)
		return nil, false
	}
	cfg := e.listeners[ck.LocalPort]
	switch source := ck.Addrs[0]; {
	case cfg == nil || e.byTag[tag] != nil:
		e.stats.CookiesRefused++
	case len(e.entries) >= e.cfg.MaxAssocs, e.cfg.MaxPerSource > 0 && e.sources[source] >= e.cfg.MaxPerSource:
		e.stats.AssocsRefused++
	default:
		e.stats.AssocsAccepted++
		a := assoc.Accept(now, cfg, &e.env, &ck, p)
		e.accept(a, source)
		return a, true
	}
	if e.allowed(now, p) {
		assoc.RefuseCookie(&e.out, p, &ck)
	}
	return nil, false
}
