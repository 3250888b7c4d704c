package assoc

import "github.com/rddp-go/rddp/rawio"

// autoCloseAt returns when the association will have been without user data for too long (RFC 6458
// section 8.1.8).
func (a *Assoc) autoCloseAt() rawio.Time {
	if a.cfg.AutoClose == 0 || a.state != Established {
		return rawio.Never
	}
	return a.lastDataAt.Add(a.cfg.AutoClose)
}

// closeIfIdle ends an association that is idle.
func (a *Assoc) closeIfIdle(now rawio.Time) {
	if now >= a.autoCloseAt() {
		_ = a.Shutdown(now) // it is established
	}
}
