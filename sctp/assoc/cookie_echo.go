package assoc

import (
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Matches says whether the cookie belongs to the packet that brought it (section 5.1.5). It
// compares the ports, the tag and the peer's addresses. Link-local addresses in the cookie have
// lost their zone and get that of the packet.
func (c *Cookie) Matches(p *rawio.Packet) bool {
	pkt := wire.Packet(p.Data)
	if zone := p.Remote.Addr().Zone(); zone != "" {
		c.Local = withZone(c.Local, zone)
		for i := range c.Addrs[:c.NumAddrs] {
			c.Addrs[i] = withZone(c.Addrs[i], zone)
		}
	}
	return c.LocalPort == pkt.DstPort() && c.PeerPort == pkt.SrcPort() && c.LocalTag == pkt.VTag() &&
		c.hasAddr(p.Remote.Addr().Unmap())
}

// handleCookieEcho handles a COOKIE ECHO for an association that exists (section 5.2.4). It says
// whether the packet's other chunks belong to the association. Table 12 compares what the cookie
// has with what the association has. M is a match, X is none, 0 is no tag:
//
//	Local Tag  Peer's Tag  Tie-Tags  Action
//	X          X           M         A
//	M          X or 0      any       B
//	X          M           0         C
//	M          M           any       D
func (a *Assoc) handleCookieEcho(now rawio.Time, in *inbound, c wire.Chunk) bool {
	a.stats.workSteps += cookieWorkSteps
	echo, err := wire.AsCookieEcho(c)
	var ck Cookie
	if err != nil || !a.env.Cookies.Open(now, echo.Cookie(), &ck) || !ck.Matches(in.Packet) {
		a.rareCounters().BadCookies++
		return false
	}
	local, peer := ck.LocalTag == a.id.localTag, ck.PeerTag == a.id.peerTag
	// Rule 3: "If both Verification Tags in the State Cookie match the Verification Tags of the
	// current association, consider the State Cookie valid [...] even if the lifespan is exceeded."
	if ck.Expired(now) && !(local && peer) {
		a.rareCounters().StaleCookies++
		AnswerStale(now, &a.outbox, in.Packet, &ck)
		return false
	}
	switch {
	// A: "In this case, the peer might have restarted." The association has the cookie's address.
	case a.isActionA(&ck):
		if a.state == ShutdownAckSent {
			// "it MUST NOT set up a new association but instead resend the SHUTDOWN ACK chunk and
			// send an ERROR chunk".
			a.shutdownState().sendDue = true
			a.replyError(in, wire.CauseCookieWhileShutdown, nil)
			return false
		}
		if shutdownStates.has(a.state) {
			a.endForSuccessor(in.Packet)
			return false
		}
		a.restartAssoc(now, in, &ck)

	// B: "In this case, both sides might be attempting to start an association at about the same
	// time, but the peer endpoint sent its INIT chunk after responding to the local endpoint's INIT
	// chunk."
	case local && !peer:
		a.resolveInitCollision(now, in, &ck)

	// D: "When both local and remote tags match, the endpoint SHOULD enter the ESTABLISHED state if
	// it is in the COOKIE-ECHOED state. It SHOULD stop any T1-cookie timer that is running and send
	// a COOKIE ACK chunk."
	case local && peer:
		if a.state == CookieEchoed {
			a.enterEstablished(now)
		}

	// C: "In this case, the local endpoint's cookie has arrived late. [...] The cookie SHOULD be
	// silently discarded." So it is with combinations that Table 12 does not have.
	default:
		a.rareCounters().BadCookies++
		return false
	}
	in.path = a.findPath(in.Remote.Addr().Unmap())
	p, from := a.replyPath(in)
	a.queueReply(p, from, wire.AppendCookieAck(a.control.buf))
	return in.path != nil
}

// isActionA says whether Table 12 asks for action A: the peer has restarted.
func (a *Assoc) isActionA(ck *Cookie) bool {
	ties := a.life.localTieTag != 0 && ck.LocalTie == a.life.localTieTag && ck.PeerTie == a.life.peerTieTag
	if a.IsProtected() && !ck.IsProtected() { // loose mode undoes no protection
		return false
	}
	return ck.LocalTag != a.id.localTag && ck.PeerTag != a.id.peerTag && ties && a.findPath(ck.Addrs[0]) != nil
}

// adoptCookie takes over what the cookie says.
func (a *Assoc) adoptCookie(c *Cookie) {
	a.id.localTag, a.id.peerTag, a.life.localTSN = c.LocalTag, c.PeerTag, c.LocalTSN
	a.life.noteCookie(c.Created, c.Created.Add(c.Life))
	a.agreed.outStreams, a.agreed.inStreams = c.OutStreams, c.InStreams
	a.agreed.peerAdaptation, a.agreed.hasAdaptation = c.PeerAdaptation, c.HasAdaptation
	a.agreed.extensions = c.Extensions
	if c.IsProtected() {
		a.adoptKeyOffers(c)
	} else if a.protection() != nil {
		a.dropProtection()
	}
	a.ecn = ecn{enabled: c.ECN}
}

// localAddrPort returns the own address that the cookie left from, in answer to an INIT. Without
// Config.LocalAddrs the peer knows no other. The packet p has brought the cookie back; the UDP port
// is taken from it.
func (c *Cookie) localAddrPort(p *rawio.Packet) netip.AddrPort {
	if !c.Local.IsValid() {
		return localAddrOf(p)
	}
	return netip.AddrPortFrom(c.Local, p.Local.Port())
}

// adoptPaths makes the paths to the addresses of families f in the cookie that p has brought. The
// first becomes the primary path. If there are paths already, only those to the same addresses are
// made anew: a restart adds none (section 5.2.4.1).
func (a *Assoc) adoptPaths(c *Cookie, p *rawio.Packet, f familySet) {
	own := c.localAddrPort(p)
	a.addrs.peerIsLocal = a.env.isLocalAddr(c.Addrs[0])
	a.setKnownAddrs(c.Addrs[0], c.Addrs[0], own, f)
	old := slices.Clone(a.paths) // a.one is used again
	a.paths = nil
	for i, addr := range c.Addrs[:c.NumAddrs] {
		remote := netip.AddrPortFrom(addr, p.Remote.Port())
		switch {
		case len(old) > 0 && !slices.ContainsFunc(old, func(q *path) bool { return q.Remote.Addr() == addr }):
		case i == 0: // section 5.4 rule 2: the INIT ACK went there, and from there, and was answered
			a.addAddrPair(own, remote, tx.Active)
		default:
			a.addPath(own, remote, tx.Unconfirmed)
		}
	}
}

// resolveInitCollision is action B. Both sides sent INIT, and the peer's counts: "The endpoint
// SHOULD stay in or enter the ESTABLISHED state, but it MUST update its peer's Verification Tag
// from the State Cookie, stop any T1-init or T1-cookie timers that might be running, and send a
// COOKIE ACK chunk."
func (a *Assoc) resolveInitCollision(now rawio.Time, in *inbound, ck *Cookie) {
	if !setupStates.has(a.state) {
		a.id.peerTag = ck.PeerTag
		return
	}
	a.adoptCookie(ck)
	own := ck.localAddrPort(in.Packet)
	a.addrs.peerIsLocal = a.env.isLocalAddr(ck.Addrs[0])
	a.setKnownAddrs(ck.Addrs[0], ck.Addrs[0], own, bothFamilies)
	a.dropUnknownPaths(own)
	for _, addr := range ck.Addrs[:ck.NumAddrs] {
		a.addPath(own, netip.AddrPortFrom(addr, in.Remote.Port()), tx.Unconfirmed)
	}
	if in.path = a.findPath(ck.Addrs[0]); in.path != nil {
		in.path.State = tx.Active // the INIT ACK went there and was answered
		a.noteArrival(now, in.path, in.Packet)
		a.sender().SetPrimary(in.path.Index())
	}
	a.startData(ck.PeerRwnd, ck.PeerTSN)
	a.enterEstablished(now)
}
