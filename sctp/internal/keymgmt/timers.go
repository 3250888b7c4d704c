package keymgmt

import "github.com/rddp-go/rddp/rawio"

// Deadline returns when HandleTimeout has something to do.
func (m *Manager) Deadline(now rawio.Time) rawio.Time {
	if m.failure != nil {
		return m.abortAt
	}
	at := min(m.drain.at, m.rekeyAt(now), m.expiresAt())
	if m.session != nil {
		at = min(at, m.session.deadlineAt)
	}
	if m.heldHello != nil {
		at = min(at, m.remoteAt)
	}
	return at
}

// expiresAt returns when the keys in use are too old, though no counter says so.
func (m *Manager) expiresAt() rawio.Time {
	if !m.protected {
		return rawio.Never
	}
	return min(m.keys.RekeyDueAt().Add(maxOverdue), m.rekey.expiresAt)
}

// HandleTimeout does what is due at now. It is called after packets too, as counters may ask for a
// rekey.
func (m *Manager) HandleTimeout(now rawio.Time) {
	if m.failure != nil {
		if now >= m.abortAt {
			m.abort()
		}
		return
	}
	if m.protected && (now >= m.expiresAt() || m.keys.Exhausted()) {
		m.fail(now, &Failure{KeysExpired, m.rekey.lastErr}, nil)
		return
	}
	if now >= m.drain.at && !m.endDrain(now) {
		return
	}
	if s := m.session; s != nil && now >= s.deadlineAt {
		m.sessionTimeout(now)
	}
	if m.heldHello != nil && now >= m.remoteAt && m.session == nil {
		m.handleHello(now, m.heldHello)
	}
	if now >= m.rekeyAt(now) && m.endDrain(now) {
		m.startSession(now, true)
	}
}

// sessionTimeout gives a handshake up, and tells the peer.
func (m *Manager) sessionTimeout(now rawio.Time) {
	if m.needsHandshake() {
		m.fail(now, &Failure{Why: HandshakeTimeout}, nil)
		return
	}
	m.sessionFailed(now, errTimeout, canceledAlert)
}
