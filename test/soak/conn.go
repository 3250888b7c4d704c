//go:build linux

package main

import (
	"context"
	"net"
	"net/netip"
	"syscall"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/netconn"
	"golang.org/x/sys/unix"
)

// openConn opens a link over a UDP socket that knows one peer. It is bound but not connected: a
// connected one cannot be opened while its cable is out.
func openConn(local, peer netip.AddrPort) (rawio.Link, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE)
		})
		if err != nil {
			return err
		}
		return failed
	}}
	pc, err := lc.ListenPacket(context.Background(), "udp", local.String())
	if err != nil {
		return nil, err
	}
	cfg := netconn.Config{DontFragment: true, MaxMTU: cableMTU - udpOverhead}
	return netconn.NewPacket(pc, net.UDPAddrFromAddrPort(peer), &cfg)
}

const udpOverhead = 20 + 8 // octets of the IPv4 and UDP headers
