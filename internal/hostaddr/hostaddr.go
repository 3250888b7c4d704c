// Package hostaddr tells the addresses of this host, and of the stack where it has some of its own.
package hostaddr

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// LocalAddrs returns the addresses of all interfaces, without zones.
func LocalAddrs() (list []netip.Addr, err error) {
	all, err := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok {
			if ip, ok := netip.AddrFromSlice(n.IP); ok {
				list = append(list, ip.Unmap())
			}
		}
	}
	return list, err
}

// IsLocal says whether an address is one of this host. It fails if that cannot be known, without a
// free descriptor for instance.
func IsLocal(a netip.Addr) (bool, error) {
	if a = a.Unmap().WithZone(""); a.IsLoopback() && a.Is4() {
		return true, nil
	}
	list, err := LocalAddrs()
	return slices.Contains(list, a), err
}

// TunAddrs returns the stack's addresses over a tun link. The environment variable RDDP_TUN has
// them, separated by commas.
func TunAddrs() (list []netip.Addr, err error) {
	v := os.Getenv("RDDP_TUN")
	if v == "" {
		return nil, errors.New("RDDP_LINK is tun, which takes addresses of its own: set RDDP_TUN to them, " +
			"10.9.0.2 or 10.9.0.2,fd09::2 for instance")
	}
	for s := range strings.SplitSeq(v, ",") {
		a, err := netip.ParseAddr(strings.TrimSpace(s))
		if err != nil {
			return nil, fmt.Errorf("RDDP_TUN: %w", err)
		}
		list = append(list, a.Unmap())
	}
	return list, nil
}
