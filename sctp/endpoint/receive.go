package endpoint

import (
	"cmp"
	"encoding/binary"
	"io"
	"math"
	"net/netip"

	"github.com/rddp-go/rddp/internal/fair"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Lookup finds the association of p. ok is false for a packet to drop: malformed, or with a wrong
// checksum (section 6.8). When ok and the association is nil, pass p to HandleUnmatched. Lookup writes
// nothing but atomic counters, and waits for nobody.
func (e *Endpoint) Lookup(p *rawio.Packet) (a *assoc.Assoc, ok bool) {
	return e.LookupNext(p, new(Before))
}

// Before is what LookupNext keeps of one packet for the next. Its zero value is for the first.
type Before struct {
	// Hash is what Expect has found for the next packet, if it was asked.
	Hash uint64
	// Claimed says that the last association was found by an address that its peer has only named. One that is set up from there has the address.
	Claimed bool

	sum  wire.HeaderSum
	peer peerKey
	tag  uint32
	a    *assoc.Assoc
}

// LookupNext is Lookup for the next of several packets, which as a rule come from one peer.
func (e *Endpoint) LookupNext(p *rawio.Packet, b *Before) (a *assoc.Assoc, ok bool) {
	hash := b.Hash
	b.Hash, b.Claimed = 0, false
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
	if setsUp(pkt) {
		return nil, true // there are limits for them, whomever they concern
	}
	k := peerOf(p, pkt)
	if k == b.peer && pkt.VTag() == b.tag { // no port of k is 0, as they are at first
		return b.a, true
	}
	if hash == 0 {
		hash = k.Hash()
	}
	if a = e.find(k, hash, pkt); a == nil {
		a = e.claims(k, pkt)
		b.Claimed = a != nil
		return a, true
	}
	b.peer, b.tag, b.a = k, pkt.VTag(), a
	return a, true
}

// Expect has the memory come that LookupNext looks at for each of several packets: with many associations it is in no cache. It leaves the hash of each in hashes,
// 0 for one that is no packet of SCTP.
func (e *Endpoint) Expect(pkts []rawio.Packet, hashes []uint64) {
	for i := range pkts {
		hashes[i] = 0
		if k, ok := from(&pkts[i]); ok {
			hashes[i] = k.Hash()
			e.byPeer.Ahead(hashes[i])
		}
	}
	for _, h := range hashes[:len(pkts)] {
		if h != 0 {
			e.byPeer.AheadMore(h)
		}
	}
}

// peerOf is whom a packet says that it comes from.
func peerOf(p *rawio.Packet, pkt wire.Packet) peerKey {
	return peerKey{p.Remote.Addr().Unmap(), pkt.DstPort(), pkt.SrcPort()}
}

// from is by what the association of a packet is found, if it is one of SCTP.
func from(p *rawio.Packet) (k peerKey, ok bool) {
	if p.Kind != rawio.KindSCTP || len(p.Data) < wire.CommonHeaderLen {
		return k, false
	}
	pkt := wire.Packet(p.Data)
	return peerOf(p, pkt), true
}

// find returns the association that a packet with a right checksum belongs to, by an address of the peer or by the tag.
func (e *Endpoint) find(k peerKey, hash uint64, pkt wire.Packet) *assoc.Assoc {
	a, _ := e.byPeer.GetHashed(k, hash)
	if a == nil && pkt.VTag() != 0 {
		// An address of the peer that only its INIT ACK has named, or that could not be verified.
		a = at(&e.byTag, tagKey{pkt.VTag(), k.local, k.peer})
	}
	return a
}

// claims returns the association whose peer has named the address of a packet that find knows nothing of, such as the ABORT of a host
// that knows nothing of the association.
func (e *Endpoint) claims(k peerKey, pkt wire.Packet) *assoc.Assoc {
	if pkt.VTag() == 0 || setsUp(pkt) {
		return nil
	}
	return at(&e.byClaim, k)
}

// setsUp says whether a packet begins or completes the set-up of an association: of one that there is no longer, perhaps, or from an
// unverified address, which does not say whose it is.
func setsUp(pkt wire.Packet) bool {
	const first = wire.CommonHeaderLen
	if len(pkt) == first {
		return false
	}
	t := wire.ChunkType(pkt[first])
	return t == wire.ChunkCookieEcho || t == wire.ChunkInit && pkt.VTag() == 0
}

// lookupQuote finds the association whose packet an ICMP report quotes (section 10, ICMP5).
func (e *Endpoint) lookupQuote(p *rawio.Packet) *assoc.Assoc {
	if len(p.Data) < 8 {
		return nil
	}
	src, dst := binary.BigEndian.Uint16(p.Data), binary.BigEndian.Uint16(p.Data[2:])
	k := peerKey{p.Remote.Addr().Unmap(), src, dst}
	return cmp.Or(at(&e.byPeer, k), at(&e.byClaim, k))
}

// HandleUnmatched handles a packet that Lookup passed but found no association for (section 8.4). A
// valid COOKIE ECHO makes an association: isNew; set its upper layer, then pass it this same packet.
// An INIT may turn out to be for an existing association, by an address that it lists: pass it on. It is Judge, Find, Answer and
// Make, one after the other.
func (e *Endpoint) HandleUnmatched(now rawio.Time, p *rawio.Packet) (a *assoc.Assoc, isNew bool) {
	var s Stranger
	if !e.Judge(now, p, &s) {
		return nil, false
	}
	if a = e.Find(&s); a != nil || !e.Answer(now, &s) {
		return a, false
	}
	return e.Make(now, &s)
}

// Stranger is a packet of no association that Lookup knows, on its way through Judge, Find, Answer and Make.
type Stranger struct {
	p      *rawio.Packet
	pkt    wire.Packet
	first  wire.Chunk
	g      glance
	cfg    *assoc.Config // of who listens on its port
	ck     assoc.Cookie
	listed [maxListed]netip.Addr // by an INIT
	n      int                   // of them
}

// maxListed is how many addresses of an INIT are looked at, to find an association that has one of them.
const maxListed = 4 * assoc.MaxPaths

// Judge is the first look at a packet, before anything that costs: whether there is time for it, and whether it can be anything. It needs
// the part of the endpoint that sets up: see Endpoint.
func (e *Endpoint) Judge(now rawio.Time, p *rawio.Packet, s *Stranger) bool {
	pkt, err := wire.ParsePacket(p.Data)
	if err != nil || p.Kind != rawio.KindSCTP {
		return false // an association that was there a moment ago was meant
	}
	if !e.budget.allow(now, len(p.Data), e.chance) {
		e.stats.OverBudget++
		return false
	}
	source := p.Remote.Addr().Unmap()
	if !assoc.Unicast(source) || multicast(p.Local) { // rule 1
		e.stats.BadAddress++
		return false
	}
	cs := pkt.Chunks()
	first, ok := cs.Next()
	if !ok {
		e.stats.Malformed++
		return false
	}
	s.p, s.pkt, s.first, s.g, s.n = p, pkt, first, look(pkt), 0
	if s.init() {
		if !e.allowed(now, p) {
			return false
		}
		s.list()
	}
	return true
}

// init says whether it is an INIT as one must look: sections 8.5.1 A and 12.3.
func (s *Stranger) init() bool { return s.g.init && s.pkt.VTag() == 0 && s.g.chunks == 1 }

// list notes the addresses that an INIT lists.
func (s *Stranger) list() {
	init, err := wire.AsInit(s.first)
	if err != nil {
		return
	}
	ps := init.Params()
	for prm, ok := ps.Next(); ok && s.n < maxListed; prm, ok = ps.Next() {
		if addr, err := prm.Addr(); err == nil {
			s.listed[s.n] = addr
			s.n++
		}
	}
}

// Find returns the association that a packet turns out to belong to: one that was set up a moment ago, whose it is by its tag, or whose
// address an INIT lists (section 5.1.2). It needs the tables of the endpoint, and only reads them.
func (e *Endpoint) Find(s *Stranger) *assoc.Assoc {
	pkt := s.pkt
	k := peerOf(s.p, pkt)
	if a := cmp.Or(e.find(k, k.Hash(), pkt), e.claims(k, pkt)); a != nil {
		return a
	}
	if s.init() {
		for _, addr := range s.listed[:s.n] {
			if a := at(&e.byPeer, peerKey{addr, pkt.DstPort(), pkt.SrcPort()}); a != nil {
				return a
			}
		}
	}
	s.cfg = e.listener(pkt.DstPort(), s.p.Local.Addr())
	return nil
}

// Answer answers a packet of no association, or says that it brings a valid cookie to Make one of. It needs the part of the endpoint
// that sets up.
func (e *Endpoint) Answer(now rawio.Time, s *Stranger) (valid bool) {
	p, pkt, first, g := s.p, s.pkt, s.first, &s.g
	switch {
	case g.abort: // rule 2
		e.stats.OutOfBlue++
	case g.init: // rule 3; sections 8.5.1 A and 12.3 for what an INIT must look like
		if pkt.VTag() == 0 && g.chunks == 1 {
			e.handleInit(now, p, first, s.cfg)
			return false
		}
		e.stats.OutOfBlue++
	case pkt.VTag() == 0: // section 8.5.1 A
		e.stats.OutOfBlue++
	case first.Type() == wire.ChunkCookieEcho: // rule 4
		return e.handleCookieEcho(now, p, first, &s.ck)
	case g.shutdownAck: // rule 5
		e.reflect(now, p, true)
	case g.silent: // rules 6 and 7
		e.stats.OutOfBlue++
	default: // rule 8
		e.reflect(now, p, false)
	}
	return false
}

// allowed says whether the source of a packet may get an answer.
func (e *Endpoint) allowed(now rawio.Time, p *rawio.Packet) bool {
	ok := e.rates.allow(now, p.Remote.Addr().Unmap(), e.chance)
	if !ok {
		e.stats.RateLimited++
	}
	return ok
}

// chance draws a number that nobody can guess.
func (e *Endpoint) chance() uint64 {
	if e.cfg.Chance != nil {
		return e.cfg.Chance()
	}
	var b [8]byte
	if _, err := io.ReadFull(e.cfg.Rand, b[:]); err != nil {
		return math.MaxUint64
	}
	return binary.BigEndian.Uint64(b[:])
}

// reflect answers a packet out of the blue: see assoc.Reflect.
func (e *Endpoint) reflect(now rawio.Time, p *rawio.Packet, complete bool) {
	e.stats.OutOfBlue++
	if e.allowed(now, p) {
		e.stats.Reflected++
		assoc.Reflect(&e.out, p, complete)
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
	e, _ := wire.AsError(c) // none is too short
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

// handleInit answers an INIT for who listens by cfg, if anybody does.
func (e *Endpoint) handleInit(now rawio.Time, p *rawio.Packet, c wire.Chunk, cfg *assoc.Config) {
	switch how, ignored := assoc.AnswerInit(now, &e.out, p, c, cfg, &e.env); how {
	case assoc.InitAcked:
		e.stats.InitAcks++
		e.stats.AddressesIgnored += uint64(ignored)
	case assoc.InitRefused:
		e.stats.InitsRefused++
	default:
		e.stats.InitsMalformed++
	}
}

// handleCookieEcho says whether a COOKIE ECHO brings a valid cookie (section 5.1.5).
func (e *Endpoint) handleCookieEcho(now rawio.Time, p *rawio.Packet, c wire.Chunk, ck *assoc.Cookie) bool {
	echo, err := wire.AsCookieEcho(c)
	if err != nil || !e.env.Cookies.Open(now, echo.Cookie(), ck) || !ck.Matches(p) {
		e.stats.BadCookies++
		return false // silently discarded, with everything behind it
	}
	if ck.Expired(now) {
		e.stale(now, p, ck)
		return false
	}
	return true
}

// stale answers a cookie that counts no more.
func (e *Endpoint) stale(now rawio.Time, p *rawio.Packet, ck *assoc.Cookie) {
	e.stats.StaleCookies++
	if e.allowed(now, p) { // who signed for it may have listed somebody else's address
		assoc.AnswerStale(now, &e.out, p, ck)
	}
}

// Make makes an association of a valid cookie (section 5.1.5), and no second one when that has ended: each
// has a tag of its own (section 5.3.1). It needs the whole endpoint.
func (e *Endpoint) Make(now rawio.Time, s *Stranger) (*assoc.Assoc, bool) {
	p, ck := s.p, &s.ck
	if a := at(&e.byPeer, peerKey{p.Remote.Addr().Unmap(), ck.LocalPort, ck.PeerPort}); a != nil {
		return a, false // one that came right behind the first: Find has seen both before there was an association
	}
	tag := tagKey{ck.LocalTag, ck.LocalPort, ck.PeerPort}
	if e.spent.has(now, tag) { // as any packet of an association that has ended: section 8.4 rule 8
		e.reflect(now, p, false)
		return nil, false
	}
	if e.spent.forgot(ck.Created) { // An honest peer that is so late sends INIT anew (section 5.2.6), and gets a cookie that counts.
		e.stale(now, p, ck)
		return nil, false
	}
	cfg := e.listener(ck.LocalPort, ck.Local) // who has answered the INIT
	switch source := fair.Key(ck.Addrs[0]); {
	case cfg == nil || at(&e.byTag, tag) != nil:
		e.stats.CookiesRefused++
	case len(e.entries) >= e.cfg.MaxAssocs, e.cfg.MaxPerSource > 0 && e.sources.full(source, e.cfg.MaxPerSource):
		e.stats.AssocsRefused++
	case e.cfg.Admits != nil && !e.cfg.Admits(source),
		e.cfg.Accepts != nil && !e.cfg.Accepts(netip.AddrPortFrom(ck.Local, ck.LocalPort), ck.Addrs[0]):
		e.stats.AssocsRefused++
	default:
		e.stats.AssocsAccepted++
		a := assoc.Accept(now, cfg, &e.env, ck, p)
		e.accept(a, source)
		return a, true
	}
	if e.allowed(now, p) {
		assoc.RefuseCookie(&e.out, p, ck)
	}
	return nil, false
}
