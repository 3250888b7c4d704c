package cli

import (
	"net"
	"net/netip"
	"strconv"

	"github.com/rddp-go/rddp/rdma"
)

// kindTCP is the --link for which there is no link: QPs go over TCP, by the system's sockets.
const kindTCP = "tcp"

// isTCP reports whether QPs go over TCP.
func (f *LinkFlags) isTCP() bool { return f.Kind == kindTCP && f.Opener == nil }

// checkTCP refuses flags of packets and associations, which TCP has nothing to do with.
func (f *LinkFlags) checkTCP(server bool) error {
	for _, row := range []struct {
		flag  string
		given bool
	}{
		{"udp-port", f.UDPPort != 0}, {"encap-port", f.EncapPort != 0}, {"tun-name", f.TunName != ""},
		{"tun-host", f.TunHost != ""}, {"mtu", f.MTU != 0}, {"pcap", f.Pcap != ""}, {"poll", f.Poll != 0},
		{"shards", f.Shards > 1}, {"trace", f.Trace.fileName != ""}, {"cc", f.controller.name != ""},
		{"restart-keys", f.Restart.folder != ""}, {"local-port", f.LocalPort != 0},
	} {
		if row.given {
			return Usagef("--%s goes with SCTP: with --link tcp the system sees to packets", row.flag)
		}
	}
	switch list, err := f.localAddrs(); {
	case err != nil:
		return err
	case f.Mark.TTL != 0 || f.Mark.Class != 0 || f.NoSearch:
		return Usagef("marks of IP headers go with SCTP: with --link tcp the system sees to packets")
	case len(list) > 0 && !server:
		return Usagef("with --link tcp, --local is where a server listens: a client leaves by the system's routes")
	case len(list) > 1:
		return Usagef("--local: several addresses are paths of SCTP, and TCP has one")
	}
	return nil
}

// Listen takes requests on a port of the device: that of the link, or of TCP at the address of
// --local.
func (f *LinkFlags) Listen(dev *rdma.Device, port uint16) (*rdma.Listener, error) {
	if !f.isTCP() {
		return dev.Listen(port)
	}
	local, err := f.bindAddr()
	if err != nil {
		return nil, err
	}
	network, host := "tcp", ""
	switch {
	case f.V4:
		network = "tcp4"
	case f.V6:
		network = "tcp6"
	}
	if local.IsValid() && !local.IsUnspecified() {
		host = local.String()
	}
	return dev.ListenOn(network, net.JoinHostPort(host, strconv.Itoa(int(port))))
}

// Listen takes requests on a port of the server, at the address that the client asks.
func (d *Devices) Listen(port uint16) (*rdma.Listener, error) {
	if d.Server.Transport() != nil {
		return d.Server.Listen(port)
	}
	return d.Server.ListenOn("tcp", netip.AddrPortFrom(d.Addr, port).String())
}

// Protocol is what a port is one of, for people.
func (f *LinkFlags) Protocol() string {
	if f.isTCP() {
		return "TCP"
	}
	return "SCTP"
}
