// Package hostaddr tells the addresses of this host.
package hostaddr

import (
	"net"
	"net/netip"
)

// List returns the addresses of all interfaces, without zones; of those that are not known, none.
func List() (list []netip.Addr) {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				list = append(list, ip.Unmap())
			}
		}
	}
	return list
}
