// Package hostaddr tells the addresses of this host, and of the stack where it has some of its own.
package hostaddr

import (
	"context"
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

// InterfaceMTU returns the MTU of the interface with an address, 0 if there is none.
func InterfaceMTU(own netip.Addr) int {
	all, err := net.Interfaces()
	if err != nil {
		return 0
	}
	for _, i := range all {
		list, _ := i.Addrs()
		for _, a := range list {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(own.WithZone("").AsSlice()) {
				return i.MTU
			}
		}
	}
	return 0
}

// Resolve looks up an address, "host:port". family is "ip", "ip4" or "ip6". Without a host it is
// localhost. The addresses are those of one host, at least one.
func Resolve(ctx context.Context, family, address string) ([]netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, "tcp", service)
	if err != nil {
		return nil, err
	}
	if host == "" {
		host = "localhost"
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, family, host)
	if err != nil {
		return nil, err
	}
	list := make([]netip.AddrPort, len(addrs))
	for i, a := range addrs {
		list[i] = netip.AddrPortFrom(a.Unmap(), uint16(port))
	}
	return list, nil
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
