package keymgmt

import (
	"bytes"
	"errors"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/seal"
)

// Errors of sessions that TLS does not find.
var (
	errEarlyEstablished = errors.New("the server says that protection is established before the handshake has ended")
	errTimeout          = errors.New("the handshake has not ended in time")
	errStray            = errors.New("a message in the clear belongs to no handshake")
	errUnread           = errors.New("a message in the clear follows the end of the handshake")
)

// canceledAlert is a TLS record with a fatal alert, internal_error, for a peer that still waits for
// the session. It is not encrypted. Where the peer expects encryption that is an error, too.
var canceledAlert = []byte{21, 3, 3, 0, 2, 2, 80}

// CanceledAlert returns that record.
func CanceledAlert() []byte { return bytes.Clone(canceledAlert) }

// Outcome is what a TLS session has led to.
type Outcome struct {
	Secrets *Secrets
	// Output is what the session wrote last. The client's Finished is in it: it is sent when the
	// keys are there that answers are opened with.
	Output []byte
	// ExpiresIn is when the first certificate of the two expires; 0: that is not known.
	ExpiresIn time.Duration
	// Unread is how many octets of the peer's records the handshake has left. In the first one, in
	// the clear, they are somebody else's: the peer has sent nothing behind its last flight.
	Unread int
}

// SessionWrote takes TLS records that a session has written.
func (m *Manager) SessionWrote(_ rawio.Time, id uint64, records []byte) {
	switch {
	case m.failure != nil:
	case m.session != nil && id == m.session.id:
		m.session.asksRetry = !m.session.isClient && asksForRetry(records)
		m.sendMessage(appendMessage(nil, m.session.epoch, records))
	case id == m.closing.id && id != 0:
		m.sendMessage(appendMessage(nil, m.closing.epoch, records))
	}
}

// SessionDone notes that the handshake of a session has ended well.
func (m *Manager) SessionDone(now rawio.Time, id uint64, o Outcome) {
	s := m.session
	if m.failure != nil || s == nil || id != s.id || s.secrets != nil {
		return
	}
	if !m.protected && o.Unread > 0 {
		m.sessionFailed(now, errUnread, canceledAlert)
		return
	}
	s.secrets, s.expiresAt = o.Secrets, rawio.Never
	if o.ExpiresIn > 0 {
		s.expiresAt = now.Add(o.ExpiresIn)
	}
	var err error
	if s.isClient {
		err = m.finishAsClient(now)
	} else {
		err = m.finishAsServer(now)
	}
	if err != nil {
		m.fail(now, &Failure{KeyingFailed, err}, nil)
		return
	}
	if len(o.Output) > 0 {
		m.sendMessage(appendMessage(nil, s.epoch, o.Output))
	}
}

// finishAsClient installs what the server seals with, before the server can have the Finished.
// After that only an alert ends the session: the server may have changed its keys already.
func (m *Manager) finishAsClient(now rawio.Time) error {
	s := m.session
	if err := m.keys.InstallReceive(now, s.epoch, &s.secrets.Primary[ByServer]); err != nil {
		return err
	}
	s.isInstalled = true
	if m.protected {
		s.deadlineAt, s.left = rawio.Never, 0
	}
	return m.installRestart(now)
}

// finishAsServer installs all keys and requires protection, then says so.
func (m *Manager) finishAsServer(now rawio.Time) error {
	s := m.session
	if err := m.keys.InstallReceive(now, s.epoch, &s.secrets.Primary[ByClient]); err != nil {
		return err
	}
	if err := m.installRestart(now); err != nil {
		return err
	}
	if err := m.keys.InstallSend(now, s.epoch, &s.secrets.Primary[ByServer]); err != nil {
		return err
	}
	m.establish(now)
	m.storeRestart() // the client had them before it sent its Finished
	m.sendMessage(establishedMessage(s.epoch))
	m.drain.message = m.sent
	m.endSession(now)
	return nil
}

// installRestart installs the restart keys of the session. After a restart that waits until those
// in use have drained.
func (m *Manager) installRestart(now rawio.Time) error {
	s := m.session
	if !s.secrets.HasRestart || m.cfg.RestartEpoch != 0 {
		return nil
	}
	s.restart = s.secrets.restartKeys(s.epoch, s.isClient)
	return m.keys.InstallRestart(now, s.epoch, &s.restart.Send, &s.restart.Receive)
}

// storeRestart has the restart keys of the session stored, now that the peer has them too. What was
// stored before stays of use until then.
func (m *Manager) storeRestart() {
	if k := m.session.restart; k != nil {
		m.do(Action{Kind: StoreRestart, Restart: k})
	}
}

// establish makes the keys of the session those in use.
func (m *Manager) establish(now rawio.Time) {
	s := m.session
	m.beginDrain(now)
	m.epoch = s.epoch
	m.stats.Established++
	m.rekey = newRekeying()
	m.rekey.expiresAt = s.expiresAt
	if s.expiresAt != rawio.Never {
		m.rekey.renewAt = s.expiresAt.Add(-min(certificateMargin, s.expiresAt.Sub(now)/2))
	}
	if !m.protected {
		m.protected = true
		m.do(Action{Kind: Protect})
	}
}

// SessionFailed notes that a session has ended with an error. The alert, if there is one, is for
// the peer.
func (m *Manager) SessionFailed(now rawio.Time, id uint64, err error, alert []byte) {
	if m.failure == nil && m.session != nil && id == m.session.id {
		m.sessionFailed(now, err, alert)
	}
}

// needsHandshake reports whether the association is nothing without the handshake under way.
func (m *Manager) needsHandshake() bool {
	return !m.protected || m.cfg.AwaitsPeer && m.epoch < seal.FirstEpoch
}

// sessionFailed ends the association, or leaves it with the keys in use.
func (m *Manager) sessionFailed(now rawio.Time, err error, alert []byte) {
	if m.needsHandshake() {
		m.fail(now, &Failure{HandshakeFailed, err}, alert)
		return
	}
	if len(alert) > 0 {
		m.sendMessage(appendMessage(nil, m.session.epoch, alert))
	}
	m.stats.Failed++
	m.abandonSession(now)
	m.rekey.noteFailure(now, err)
}

// fail aborts the association, after the alert has had its time.
func (m *Manager) fail(now rawio.Time, f *Failure, alert []byte) {
	if m.failure != nil {
		return
	}
	m.failure = f
	if s := m.session; s != nil {
		if len(alert) > 0 {
			m.sendMessage(appendMessage(nil, s.epoch, alert))
		}
		m.stats.Failed++
		m.endSession(now)
	}
	m.abortAt = now.Add(alertTime)
	if len(alert) == 0 {
		m.abort()
	}
}

// abort ends the association now.
func (m *Manager) abort() {
	m.abortAt = rawio.Never
	m.do(Action{Kind: Abort, Failure: m.failure})
}
