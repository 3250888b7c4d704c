package sctp

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// PathStats is a snapshot of one path: an address of the peer and the own address it is reached from.
type PathStats = assoc.PathStats

// LocalAddrError reports an address in Config.LocalAddrs that the link does not have. It matches
// syscall.EADDRNOTAVAIL.
type LocalAddrError struct{ Addr netip.Addr }

func (e *LocalAddrError) Error() string {
	return fmt.Sprintf("sctp: %v in Config.LocalAddrs is not an address of the link; open the link on all addresses, or on this one", e.Addr)
}

// Is makes the error match syscall.EADDRNOTAVAIL.
func (e *LocalAddrError) Is(target error) bool { return target == syscall.EADDRNOTAVAIL }

// checkLocal says whether the link has these addresses. Link-local ones, which links do not list, are
// taken on trust.
func (t *Transport) checkLocal(addrs []netip.Addr) error {
	l, ok := t.link.(rawio.Addresser)
	if !ok || len(addrs) == 0 {
		return nil
	}
	own := l.LocalAddrs()
	for _, a := range addrs {
		a = a.Unmap()
		if !a.IsLinkLocalUnicast() && !slices.ContainsFunc(own, func(ap netip.AddrPort) bool { return ap.Addr().Unmap() == a }) {
			return &LocalAddrError{a}
		}
	}
	return nil
}

// remotes are the addresses that Dial may use: first's, then those of the configuration.
func (c *Config) remotes(first netip.Addr) []netip.AddrPort {
	list := []netip.AddrPort{netip.AddrPortFrom(first, c.EncapPort)}
	for _, a := range c.RemoteAddrs {
		if ap := netip.AddrPortFrom(a, c.EncapPort); !slices.Contains(list, ap) {
			list = append(list, ap)
		}
	}
	return list
}

// Paths returns a snapshot of each path to the peer.
func (c *Conn) Paths() []PathStats {
	a, _ := c.Lock()
	defer c.Unlock()
	list := make([]PathStats, a.NumPaths())
	for i := range list {
		list[i] = a.PathStats(i)
	}
	return list
}

// SetPrimary makes the path to addr the primary path: new data takes it while it is active (RFC 9260
// section 6.4). It fails with assoc.ErrNoPath when addr is not an address of the peer.
func (c *Conn) SetPrimary(addr netip.Addr) error {
	a, _ := c.Lock()
	defer c.Unlock()
	return a.SetPrimary(addr)
}

// SetHeartbeat changes HB.interval of the path to an address of the peer; a negative interval disables
// heartbeats there (RFC 9260 section 8.3). It fails with assoc.ErrNoPath.
func (c *Conn) SetHeartbeat(addr netip.Addr, interval time.Duration) error {
	a, now := c.Lock()
	defer c.Unlock()
	return a.SetHeartbeat(now, addr, interval)
}

// RequestHeartbeat probes the path to an address of the peer now (RFC 9260 section 8.3): its statistics
// show the outcome. It fails with assoc.ErrNoPath or assoc.ErrClosing.
func (c *Conn) RequestHeartbeat(addr netip.Addr) error {
	a, now := c.Lock()
	defer c.Unlock()
	return a.RequestHeartbeat(now, addr)
}
