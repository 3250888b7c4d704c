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

// The dynamic ports of RFC 6335.
const (
	firstDynamic = 49152
	dynamicPorts = 65536 - firstDynamic
	// lookFree is how many ports are looked at for a free one before a Dial shares one.
	lookFree = 64
)

// bindFor takes the local port of a Dial to a port of those addresses. The associations of a Socket share its port. Those of Dial share one with others
// of Dial, to other peers, as connected sockets do (RFC 9260 section 1.3): one that the caller names, or any if few are free. Called with mu held.
func (t *Transport) bindFor(cfg *Config, remotes []netip.AddrPort, remotePort uint16) (port uint16, err error) {
	at := cfg.LocalAddrs
	use := func(port uint16) {
		t.ports[port]++
		t.bound[port] = append(t.bound[port], at...)
	}
	if s := cfg.socket; s != nil && !t.closed && t.ports[s.l.port] > 0 {
		use(s.l.port)
		return s.l.port, nil
	}
	share := func(port uint16) bool {
		ok := t.shares(port, at) && !t.ep.Between(port, remotes, remotePort)
		if ok {
			use(port)
		}
		return ok
	}
	switch {
	case t.closed:
		return 0, ErrTransportClosed
	case cfg.LocalPort == 0:
		port, err = t.bindAny(share, at)
	case t.shares(cfg.LocalPort, at):
		if port = cfg.LocalPort; !share(port) {
			err = endpoint.ErrExists
		}
	default:
		port = cfg.LocalPort
		err = t.bindPort(port, at)
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
	start := rand.IntN(dynamicPorts)
	for i := range dynamicPorts + lookFree { // the first are looked at again, to be shared
		port := uint16(firstDynamic + (start+i)%dynamicPorts)
		if t.ports[port] > 0 {
			if i >= lookFree && share(port) {
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
	if t.ports[port] > 0 && !t.apart(port, at) {
		return fmt.Errorf("port %d: %w", port, rawio.ErrPortInUse)
	}
	if b, ok := t.link.(rawio.PortBinder); ok {
		if err := b.BindPort(port, at...); err != nil {
			return err
		}
	}
	t.ports[port]++
	t.bound[port] = append(t.bound[port], at...)
	return nil
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
			if i := slices.IndexFunc(t.bound[port], func(b netip.Addr) bool { return b.Unmap() == a.Unmap() }); i >= 0 {
				t.bound[port] = slices.Delete(t.bound[port], i, i+1)
			}
		}
		return
	}
	delete(t.ports, port)
	delete(t.bound, port)
	if b, ok := t.link.(rawio.PortBinder); ok {
		b.UnbindPort(port)
	}
}
