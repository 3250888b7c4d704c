package route

import (
	"cmp"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// usableAddr is an own address, and the MTU of its interface.
type usableAddr struct {
	addr netip.Addr
	mtu  int
}

// subscribeChanges has the kernel report interfaces and addresses that change, in the network
// namespace of the calling thread.
func subscribeChanges() (*nl.NetlinkSocket, error) {
	return nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR)
}

// Watch calls changed with the own addresses that packets can leave from, when these or the MTUs of
// their interfaces have changed. The system is then asked again about routes. Watch returns when
// the table is closed.
func (t *Table) Watch(changed func(usable []netip.Addr)) {
	var before []usableAddr
	var had []netip.Addr
	for {
		_, _, err := t.system.changes.Receive()
		t.mu.Lock()
		if t.closed || err != nil && err != unix.ENOBUFS { // news that were lost are news
			t.mu.Unlock()
			return
		}
		addrs, err := t.system.listAddrs() // one list for both: a change is reported once
		now, ok := t.system.usableAddrs(addrs)
		ok = ok && err == nil
		own := t.system.withZones(addrs)
		t.ownAddrs, t.ownAddrsExpireAt = own, t.now().Add(ownAddrsLifetime)
		if ok = ok && !(slices.Equal(now, before) && slices.Equal(own, had)); ok {
			before, had = now, own
			clear(t.answers)
		}
		t.mu.Unlock()
		if ok {
			usable := make([]netip.Addr, len(now))
			for i, p := range now {
				usable[i] = p.addr
			}
			changed(usable)
		}
	}
}

// usableAddrs lists the addresses of interfaces that are up and have a carrier. ok is false where
// they are changing just now; the kernel then reports another change.
func (s routeSource) usableAddrs(own []ownAddr) (out []usableAddr, ok bool) {
	links, err := s.requests.LinkList()
	if err != nil {
		return nil, false
	}
	up := make(map[int]*netlink.LinkAttrs)
	for _, l := range links {
		if a := l.Attrs(); a.Flags&net.FlagRunning != 0 { // and so it is up
			up[a.Index] = a
		}
	}
	for _, a := range own {
		if l := up[a.linkIndex]; l != nil && !a.isTentative {
			out = append(out, usableAddr{a.addrInZone(l.Name), l.MTU})
		}
	}
	slices.SortFunc(out, func(a, b usableAddr) int { return cmp.Or(a.addr.Compare(b.addr), a.mtu-b.mtu) })
	return out, true
}
