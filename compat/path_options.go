package compat

import (
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/sctp"
)

// Flags of SCTP_PEER_ADDR_PARAMS.
const (
	sppHeartbeat = 1 << iota
	sppNoHeartbeat
	sppDemand
	sppPMTUD
	sppNoPMTUD
	sppSackDelay
	sppNoSackDelay
	sppHeartbeatNow
	sppFlowLabel
	sppDSCP
)

// connPaths returns the paths of the association, or EINVAL without one.
func (s *Socket) connPaths() (*sctp.Conn, []sctp.PathStats, error) {
	c, err := s.waitConn(syscall.EINVAL)
	if err != nil {
		return nil, nil, err
	}
	return c, c.Paths(), nil
}

func getPrimary(s *Socket, _ []byte, f *structWriter) error {
	c, _, err := s.connPaths()
	if err != nil {
		return err
	}
	f.appendUint32(int(s.assocID))
	*f = appendSockaddr(*f, s.presentedAddr(c.RemoteAddr().(sctp.Addr).AddrPort))
	f.padTo(4 + sockaddrStorageLen)
	return nil
}

func setPrimary(s *Socket, b []byte) error {
	a, _, err := nextSockaddr(b[4:])
	if err != nil {
		return err
	}
	if s.conn == nil {
		return syscall.EINVAL
	}
	return s.conn.SetPrimary(a.Addr())
}

func getStatus(s *Socket, _ []byte, f *structWriter) error {
	c, paths, err := s.connPaths()
	if err != nil {
		return err
	}
	if c.Err() != nil {
		return syscall.EINVAL
	}
	st := c.Stats()
	f.appendUint32(int(s.assocID))
	f.appendUint32(statusStates[st.State])
	f.appendUint32(st.PeerWindow)
	f.appendUint16(st.Unacked)
	f.appendUint16(st.Buffered)
	f.appendUint16(st.InStreams)
	f.appendUint16(st.OutStreams)
	a, _ := c.Upper().Lock()
	f.appendUint32(a.MaxPayload())
	c.Upper().Unlock()
	s.appendAddrInfo(c, &paths[st.Primary], f)
	return nil
}

// statusStates are the states of RFC 6458 section 8.2.1, as both packages name them. Linux's values
// are lower by one.
var statusStates = map[sctp.State]int{
	sctp.Closed: 0, sctp.CookieWait: 3, sctp.CookieEchoed: 4, sctp.Established: 5, sctp.ShutdownPending: 6,
	sctp.ShutdownSent:     7,
	sctp.ShutdownReceived: 8, sctp.ShutdownAckSent: 9,
}

func (s *Socket) appendAddrInfo(c *sctp.Conn, p *sctp.PathStats, f *structWriter) {
	const unconfirmed, active, inactive, failed = 3, 2, 0, 1 // on Linux
	f.appendUint32(int(s.assocID))
	at := len(*f)
	*f = appendSockaddr(*f, s.presentedAddr(netip.AddrPortFrom(p.Remote.Addr(), c.RemoteAddr().(sctp.Addr).Port())))
	f.padTo(at + sockaddrStorageLen)
	f.appendUint32(map[sctp.PathState]int{sctp.PathUnconfirmed: unconfirmed, sctp.PathActive: active,
		sctp.PathPotentiallyFailed: failed, sctp.PathInactive: inactive}[p.State])
	f.appendUint32(p.Cwnd)
	f.appendMillis(p.SRTT)
	f.appendMillis(p.RTO)
	f.appendUint32(p.MTU)
}

// pathTo returns the path that an argument names.
func pathTo(paths []sctp.PathStats, sockaddr []byte) (*sctp.PathStats, error) {
	a, _, _ := nextSockaddr(sockaddr) // none on an error: there is no path to it
	i := slices.IndexFunc(paths, func(p sctp.PathStats) bool { return p.Remote.Addr() == a.Addr() })
	if i < 0 {
		return nil, syscall.EINVAL
	}
	return &paths[i], nil
}

func getPeerAddrInfo(s *Socket, arg []byte, f *structWriter) error {
	c, paths, err := s.connPaths()
	if err != nil {
		return err
	}
	p, err := pathTo(paths, arg[4:])
	if err != nil {
		return err
	}
	s.appendAddrInfo(c, p, f)
	return nil
}

// pathOrAll returns the path that a sctp_paddrparams names. It returns nil for all paths: then the
// address is missing or unspecified. It fails with EINVAL. Called with mu held.
func (s *Socket) pathOrAll(sockaddr []byte) (*sctp.PathStats, error) {
	if nativeOrder.Uint16(sockaddr) == 0 {
		return nil, nil
	}
	switch a, _, err := nextSockaddr(sockaddr); {
	case err != nil:
		return nil, err
	case a.Addr().IsUnspecified():
		return nil, nil
	case s.conn == nil:
		return nil, syscall.EINVAL
	}
	return pathTo(s.conn.Paths(), sockaddr)
}

func getPeerAddrParams(s *Socket, arg []byte, f *structWriter) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	cfg := &s.opts.cfg
	p, err := s.pathOrAll(arg[4:])
	if err != nil {
		return err
	}
	hb, mtu, label, dscp := cfg.HeartbeatInterval, cfg.MTU, cfg.FlowLabel, cfg.DSCP
	if p != nil {
		hb, mtu, label, dscp = p.Heartbeat, p.MTU, p.FlowLabel, p.DSCP
	}
	flags := pickInt(cfg.DisablePMTUD, sppNoPMTUD, sppPMTUD) | pickInt(s.opts.sackEvery == 1, sppNoSackDelay,
		sppSackDelay) | pickInt(hb < 0, sppNoHeartbeat, sppHeartbeat) |
		pickInt(label != 0, sppFlowLabel, 0) | pickInt(dscp != 0, sppDSCP, 0)
	*f = append(*f, arg[:4+sockaddrStorageLen]...)
	f.appendMillis(max(hb, 0))
	f.appendUint16(cfg.PathMaxRetrans)
	f.appendUint32(mtu)
	f.appendMillis(cfg.SackDelay)
	f.appendUint32(flags)
	f.appendUint32(int(label))
	*f = append(*f, dscp<<2)
	f.padTo(156)
	return nil
}

// pathDefaults are the parts of SCTP_PEER_ADDR_PARAMS that are the same for all paths.
type pathDefaults struct {
	maxRetrans, mtu, sackEvery int
	noPMTUD                    bool
	sackDelay                  time.Duration
}

func (o *socketOptions) pathDefaults() pathDefaults {
	return pathDefaults{o.cfg.PathMaxRetrans, o.cfg.MTU, o.sackEvery, o.cfg.DisablePMTUD, o.cfg.SackDelay}
}

func (o *socketOptions) setPathDefaults(a pathDefaults) {
	o.cfg.PathMaxRetrans, o.cfg.MTU, o.sackEvery, o.cfg.DisablePMTUD, o.cfg.SackDelay = a.maxRetrans, a.mtu,
		a.sackEvery, a.noPMTUD, a.sackDelay
}

func setPeerAddrParams(s *Socket, b []byte) error {
	addr, rest := b[4:4+sockaddrStorageLen], b[4+sockaddrStorageLen:]
	hb, retrans, mtu := parseMillis(rest), int(nativeOrder.Uint16(rest[4:])), int(nativeOrder.Uint32(rest[6:]))
	sack, flags := parseMillis(rest[10:]), nativeOrder.Uint32(rest[14:])
	has := func(f uint32) bool { return flags&f == f }
	if has(sppHeartbeat|sppNoHeartbeat) || has(sppPMTUD|sppNoPMTUD) || has(sppSackDelay|sppNoSackDelay) ||
		sack > 500*time.Millisecond {
		return syscall.EINVAL
	}
	if has(sppDemand) && s.conn == nil {
		return syscall.EINVAL
	}
	if flags&(sppFlowLabel|sppDSCP) != 0 && len(b) < optionTable[optPeerAddrParams].size { // not in the older structure
		return syscall.EINVAL
	}
	p, err := s.pathOrAll(addr)
	if err != nil {
		return err
	}
	all := s.opts.pathDefaults()
	if retrans != 0 {
		all.maxRetrans = retrans
	}
	switch {
	case has(sppNoPMTUD):
		all.noPMTUD = true
		if mtu != 0 {
			all.mtu = mtu
		}
	case has(sppPMTUD):
		all.noPMTUD, all.mtu = false, 0
	}
	switch {
	case has(sppNoSackDelay):
		all.sackDelay, all.sackEvery = 1, 1
	case has(sppSackDelay) && sack != 0:
		all.sackDelay, all.sackEvery = sack, 2
	}
	interval := time.Duration(0)
	switch {
	case has(sppNoHeartbeat):
		interval = -1
	case has(sppHeartbeat | sppHeartbeatNow):
		interval = 1
	case has(sppHeartbeat):
		interval = hb
	}
	if p != nil && all != s.opts.pathDefaults() && len(s.conn.Paths()) > 1 {
		return syscall.EOPNOTSUPP
	}
	s.opts.setPathDefaults(all)
	marks := rest[18:]
	if p != nil {
		return s.setPath(p.Remote.Addr(), interval, flags, marks)
	}
	cfg := &s.opts.cfg
	if has(sppFlowLabel) {
		cfg.FlowLabel = flowLabel(marks)
	}
	if has(sppDSCP) {
		cfg.DSCP = marks[4] >> 2
	}
	if interval != 0 {
		cfg.HeartbeatInterval = interval
	}
	if has(sppDemand) {
		return s.conn.RequestHeartbeat(s.conn.RemoteAddr().(sctp.Addr).Addr())
	}
	return nil
}

// flowLabel returns the flow label at the start of the marks of a sctp_paddrparams. The DSCP
// follows it, as the upper six bits of an octet.
func flowLabel(marks []byte) uint32 { return nativeOrder.Uint32(marks) & 0xfffff }

// setPath applies SCTP_PEER_ADDR_PARAMS to the path to one address.
func (s *Socket) setPath(to netip.Addr, interval time.Duration, flags uint32, marks []byte) (err error) {
	if interval != 0 {
		err = s.conn.SetHeartbeat(to, interval)
	}
	if err == nil && flags&sppFlowLabel != 0 {
		err = s.conn.SetFlowLabel(to, flowLabel(marks))
	}
	if err == nil && flags&sppDSCP != 0 {
		err = s.conn.SetDSCP(to, marks[4]>>2)
	}
	if err == nil && flags&sppDemand != 0 {
		err = s.conn.RequestHeartbeat(to)
	}
	return err
}
