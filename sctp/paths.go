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

// PathStats is a snapshot of one path: an address of the peer and the own address that reaches it.
//
//	type PathStats struct {
//		Local, Remote netip.AddrPort
//		State         PathState
//		Primary       bool
//		// active, but recently silent while another path answered: new data avoids it
//		Suspected bool
//		// largest IP packet, octets; over a link without IP, as if it had IPv4 or IPv6
//		MTU               int
//		MaxPacket         int           // largest SCTP packet, octets
//		SRTT, RTTVar, RTO time.Duration // SRTT 0 before the first measurement
//		Cwnd, Ssthresh    int           // octets
//		Flight            int           // octets outstanding
//		Errors            int           // consecutive errors
//		Controller        string        // of congestion: the name of its type
//		DataIn            uint64        // packets with DATA that came from there
//		Heartbeat         time.Duration // HB.interval, negative without HEARTBEATs
//		DSCP              uint8         // see Config
//		FlowLabel         uint32        // see Config
//	}
//
//	func (s PathStats) String() string
type PathStats = assoc.PathStats

// LocalAddrError reports an address in Config.LocalAddrs that the link does not have. It matches
// syscall.EADDRNOTAVAIL.
type LocalAddrError struct{ Addr netip.Addr }

func (e *LocalAddrError) Error() string {
	return fmt.Sprintf("sctp: %v in Config.LocalAddrs is not an address of the link; open the link on all "+
		"addresses, or on this one", e.Addr)
}

// Is makes the error match syscall.EADDRNOTAVAIL.
func (e *LocalAddrError) Is(target error) bool { return target == syscall.EADDRNOTAVAIL }

// checkLocalAddrs says whether the link has these addresses. Link-local ones, which links do not
// list, are taken on trust.
func (t *Transport) checkLocalAddrs(addrs []netip.Addr) error {
	l, ok := t.link.(rawio.Addresser)
	if !ok || len(addrs) == 0 {
		return nil
	}
	has := func(a netip.Addr) bool {
		return slices.ContainsFunc(l.LocalAddrs(), func(ap netip.AddrPort) bool { return ap.Addr().Unmap() == a })
	}
	for _, a := range addrs {
		a = a.Unmap()
		// Of the addresses of the loopback network a link lists one.
		if a.IsLinkLocalUnicast() || has(a) || a.Is4() && a.IsLoopback() &&
			has(netip.AddrFrom4([4]byte{127, 0, 0, 1})) {
			continue
		}
		return &LocalAddrError{a}
	}
	return nil
}

// updateUsableAddrs takes what own addresses packets can leave from.
func (t *Transport) updateUsableAddrs(usable []netip.Addr) {
	var follow []netip.Addr
	l, ok := t.link.(rawio.Addresser)
	if ok {
		own := l.LocalAddrs() // fewer where the link is bound to one, or to a family
		follow = slices.DeleteFunc(slices.Clone(usable), func(a netip.Addr) bool {
			return !slices.ContainsFunc(own, func(o netip.AddrPort) bool { return o.Addr().Unmap() == a })
		})
	}
	for _, c := range t.liveConns() {
		a, now := c.lock()
		a.UsableFrom(now, usable)
		if ok {
			a.FollowAddrs(now, follow)
		}
		c.unlock()
	}
}

// checkFollow says whether own addresses can follow the interfaces, if they are to.
func (t *Transport) checkFollow(cfg *Config) error {
	_, hears := t.link.(rawio.Watcher)
	_, knows := t.link.(rawio.Addresser)
	if cfg.FollowInterfaces && (!hears || !knows) {
		return &ConfigError{Field: "FollowInterfaces", Range: "false over a link that does not hear of changes"}
	}
	return nil
}

// bindAddrs are the own addresses at which a port is bound, none for all.
func (c *Config) bindAddrs() []netip.Addr {
	if at := c.boundAt(); at != nil {
		return *at
	}
	return nil
}

// boundAt is where bindAddrs lie, nil for all.
func (c *Config) boundAt() *[]netip.Addr {
	if c.FollowInterfaces {
		return nil
	}
	return &c.LocalAddrs
}

// remoteAddrs are the addresses that Dial may use: first's, then those of the configuration.
func (t *Transport) remoteAddrs(c *Config, first netip.Addr) []netip.AddrPort {
	port := t.firstEncapPort(c)
	list := []netip.AddrPort{netip.AddrPortFrom(first, port)}
	for _, a := range c.RemoteAddrs {
		if ap := netip.AddrPortFrom(a, port); !slices.Contains(list, ap) {
			list = append(list, ap)
		}
	}
	return list
}

// tunnelingPort is the UDP port assigned to encapsulation (RFC 6951 section 7).
const tunnelingPort = 9899

// firstEncapPort is the UDP port that the first packets go to, and 0 on a link without UDP, which
// its own addresses show. From the port the association learns how much is in front of its packets.
// If the port went away with the first answer, packets would become longer than the link takes.
func (t *Transport) firstEncapPort(c *Config) uint16 {
	l, ok := t.link.(rawio.Addresser)
	if !ok {
		return c.EncapPort
	}
	own := l.LocalAddrs()
	switch {
	case len(own) == 0:
	case own[0].Port() == 0:
		return 0
	case c.EncapPort == 0:
		return tunnelingPort
	}
	return c.EncapPort
}

// Paths returns a snapshot of each path to the peer.
func (c *Conn) Paths() []PathStats {
	a, _ := c.lock()
	defer c.unlock()
	list := make([]PathStats, a.NumPaths())
	for i := range list {
		list[i] = a.PathStats(i)
	}
	return list
}

// Reconfigure changes how the association behaves from now on. change gets the options that hold
// now, is called at once, and must not call methods of c. A *ConfigError about what it makes of
// them, or ErrNoMarks, leaves everything as it was. The following take effect, on every path.
// Timers and limits: RTOInitial, RTOMin and RTOMax, AssocMaxRetrans, PathMaxRetrans,
// MaxInitRetrans, MaxInitRTO, AutoClose, SackDelay and LoneSackDelay, HeartbeatInterval and
// HBMaxBurst. Failover: PotentiallyFailedMaxRetrans, HidePotentiallyFailed and
// PrimarySwitchoverMaxRetrans. Buffers and messages: RecvBuffer, SendBuffer, PartialDelivery,
// MaxBurst, NoDelay, DisableFragments, MaxSegment. Packets: MTU, DSCP and FlowLabel, and
// DisablePMTUD, which leaves a path the MTU that it has. A window that the peer was promised is
// kept open: a smaller RecvBuffer comes about as it is used up. What else change does is ignored:
// the peer already knows it, or it cannot change. SetPrimary, SetHeartbeat, SetDSCP and
// SetFlowLabel are for one path.
func (c *Conn) Reconfigure(change func(*Config)) error {
	a, now := c.lock()
	defer c.unlock()
	var cfg Config
	err := a.Reconfigure(now, func(core *assoc.Config) {
		copyOptions(&cfg, core)
		change(&cfg)
		copyOptions(core, &cfg)
	})
	if buffer := cfg.firstSendBuffer(); err == nil && buffer != c.send.buffer.baseOctets {
		c.send.buffer.baseOctets = buffer
		c.resizeSendBuffer()
		c.afterUnlock.tasks |= taskWakeWriters
	}
	return err
}

// SetPrimary makes the path to addr the primary path: new data takes it while it is active (RFC
// 9260 section 6.4). It fails with ErrNoPath when addr is not an address of the peer.
func (c *Conn) SetPrimary(addr netip.Addr) error {
	a, _ := c.lock()
	defer c.unlock()
	return a.SetPrimary(addr)
}

// SetHeartbeat changes HB.interval of the path to an address of the peer. A negative interval
// disables heartbeats there (RFC 9260 section 8.3). It fails with ErrNoPath.
func (c *Conn) SetHeartbeat(addr netip.Addr, interval time.Duration) error {
	a, now := c.lock()
	defer c.unlock()
	return a.SetHeartbeat(now, addr, interval)
}

// SetDSCP changes Config.DSCP for the path to an address of the peer, SetFlowLabel
// Config.FlowLabel. They fail with ErrNoPath, or ErrNoMarks where the link cannot set them.
func (c *Conn) SetDSCP(addr netip.Addr, dscp uint8) error {
	a, _ := c.lock()
	defer c.unlock()
	return a.SetDSCP(addr, dscp)
}

// SetFlowLabel is described at SetDSCP.
func (c *Conn) SetFlowLabel(addr netip.Addr, label uint32) error {
	a, _ := c.lock()
	defer c.unlock()
	return a.SetFlowLabel(addr, label)
}

// RequestHeartbeat probes the path to an address of the peer now (RFC 9260 section 8.3). Its
// statistics show the outcome. It fails with ErrNoPath or ErrClosing.
func (c *Conn) RequestHeartbeat(addr netip.Addr) error {
	a, now := c.lock()
	defer c.unlock()
	return a.RequestHeartbeat(now, addr)
}
