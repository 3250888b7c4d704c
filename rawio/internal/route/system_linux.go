package route

import (
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// system is a netlink socket. It stays in the network namespace it was opened in, whatever thread
// asks later, and it needs no privilege.
type system struct{ nl *netlink.Handle }

func openSystem() (system, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	return system{h}, err
}

func (s system) close() { s.nl.Close() }

// lookup is "ip route get remote from local". The MTU is the route's, when it has one of its own or
// the kernel has learned a lower one, and else the interface's.
func (s system) lookup(local, remote netip.Addr) (Path, bool) {
	opt := &netlink.RouteGetOptions{}
	if local.IsValid() {
		opt.SrcAddr = local.WithZone("").AsSlice()
	}
	if z := remote.Zone(); z != "" {
		link, err := s.nl.LinkByName(z)
		if err != nil {
			return Path{}, false
		}
		opt.OifIndex = link.Attrs().Index
	}
	routes, err := s.nl.RouteGetWithOptions(remote.WithZone("").AsSlice(), opt)
	if err != nil || len(routes) == 0 {
		return Path{}, false
	}
	p := Path{MTU: routes[0].MTU}
	if src, ok := netip.AddrFromSlice(routes[0].Src); ok {
		p.Source = src.Unmap()
		if p.Source.IsLinkLocalUnicast() {
			p.Source = p.Source.WithZone(remote.Zone())
		}
	}
	if p.MTU == 0 {
		link, err := s.nl.LinkByIndex(routes[0].LinkIndex)
		if err != nil {
			return Path{}, false
		}
		p.MTU = link.Attrs().MTU
	}
	return p, true
}

func (s system) addrs() []netip.Addr {
	list, err := s.nl.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil
	}
	out := make([]netip.Addr, 0, len(list))
	for _, a := range list {
		if ip, ok := netip.AddrFromSlice(a.IP); ok {
			out = append(out, ip.Unmap())
		}
	}
	return out
}
