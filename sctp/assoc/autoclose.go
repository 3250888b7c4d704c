package assoc

import "github.com/rddp-go/rddp/rawio"

// idleUntil is when the association will have been without user data for too long (RFC 6458 section 8.1.8).
func (a *Assoc) idleUntil() rawio.Time {
	if a.cfg.AutoClose == 0 || a.state != Established {
		return rawio.Never
	}
	return a.moved.Add(a.cfg.AutoClose)
}

// autoclose ends an association that is idle.
func (a *Assoc) autoclose(now rawio.Time) {
	if now >= a.idleUntil() {
		_ = a.Shutdown(now) // it is established
	}
}
