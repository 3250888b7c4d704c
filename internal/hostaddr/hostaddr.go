// Package hostaddr tells the addresses of this host, and of the stack where it has some of its own.
package hostaddr

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
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

// Tun returns the addresses that the environment variable RDDP_TUN gives the stack over a tun link: with commas between them.
func Tun() (list []netip.Addr, err error) {
	v := os.Getenv("RDDP_TUN")
	if v == "" {
		return nil, errors.New("RDDP_LINK is tun, which takes addresses of its own: set RDDP_TUN to them, 10.9.0.2 or 10.9.0.2,fd09::2 for instance")
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
