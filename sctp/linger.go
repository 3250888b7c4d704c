package sctp

import (
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// A peer whose SHUTDOWN ACK got no SHUTDOWN COMPLETE sends it again. So does a peer with DATA that
// did not hear our ABORT. The host that has forgotten the association answers (RFC 9260 section
// 8.4, rules 5 and 8), and the peer is done. A link that passes only packets for bound ports would
// never see them. The peer would go on until it reaches Association.Max.Retrans. So the port of an
// association that we have set up stays bound for a while after its end. A new user on this
// Transport gets it nevertheless.

const (
	// lingerRTOs and lingerMaxRTOs are how long. The peer's T2-shutdown or T3-rtx has then expired
	// twice, also if it has backed off and our end has not. With the default RTO.Max, maxLingerTime
	// decides: the timer has expired once at least.
	lingerRTOs    = 4
	lingerMaxRTOs = 2
	maxLingerTime = time.Minute

	maxLingeringPorts = 128 // ports; on a raw link each is a descriptor
)

// lingeringPort is a port that stays bound until that time.
type lingeringPort struct {
	timer     *time.Timer
	expiresAt rawio.Time
}

// lingerTime is how long the port of an association that ends now stays bound; 0 when it needs not.
// Owner only.
func (c *Conn) lingerTime() time.Duration {
	if !c.isDialled() {
		return 0
	}
	rto := c.core.PathStats(c.core.Stats().Primary).RTO
	return max(lingerRTOs*rto, min(lingerMaxRTOs*c.core.RTOMax(), maxLingerTime))
}

// isDialled says whether Dial has made the association, with a port of its own choice.
func (c *Conn) isDialled() bool { return c.origin.listener == nil && c.recv.socket == nil }

// releasePort drops a user of a port, which stays bound for d if that was the last one. Called with
// mu held.
func (t *Transport) releasePort(port uint16, d time.Duration, at ...netip.Addr) {
	_, binds := t.link.(rawio.PortBinder)
	if !binds || d <= 0 || t.ports.users[port] > 1 || t.closed {
		t.dropPortUser(port, at...)
		return
	}
	if len(t.ports.lingering) == maxLingeringPorts {
		t.stopLingering(t.firstToExpire())
	}
	l := &lingeringPort{expiresAt: t.now().Add(d)}
	l.timer = time.AfterFunc(d, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.ports.lingering[port] == l { // else it has a user
			t.stopLingering(port)
		}
	})
	t.ports.lingering[port] = l
}

// firstToExpire returns the port that would be given back first. Called with mu held.
func (t *Transport) firstToExpire() (port uint16) {
	var first *lingeringPort
	for p, l := range t.ports.lingering {
		if first == nil || l.expiresAt.Before(first.expiresAt) {
			port, first = p, l
		}
	}
	return port
}

// stopLingering gives a port back. Called with mu held.
func (t *Transport) stopLingering(port uint16) {
	t.reuseLingering(port)
	t.dropPortUser(port)
}

// reuseLingering takes a port that is only lingering into use. Called with mu held.
func (t *Transport) reuseLingering(port uint16) bool {
	l, ok := t.ports.lingering[port]
	if ok {
		l.timer.Stop()
		delete(t.ports.lingering, port)
	}
	return ok
}

// stopAllLingering is part of Close, which makes the link give up all ports. Called with mu held.
func (t *Transport) stopAllLingering() {
	for port := range t.ports.lingering {
		t.reuseLingering(port)
	}
}
