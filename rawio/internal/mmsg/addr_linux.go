package mmsg

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sockaddr holds the address of either family.
type sockaddr unix.RawSockaddrInet6

// toAddrPort reads an address that the kernel wrote.
func (s *sockaddr) toAddrPort() netip.AddrPort {
	switch s.Family {
	case unix.AF_INET:
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(s))
		return netip.AddrPortFrom(netip.AddrFrom4(v4.Addr), ntohs(v4.Port))
	case unix.AF_INET6:
		a := netip.AddrFrom16(s.Addr)
		if a.IsLinkLocalUnicast() {
			a = a.WithZone(zoneName(s.Scope_id))
		}
		return netip.AddrPortFrom(a, ntohs(s.Port))
	}
	return netip.AddrPort{}
}

// setAddr writes a for the kernel and returns the length.
func (s *sockaddr) setAddr(a netip.Addr, port uint16) uint32 {
	if a.Is4() {
		v4 := (*unix.RawSockaddrInet4)(unsafe.Pointer(s))
		*v4 = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: htons(port), Addr: a.As4()}
		return unix.SizeofSockaddrInet4
	}
	*s = sockaddr{Family: unix.AF_INET6, Port: htons(port), Addr: a.As16(), Scope_id: zoneIndex(a.Zone())}
	return unix.SizeofSockaddrInet6
}

// SockaddrOf returns a for bind and connect.
func SockaddrOf(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: zoneIndex(a.Addr().Zone())}
}

func htons(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}

func ntohs(v uint16) uint16 { return htons(v) }

// zoneCache remembers the names of interfaces, which link-local addresses carry as their zone.
var zoneCache struct {
	sync.Mutex
	index map[string]uint32
	name  map[uint32]string
}

func init() {
	zoneCache.index, zoneCache.name = make(map[string]uint32), make(map[uint32]string)
}

// zoneName returns the name of an interface, or its number where the name is unknown.
func zoneName(index uint32) string {
	zoneCache.Lock()
	defer zoneCache.Unlock()
	if n, ok := zoneCache.name[index]; ok {
		return n
	}
	name := strconv.FormatUint(uint64(index), 10)
	if i, err := net.InterfaceByIndex(int(index)); err == nil {
		name = i.Name
	}
	zoneCache.name[index] = name
	return name
}

// zoneIndex returns the number of an interface, 0 for none.
func zoneIndex(name string) uint32 {
	if name == "" {
		return 0
	}
	zoneCache.Lock()
	defer zoneCache.Unlock()
	if i, ok := zoneCache.index[name]; ok {
		return i
	}
	index := uint32(0)
	if i, err := net.InterfaceByName(name); err == nil {
		index = uint32(i.Index)
	} else if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		index = uint32(n)
	} else {
		return 0 // it may appear later
	}
	zoneCache.index[name] = index
	return index
}
