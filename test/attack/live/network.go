//go:build linux

package main

import (
	"net"
	"net/netip"

	"github.com/rddp-go/rddp/internal/test/netns"
	"github.com/vishvananda/netlink"
)

// Devices: the victim's are named after who is at the other end, and theirs alike.
const (
	devFriend   = "friend"
	devAttacker = "attacker"
)

// network is three namespaces: the victim between the honest client and the attacker.
type network struct {
	victim, friend, attacker *netns.NS

	gateway net.HardwareAddr // of the victim, on the attacker's wire
}

// newNetwork makes them. The victim takes packets from any source on any wire, so that the attacker
// may use the client's addresses: it is off the path, but nothing filters sources.
func newNetwork(f *family) (*network, error) {
	n := &network{}
	for _, ns := range []**netns.NS{&n.victim, &n.friend, &n.attacker} {
		var err error
		if *ns, err = netns.New(); err != nil {
			return nil, err
		}
	}
	for _, v := range []string{"all", "default"} { // IPv6 has no such filter
		if err := n.victim.Sysctl("net.ipv4.conf."+v+".rp_filter", "0"); err != nil {
			return nil, err
		}
	}
	if err := netns.Veth(n.victim, n.friend, devFriend, 1500, f.prefixOf(f.victimAddr),
		f.prefixOf(f.friendAddr)); err != nil {
		return nil, err
	}
	if err := n.friend.Addr(devFriend, f.prefixOf(f.friendOther)); err != nil {
		return nil, err
	}
	if err := netns.Veth(n.victim, n.attacker, devAttacker, 1500, f.prefixOf(f.gatewayIn),
		f.prefixOf(f.gatewayOut)); err != nil {
		return nil, err
	}
	for _, dst := range []netip.Prefix{f.attackers, f.innocents} {
		if err := n.victim.Route(dst, f.gatewayOut); err != nil {
			return nil, err
		}
	}
	return n, n.victim.Do(func() error {
		dev, err := netlink.LinkByName(devAttacker)
		if err != nil {
			return err
		}
		n.gateway = dev.Attrs().HardwareAddr
		return netlink.LinkSetGSOMaxSegs(dev, 1) // the attacker sees packets, not trains of them
	})
}

func (n *network) removeNamespaces() {
	for _, ns := range []*netns.NS{n.victim, n.friend, n.attacker} {
		if ns != nil {
			ns.Close()
		}
	}
}
