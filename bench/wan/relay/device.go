package relay

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/rddp-go/rddp/internal/test/netns"
)

// MTU of the road, in octets.
const MTU = 1500

// queueLength is how many packets may wait in a device for the relay. It is more than all windows
// together: what is dropped is dropped by a Way, or the run does not count.
const queueLength = 100000

// Device is a namespace's end of the road: a TUN device.
type Device struct {
	NS *netns.NS
	fd int
}

const deviceName = "road"

// NewDevice makes a namespace to which all addresses of local belong, and from which all of remote
// are reached over the road. Nothing on its way is longer than the MTU: segmentation and coalescing
// are off.
func NewDevice(local, remote netip.Prefix) (*Device, error) {
	ns, err := netns.New()
	if err != nil {
		return nil, err
	}
	d := &Device{NS: ns, fd: -1}
	for name, value := range map[string]string{
		"net.ipv6.conf.all.disable_ipv6": "1", "net.ipv6.conf.default.disable_ipv6": "1",
		"net.ipv4.tcp_no_metrics_save": "1", // connections learn nothing from those before
	} {
		if err := ns.Sysctl(name, value); err != nil {
			d.Close()
			return nil, err
		}
	}
	if err := ns.Do(func() error { return d.openDevice(local, remote) }); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Device) openDevice(local, remote netip.Prefix) (err error) {
	if d.fd, err = unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
		return fmt.Errorf("a TUN device: %w", err)
	}
	req, err := unix.NewIfreq(deviceName)
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(d.fd, unix.TUNSETIFF, req); err != nil {
		return fmt.Errorf("a TUN device: %w", err)
	}
	if err := unix.IoctlSetInt(d.fd, unix.TUNSETOFFLOAD, 0); err != nil {
		return err
	}
	dev, err := netlink.LinkByName(deviceName)
	if err != nil {
		return err
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	own, err := netlink.ParseIPNet(local.String())
	if err != nil {
		return err
	}
	to, err := netlink.ParseIPNet(remote.String())
	if err != nil {
		return err
	}
	for _, do := range []func() error{
		func() error { return netlink.LinkSetMTU(dev, MTU) },
		func() error { return netlink.LinkSetTxQLen(dev, queueLength) },
		func() error { return netlink.LinkSetGSOMaxSegs(dev, 1) },
		func() error { return disableOffload() },
		func() error { return netlink.LinkSetUp(dev) },
		func() error {
			return netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: own, Type: unix.RTN_LOCAL,
				Table: unix.RT_TABLE_LOCAL, Scope: unix.RT_SCOPE_HOST})
		},
		func() error {
			return netlink.RouteAdd(&netlink.Route{LinkIndex: dev.Attrs().Index, Dst: to, Scope: unix.RT_SCOPE_LINK})
		},
	} {
		if err := do(); err != nil {
			return fmt.Errorf("the road's device: %w", err)
		}
	}
	return nil
}

// numDropped is how many packets the device has dropped itself.
func (d *Device) numDropped() (n uint64, err error) {
	err = d.NS.Do(func() error {
		dev, err := netlink.LinkByName(deviceName)
		if err == nil && dev.Attrs().Statistics != nil {
			s := dev.Attrs().Statistics
			n = s.TxDropped + s.RxDropped + s.TxErrors + s.RxErrors
		}
		return err
	})
	return n, err
}

// Close gives device and namespace up.
func (d *Device) Close() error {
	if d.fd >= 0 {
		unix.Close(d.fd)
	}
	return d.NS.Close()
}
