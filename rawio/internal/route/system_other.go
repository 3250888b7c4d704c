//go:build !linux

package route

import (
	"net"
	"net/netip"

	"github.com/rddp-go/rddp/internal/hostaddr"
)

// routeSource asks the net package. A connected UDP socket shows the source address that the system
// chooses, and the interface with that address has the MTU. No packet is sent.
type routeSource struct{}

func openSystem() (routeSource, error) { return routeSource{}, nil }

func (routeSource) close() {}

func (routeSource) lookupRoute(local, remote netip.Addr) (Path, bool) {
	var from *net.UDPAddr
	if local.IsValid() {
		from = net.UDPAddrFromAddrPort(netip.AddrPortFrom(local, 0))
	}
	c, err := net.DialUDP("udp", from, net.UDPAddrFromAddrPort(netip.AddrPortFrom(remote, 9)))
	if err != nil {
		return Path{}, false
	}
	defer c.Close()
	src := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
	ifs, err := net.Interfaces()
	if err != nil {
		return Path{}, false
	}
	for _, i := range ifs {
		list, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range list {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(src.WithZone("").AsSlice()) {
				return Path{Source: src, MTU: i.MTU}, true
			}
		}
	}
	return Path{}, false
}

func (routeSource) unicastAddrs() []netip.Addr {
	list, _ := hostaddr.LocalAddrs()
	return list
}

func (s routeSource) allAddrs() []netip.Addr { return s.unicastAddrs() }
