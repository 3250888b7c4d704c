package route

import (
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// routeSource are two netlink sockets, one for requests and one for changes. They stay in the
// network namespace they were opened in, whichever thread asks later, and need no privilege.
type routeSource struct {
	requests *netlink.Handle
	changes  *nl.NetlinkSocket
}

func openSystem() (routeSource, error) {
	news, err := subscribeChanges()
	if err != nil {
		return routeSource{}, err
	}
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		news.Close()
	}
	return routeSource{h, news}, err
}

func (s routeSource) close() {
	s.requests.Close()
	s.changes.Close()
}

// lookupRoute is "ip route get remote from local". The MTU is the route's, when it has one of its
// own, and else the interface's. What the kernel has learned from ICMP is not used. Its raw and UDP
// sockets have no verification tag, so it believes any sender that knows the addresses. The
// associations verify the reports themselves (RFC 9260 section 10, RFC 8899 section 4.6).
func (s routeSource) lookupRoute(local, remote netip.Addr) (Path, bool) {
	opt := &netlink.RouteGetOptions{}
	if local.IsValid() {
		opt.SrcAddr = local.WithZone("").AsSlice()
	}
	if z := remote.Zone(); z != "" {
		link, err := s.requests.LinkByName(z)
		if err != nil {
			return Path{}, false
		}
		opt.OifIndex = link.Attrs().Index
	}
	to := remote.WithZone("").AsSlice()
	routes, err := s.requests.RouteGetWithOptions(to, opt)
	if err != nil || len(routes) == 0 {
		return Path{}, false
	}
	var p Path
	if src, ok := netip.AddrFromSlice(routes[0].Src); ok {
		p.Source = src.Unmap()
		if p.Source.IsLinkLocalUnicast() {
			p.Source = p.Source.WithZone(remote.Zone())
		}
	}
	opt.FIBMatch = true // the entry as it was configured
	if fib, err := s.requests.RouteGetWithOptions(to, opt); err == nil && len(fib) > 0 {
		p.MTU = fib[0].MTU
	}
	if p.MTU == 0 {
		link, err := s.requests.LinkByIndex(routes[0].LinkIndex)
		if err != nil {
			return Path{}, false
		}
		p.MTU = link.Attrs().MTU
	}
	return p, true
}

func (s routeSource) unicastAddrs() (list []netip.Addr) {
	own, _ := s.listAddrs()
	for _, a := range own {
		list = append(list, a.addr)
	}
	return list
}

// allAddrs lists every address of every interface, link-local ones with their zone.
func (s routeSource) allAddrs() []netip.Addr {
	own, _ := s.listAddrs()
	return s.withZones(own)
}

// withZones gives link-local addresses their zones.
func (s routeSource) withZones(own []ownAddr) (list []netip.Addr) {
	names := make(map[int]string)
	for _, o := range own {
		if o.addr.IsLinkLocalUnicast() && o.addr.Is6() && names[o.linkIndex] == "" {
			if l, err := s.requests.LinkByIndex(o.linkIndex); err == nil {
				names[o.linkIndex] = l.Attrs().Name
			}
		}
		list = append(list, o.addrInZone(names[o.linkIndex]))
	}
	slices.SortFunc(list, netip.Addr.Compare)
	return list
}

// ownAddr is an address of this host, and the index of its interface. Nothing can be sent from a
// tentative address, which another host may still turn out to have (RFC 4862 section 5.4).
type ownAddr struct {
	addr        netip.Addr
	linkIndex   int
	isTentative bool
}

// isTentative says so of an address with these flags.
func isTentative(flags int) bool {
	return flags&unix.IFA_F_TENTATIVE != 0 && flags&unix.IFA_F_OPTIMISTIC == 0
}

// addrInZone returns the address, a link-local one with the name of its interface.
func (a ownAddr) addrInZone(link string) netip.Addr {
	if a.addr.IsLinkLocalUnicast() && a.addr.Is6() {
		return a.addr.WithZone(link)
	}
	return a.addr
}

// listAddrs lists every address of every interface; after an error none.
func (s routeSource) listAddrs() (list []ownAddr, err error) {
	addrs, err := s.requests.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, err
	}
	for _, a := range addrs {
		if ip, ok := netip.AddrFromSlice(a.IP); ok {
			list = append(list, ownAddr{ip.Unmap(), a.LinkIndex, isTentative(a.Flags)})
		}
	}
	return list, nil
}
