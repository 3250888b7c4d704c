package sctp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/endpoint"
)

// portTable is which SCTP ports are in use. Transport.mu guards it.
type portTable struct {
	listeners      map[uint16][]*Listener    // several on one port have different addresses
	users          map[uint16]int            // users of each bound port
	dialUsers      map[uint16]int            // those of them that are associations of Dial
	boundAddrs     map[uint16][]netip.Addr   // the addresses of each user of a port; none for all
	linkBoundAddrs map[uint16][]netip.Addr   // the addresses of each port of the link; none for all
	lingering      map[uint16]*lingeringPort // ports without a user any more, see releasePort
}

func newPortTable() portTable {
	return portTable{listeners: make(map[uint16][]*Listener), users: make(map[uint16]int),
		dialUsers: make(map[uint16]int), boundAddrs: make(map[uint16][]netip.Addr),
		linkBoundAddrs: make(map[uint16][]netip.Addr), lingering: make(map[uint16]*lingeringPort)}
}

// freePortTries is how many ports are looked at for a free one before a Dial shares one.
const freePortTries = 64

// bindDialPort takes the local port of a Dial to a port of those addresses. The associations of a
// Socket share its port. Those of Dial share one with others of Dial, to other peers, as connected
// sockets do (RFC 9260 section 1.3). The shared port is one that the caller names, or any if few
// are free. Called with mu held.
func (t *Transport) bindDialPort(cfg *Config, remotes []netip.AddrPort, remotePort uint16) (port uint16, err error) {
	at := cfg.bindAddrs()
	if s := cfg.socket; s != nil && !t.closed && t.ports.users[s.listener.port] > 0 {
		t.addPortUser(s.listener.port, at)
		return s.listener.port, nil
	}
	taken := func(port uint16) bool { return t.ep.Between(port, remotes, remotePort) }
	switch port = cfg.LocalPort; {
	case t.closed:
		return 0, ErrTransportClosed
	case port == 0:
		port, err = t.bindDynamicPort(func(port uint16) bool { return t.canSharePort(port, at) && !taken(port) }, at)
	case !t.canSharePort(port, at):
		err = t.bindFreePort(port, at)
	case taken(port):
		err = endpoint.ErrExists
	default:
		t.addPortUser(port, at)
	}
	if err == nil && cfg.socket == nil {
		t.ports.dialUsers[port]++
	}
	return port, err
}

// releaseDialPort notes that a Dial, or its association, has done with the port. Called with mu
// held.
func (t *Transport) releaseDialPort(port uint16) {
	if t.ports.dialUsers[port]--; t.ports.dialUsers[port] == 0 {
		delete(t.ports.dialUsers, port)
	}
}

// canSharePort says whether a port is bound at just those own addresses, for associations of Dial
// alone. Called with mu held.
func (t *Transport) canSharePort(port uint16, at []netip.Addr) bool {
	n, bound := t.ports.dialUsers[port], t.ports.boundAddrs[port]
	return n > 0 && n == t.ports.users[port] && len(bound) == n*len(at) &&
		!slices.ContainsFunc(at, func(a netip.Addr) bool { return !hasAddr(bound, a) })
}

// bindListenPort takes a port for one user, or a free one for 0, at some own addresses or at all.
// Called with mu held.
func (t *Transport) bindListenPort(port uint16, at ...netip.Addr) (uint16, error) {
	switch {
	case t.closed:
		return 0, ErrTransportClosed
	case port != 0:
		return port, t.bindFreePort(port, at)
	}
	return t.bindDynamicPort(func(uint16) bool { return false }, at)
}

// bindDynamicPort takes a free dynamic port, from a random one on, or after a while one that can be
// shared. Called with mu held.
func (t *Transport) bindDynamicPort(share func(port uint16) bool, at []netip.Addr) (uint16, error) {
	start := rand.IntN(endpoint.NumDynamic)
	for i := range endpoint.NumDynamic + freePortTries { // the first are looked at again, to be shared
		port := uint16(endpoint.FirstDynamic + (start+i)%endpoint.NumDynamic)
		if t.ports.users[port] > 0 {
			if i >= freePortTries && share(port) {
				t.addPortUser(port, at)
				return port, nil
			}
			continue
		}
		if err := t.bindFreePort(port, at); !errors.Is(err, rawio.ErrPortInUse) {
			return port, err
		}
	}
	return 0, fmt.Errorf("sctp: no free port: %w", rawio.ErrPortInUse)
}

func (t *Transport) bindFreePort(port uint16, at []netip.Addr) error {
	if t.reuseLingering(port) {
		if slices.Equal(t.ports.boundAddrs[port], at) {
			return nil
		}
		t.dropPortUser(port)
	}
	if t.isPortBusy(port, at) {
		return fmt.Errorf("port %d: %w", port, rawio.ErrPortInUse)
	}
	if err := t.claimLinkPort(port, at); err != nil {
		return err
	}
	t.addPortUser(port, at)
	return nil
}

// isPortBusy says whether a listener, or an association of Dial, has a port at one of those
// addresses. Associations that a listener has accepted outlive it. As with TCP, they do not keep
// others from listening there. Called with mu held.
func (t *Transport) isPortBusy(port uint16, at []netip.Addr) bool {
	for _, l := range t.ports.listeners[port] {
		own := l.cfg.bindAddrs()
		if len(own) == 0 || len(at) == 0 || slices.ContainsFunc(at, func(a netip.Addr) bool {
			return hasAddr(own, a)
		}) {
			return true
		}
	}
	return t.ports.dialUsers[port] > 0 && !t.isBoundElsewhere(port, at)
}

// claimLinkPort takes a port of the link at those addresses, or at all, if the link does not have
// it there. Called with mu held.
func (t *Transport) claimLinkPort(port uint16, at []netip.Addr) error {
	b, ok := t.link.(rawio.PortBinder)
	had, has := t.ports.linkBoundAddrs[port]
	if !ok || has && len(had) == 0 {
		return nil
	}
	if has && len(at) == 0 { // some addresses are no part of all to a link
		b.UnbindPort(port)
	}
	err := b.BindPort(port, at...)
	switch {
	case err == nil && len(at) > 0:
		t.ports.linkBoundAddrs[port] = append(had, at...)
	case err == nil:
		t.ports.linkBoundAddrs[port] = nil
	case has && len(at) == 0:
		_ = b.BindPort(port, had...) // it was free a moment ago
	}
	return err
}

// receiveAt has packets to own addresses of an association come in, where its port is bound at some
// addresses alone. They do until its last user gives the port up.
func (t *Transport) receiveAt(c *Conn, addrs []netip.Addr) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	port := c.core.LocalPort()
	addrs = slices.DeleteFunc(slices.Clone(addrs), func(x netip.Addr) bool {
		return hasAddr(t.ports.linkBoundAddrs[port], x)
	})
	if len(addrs) == 0 || t.ports.users[port] == 0 { // in the latter case it has ended
		return nil
	}
	return t.claimLinkPort(port, addrs)
}

// addPortUser notes one user more of a port, which has it at those addresses. Called with mu held.
func (t *Transport) addPortUser(port uint16, at []netip.Addr) {
	t.ports.users[port]++
	t.ports.boundAddrs[port] = append(t.ports.boundAddrs[port], at...)
}

// isBoundElsewhere says whether a port that is in use is so at other addresses alone. Called with
// mu held.
func (t *Transport) isBoundElsewhere(port uint16, at []netip.Addr) bool {
	bound := t.ports.boundAddrs[port]
	return len(bound) > 0 && len(at) > 0 && !slices.ContainsFunc(at, func(a netip.Addr) bool {
		return hasAddr(bound, a)
	})
}

// dropPortUser drops one user of a port, which had it at those addresses. Called with mu held.
func (t *Transport) dropPortUser(port uint16, at ...netip.Addr) {
	if t.ports.users[port]--; t.ports.users[port] > 0 {
		for _, a := range at {
			if i := indexAddr(t.ports.boundAddrs[port], a); i >= 0 {
				t.ports.boundAddrs[port] = slices.Delete(t.ports.boundAddrs[port], i, i+1)
			}
		}
		return
	}
	delete(t.ports.users, port)
	delete(t.ports.boundAddrs, port)
	delete(t.ports.linkBoundAddrs, port)
	if b, ok := t.link.(rawio.PortBinder); ok {
		b.UnbindPort(port)
	}
}
