package cli

import (
	"log/slog"
	"net/netip"

	"github.com/rddp-go/rddp/internal/kernelsctp"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rdma"
)

// DeviceWatcher hears of each device that a tool opens, under the name of its end.
type DeviceWatcher interface {
	Device(name string, d *rdma.Device, l rawio.Link)
}

// Device opens the link of one end and a device over it, or for TCP a device without a link. It
// passes the device to w. cfg and w may be nil.
func (f *LinkFlags) Device(server bool, cfg *rdma.Config, w DeviceWatcher) (*rdma.Device, error) {
	name := "client"
	if server {
		name = "server"
	}
	if f.isTCP() {
		if err := f.checkTCP(server); err != nil {
			return nil, err
		}
		return f.newDevice(nil, 0, cfg, w, name)
	}
	if err := f.checkRestart(server); err != nil {
		return nil, err
	}
	link, err := f.Open(server)
	if err != nil {
		return nil, err
	}
	if server { // it answers from where it was called
		return f.newDevice(link, 0, cfg, w, name)
	}
	return f.newDevice(link, f.EncapPort, cfg, w, name)
}

// newDevice makes a device over link, or closes link. nil is none, for TCP.
func (f *LinkFlags) newDevice(link rawio.Link, encap uint16, cfg *rdma.Config, w DeviceWatcher,
	name string) (*rdma.Device, error) {
	var c rdma.Config
	if cfg != nil {
		c = *cfg
	}
	c.SCTP.EncapPort, c.SCTP.DisablePMTUD, c.SCTP.NewController = encap, f.NoSearch, f.controller.factory
	c.TCP.NoCRC = f.NoCRC
	if c.TLS = f.Encryption.Config(f.dialled); c.TLS != nil {
		c.Transport.Logger = slog.New(refusalLog{&f.Encryption})
	}
	if addrs, _ := f.localAddrs(); len(addrs) > 1 {
		c.SCTP.LocalAddrs = addrs
	}
	c.SCTP.LocalPort = f.LocalPort // which a listener does not look at
	if t := f.Trace.Tracer(name); t != nil {
		c.Transport.Tracer = t
	}
	var d *rdma.Device
	err := f.Restart.applyTo(&c)
	if err == nil {
		d, err = rdma.NewDevice(link, &c)
	}
	if err != nil {
		if link != nil {
			link.Close()
		}
		return nil, err
	}
	if w != nil {
		w.Device(name, d, link)
	}
	return d, nil
}

// Devices are both ends in one process.
type Devices struct {
	Server, Client *rdma.Device
	Addr           netip.Addr // the server's
	Description    string     // which link it is, for people
}

// Devices opens both ends of a link and a device over each, and passes the devices to w. cfg and w
// may be nil.
func (f *LinkFlags) Devices(cfg *rdma.Config, w DeviceWatcher) (*Devices, error) {
	self := &SelfLinks{Addr: loopback, Description: "TCP on loopback"}
	var err error
	if f.isTCP() {
		err = f.checkTCP(false)
	} else if err = f.checkRestart(false); err == nil {
		self, err = f.OpenSelf()
	}
	if err != nil {
		return nil, err
	}
	d := &Devices{Addr: self.Addr, Description: self.Description}
	if d.Server, err = f.newDevice(self.Server, 0, cfg, w, "server"); err != nil {
		if self.Client != nil {
			self.Client.Close()
		}
		return nil, err
	}
	if d.Client, err = f.newDevice(self.Client, self.EncapPort, cfg, w, "client"); err != nil {
		d.Server.Close()
		return nil, err
	}
	return d, nil
}

// Close closes both.
func (d *Devices) Close() {
	d.Client.Close()
	d.Server.Close()
}

// Name is the kind of link, for people.
func (f *LinkFlags) Name() string {
	if f.Kind == "" {
		return "raw"
	}
	return f.Kind
}

// Warning returns what keeps a server from working here, or nothing.
func (f *LinkFlags) Warning() string {
	if f.Name() == "raw" && raw.KernelSCTP() {
		return kernelsctp.Advice
	}
	return ""
}
