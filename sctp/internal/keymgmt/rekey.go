package keymgmt

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/seal"
)

// rekeying is when the keys in use are replaced.
type rekeying struct {
	isAsked   bool          // by the program
	retryAt   rawio.Time    // not before
	backoff   time.Duration // after the next failure
	lastErr   error
	renewAt   rawio.Time // a certificate expires soon
	expiresAt rawio.Time // and then the keys do
}

func newRekeying() rekeying {
	return rekeying{backoff: minRetryTime, renewAt: rawio.Never, expiresAt: rawio.Never}
}

func (r *rekeying) noteFailure(now rawio.Time, err error) {
	r.retryAt, r.backoff, r.lastErr = now.Add(r.backoff), min(2*r.backoff, maxRetryTime), err
}

// draining is the time in which the keys of the last epoch still open what is under way.
type draining struct {
	epoch       uint64     // 0: nothing drains
	at          rawio.Time // it ends
	message     uint64     // Protection Established, by its number; 0: the peer has it, or has sent it
	confirmedAt rawio.Time // Never: it is not known whether the peer has the last message
	restart     *Secrets   // restart keys that take the place of those which drain
	isClient    bool       // of the session that they are from
}

func newDraining() draining { return draining{at: rawio.Never, confirmedAt: rawio.Never} }

// beginDrain begins the draining of the keys in use, before those of the session take their place.
func (m *Manager) beginDrain(now rawio.Time) {
	m.drain = newDraining()
	switch {
	case m.cfg.RestartEpoch != 0:
		m.drain.epoch, m.drain.restart, m.drain.isClient = m.cfg.RestartEpoch, m.session.secrets, m.session.isClient
	case m.epoch >= seal.FirstEpoch:
		m.drain.epoch = m.epoch
	default:
		return
	}
	m.drain.at = now.Add(max(m.cfg.FailureTime, drainTime))
}

// confirmDrain notes that the peer has the last message of the handshake, and its new keys with it.
// Restart keys drain for a short time only, as there can be no other restart meanwhile.
func (m *Manager) confirmDrain(now rawio.Time) {
	m.drain.message = 0
	if m.drain.epoch == 0 {
		return
	}
	m.drain.confirmedAt = now
	lasts := drainTime
	if m.drain.restart != nil {
		lasts = shortDrainTime
	}
	m.drain.at = min(m.drain.at, now.Add(lasts))
}

// endDrain removes the keys that drain. It says whether the association goes on.
func (m *Manager) endDrain(now rawio.Time) bool {
	d := m.drain
	m.drain = newDraining()
	if d.epoch == 0 {
		return true
	}
	m.keys.RemoveRestart(d.epoch)
	if d.restart == nil {
		m.keys.RemoveReceive(d.epoch)
		return true
	}
	m.cfg.RestartEpoch = 0
	if d.restart.HasRestart {
		r := d.restart.restartKeys(m.epoch, d.isClient)
		if err := m.keys.InstallRestart(now, r.Epoch, &r.Send, &r.Receive); err != nil {
			m.fail(now, &Failure{KeyingFailed, err}, nil)
			return false
		}
		m.do(Action{Kind: StoreRestart, Restart: r})
	}
	return m.failure == nil
}

// allowsAt returns when draining allows another epoch. Where the keys in use are worn, and not only
// old, a short time has to do.
func (d *draining) allowsAt(isWorn bool) rawio.Time {
	switch {
	case d.epoch == 0:
		return 0
	case isWorn && d.confirmedAt != rawio.Never:
		return min(d.at, d.confirmedAt.Add(shortDrainTime))
	}
	return d.at
}

// Rekey asks for new keys, as soon as the last ones have drained.
func (m *Manager) Rekey() { m.rekey.isAsked = true }

// rekeyAt returns when this side begins a rekey.
func (m *Manager) rekeyAt(now rawio.Time) rawio.Time {
	if !m.protected || m.session != nil || m.failure != nil || m.heldHello != nil {
		return rawio.Never
	}
	reason := m.keys.RekeyDue(now)
	dueAt := min(m.keys.RekeyDueAt(), m.rekey.renewAt)
	if m.rekey.isAsked || reason != seal.RekeyNotDue {
		dueAt = min(dueAt, now)
	}
	return max(dueAt, m.rekey.retryAt, m.drain.allowsAt(reason > seal.RekeyAge))
}

// SendInterval returns how far apart records are to be, so that the key lasts until there is
// another one: 0 where it is not needed.
func (m *Manager) SendInterval(now rawio.Time) time.Duration {
	s := m.keys.Sealer()
	if s == nil || m.keys.RekeyDue(now) != seal.RekeyRecords {
		return 0
	}
	lasting := rekeyTime
	if m.session == nil {
		lasting += max(max(m.rekey.retryAt, m.drain.allowsAt(true)).Sub(now), 0)
	}
	return s.Interval(lasting)
}
