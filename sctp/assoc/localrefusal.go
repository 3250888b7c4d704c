package assoc

import (
	"errors"
	"slices"
	"syscall"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// What this host itself refuses to send: it has no route, or one that prohibits it; its firewall does; an interface is down, or an own address gone. No peer hears
// of that, and so no answer tells it from a loss; but the link says why.

// refusedRounds is how often in a row every address of the peer has to be refused for a setup to end by that, where it may pass, as a full table of connections does.
const refusedRounds = 3

// unsent is what this host has refused to send last, of an association that is set up.
type unsent struct {
	err  error
	at   rawio.Time
	path *path
}

// What a link's error says when this host refuses a packet: passing may pass by itself, and unreachable does not.
var (
	passing     = [...]error{syscall.EPERM, syscall.EACCES, syscall.ENETDOWN, syscall.EADDRNOTAVAIL, syscall.EINVAL}
	unreachable = [...]error{syscall.ENETUNREACH, syscall.EHOSTUNREACH}
)

// noWay reports whether a refusal says that there is no way to an address.
func noWay(err error) bool { return !isOne(err, passing[:]) }

func isOne(err error, of []error) bool {
	return slices.ContainsFunc(of, func(e error) bool { return errors.Is(err, e) })
}

// RefusedHere says whether a link's error is for Unroutable: this host has no way to where the packet goes, or does not let it go.
func RefusedHere(err error) bool {
	return isOne(err, passing[:]) || isOne(err, unreachable[:])
}

// Unroutable says that this host has refused a packet of the last PollTransmit: it has no way to where that goes (ENETUNREACH, EHOSTUNREACH, a
// *net.AddrError), or does not let it go (such as EPERM of a firewall). It returns true where an INIT or COOKIE ECHO is to go to another address of the peer
// at once. Where all are refused the setup ends: by a *NoRouteError at once if there is no way to any, else when it has happened three times in a row, by a *RefusedError. An
// established association leaves the path at once: what is in flight there goes again over another, and a HEARTBEAT finds out when there is a way
// again. Without another path the packet counts as lost, T3-rtx sends it again after an RTO without backing off, and if that is how the association ends its error is one of those.
func (a *Assoc) Unroutable(now rawio.Time, pkt *rawio.Packet, err error) (again bool) {
	p := a.pathOf(pkt.Remote.Addr().Unmap())
	switch {
	case p == nil || a.state == Closed:
		return false
	case a.setup != nil:
		return a.setupRefused(p, err)
	}
	a.exception().unsent = unsent{err, now, p}
	if a.cut(now, p) {
		return true
	}
	if !a.Rests() { // nobody tells when it passes, and no network is spared by backing off
		a.sender().Hasten(now, &p.Path, p.BaseRTO())
	}
	return false
}

// setupRefused sends the INIT or COOKIE ECHO that went to p elsewhere, and says whether there is an address left.
func (a *Assoc) setupRefused(p *path, err error) bool {
	s := a.setup
	if p != a.paths[s.path] || s.hurried {
		return false // it has gone elsewhere since, or went sooner than it had to
	}
	if passes := !noWay(err) || a.state != CookieWait; passes || s.refused == nil {
		s.refused, s.passes = err, s.passes || passes
	}
	if s.unroutable++; s.unroutable < len(a.paths) {
		a.nextSetupPath()
		s.due = true
		return true
	}
	if s.rounds++; !s.passes || s.rounds >= refusedRounds {
		a.endRefused(p, s.refused)
	}
	return false
}

// nextSetupPath is section 5.1: INIT and COOKIE ECHO go over all addresses that may carry them.
func (a *Assoc) nextSetupPath() {
	s := a.setup
	for range a.paths {
		s.path = (s.path + 1) % len(a.paths)
		if a.paths[s.path].State == tx.Active {
			break
		}
	}
}

// beginRound has all addresses tried again, when T1 has expired.
func (s *setup) beginRound(addresses int) {
	if s.unroutable < addresses { // something has left
		s.rounds, s.refused = 0, nil
	}
	s.unroutable, s.passes = 0, false
}

// endRefused ends the association by what this host says.
func (a *Assoc) endRefused(p *path, err error) {
	if noWay(err) {
		a.down(onEnd, &NoRouteError{err})
		return
	}
	a.down(onEnd, &RefusedError{p.Remote, err})
}

// Refusal returns why this host did not let go what was sent last in the setup, to whichever address of the peer; nil if it did.
func (a *Assoc) Refusal() error {
	if s := a.setup; s != nil && s.refused != nil && s.unroutable >= len(a.paths) {
		return &RefusedError{a.paths[s.path].Remote, s.refused}
	}
	return nil
}

// refused returns why this host did not let go what was sent to p last, nil if it did.
func (a *Assoc) refused(p *path) error {
	if a.exceptions == nil {
		return nil
	}
	r := &a.exceptions.unsent
	if r.path != p || r.at < p.beat.sent || p.LastSent() != rawio.Never && r.at < p.LastSent() {
		return nil
	}
	return r.err
}
