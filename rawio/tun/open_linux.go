package tun

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/rddp-go/rddp/internal/pollpolicy"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/wait"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	defaultMTU      = 1500
	minMTU6         = 1280 // RFC 8200 section 5
	defaultQueueLen = 4096
	maxQueueLen     = 1 << 16
	maxMTU          = 65535
	defaultName     = "rddp%d" // the kernel fills in the number
)

// Open opens, and if need be creates, the device, and brings it up. Without the privilege it fails
// with a *rawio.PermissionError.
func Open(cfg Config) (*Link, error) {
	if err := cfg.validateAndDefault(); err != nil {
		return nil, err
	}
	l := &Link{cfg: cfg, name: cfg.Name, openedAt: time.Now()}
	if err := l.openQueues(); err != nil {
		for _, q := range l.queues {
			q.close()
		}
		return nil, err
	}
	return l, nil
}

// openQueues makes the device with all its queues, and brings it up.
func (l *Link) openQueues() error {
	n := max(1, l.cfg.Shards)
	for len(l.queues) < n {
		fd, name, err := openDevice(l.name, n > 1)
		if err != nil {
			return err
		}
		l.name = name
		q, err := l.newQueue(fd)
		if err != nil {
			return err
		}
		l.queues = append(l.queues, q)
	}
	err := configureDevice(l.name, l.cfg)
	if errors.Is(err, unix.EPERM) {
		return &rawio.PermissionError{Link: "tun", Capability: "CAP_NET_ADMIN", Err: err}
	}
	if err != nil {
		return fmt.Errorf("tun link: device %s: %w", l.name, err)
	}
	return nil
}

// newQueue takes over a descriptor of the device.
func (l *Link) newQueue(fd int) (*queue, error) {
	pollpolicy.MeasureWake()
	q := &queue{link: l, pace: pollpolicy.New(l.cfg.Poll, pollpolicy.Now),
		pool: rawio.NewPool(l.cfg.MTU, max(64, maxIdleOctets/l.cfg.MTU))}
	q.readFunc = q.readPackets
	q.file = os.NewFile(uintptr(fd), "/dev/net/tun") // blocking yet, so that it stays out of the runtime's poller
	err := unix.SetNonblock(fd, true)
	if err == nil {
		q.rc, err = q.file.SyscallConn()
	}
	if err == nil {
		q.waiter, err = wait.NewReader(fd)
	}
	if err != nil {
		q.file.Close()
		return nil, err
	}
	return q, nil
}

// maxIdleOctets bounds the idle receive buffers.
const maxIdleOctets = 4 << 20

// validateAndDefault validates cfg and fills in its defaults.
func (cfg *Config) validateAndDefault() error {
	if cfg.MTU == 0 {
		cfg.MTU = defaultMTU
	}
	if cfg.Queue == 0 {
		cfg.Queue = defaultQueueLen
	}
	switch {
	case cfg.MTU < rawio.MinMTU:
		return &rawio.MTUError{MTU: cfg.MTU}
	case cfg.MTU > maxMTU:
		return fmt.Errorf("tun link: an MTU of %d octets is above the device's limit of %d", cfg.MTU, maxMTU)
	case cfg.Shards < 0 || cfg.Shards > rawio.MaxShards:
		return fmt.Errorf("tun link: %d shards; it is 1 to %d", cfg.Shards, rawio.MaxShards)
	case cfg.Queue < 0 || cfg.Queue > maxQueueLen:
		return fmt.Errorf("tun link: a queue of %d packets; it is 1 to %d", cfg.Queue, maxQueueLen)
	case len(cfg.Addrs) == 0:
		return errors.New("tun link: Config.Addrs is empty; the stack needs an IP address of its own")
	case len(cfg.Name) >= unix.IFNAMSIZ:
		return fmt.Errorf("tun link: the device name %q is longer than %d characters", cfg.Name, unix.IFNAMSIZ-1)
	}
	own := make([]netip.Addr, len(cfg.Addrs))
	for i, a := range cfg.Addrs {
		a = a.Unmap()
		switch {
		case !a.IsGlobalUnicast():
			return fmt.Errorf("tun link: %v cannot be the stack's address; it takes a global or private unicast one", a)
		case a.Is6() && cfg.MTU < minMTU6:
			return fmt.Errorf("tun link: IPv6 needs an MTU of at least %d octets, not %d", minMTU6, cfg.MTU)
		}
		for _, p := range cfg.Host {
			if p.Addr().Unmap() == a {
				return fmt.Errorf("tun link: %v cannot be both the stack's and the host's address", a)
			}
		}
		own[i] = a
	}
	cfg.Addrs = own
	return nil
}

// openDevice opens a TUN device, or a queue of it, and returns its descriptor and name.
func openDevice(name string, several bool) (int, string, error) {
	flags := uint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if several {
		flags |= unix.IFF_MULTI_QUEUE
	}
	if name == "" {
		name = defaultName
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err == nil {
		var req *unix.Ifreq
		if req, err = unix.NewIfreq(name); err == nil {
			req.SetUint16(flags)
			if err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err == nil {
				return fd, req.Name(), nil
			}
		}
		unix.Close(fd)
	}
	return -1, "", openError(name, several, err)
}

// openError is why there is no device.
func openError(name string, several bool, err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return &rawio.PermissionError{Link: "tun", Capability: "CAP_NET_ADMIN", Err: err}
	case errors.Is(err, unix.EINVAL) && several:
		return fmt.Errorf("tun link: the device %s was not made for several queues (multi_queue): %w", name, err)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("tun link: the device %s is in use by another program: %w", name, err)
	}
	return fmt.Errorf("tun link: cannot open %s on /dev/net/tun (is the tun module loaded?): %w", name, err)
}

// configureDevice gives the device its MTU, addresses and routes, and brings it up.
func configureDevice(name string, cfg Config) error {
	nl, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer nl.Close()
	dev, err := nl.LinkByName(name)
	if err != nil {
		return err
	}
	if err := nl.LinkSetMTU(dev, cfg.MTU); err != nil {
		return fmt.Errorf("setting the MTU to %d: %w", cfg.MTU, err)
	}
	if err := nl.LinkSetTxQLen(dev, cfg.Queue); err != nil {
		return fmt.Errorf("setting its queue to %d packets: %w", cfg.Queue, err)
	}
	for _, p := range cfg.Host {
		// Otherwise an IPv6 address would be tentative for a second, and could not answer.
		a := &netlink.Addr{IPNet: toIPNet(p.Addr().Unmap(), p.Bits())}
		if p.Addr().Is6() {
			a.Flags = unix.IFA_F_NODAD
		}
		if err := nl.AddrReplace(dev, a); err != nil {
			return fmt.Errorf("adding the host's address %v: %w", p, err)
		}
	}
	if err := nl.LinkSetUp(dev); err != nil {
		return fmt.Errorf("bringing it up: %w", err)
	}
	for _, p := range cfg.Host {
		if err := waitUntilLocal(nl, p.Addr().AsSlice()); err != nil {
			return err
		}
	}
	for _, p := range cfg.routedPrefixes() {
		r := &netlink.Route{LinkIndex: dev.Attrs().Index, Dst: toIPNet(p.Addr(), p.Bits())}
		if p.Addr().Is4() {
			r.Scope = netlink.SCOPE_LINK
		}
		if err := nl.RouteReplace(r); err != nil {
			return fmt.Errorf("routing %v to it: %w", p, err)
		}
	}
	return nil
}

// waitUntilLocal waits until the kernel takes packets for its own address. For an IPv6 one the
// kernel does the last step later, on a work queue. Until then it would send them back into the
// device.
func waitUntilLocal(nl *netlink.Handle, a net.IP) error {
	for deadline := time.Now().Add(localAddrTimeout); ; time.Sleep(time.Millisecond) {
		routes, err := nl.RouteGet(a)
		if err == nil && len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the kernel has not put the host's address %v to use within %v", a, localAddrTimeout)
		}
	}
}

const localAddrTimeout = 2 * time.Second // in practice it takes a few milliseconds

// routedPrefixes are the prefixes to route to the device, those of Host excepted, which the kernel
// adds.
func (cfg *Config) routedPrefixes() []netip.Prefix {
	var out []netip.Prefix
	for _, p := range cfg.Routes {
		out = append(out, p.Masked())
	}
	for _, a := range cfg.Addrs {
		if !slices.ContainsFunc(cfg.Host, func(p netip.Prefix) bool { return p.Contains(a) }) {
			out = append(out, netip.PrefixFrom(a, a.BitLen()))
		}
	}
	return out
}

func toIPNet(a netip.Addr, bits int) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, a.BitLen())}
}
