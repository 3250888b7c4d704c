package keymgmt

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/seal"
)

// Config is what an association tells its Manager.
type Config struct {
	IsClient bool // the negotiated role: the server's Manager waits for the first ClientHello
	// RestartEpoch is that of the restart keys in use, of an association that has restarted; 0 for
	// one that is new.
	RestartEpoch uint64
	// AwaitsPeer says that it is this side which has restarted: it does not know yet who the peer
	// is.
	AwaitsPeer bool
	// HandshakeTimeout is how long a handshake may take, while the peer takes messages. 0: 30 s.
	HandshakeTimeout time.Duration
	// FailureTime is how long a message may be on its way before the association fails.
	FailureTime time.Duration
}

// Times of the procedures.
const (
	defaultHandshakeTimeout = 30 * time.Second
	drainTime               = 120 * time.Second // once the last message is known to have arrived (section 6.2.3)
	shortDrainTime          = 10 * time.Second  // the same where the next keys are needed at once
	alertTime               = time.Second       // an alert has to arrive before the ABORT,
	alertReadTime           = alertTime / 10    // and to be read: it says more than that
	minRetryTime            = time.Second       // after a failed handshake, doubled each time
	maxRetryTime            = time.Minute
	minRemoteTime           = time.Second      // between two handshakes that the peer begins
	maxOverdue              = time.Hour        // a key is that much older than its age allows, at most
	certificateMargin       = 10 * time.Minute // a rekey before a certificate expires
	rekeyTime               = 10 * time.Second // what a key has to last while it is replaced
)

// Manager is the key management of one association.
type Manager struct {
	cfg       Config
	keys      *seal.Keyring
	epoch     uint64 // of the primary keys in use; FirstEpoch-1: there are none
	protected bool
	session   *session
	closing   closedSession
	lastID    uint64
	actions   []Action
	sent      uint64 // messages
	isBlocked bool   // the peer takes no messages at the moment
	drain     draining
	rekey     rekeying
	heldHello []byte // from the peer, too soon after the last handshake
	remoteAt  rawio.Time
	failure   *Failure
	abortAt   rawio.Time
	stats     Stats
}

// Stats counts what a Manager has done.
type Stats struct {
	Established uint64 // sets of keys that came into use
	Failed      uint64 // handshakes that did not end so
	Ignored     uint64 // messages that belong to no session
}

// session is the TLS session under way.
type session struct {
	id          uint64
	epoch       uint64
	isClient    bool
	sawHello    bool // the server has its ClientHello
	asksRetry   bool // the server waits for another one
	wasAnswered bool // the client has had an answer
	secrets     *Secrets
	restart     *RestartKeys // of secrets, once they are installed
	isInstalled bool         // the client has installed what it opens with, and waits for Protection Established
	expiresAt   rawio.Time
	deadlineAt  rawio.Time
	left        time.Duration // of the deadline, while the peer takes no messages
}

// closedSession is the last one, which still has its close_notify to write.
type closedSession struct{ id, epoch uint64 }

// ActionKind is what the owner is to do.
type ActionKind uint8

// The actions.
const (
	SendMessage  ActionKind = iota // Data, ordered on Stream, with PPID
	StartSession                   // a TLS session, as IsClient says
	FeedSession                    // Data to it
	CloseSession                   // it ends, and may still write
	Protect                        // only packets in DTLS chunks are taken from now on; the upper layer may begin
	StoreRestart                   // the keys in Restart are to be stored, in place of those before
	Abort                          // the association, for Failure
)

// Action is one thing to do.
type Action struct {
	Kind     ActionKind
	Session  uint64
	Epoch    uint64
	IsClient bool
	Data     []byte
	Restart  *RestartKeys
	Failure  *Failure
}

// New returns the Manager of an association that was established at now. Keys go into the Keyring.
func New(now rawio.Time, cfg Config, keys *seal.Keyring) *Manager {
	if cfg.HandshakeTimeout == 0 {
		cfg.HandshakeTimeout = defaultHandshakeTimeout
	}
	m := &Manager{cfg: cfg, keys: keys, epoch: seal.FirstEpoch - 1, remoteAt: now, abortAt: rawio.Never,
		drain: newDraining(), rekey: newRekeying()}
	if cfg.RestartEpoch != 0 {
		m.protected = true
		m.do(Action{Kind: Protect})
	}
	if cfg.IsClient {
		m.startSession(now, true)
	} else if m.needsHandshake() {
		m.startSession(now, false) // so that the peer has to begin in time
	}
	return m
}

// Next returns the next thing to do. They are done in order.
func (m *Manager) Next() (a Action, ok bool) {
	if len(m.actions) == 0 {
		m.actions = nil
		return Action{}, false
	}
	a = m.actions[0]
	m.actions[0] = Action{}
	m.actions = m.actions[1:]
	return a, true
}

func (m *Manager) do(a Action) { m.actions = append(m.actions, a) }

// Epoch returns the epoch of the primary keys in use, FirstEpoch-1 for none.
func (m *Manager) Epoch() uint64 { return m.epoch }

// RestartEpoch returns the epoch of the restart keys that are in use or drain, 0 for none.
func (m *Manager) RestartEpoch() uint64 { return m.cfg.RestartEpoch }

// IsProtected reports whether only packets in DTLS chunks are taken.
func (m *Manager) IsProtected() bool { return m.protected }

// Failure returns why the association is about to be aborted, nil if it is not.
func (m *Manager) Failure() *Failure { return m.failure }

// Stats returns the counts.
func (m *Manager) Stats() Stats { return m.stats }

func (m *Manager) sendMessage(data []byte) {
	m.sent++
	m.do(Action{Kind: SendMessage, Data: data})
}

// startSession begins the handshake for the next epoch.
func (m *Manager) startSession(now rawio.Time, isClient bool) {
	m.lastID++
	m.session = &session{id: m.lastID, epoch: m.epoch + 1, isClient: isClient,
		deadlineAt: now.Add(m.cfg.HandshakeTimeout)}
	if m.isBlocked {
		m.session.stopClock(now)
	}
	m.do(Action{Kind: StartSession, Session: m.lastID, Epoch: m.session.epoch, IsClient: isClient})
}

// Close ends the session under way: the association has ended. Nothing follows.
func (m *Manager) Close() {
	if m.failure == nil {
		m.failure = &Failure{}
	}
	if m.abortAt = rawio.Never; m.session != nil {
		m.do(Action{Kind: CloseSession, Session: m.session.id})
		m.session = nil
	}
}

// endSession ends the session under way.
func (m *Manager) endSession(now rawio.Time) {
	m.closing = closedSession{m.session.id, m.session.epoch}
	m.do(Action{Kind: CloseSession, Session: m.session.id})
	m.session = nil
	m.remoteAt = now.Add(minRemoteTime)
}

// abandonSession ends a session that leads to nothing: its keys are taken back. What it still
// writes, such as a late ClientHello, would end the session that takes its place.
func (m *Manager) abandonSession(now rawio.Time) {
	if m.session.isInstalled {
		_ = m.keys.Withdraw(m.session.epoch) // it is the newest, and not sent with
	}
	m.endSession(now)
	m.closing = closedSession{}
}

// HandleMessage takes a message of the peer. It keeps the octets.
func (m *Manager) HandleMessage(now rawio.Time, b []byte) {
	msg := message(b)
	switch {
	case m.failure != nil:
	case !msg.isWellFormed():
		m.fail(now, &Failure{Why: MalformedMessage}, nil)
	case msg.isControl():
		m.handleControl(now, msg)
	case m.session != nil && msg.isOf(m.session.epoch):
		m.handleRecords(now, msg)
	case m.session == nil && msg.isOf(m.epoch+1) && isHello(msg.payload(), msgClientHello):
		m.handleHello(now, msg)
	default: // such as the close_notify of a session that has ended
		m.handleStray(now)
	}
}

// handleStray takes a message that belongs to no session. In the clear it is somebody else's.
func (m *Manager) handleStray(now rawio.Time) {
	if !m.protected {
		m.sessionFailed(now, errStray, canceledAlert)
		return
	}
	m.stats.Ignored++
}

// handleControl takes Protection Established. Others are of a later draft.
func (m *Manager) handleControl(now rawio.Time, msg message) {
	s := m.session
	if msg.payload()[0] != ctrlEstablished || s == nil || !s.isClient || !msg.isOf(s.epoch) {
		m.handleStray(now)
		return
	}
	if !s.isInstalled { // the server cannot have what it says
		m.sessionFailed(now, errEarlyEstablished, nil)
		return
	}
	if err := m.keys.InstallSend(now, s.epoch, &s.secrets.Primary[ByClient]); err != nil {
		m.fail(now, &Failure{KeyingFailed, err}, nil)
		return
	}
	m.establish(now)
	m.confirmDrain(now)
	m.storeRestart()
	m.endSession(now)
}

// handleRecords takes TLS records for the session under way.
func (m *Manager) handleRecords(now rawio.Time, msg message) {
	s := m.session
	if isHello(msg.payload(), msgClientHello) {
		switch {
		case !s.isClient && s.sawHello && !s.asksRetry: // the client has begun anew
			m.stats.Failed++
			m.abandonSession(now)
			m.startSession(now, false)
		case s.isClient && !s.wasAnswered && m.cfg.IsClient: // both have begun: the client's goes on (6.2.4)
			m.stats.Ignored++
			return
		case s.isClient: // that of the peer goes on, which has given up ours
			m.abandonSession(now)
			m.startSession(now, false)
		}
		s = m.session
		s.sawHello, s.asksRetry = true, false
	}
	s.wasAnswered = true
	m.do(Action{Kind: FeedSession, Session: s.id, Data: msg.payload()})
}

// handleHello takes the ClientHello with which the peer begins a rekey. If it comes too soon it has
// to wait.
func (m *Manager) handleHello(now rawio.Time, msg message) {
	if now < m.remoteAt {
		m.heldHello = msg
		return
	}
	m.heldHello = nil
	if m.endDrain(now) {
		m.startSession(now, false)
		m.handleRecords(now, msg)
	}
}

// MessagesAcked notes that the peer has the first count messages.
func (m *Manager) MessagesAcked(now rawio.Time, count uint64) {
	if m.drain.message != 0 && count >= m.drain.message {
		m.confirmDrain(now)
	}
	if m.failure != nil && count >= m.sent && m.abortAt != rawio.Never {
		m.abortAt = min(m.abortAt, now.Add(alertReadTime))
	}
}

// SetBlocked says whether the peer takes messages. Handshakes are not timed while it does not.
func (m *Manager) SetBlocked(now rawio.Time, blocked bool) {
	if m.isBlocked == blocked {
		return
	}
	m.isBlocked = blocked
	if m.session == nil {
		return
	}
	if blocked {
		m.session.stopClock(now)
	} else if m.session.left > 0 {
		m.session.deadlineAt, m.session.left = now.Add(m.session.left), 0
	}
}

func (s *session) stopClock(now rawio.Time) {
	if s.deadlineAt != rawio.Never {
		s.left, s.deadlineAt = max(s.deadlineAt.Sub(now), 1), rawio.Never
	}
}
