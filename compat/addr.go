package compat

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/rddp-go/rddp/internal/hostaddr"
)

// This file reads and writes addresses of sockets, as sctp_bindx and sctp_connectx take them (RFC
// 6458 section 9). They are struct sockaddr_in and sockaddr_in6, one behind the other.

// These values are those of Linux, on every system.
const (
	afInet, afInet6                    = 2, 10
	sockaddrInet4Len, sockaddrInet6Len = 16, 28
	sockaddrStorageLen, maxAddrs       = 128, 8
)

// ResolveAddr splits "a/b/c:port", resolves each part, and returns the addresses. For ":port" there
// are none. The network is "sctp", "sctp4", "sctp6" or "".
func ResolveAddr(network, addrs string) ([]net.IPAddr, int, error) {
	tcp, ok := map[string]string{"": "tcp", "sctp": "tcp", "sctp4": "tcp4", "sctp6": "tcp6"}[network]
	if !ok {
		return nil, 0, fmt.Errorf("invalid net: %s", network)
	}
	var list []net.IPAddr
	parts := strings.Split(addrs, "/")
	for i, part := range parts {
		last := i == len(parts)-1
		if !last {
			part += ":"
		}
		a, err := net.ResolveTCPAddr(tcp, part)
		switch {
		case err != nil:
			return nil, 0, err
		case last && a.IP == nil:
			return nil, a.Port, nil
		}
		list = append(list, net.IPAddr{IP: a.IP, Zone: a.Zone})
		if last {
			return list, a.Port, nil
		}
	}
	panic("not reached: a split string has a last part")
}

// FormatAddr is the reverse of ResolveAddr.
func FormatAddr(addrs []net.IPAddr, port int) string {
	parts := make([]string, len(addrs))
	for i, a := range addrs {
		switch {
		case a.IP.To4() != nil:
			parts[i] = a.String()
		case a.IP.To16() != nil:
			parts[i] = "[" + a.String() + "]"
		}
	}
	return strings.Join(parts, "/") + ":" + strconv.Itoa(port)
}

// RawAddrs returns the addresses as sockaddrs. Without any, it returns that of 0.0.0.0.
func RawAddrs(addrs []net.IPAddr, port int) []byte {
	if len(addrs) == 0 {
		addrs = []net.IPAddr{{}}
	}
	var b []byte
	for _, a := range addrs {
		ip := netip.IPv4Unspecified()
		if len(a.IP) > 0 {
			ip, _ = netip.AddrFromSlice(a.IP)
		}
		b = appendSockaddr(b, netip.AddrPortFrom(ip.Unmap().WithZone(a.Zone), uint16(port)))
	}
	return b
}

// presentedAddr returns an address as a socket shows it. An IPv6 socket shows an IPv4 address
// mapped, unless SCTP_I_WANT_MAPPED_V4_ADDR is off. Called without mu.
func (s *Socket) presentedAddr(a netip.AddrPort) netip.AddrPort {
	if !s.v6 || !a.Addr().Is4() {
		return a
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.noMappedV4 {
		return a
	}
	return netip.AddrPortFrom(netip.AddrFrom16(a.Addr().As16()), a.Port())
}

// appendSockaddr appends one sockaddr.
func appendSockaddr(b []byte, a netip.AddrPort) []byte {
	ip := a.Addr()
	if ip.Is4() {
		b = nativeOrder.AppendUint16(b, afInet)
		b = binary.BigEndian.AppendUint16(b, a.Port())
		b = append(b, ip.AsSlice()...)
		return append(b, make([]byte, 8)...)
	}
	b = nativeOrder.AppendUint16(b, afInet6)
	b = binary.BigEndian.AppendUint16(b, a.Port())
	b = append(b, 0, 0, 0, 0) // flow
	raw := ip.As16()
	b = append(b, raw[:]...)
	return nativeOrder.AppendUint32(b, uint32(zoneIndex(ip.Zone())))
}

// nextSockaddr reads one sockaddr and returns the rest. It fails with EINVAL.
func nextSockaddr(b []byte) (a netip.AddrPort, rest []byte, err error) {
	if len(b) < 2 {
		return a, nil, syscall.EINVAL
	}
	switch family := nativeOrder.Uint16(b); {
	case family == afInet && len(b) >= sockaddrInet4Len:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:])),
			b[sockaddrInet4Len:], nil
	case family == afInet6 && len(b) >= sockaddrInet6Len:
		ip := netip.AddrFrom16([16]byte(b[8:24])).Unmap()
		if i := nativeOrder.Uint32(b[24:]); i != 0 {
			ip = ip.WithZone(zoneName(int(i))) // IPv4 has no zone
		}
		return netip.AddrPortFrom(ip, binary.BigEndian.Uint16(b[2:])), b[sockaddrInet6Len:], nil
	}
	return a, nil, syscall.EINVAL
}

// parseSockaddrs reads a list of sockaddrs, which must all have the same port.
func parseSockaddrs(b []byte) (list []netip.Addr, port uint16, err error) {
	for len(b) > 0 {
		var a netip.AddrPort
		if a, b, err = nextSockaddr(b); err != nil {
			return nil, 0, err
		}
		if len(list) > 0 && a.Port() != port {
			return nil, 0, syscall.EINVAL
		}
		port = a.Port()
		list = append(list, a.Addr())
	}
	if len(list) == 0 || len(list) > maxAddrs {
		return nil, 0, syscall.EINVAL
	}
	return list, port, nil
}

// ParseAddrs reads what RawAddrs writes.
func ParseAddrs(b []byte) ([]net.IPAddr, int, error) {
	var list []net.IPAddr
	port := 0
	for len(b) > 0 {
		a, rest, err := nextSockaddr(b)
		if err != nil {
			return nil, 0, err
		}
		list = append(list, net.IPAddr{IP: a.Addr().AsSlice(), Zone: a.Addr().Zone()})
		port, b = int(a.Port()), rest
	}
	return list, port, nil
}

func zoneIndex(zone string) int {
	if i, err := net.InterfaceByName(zone); err == nil {
		return i.Index
	}
	i, _ := strconv.Atoi(zone)
	return i
}

func zoneName(index int) string {
	if i, err := net.InterfaceByIndex(index); err == nil {
		return i.Name
	}
	return strconv.Itoa(index)
}

// unboundAddrs returns the addresses of a socket that is bound to none in particular: those of this
// host, of the families of the socket. Those of the loopback come first.
func unboundAddrs(v4, v6 bool) (list []netip.Addr) {
	all, _ := hostaddr.LocalAddrs()
	for _, ip := range all {
		if !ip.IsLinkLocalUnicast() && (ip.Is4() && v4 || ip.Is6() && v6) {
			list = append(list, ip)
		}
	}
	slices.SortStableFunc(list, func(a, b netip.Addr) int { return boolInt(b.IsLoopback()) - boolInt(a.IsLoopback()) })
	return list[:min(len(list), maxAddrs)]
}

// FirstAddr returns the first sockaddr of a sockaddr_storage.
func FirstAddr(b []byte) []byte {
	_, rest, err := nextSockaddr(b)
	if err != nil {
		return nil
	}
	return b[:len(b)-len(rest)]
}
