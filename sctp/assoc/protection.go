package assoc

import (
	"errors"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/internal/seal"
	"github.com/rddp-go/rddp/sctp/wire"
)

// protection is what an association has that seals its packets in DTLS chunks. It is there from the
// INIT on, or from the cookie, if Config.Protected says so.
//
//	 clear: only key management          sealed
//	├─ INIT ... COOKIE ACK ── TLS 1.3 ──┼─ EventUp, DATA, ... ─▶
//	                                     isEnforced
type protection struct {
	local, peer  keyOffer
	isClient     bool
	isEnforced   bool // only sealed packets count
	isUp         bool // and the program has heard that the association is there
	isOpen       bool // the chunks that are being handled were sealed
	wasToLeaving bool // and came to an own address that is being deleted

	keys     *seal.Keyring // nil until the association is established
	manager  *keymgmt.Manager
	sessions KeySessions
	messages keyMessages
	acked    uint64 // own messages of key management

	deadlineAt rawio.Time
	nextSealAt rawio.Time // packets are not to go earlier, as the key is nearly used up
	scratch    []byte     // for records that may have to be opened twice
	restart    restartState
	remains    *Remains // of the association, which has ended
}

// KeyParams are both sides' parameters, which the keys depend on. KeyOutcome is what a handshake
// has led to. KeyFailure ends an association that has no keys.
type (
	KeyParams  = keymgmt.Params
	KeyOutcome = keymgmt.Outcome
	KeyFailure = keymgmt.Failure
)

var errNoSessions = errors.New("nobody runs TLS: see SetKeySessions")

// KeySessions runs the TLS sessions of an association. It answers by KeySessionWrote,
// KeySessionDone and KeySessionFailed, but not from within its methods.
type KeySessions interface {
	// StartSession begins a session. An error counts as its failure.
	StartSession(id uint64, isClient bool, p KeyParams) error
	// FeedSession gives it records of the peer, CloseSession ends it.
	FeedSession(id uint64, records []byte)
	CloseSession(id uint64)
}

// SetKeySessions sets what runs TLS, of an association with Config.Protected. Call it before the
// first packet.
func (a *Assoc) SetKeySessions(k KeySessions) {
	if s := a.protection(); s != nil {
		s.sessions = k
	}
}

// KeySessions returns what SetKeySessions has set, nil for nothing.
func (a *Assoc) KeySessions() KeySessions {
	if s := a.protection(); s != nil {
		return s.sessions
	}
	return nil
}

// protection returns what the association has that seals its packets, nil if it has none.
func (a *Assoc) protection() *protection {
	if a.rareState == nil {
		return nil
	}
	return a.rareState.protection
}

// awaitsKeys reports whether the program has to wait for the first keys.
func (a *Assoc) awaitsKeys() bool {
	s := a.protection()
	return s != nil && !s.isUp
}

// sealer returns what seals packets, nil while they go in the clear.
func (a *Assoc) sealer() pack.Sealer {
	if s := a.protection(); s != nil && s.keys != nil && s.keys.CanSeal() {
		return s.keys
	}
	return nil
}

// IsProtected reports whether only sealed packets of the peer count.
func (a *Assoc) IsProtected() bool {
	s := a.protection()
	return s != nil && s.isEnforced
}

func newProtection(local keyOffer) *protection {
	return &protection{local: local, deadlineAt: rawio.Never, nextSealAt: rawio.Never}
}

// dropProtection goes on in the clear, in loose mode, before anything was sealed.
func (a *Assoc) dropProtection() {
	a.rareState.protection = nil
	a.connectUpper(a.sender())
}

// startKeys begins key management, when the association is established or has restarted. Restart
// keys that seal already go on.
func (a *Assoc) startKeys(now rawio.Time) {
	s := a.protection()
	cfg := keymgmt.Config{IsClient: s.isClient, RestartEpoch: s.sealingRestartEpoch(), FailureTime: a.cfg.failureTime()}
	if cfg.RestartEpoch == 0 {
		s.keys = newKeyring()
	}
	s.restart.awaitsPeer = cfg.RestartEpoch != 0 && !s.isUp
	cfg.AwaitsPeer = s.restart.awaitsPeer
	s.messages, s.acked, s.deadlineAt = keyMessages{}, 0, now
	a.rareState.asconf = nil
	s.manager = keymgmt.New(now, cfg, s.keys)
}

func newKeyring() *seal.Keyring { return seal.NewKeyring(seal.Limits{}, seal.MaxReplayWindow) }

// failureTime is how long the peer may be silent before the association fails.
func (c *Config) failureTime() (d time.Duration) {
	rto := c.RTOInitial
	for range c.AssocMaxRetrans + 1 {
		d, rto = d+min(rto, c.RTOMax), min(2*rto, c.RTOMax)
	}
	return d
}

// params are those of the negotiated roles.
func (s *protection) params() KeyParams {
	if s.isClient {
		return KeyParams{Client: s.local.param(), Server: s.peer.param()}
	}
	return KeyParams{Client: s.peer.param(), Server: s.local.param()}
}

// advanceKeys hands messages to key management, and does what that asks for.
func (a *Assoc) advanceKeys(now rawio.Time) {
	s := a.protection()
	if s == nil || s.manager == nil || a.state == Closed {
		return
	}
	for !s.messages.isEmpty() {
		msg, err := s.messages.next(a.CumTSN())
		if err != nil {
			a.abortForViolation(err)
			return
		}
		if msg == nil {
			break
		}
		s.manager.HandleMessage(now, msg)
		a.doKeyActions(now, s)
	}
	s.manager.SetBlocked(now, !a.IsIdle() && a.sender().Rwnd() == 0)
	s.manager.HandleTimeout(now)
	a.doKeyActions(now, s)
	if s.restart.awaitsPeer && s.manager.Epoch() >= seal.FirstEpoch && a.state != Closed {
		s.restart.awaitsPeer = false
		a.announce(now, s)
	}
	s.deadlineAt = s.manager.Deadline(now)
}

// doKeyActions does what key management asks for.
func (a *Assoc) doKeyActions(now rawio.Time, s *protection) {
	for act, ok := s.manager.Next(); ok; act, ok = s.manager.Next() {
		id := a.life.incarnation<<32 | act.Session
		switch act.Kind {
		case keymgmt.SendMessage:
			if a.state != Closed {
				a.sendKeyMessage(act.Data)
			}
		case keymgmt.StartSession:
			if err := s.startSession(id, act.IsClient); err != nil {
				s.manager.SessionFailed(now, act.Session, err, nil)
			}
		case keymgmt.FeedSession:
			s.sessions.FeedSession(id, act.Data)
		case keymgmt.CloseSession:
			s.closeSession(id)
		case keymgmt.Protect:
			a.protect(now, s)
		case keymgmt.StoreRestart:
			s.restart.store(act.Restart)
		case keymgmt.Abort:
			a.queueAbort(refusal{code: wire.CauseUserAbort, info: []byte("no keys: key management has failed")})
			a.endAssoc(onEnd, act.Failure)
		}
	}
}

// protect begins protection: there are keys. What still waits came in the clear, and is nothing
// that the peer has sent. It would take the place of what the peer seals under the same TSN.
func (a *Assoc) protect(now rawio.Time, s *protection) {
	s.isEnforced = true
	if s.messages.hasClear() {
		a.abortForViolation(errClearRest)
		return
	}
	a.ackFlight(now)
	if !s.restart.awaitsPeer {
		a.announce(now, s)
	}
}

// announce tells the program that the association is there, or is there anew.
func (a *Assoc) announce(now rawio.Time, s *protection) {
	kind := EventRestart
	if !s.isUp {
		s.isUp, kind = true, EventUp
	}
	a.connectUpper(a.sender())
	a.pushSetupEvents(now, kind)
	if f := a.follower(); f != nil {
		f.refused, f.isDue = nil, true
	}
}

// ackFlight counts what was sent in the clear as acknowledged. The client's Finished proves that
// the server's flight has arrived, and Protection Established that the Finished has. SACKs of that
// may be lost, and what is sent again gets none: what is in the clear does not count any more. The
// server would send its flight again and again, and have no room for what tells the client to seal.
func (a *Assoc) ackFlight(now rawio.Time) {
	t := a.sender()
	if t.Outstanding() == 0 {
		return
	}
	if res, err := t.HandleCumAck(now, t.NextTSN()-1); err == nil { // what is sent was sent
		a.handleNewlyAcked(now, res)
	}
}

// startSession has a session begin.
func (s *protection) startSession(id uint64, isClient bool) error {
	if s.sessions == nil {
		return errNoSessions
	}
	return s.sessions.StartSession(id, isClient, s.params())
}

// KeySessionWrote takes TLS records that a session has written.
func (a *Assoc) KeySessionWrote(now rawio.Time, id uint64, records []byte) {
	if s := a.sessionOwner(id); s != nil {
		s.manager.SessionWrote(now, uint64(uint32(id)), records)
		a.advanceKeys(now)
	}
}

// KeySessionDone notes that the handshake of a session has ended well.
func (a *Assoc) KeySessionDone(now rawio.Time, id uint64, o KeyOutcome) {
	if s := a.sessionOwner(id); s != nil {
		s.manager.SessionDone(now, uint64(uint32(id)), o)
		a.advanceKeys(now)
	}
}

// KeySessionFailed notes that a session has ended with an error. The alert is for the peer.
func (a *Assoc) KeySessionFailed(now rawio.Time, id uint64, err error, alert []byte) {
	if s := a.sessionOwner(id); s != nil {
		s.manager.SessionFailed(now, uint64(uint32(id)), err, alert)
		a.advanceKeys(now)
	}
}

// closeSession ends a session, if there ever was one.
func (s *protection) closeSession(id uint64) {
	if s.sessions != nil {
		s.sessions.CloseSession(id)
	}
}

// sessionOwner returns what a session belongs to, nil if that is over.
func (a *Assoc) sessionOwner(id uint64) *protection {
	s := a.protection()
	if s == nil || s.manager == nil || a.state == Closed || id>>32 != a.life.incarnation {
		return nil
	}
	return s
}

// Rekey asks for new keys, as soon as the last ones have drained. It does nothing without
// protection.
func (a *Assoc) Rekey(now rawio.Time) {
	if s := a.protection(); s != nil && s.manager != nil {
		s.manager.Rekey()
		a.advanceKeys(now)
	}
}

// closeKeys ends the session that is under way, with the association or before a restart.
func (a *Assoc) closeKeys() {
	s := a.protection()
	if s == nil || s.manager == nil {
		return
	}
	s.manager.Close()
	for act, ok := s.manager.Next(); ok; act, ok = s.manager.Next() {
		if act.Kind == keymgmt.CloseSession {
			s.closeSession(a.life.incarnation<<32 | act.Session)
		}
	}
}

// keyFailure returns what key management is about to end the association for, nil for nothing.
func (a *Assoc) keyFailure() *KeyFailure {
	if s := a.protection(); s != nil && s.manager != nil {
		return s.manager.Failure()
	}
	return nil
}

func (a *Assoc) keysExpireAt() rawio.Time {
	s := a.protection()
	if s == nil || s.manager == nil || a.state == Closed {
		return rawio.Never
	}
	return min(s.deadlineAt, s.nextSealAt)
}

// pollProtected is PollTransmit under protection. When a key is nearly used up, packets go at a
// rate that it lasts for until there is another.
func (a *Assoc) pollProtected(now rawio.Time, s *protection, out *TxBatch) (more bool) {
	if s.manager == nil {
		return a.pollTransmit(now, out)
	}
	a.advanceKeys(now)
	a.followIfDue(now)
	if s.nextSealAt != rawio.Never && now < s.nextSealAt && a.state != Closed {
		return false
	}
	packets := len(out.Pkts)
	more = a.pollTransmit(now, out)
	s.nextSealAt = rawio.Never
	if pause := s.manager.SendInterval(now); pause > 0 && len(out.Pkts) > packets {
		s.nextSealAt, more = now.Add(pause*time.Duration(len(out.Pkts)-packets)), false
	}
	return more
}

// keyStats is a snapshot.
func (a *Assoc) keyStats() (k KeyStats) {
	s := a.protection()
	if s == nil || s.manager == nil {
		return k
	}
	records, sessions := s.keys.Stats(), s.manager.Stats()
	return KeyStats{Epoch: s.manager.Epoch(), Sealed: records.Sealed, Opened: records.Opened,
		Failed:     records.Refused[seal.ErrNotAuthentic],
		Handshakes: sessions.Established, HandshakesLost: sessions.Failed}
}

// compact gives back what an idle association does not need.
func (s *protection) compact() {
	if s.scratch = nil; s.keys != nil {
		s.keys.Compact()
	}
}

// heldOctets is the memory of it.
func (s *protection) heldOctets() int {
	if s == nil {
		return 0
	}
	const ofKeys = 2 << 10 // a Manager and the ciphers of an epoch
	return int(unsafe.Sizeof(*s)) + ofKeys + cap(s.scratch) + s.messages.octets + s.restart.heldOctets()
}
