package main

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// namespace is a network namespace. It lives as long as the thread that serves it: no longer than
// this process, whatever happens to it.
type namespace struct {
	work chan func()
	fd   int
}

func newNamespace() (*namespace, error) {
	n := &namespace{work: make(chan func())}
	made := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			made <- fmt.Errorf("network namespaces need root: %w", err)
			return
		}
		var err error
		n.fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		made <- err
		for f := range n.work {
			f()
		}
	}()
	return n, <-made
}

// runInside runs f in the namespace. Processes that it starts stay there, and die with this one.
func (n *namespace) runInside(f func() error) error {
	done := make(chan error)
	n.work <- func() { done <- f() }
	return <-done
}

// network is where two ends meet. Index 0 is the client's, 1 the server's.
type network struct {
	ns   [2]*namespace
	addr [2]netip.Addr
	host [2]netip.Prefix // of TUN devices
}

// networks are made when they are first needed. A TCP or UDP packet on loopback never exceeds 64
// KiB either: what counts is the MTU that the ends see.
var networks = map[string]func() (*network, error){
	"lo/64K":    func() (*network, error) { return newLoopback(65536) },
	"lo/1500":   func() (*network, error) { return newLoopback(1500) },
	"veth/64K":  func() (*network, error) { return newVeth(65535) },
	"veth/1500": func() (*network, error) { return newVeth(1500) },
	"tun/1500":  newRoutedTUN,
}

// newLoopback gives each end an address of its own, so that neither has to sort out the other's
// packets.
func newLoopback(mtu int) (*network, error) {
	ns, err := newNamespace()
	if err != nil {
		return nil, err
	}
	n := &network{ns: [2]*namespace{ns, ns}, addr: [2]netip.Addr{netip.MustParseAddr("127.0.0.2"),
		netip.MustParseAddr("127.0.0.1")}}
	return n, ns.runInside(func() error { return setUpDevice("lo", mtu, netip.Prefix{}) })
}

// newVeth joins two namespaces with a pair of Ethernet devices.
func newVeth(mtu int) (*network, error) {
	n := &network{addr: [2]netip.Addr{netip.MustParseAddr("10.231.0.2"), netip.MustParseAddr("10.231.0.1")}}
	for i := range n.ns {
		ns, err := newNamespace()
		if err != nil {
			return nil, err
		}
		n.ns[i] = ns
	}
	err := n.ns[0].runInside(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = "bench", mtu
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "bench", PeerMTU: uint32(mtu),
			PeerNamespace: netlink.NsFd(n.ns[1].fd)})
	})
	for i, ns := range n.ns {
		if err != nil {
			return nil, err
		}
		err = ns.runInside(func() error { return setUpDevice("bench", mtu, netip.PrefixFrom(n.addr[i], 24)) })
	}
	return n, err
}

// newRoutedTUN lets the host route between TUN devices, which the ends make themselves.
func newRoutedTUN() (*network, error) {
	n, err := newLoopback(65536)
	if err != nil {
		return nil, err
	}
	n.addr = [2]netip.Addr{netip.MustParseAddr("10.231.1.2"), netip.MustParseAddr("10.231.2.2")}
	n.host = [2]netip.Prefix{netip.MustParsePrefix("10.231.1.1/24"), netip.MustParsePrefix("10.231.2.1/24")}
	return n, n.ns[0].runInside(func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0) })
}

// setUpDevice sets a device up, with an address if there is one.
func setUpDevice(name string, mtu int, p netip.Prefix) error {
	dev, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetMTU(dev, mtu); err != nil {
		return err
	}
	if p.IsValid() {
		ip, err := netlink.ParseIPNet(p.String())
		if err != nil {
			return err
		}
		if err := netlink.AddrAdd(dev, &netlink.Addr{IPNet: ip}); err != nil {
			return err
		}
	}
	return netlink.LinkSetUp(dev)
}

// addressEnd returns what one end of s needs to know.
func (n *network) addressEnd(s spec, server bool, seconds float64) *end {
	own := 0
	if server {
		own = 1
	}
	return &end{spec: s, Server: server, Seconds: seconds, Local: n.addr[own], Remote: n.addr[1-own], Host: n.host[own]}
}
