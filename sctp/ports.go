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

// lookFree is how many ports are looked at for a free one before a Dial shares one.
const lookFree = 64

// bindFor takes the local port of a Dial to a port of those addresses. The associations of a Socket share its port. Those of Dial share one with others
// of Dial, to other peers, as connected sockets do (RFC 9260 section 1.3): one that the caller names, or any if few are free. Called with mu held.
func (t *Transport) bindFor(cfg *Config, remotes []netip.AddrPort, remotePort uint16) (port uint16, err error) {
	at := cfg.LocalAddrs
	if s := cfg.socket; s != nil && !t.closed && t.ports[s.l.port] > 0 {
		t.take(s.l.port, at)
		return s.l.port, nil
	}
	taken := func(port uint16) bool { return t.ep.Between(port, remotes, remotePort) }
	switch port = cfg.LocalPort; {
	case t.closed:
		return 0, ErrTransportClosed
	case port == 0:
		port, err = t.bindAny(func(port uint16) bool { return t.shares(port, at) && !taken(port) }, at)
	case !t.shares(port, at):
		err = t.bindPort(port, at)
	case taken(port):
		err = endpoint.ErrExists
	default:
		t.take(port, at)
	}
	if err == nil && cfg.socket == nil {
		t.dialled[port]++
	}
	return port, err
}

// undial notes that a Dial, or its association, has done with the port. Called with mu held.
func (t *Transport) undial(port uint16) {
	if t.dialled[port]--; t.dialled[port] == 0 {
		delete(t.dialled, port)
	}
}

// shares says whether a port is bound at just those own addresses, for associations of Dial alone. Called with mu held.
func (t *Transport) shares(port uint16, at []netip.Addr) bool {
	n, bound := t.dialled[port], t.bound[port]
	return n > 0 && n == t.ports[port] && len(bound) == n*len(at) && !slices.ContainsFunc(at, func(a netip.Addr) bool { return !hasAddr(bound, a) })
}

// bind takes a port for one user, or a free one for 0, at some own addresses or at all. Called with mu held.
func (t *Transport) bind(port uint16, at ...netip.Addr) (uint16, error) {
	switch {
	case t.closed:
		return 0, ErrTransportClosed
	case port != 0:
		return port, t.bindPort(port, at)
	}
	return t.bindAny(func(uint16) bool { return false }, at)
}

// bindAny takes a dynamic port that is free, from a random one on, or after a while one that can be shared. Called with mu held.
func (t *Transport) bindAny(share func(port uint16) bool, at []netip.Addr) (uint16, error) {
	start := rand.IntN(endpoint.NumDynamic)
	for i := range endpoint.NumDynamic + lookFree { // the first are looked at again, to be shared
		port := uint16(endpoint.FirstDynamic + (start+i)%endpoint.NumDynamic)
		if t.ports[port] > 0 {
			if i >= lookFree && share(port) {
				t.take(port, at)
				return port, nil
			}
			continue
		}
		if err := t.bindPort(port, at); !errors.Is(err, rawio.ErrPortInUse) {
			return port, err
		}
	}
	return 0, fmt.Errorf("sctp: no free port: %w", rawio.ErrPortInUse)
}

func (t *Transport) bindPort(port uint16, at []netip.Addr) error {
	if t.resume(port) {
		if slices.Equal(t.bound[port], at) {
			return nil
		}
		t.unbind(port)
	}
	if t.busy(port, at) {
		return fmt.Errorf("port %d: %w", port, rawio.ErrPortInUse)
	}
	if err := t.claim(port, at); err != nil {
		return err
	}
	t.take(port, at)
	return nil
}

// busy says whether a listener, or an association of Dial, has a port at one of those addresses. Associations that a listener has
// accepted outlive it, and keep nobody else from listening there, as with TCP. Called with mu held.
func (t *Transport) busy(port uint16, at []netip.Addr) bool {
	for _, l := range t.listeners[port] {
		own := l.cfg.LocalAddrs
		if len(own) == 0 || len(at) == 0 || slices.ContainsFunc(at, func(a netip.Addr) bool { return hasAddr(own, a) }) {
			return true
		}
	}
	return t.dialled[port] > 0 && !t.apart(port, at)
}

// claim takes a port of the link at those addresses, or at all, if the link does not have it there. Called with mu held.
func (t *Transport) claim(port uint16, at []netip.Addr) error {
	b, ok := t.link.(rawio.PortBinder)
	had, has := t.claimed[port]
	if !ok || has && len(had) == 0 {
		return nil
	}
	if has && len(at) == 0 { // some addresses are no part of all to a link
		b.UnbindPort(port)
	}
	err := b.BindPort(port, at...)
	switch {
	case err == nil && len(at) > 0:
		t.claimed[port] = append(had, at...)
	case err == nil:
		t.claimed[port] = nil
	case has && len(at) == 0:
		_ = b.BindPort(port, had...) // it was free a moment ago
	}
	return err
}

// take notes one user more of a port, which has it at those addresses. Called with mu held.
func (t *Transport) take(port uint16, at []netip.Addr) {
	t.ports[port]++
	t.bound[port] = append(t.bound[port], at...)
}

// apart says whether a port that is in use is so at other addresses alone. Called with mu held.
func (t *Transport) apart(port uint16, at []netip.Addr) bool {
	bound := t.bound[port]
	return len(bound) > 0 && len(at) > 0 && !slices.ContainsFunc(at, func(a netip.Addr) bool { return hasAddr(bound, a) })
}

// unbind drops one user of a port, which had it at those addresses. Called with mu held.
func (t *Transport) unbind(port uint16, at ...netip.Addr) {
	if t.ports[port]--; t.ports[port] > 0 {
		for _, a := range at {
			if i := indexAddr(t.bound[port], a); i >= 0 {
				t.bound[port] = slices.Delete(t.bound[port], i, i+1)
			}
		}
		return
	}
	delete(t.ports, port)
	delete(t.bound, port)
	delete(t.claimed, port)
	if b, ok := t.link.(rawio.PortBinder); ok {
		b.UnbindPort(port)
	}
}
