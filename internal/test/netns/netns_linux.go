package netns

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// NS is a network namespace with its loopback device up.
type NS struct{ fd int }

// New returns a fresh namespace. It needs CAP_SYS_ADMIN and CAP_NET_ADMIN.
func New() (*NS, error) {
	n := &NS{fd: -1}
	err := onThread(func() (err error) {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("a network namespace needs root: %w", err)
		}
		n.fd, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	// Addresses need no second of duplicate address detection here.
	err = n.Sysctl("net.ipv6.conf.default.accept_dad", "0")
	if err == nil {
		err = n.Do(func() error {
			lo, err := netlink.LinkByName("lo")
			if err != nil {
				return err
			}
			return netlink.LinkSetUp(lo)
		})
	}
	if err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

// Close gives the namespace up. It lives on while a process, a socket or a device uses it.
func (n *NS) Close() error { return unix.Close(n.fd) }

// Do runs f in the namespace, on a thread of its own. Sockets and devices that f opens, and
// processes that it starts, stay in the namespace afterwards.
func (n *NS) Do(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(n.fd, unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
}

// onThread runs f on a thread that ends with it, since its namespace is not the program's. Where f
// ends its goroutine instead of returning, as testing.TB.FailNow does, the caller's ends too:
// nobody else would tell it.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer close(done)
		done <- f()
	}()
	err, ok := <-done
	if !ok {
		runtime.Goexit()
	}
	return err
}

// Sysctl sets a variable of the namespace, named as sysctl(8) does.
func (n *NS) Sysctl(name, value string) error {
	file := filepath.Join("/proc/sys", strings.ReplaceAll(name, ".", "/"))
	return n.Do(func() error { return os.WriteFile(file, []byte(value), 0) })
}

// Veth joins two namespaces with a pair of Ethernet devices of the given MTU, each called name.
func Veth(a, b *NS, name string, mtu int, addrA, addrB netip.Prefix) error {
	err := a.Do(func() error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name, attrs.MTU = name, mtu
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: name, PeerMTU: uint32(mtu),
			PeerNamespace: netlink.NsFd(b.fd)})
	})
	if err == nil {
		err = a.Addr(name, addrA)
	}
	if err == nil {
		err = b.Addr(name, addrB)
	}
	return err
}

// Addr gives a device an address and sets it up.
func (n *NS) Addr(device string, p netip.Prefix) error {
	return n.Do(func() error {
		dev, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		ip, err := netlink.ParseIPNet(p.String())
		if err != nil {
			return err
		}
		a := &netlink.Addr{IPNet: ip}
		if p.Addr().Is6() {
			a.Flags = unix.IFA_F_NODAD
		}
		if err := netlink.AddrAdd(dev, a); err != nil {
			return fmt.Errorf("adding %v to %s: %w", p, device, err)
		}
		return netlink.LinkSetUp(dev)
	})
}

// Route sends dst through via.
func (n *NS) Route(dst netip.Prefix, via netip.Addr) error {
	return n.Do(func() error {
		ip, err := netlink.ParseIPNet(dst.Masked().String())
		if err != nil {
			return err
		}
		return netlink.RouteAdd(&netlink.Route{Dst: ip, Gw: via.AsSlice()})
	})
}
