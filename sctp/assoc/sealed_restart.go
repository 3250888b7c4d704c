package assoc

import (
	"slices"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
	"github.com/rddp-go/rddp/sctp/wire"
)

// RestartKeys seal the restart of an association after a crash of this side. They are used once.
type RestartKeys = keymgmt.RestartKeys

// RestartKeeper keeps the restart keys of one association, so that they outlive a crash. Numbers of
// a key begin at 0. So what is kept is taken away for good before the first packet is sealed with
// it, by either side. Nothing is sealed if that fails.
type RestartKeeper interface {
	// StoreRestart keeps keys, in place of those before.
	StoreRestart(k RestartKeys)
	// TakeRestart takes what is kept away. It answers by Assoc.RestartTaken, but not from within
	// the call. It is called again at most when it has answered.
	TakeRestart()
}

// restartState is what a protected restart needs (draft-ietf-tsvwg-sctp-dtls-chunk section 5.4).
//
//	this side has crashed                           its peer
//	INIT ──────────────────────── clear ──────────────────────▶
//	TakeRestart ◀──────────────── clear ───────────── INIT ACK
//	COOKIE ECHO ───────────────── R=1 ───────────▶ TakeRestart
//	                   ◀───────── R=1 ──────────── COOKIE ACK, EventRestart
//	TLS handshake ◀────────────── R=1 ────────────▶
//	EventUp ◀──────────────────── R=0 ────────────▶
type restartState struct {
	keeper     RestartKeeper // nil: no restart
	isTaking   bool          // it takes the keys away
	awaitsPeer bool          // this side has restarted, and the peer has yet to show who it is
	wasRefused bool          // the peer has no association: this set-up does without restart keys
	echo       *rawio.Packet // of the peer, opened, which waits until the keys are taken away
	epoch      uint64        // that it was sealed with
}

// SetRestartKeeper sets what keeps restart keys, of an association with Config.Restartable. Call it
// before the first packet.
func (a *Assoc) SetRestartKeeper(k RestartKeeper) {
	if s := a.protection(); s != nil && a.cfg.Restartable {
		s.restart.keeper = k
	}
}

// canRestart reports whether both sides take protected restarts.
func (s *protection) canRestart() bool { return s.restart.keeper != nil && s.params().HasRestart() }

// store has restart keys kept.
func (r *restartState) store(k *RestartKeys) {
	if r.keeper != nil {
		r.keeper.StoreRestart(*k)
	}
}

// sealingRestartEpoch returns the epoch of the restart keys that packets are sealed with, 0 for
// none.
func (s *protection) sealingRestartEpoch() uint64 {
	if s.keys != nil && s.keys.CanSeal() && s.keys.Sealer().IsRestart() {
		return s.keys.Sealer().Epoch()
	}
	return 0
}

// usesRestartKeys reports whether the association has restarted, and the peer may seal with restart
// keys still.
func (s *protection) usesRestartKeys() bool {
	return s.sealingRestartEpoch() != 0 || s.manager != nil && s.manager.RestartEpoch() != 0
}

// askForRestartKeys asks for what is kept, before the COOKIE ECHO.
func (a *Assoc) askForRestartKeys() {
	if s := a.protection(); s != nil && s.canRestart() && !s.restart.wasRefused {
		s.restart.isTaking = true
		s.restart.keeper.TakeRestart()
	}
}

// awaitsRestartKeys reports whether the COOKIE ECHO waits for them.
func (a *Assoc) awaitsRestartKeys() bool {
	s := a.protection()
	return s != nil && s.restart.isTaking && a.state == CookieEchoed
}

// RestartTaken says that what was kept is taken away: nobody can use it a second time. Without keys
// there were none, or they could not be taken away. Then this side does not use them either.
func (a *Assoc) RestartTaken(now rawio.Time, k *RestartKeys) {
	s := a.protection()
	if s == nil || !s.restart.isTaking {
		return
	}
	s.restart.isTaking = false
	echo := s.restart.echo
	s.restart.echo = nil
	switch {
	case k == nil || a.state == Closed:
	case echo != nil:
		a.acceptRestart(now, s, echo)
	case a.state == CookieEchoed:
		s.beginRestart(now, k)
	}
}

// beginRestart has this side restart: packets are sealed from now on. Keys that cannot be used are
// as good as none.
func (s *protection) beginRestart(now rawio.Time, k *RestartKeys) {
	keys := newKeyring()
	if keys.InstallRestart(now, k.Epoch, &k.Send, &k.Receive) == nil && keys.UseRestart(now, k.Epoch) == nil {
		s.keys, s.isEnforced = keys, true
	}
}

// isRestartRefused says whether a packet in the clear is the answer of a host that has no
// association any more.
func (a *Assoc) isRestartRefused(s *protection, pkt wire.Packet) bool {
	cs := pkt.Chunks()
	c, ok := cs.Next()
	return a.state == CookieEchoed && ok && c.Type() == wire.ChunkAbort && c.Flags()&wire.FlagT != 0 &&
		pkt.VTag() == a.id.peerTag
}

// takeEchoInTheClear takes the COOKIE ECHO in the clear of a peer that sets the association up at
// the same time, and has no restart keys: it opens nothing that this side seals. The cookie is of
// this side (actions B and D of Table 12 in RFC 9260), or of its listener, which has answered
// before this side began. Then the peer makes something of the own COOKIE ECHO. It returns false
// for other packets.
func (a *Assoc) takeEchoInTheClear(now rawio.Time, s *protection, p *rawio.Packet) bool {
	pkt := wire.Packet(p.Data)
	cs := pkt.Chunks()
	c, ok := cs.Next()
	if a.state != CookieEchoed || !ok || c.Type() != wire.ChunkCookieEcho || !isBasic(pkt) {
		return false
	}
	a.stats.workSteps += cookieWorkSteps
	echo, err := wire.AsCookieEcho(c)
	var ck Cookie
	if err != nil || !a.env.Cookies.Open(now, echo.Cookie(), &ck) || !ck.Matches(p) || ck.Expired(now) {
		return false
	}
	s.giveUpRestart()
	if ck.LocalTag == a.id.localTag {
		a.handlePacket(now, p)
	} else {
		a.setup().sendDue = true
	}
	return true
}

// giveUpRestart goes on without restart keys. Both sides show who they are, so nothing is lost if
// what the peer has said in the clear was forged.
func (s *protection) giveUpRestart() { s.keys, s.isEnforced, s.restart.wasRefused = nil, false, true }

// restartAnew sets the association up without restart keys.
func (a *Assoc) restartAnew(s *protection) {
	s.giveUpRestart()
	a.sendInitAnew(0)
}

// handleSealedRestart takes the COOKIE ECHO of a peer that has crashed. The tag is that of the next
// association, so this one is found by addresses, ports, R bit and epoch. What does not open costs
// one attempt, as everywhere.
func (a *Assoc) handleSealedRestart(now rawio.Time, s *protection, p *rawio.Packet, d wire.DTLS) {
	if !s.isUp || !s.canRestart() || s.restart.isTaking || a.findPath(p.Remote.Addr().Unmap()) == nil {
		a.rareCounters().NotOpened++
		return
	}
	content, epoch, ok := a.openSealed(now, s, d)
	if !ok {
		return
	}
	echo := *p
	echo.Buf = rawio.NewBuf(slices.Clone(openedPacket(p.Data, content)))
	echo.Data = echo.Buf.B
	switch {
	case !a.isRestart(now, &echo):
		a.rareCounters().BadCookies++
	case a.state != Established:
		a.endForRestart(&echo)
	default:
		s.restart.echo, s.restart.epoch, s.restart.isTaking = &echo, epoch, true
		s.restart.keeper.TakeRestart()
	}
}

// isRestart says whether an opened packet restarts the association: it is action A of Table 12.
func (a *Assoc) isRestart(now rawio.Time, p *rawio.Packet) bool {
	a.stats.workSteps += cookieWorkSteps
	cs := wire.Packet(p.Data).Chunks()
	c, _ := cs.Next()
	echo, err := wire.AsCookieEcho(c)
	var ck Cookie
	return err == nil && a.env.Cookies.Open(now, echo.Cookie(), &ck) && ck.Matches(p) && !ck.Expired(now) &&
		a.isActionA(&ck) && ck.localOffer.parse().Restart && ck.peerOffer.parse().Restart
}

// acceptRestart restarts the association for the peer, whose COOKIE ECHO has waited. Much may have
// happened meanwhile.
func (a *Assoc) acceptRestart(now rawio.Time, s *protection, p *rawio.Packet) {
	if a.state != Established || !a.isRestart(now, p) || s.keys.UseRestart(now, s.restart.epoch) != nil {
		a.rareCounters().BadCookies++
		return
	}
	s.isOpen = true
	a.handlePacket(now, p)
	s.isOpen = false
	a.advanceKeys(now)
}

// endForRestart is action A in a shutdown. The association ends, and the peer hears in the clear
// that there is none: its keys of before are gone. It sets up another one. In SHUTDOWN-ACK-SENT all
// was delivered on both sides. RFC 9260 has the SHUTDOWN ACK go again, for the peer to answer that
// it knows of nothing. That is what the peer has shown.
func (a *Assoc) endForRestart(p *rawio.Packet) {
	a.rareCounters().Restarts++
	Reflect(&a.outbox, p, false)
	if a.state == ShutdownAckSent {
		a.handleShutdownComplete()
		return
	}
	a.endAssoc(onEnd, ErrSucceeded)
}

// heldOctets is the memory of it.
func (r *restartState) heldOctets() int {
	if r.echo == nil {
		return 0
	}
	return int(unsafe.Sizeof(*r.echo)) + cap(r.echo.Data)
}
