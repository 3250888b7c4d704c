package assoc

import (
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// scope is how far an address reaches. The peer learns only addresses that reach at least as far as
// the one it talks with. It is believed only about such addresses.
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

// isMeaningfulAt says whether an address means the same host to users of the address there.
func isMeaningfulAt(a, there netip.Addr) bool {
	if a.IsLinkLocalUnicast() {
		return there.IsLinkLocalUnicast() && a.Zone() == there.Zone()
	}
	return scopeOf(a) >= scopeOf(there)
}

// familySet is a set of address families.
type familySet uint8

const (
	family4 familySet = 1 << iota
	family6
)

func familyOf(a netip.Addr) familySet {
	if a.Is4() {
		return family4
	}
	return family6
}

const bothFamilies = family4 | family6

// knownFamilies returns the families of which the peer knows an own address. One is the family of
// the address that it exchanges packets with, which is peer's family. The others are those that
// Config.LocalAddrs names to a peer at reach. Without LocalAddrs the peer knows one address of one
// family.
//
// Paths lead to addresses of these families only, and begin at addresses that the peer knows (see
// sourceFor). To the peer, a packet from any other own address is out of the blue (section 8.4). It
// answers with an ABORT that has the T bit, which ends the association (section 8.5.1 B). Section
// 5.1.2 lets an endpoint of one family ignore the addresses of the other.
func (c *Config) knownFamilies(peer, reach netip.Addr) familySet {
	f := familyOf(peer)
	for _, a := range c.LocalAddrs {
		if isMeaningfulAt(a, reach) {
			f |= familyOf(a)
		}
	}
	return f
}

// localAddrsFor returns the own addresses of families f that a peer at reach knows. These are the
// addresses that are meaningful there, and known, which it exchanges packets with. If a family has
// none of them, as behind a NAT, the one that reaches farthest is added.
func (c *Config) localAddrsFor(reach, known netip.Addr, f familySet) (list []netip.Addr) {
	var have familySet
	var best [2]netip.Addr
	for _, a := range c.LocalAddrs {
		of := familyOf(a)
		switch b := &best[of-1]; {
		case of&f == 0:
		case a == known || isMeaningfulAt(a, reach):
			list = append(list, a)
			have |= of
		case !a.IsLoopback() && (!b.IsValid() || scopeOf(a) > scopeOf(*b)):
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

// localAddrOf returns the own address that a packet came to. It is invalid if the link does not
// report it.
func localAddrOf(p *rawio.Packet) netip.AddrPort {
	own := p.Local.Addr().Unmap()
	if !own.IsValid() || familyOf(own) != familyOf(p.Remote.Addr().Unmap()) {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(own, p.Local.Port())
}

// setKnownAddrs records which own addresses the peer knows (see Config.knownFamilies). Paths lead
// to and begin at no others.
func (a *Assoc) setKnownAddrs(peer, reach netip.Addr, known netip.AddrPort, f familySet) {
	a.addrs.families = a.cfg.knownFamilies(peer, reach) & f
	a.addrs.local = a.cfg.localAddrsFor(reach, known.Addr(), a.addrs.families)
}

// dropUnknownPaths drops the paths to families of which the peer knows no own address. The others
// then begin at addresses that it knows. It runs at the end of the set-up: until the peer answers,
// INITs may go to either family. There is no DATA yet.
func (a *Assoc) dropUnknownPaths(known netip.AddrPort) {
	all := a.paths
	a.paths = all[:0]
	for _, p := range all {
		local, ok := a.sourceFor(p.Remote.Addr(), known)
		if !ok {
			continue
		}
		a.paths = append(a.paths, p)
		switch before := p.Local; {
		case !before.IsValid():
			p.Local = local
		case local.IsValid() && before.Addr() != known.Addr() && !slices.Contains(a.addrs.local, before.Addr()):
			p.Local = local
			a.restartMTUSearch(p)
		}
	}
	if len(a.paths) == len(all) {
		return
	}
	a.control.clear() // what goes to those that are left out
	a.replaceSender()
	for _, p := range a.paths {
		_ = a.sender().AddPath(&p.Path) // there were as many before
	}
}

// hasPathOfFamily says whether there is a path to an address of the family of addr.
func (l *pathList) hasPathOfFamily(addr netip.Addr) bool {
	return slices.ContainsFunc(l.paths, func(p *path) bool { return familyOf(p.Remote.Addr()) == familyOf(addr) })
}

// widestScopeAddr returns the address of the widest scope.
func widestScopeAddr(list []netip.AddrPort) (w netip.Addr) {
	for _, r := range list {
		if a := r.Addr().Unmap(); !w.IsValid() || scopeOf(a) > scopeOf(w) {
			w = a
		}
	}
	return w
}

// appendAddrs appends the own addresses of those families that a peer at reach is to know (section
// 5.1.2). It appends nothing if the packet's source says it all.
func appendAddrs(b []byte, own []netip.Addr, source, reach netip.Addr, f familySet) []byte {
	start, more := len(b), false
	for _, a := range own {
		if familyOf(a)&f != 0 && isMeaningfulAt(a, reach) {
			more = more || a != source
			b = wire.AppendAddressParam(b, a)
		}
	}
	if !more {
		return b[:start]
	}
	return b
}

// appendFamilies appends Supported Address Types to an INIT if only one family can be used. INIT
// ACK has no such parameter (section 3.3.3).
func appendFamilies(b []byte, f familySet) []byte {
	switch f {
	case family4:
		return wire.AppendSupportedAddrTypes(b, wire.ParamIPv4)
	case family6:
		return wire.AppendSupportedAddrTypes(b, wire.ParamIPv6)
	}
	return b
}

// sourceFor chooses the own address for a path to remote. It prefers addresses that share a long
// prefix with remote, else takes any that the peer knows. Among these it takes the one that fewest
// paths use, so paths share as little as possible. Without Config.LocalAddrs it is known, which the
// peer exchanges packets with and the link may not report. ok is false if remote cannot be reached
// from any.
func (a *Assoc) sourceFor(remote netip.Addr, known netip.AddrPort) (local netip.AddrPort, ok bool) {
	if len(a.addrs.local) == 0 {
		if known.IsValid() && familyOf(known.Addr()) != familyOf(remote) {
			known = netip.AddrPort{} // for an INIT the link chooses
		}
		return known, familyOf(remote)&a.addrs.families != 0
	}
	var best netip.Addr
	var nearest, used int
	for _, l := range a.addrs.local {
		if familyOf(l) != familyOf(remote) {
			continue
		}
		near, n := commonPrefixLen(l, remote), a.countPathsFrom(l)
		if !best.IsValid() || near > nearest || near == nearest && n < used {
			best, nearest, used = l, near, n
		}
	}
	return netip.AddrPortFrom(best, known.Port()), best.IsValid()
}

// nextSource returns what to try when remote does not answer to p's own address. That is the own
// address that it last sent to, or else the next that is as near.
func (a *Assoc) nextSource(p *path) netip.AddrPort {
	present, remote := p.Local.Addr(), p.Remote.Addr()
	if h := p.lastLocalAddr.Addr().Unmap(); h != present && slices.Contains(a.addrs.local, h) {
		return netip.AddrPortFrom(h, p.Local.Port())
	}
	next, passed := present, false
	for _, l := range a.addrs.local {
		switch {
		case l == present:
			passed = true
		case familyOf(l) != familyOf(remote) || commonPrefixLen(l, remote) != commonPrefixLen(present, remote):
		case passed:
			return netip.AddrPortFrom(l, p.Local.Port())
		case next == present:
			next = l
		}
	}
	return netip.AddrPortFrom(next, p.Local.Port())
}

// commonPrefixLen returns the length of the common prefix of two addresses of one family. It
// returns 0 if that is too short to mean a common network.
func commonPrefixLen(a, b netip.Addr) int {
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

// countPathsFrom counts the paths with that source.
func (l *pathList) countPathsFrom(local netip.Addr) (n int) {
	for _, p := range l.paths {
		if p.Local.Addr() == local {
			n++
		}
	}
	return n
}

// withZone gives a link-local address its zone.
func withZone(a netip.Addr, zone string) netip.Addr {
	if a.IsLinkLocalUnicast() {
		return a.WithZone(zone)
	}
	return a
}

// Unicast says whether an address can be that of one host.
func Unicast(a netip.Addr) bool {
	return a.IsValid() && !a.IsUnspecified() && !a.IsMulticast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}
