package assoc

import (
	"errors"
	"slices"
	"syscall"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// What this host itself refuses to send: it has no route, or one that prohibits it. Its firewall
// may refuse, an interface may be down, or an own address gone. The peer does not hear of that, so
// no answer distinguishes it from a loss. But the link says why.

// maxRefusedRounds is how often in a row all addresses of the peer have to be refused to end a
// setup. It applies to refusals that may pass, such as a full connection table.
const maxRefusedRounds = 3

// localRefusal is what this host has last refused to send, for an association that is set up.
type localRefusal struct {
	err       error
	refusedAt rawio.Time
	path      *path
}

// Errors of a link when this host refuses a packet. transientErrors may pass by themselves;
// unreachableErrors do not.
var (
	transientErrors = [...]error{syscall.EPERM, syscall.EACCES, syscall.ENETDOWN, syscall.EADDRNOTAVAIL,
		syscall.EINVAL}
	unreachableErrors = [...]error{syscall.ENETUNREACH, syscall.EHOSTUNREACH}
)

// isUnreachable reports whether a refusal says that there is no way to an address.
func isUnreachable(err error) bool { return !matchesAny(err, transientErrors[:]) }

func matchesAny(err error, of []error) bool {
	return slices.ContainsFunc(of, func(e error) bool { return errors.Is(err, e) })
}

// IsLocalRefusal says whether a link's error is for HandleUnroutable. This host has no way to where
// the packet goes, or does not let it go.
func IsLocalRefusal(err error) bool {
	return matchesAny(err, transientErrors[:]) || matchesAny(err, unreachableErrors[:])
}

// HandleUnroutable reports that this host has refused a packet of the last PollTransmit. There is
// no way to where that goes (ENETUNREACH, EHOSTUNREACH, a *net.AddrError). Or this host does not
// let it go (such as EPERM of a firewall).
//
// In a setup it returns true if INIT or COOKIE ECHO is to go to another peer address at once. If
// all are refused the setup ends. It ends by a *NoRouteError at once if there is no way to any.
// Otherwise it ends by a *RefusedError when that has happened three times in a row.
//
// An established association leaves the path at once. What is in flight there goes again over
// another, and a HEARTBEAT finds out when there is a way again. Without another path the packet
// counts as lost. T3-rtx sends it again after an RTO without backing off. If that is how the
// association ends, its error is one of the two.
func (a *Assoc) HandleUnroutable(now rawio.Time, pkt *rawio.Packet, err error) (again bool) {
	p := a.findPath(pkt.Remote.Addr().Unmap())
	switch {
	case p == nil || a.state == Closed:
		return false
	case a.setup() != nil:
		return a.handleSetupRefusal(p, err)
	}
	a.ensureRareState().localRefusal = localRefusal{err, now, p}
	if a.leavePath(now, p) {
		return true
	}
	if !a.IsIdle() { // nobody tells when it passes, and no network is spared by backing off
		a.sender().Hasten(now, &p.Path, p.BaseRTO())
	}
	return false
}

// handleSetupRefusal sends the INIT or COOKIE ECHO that went to p elsewhere. It says whether there
// is an address left.
func (a *Assoc) handleSetupRefusal(p *path, err error) bool {
	s := a.setup()
	if p != a.paths[s.pathIndex] || s.resentEarly {
		return false // it has gone elsewhere since, or went sooner than it had to
	}
	if passes := !isUnreachable(err) || a.state != CookieWait; passes || s.refusalErr == nil {
		s.refusalErr, s.refusalMayPass = err, s.refusalMayPass || passes
	}
	if s.refusedAddrs++; s.refusedAddrs < len(a.paths) {
		a.nextSetupPath()
		s.sendDue = true
		return true
	}
	if s.refusedRounds++; !s.refusalMayPass || s.refusedRounds >= maxRefusedRounds {
		a.endByRefusal(p, s.refusalErr)
	}
	return false
}

// nextSetupPath chooses the next path: INIT and COOKIE ECHO go over all addresses that may carry
// them (section 5.1).
func (a *Assoc) nextSetupPath() {
	s := a.setup()
	for range a.paths {
		s.pathIndex = (s.pathIndex + 1) % len(a.paths)
		if a.paths[s.pathIndex].State == tx.Active {
			break
		}
	}
}

// startRound makes all addresses be tried again, when T1 has expired.
func (s *setup) startRound(addresses int) {
	if s.refusedAddrs < addresses { // something has left
		s.refusedRounds, s.refusalErr = 0, nil
	}
	s.refusedAddrs, s.refusalMayPass = 0, false
}

// endByRefusal ends the association with this host's error.
func (a *Assoc) endByRefusal(p *path, err error) {
	if isUnreachable(err) {
		a.endAssoc(onEnd, &NoRouteError{err})
		return
	}
	a.endAssoc(onEnd, &RefusedError{p.Remote, err})
}

// Refusal returns why this host refused what was sent last in the setup, to any address of the
// peer. It returns nil if it was not refused.
func (a *Assoc) Refusal() error {
	if s := a.setup(); s != nil && s.refusalErr != nil && s.refusedAddrs >= len(a.paths) {
		return &RefusedError{a.paths[s.pathIndex].Remote, s.refusalErr}
	}
	return nil
}

// lastRefusal returns why this host refused what was sent to p last, nil if it did not.
func (a *Assoc) lastRefusal(p *path) error {
	if a.rareState == nil {
		return nil
	}
	r := &a.rareState.localRefusal
	if r.path != p || r.refusedAt < p.heartbeat.lastSentAt || p.LastSent() != rawio.Never &&
		r.refusedAt < p.LastSent() {
		return nil
	}
	return r.err
}
