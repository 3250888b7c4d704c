package assoc

import (
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/sctp/wire"
)

// scope is how far an address reaches. A peer is told, and believed, only addresses that reach at
// least as far as the one it talks with.
type scope uint8

const (
	hostScope   scope = iota // loopback
	linkScope                // link-local
	siteScope                // private: RFC 1918, RFC 6598, RFC 4193
	globalScope              // everything else
)

var sharedPrefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, 0, 0}), 10) // RFC 6598

func scopeOf(a netip.Addr) scope {
	switch {
	case a.IsLoopback():
		return hostScope
	case a.IsLinkLocalUnicast():
		return linkScope
	case a.IsPrivate(), sharedPrefix.Contains(a):
		return siteScope
	}
	return globalScope
}

// meaningful says whether an address means the same host to whoever uses the address there.
func meaningful(a, there netip.Addr) bool {
	if a.IsLinkLocalUnicast() {
		return there.IsLinkLocalUnicast() && a.Zone() == there.Zone()
	}
	return scopeOf(a) >= scopeOf(there)
}

// families is a set of address families.
type families uint8

const (
	family4 families = 1 << iota
	family6
)

func familyOf(a netip.Addr) families {
	if a.Is4() {
		return family4
	}
	return family6
}

// families returns what the own addresses are of: both where the link chooses them.
func (c *Config) families() (f families) {
	if len(c.LocalAddrs) == 0 {
		return family4 | family6
	}
	for _, a := range c.LocalAddrs {
		f |= familyOf(a)
	}
	return f
}

// sources returns which own addresses an association uses whose peer is at reach: those that are
// meaningful there; known, which the peer has sent to; and where a family has none of them, as behind
// a NAT, the one that reaches farthest.
func (c *Config) sources(reach, known netip.Addr) (list []netip.Addr) {
	var have families
	var best [2]netip.Addr
	for _, a := range c.LocalAddrs {
		f := familyOf(a)
		if a == known || meaningful(a, reach) {
			list = append(list, a)
			have |= f
		} else if b := &best[f-1]; !a.IsLoopback() && (!b.IsValid() || scopeOf(a) > scopeOf(*b)) {
			*b = a
		}
	}
	for _, b := range best {
		if b.IsValid() && have&familyOf(b) == 0 {
			list = append(list, b)
		}
	}
	return list
}

// widest returns the address of the widest scope.
func widest(list []netip.AddrPort) (w netip.Addr) {
	for _, r := range list {
		if a := r.Addr().Unmap(); !w.IsValid() || scopeOf(a) > scopeOf(w) {
			w = a
		}
	}
	return w
}

// appendAddrs appends the own addresses of those families that a peer at reach is to know (section
// 5.1.2), and nothing when the packet's source says it all.
func appendAddrs(b []byte, own []netip.Addr, source, reach netip.Addr, f families) []byte {
	start, more := len(b), false
	for _, a := range own {
		if familyOf(a)&f != 0 && meaningful(a, reach) {
			more = more || a != source
			b = wire.AppendAddressParam(b, a)
		}
	}
	if !more {
		return b[:start]
	}
	return b
}

// appendFamilies appends Supported Address Types where one family only can be used.
func (c *Config) appendFamilies(b []byte) []byte {
	switch c.families() {
	case family4:
		return wire.AppendSupportedAddrTypes(b, wire.ParamIPv4)
	case family6:
		return wire.AppendSupportedAddrTypes(b, wire.ParamIPv6)
	}
	return b
}

// sourceFor chooses the own address for a path to remote: of those that share a long prefix with it, or
// else of all, the one that fewest paths use, so that paths have as little in common as possible. known
// is where the peer sent to; with no list of own addresses it is used for its family, and for the other
// one the link chooses. ok is false when remote cannot be reached from any own address.
func (a *Assoc) sourceFor(remote netip.Addr, known netip.AddrPort) (local netip.AddrPort, ok bool) {
	if len(a.locals) == 0 {
		if familyOf(known.Addr().Unmap()) == familyOf(remote) {
			return known, true
		}
		return netip.AddrPort{}, true
	}
	var best netip.Addr
	var nearest, used int
	for _, l := range a.locals {
		if familyOf(l) != familyOf(remote) {
			continue
		}
		near, n := nearness(l, remote), a.pathsFrom(l)
		if !best.IsValid() || near > nearest || near == nearest && n < used {
			best, nearest, used = l, near, n
		}
	}
	return netip.AddrPortFrom(best, known.Port()), best.IsValid()
}

// nextSource returns what to try when remote does not answer to p's own address: the own address that
// it last sent to, or else the next that is as near.
func (a *Assoc) nextSource(p *path) netip.AddrPort {
	present, remote := p.Local.Addr(), p.Remote.Addr()
	if h := p.heard.Addr().Unmap(); h != present && slices.Contains(a.locals, h) {
		return netip.AddrPortFrom(h, p.Local.Port())
	}
	next, passed := present, false
	for _, l := range a.locals {
		switch {
		case l == present:
			passed = true
		case familyOf(l) != familyOf(remote) || nearness(l, remote) != nearness(present, remote):
		case passed:
			return netip.AddrPortFrom(l, p.Local.Port())
		case next == present:
			next = l
		}
	}
	return netip.AddrPortFrom(next, p.Local.Port())
}

// nearness is the length of the common prefix of two addresses of one family where it is long enough
// to mean a common network, else 0.
func nearness(a, b netip.Addr) int {
	x, y := a.As16(), b.As16()
	n := 0
	for n < 128 && (x[n/8]^y[n/8])>>(7-n%8)&1 == 0 {
		n++
	}
	least := 48
	if a.Is4() {
		least = 96 + 16
	}
	if n < least {
		return 0
	}
	return n
}

// pathsFrom counts the paths with that source.
func (a *Assoc) pathsFrom(local netip.Addr) (n int) {
	for _, p := range a.paths {
		if p.Local.Addr() == local {
			n++
		}
	}
	return n
}

// inZone gives a link-local address its zone.
func inZone(a netip.Addr, zone string) netip.Addr {
	if a.IsLinkLocalUnicast() {
		return a.WithZone(zone)
	}
	return a
}

// Unicast says whether an address can be that of one host.
func Unicast(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}
