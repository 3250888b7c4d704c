package netconn

import (
	"net"
	"net/netip"
	"sync/atomic"
)

// packetCarrier is a net.PacketConn and one peer as a Carrier.
type packetCarrier struct {
	net.PacketConn
	peer     net.Addr
	peerName string         // as its String has it
	dropped  *atomic.Uint64 // packets from other addresses
}

// Read reads the next packet of the peer.
func (c *packetCarrier) Read(p []byte) (int, error) {
	for {
		n, from, err := c.ReadFrom(p)
		if err != nil || c.isPeer(from) {
			return n, err
		}
		c.dropped.Add(1)
	}
}

// isPeer says whether a packet comes from the peer.
func (c *packetCarrier) isPeer(from net.Addr) bool {
	if a, ok := from.(*net.UDPAddr); ok {
		b, ok := c.peer.(*net.UDPAddr)
		return ok && unmapped(a) == unmapped(b)
	}
	return from != nil && from.String() == c.peerName
}

func unmapped(a *net.UDPAddr) netip.AddrPort {
	ap := a.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// Write sends a packet to the peer.
func (c *packetCarrier) Write(p []byte) (int, error) { return c.WriteTo(p, c.peer) }
