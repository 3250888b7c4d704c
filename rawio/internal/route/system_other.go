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
	mtu := hostaddr.InterfaceMTU(src)
	return Path{Source: src, MTU: mtu}, mtu > 0
}

func (routeSource) unicastAddrs() []netip.Addr {
	list, _ := hostaddr.LocalAddrs()
	return list
}

func (s routeSource) allAddrs() []netip.Addr { return s.unicastAddrs() }
