package raw

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/rddp-go/rddp/internal/kernelsctp"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
	"github.com/rddp-go/rddp/rawio/internal/mmsg"
	"github.com/rddp-go/rddp/rawio/internal/route"
	"golang.org/x/sys/unix"
)

// Open opens a raw link. Without the privilege it fails with a *rawio.PermissionError, with a port
// that is taken with rawio.ErrPortInUse.
func Open(cfg Config) (*Link, error) {
	cfg.Local, cfg.Peer = cfg.Local.Unmap(), cfg.Peer.Unmap()
	if cfg.MTU != 0 && cfg.MTU < rawio.MinMTU {
		return nil, &rawio.MTUError{MTU: cfg.MTU}
	}
	if cfg.Local.IsValid() && cfg.Peer.IsValid() && cfg.Local.Is4() != cfg.Peer.Is4() {
		return nil, fmt.Errorf("raw link: local address %v and peer %v are of different families", cfg.Local, cfg.Peer)
	}
	l := &Link{cfg: cfg}
	var err error
	if l.routes, err = route.Open(); err != nil {
		return nil, fmt.Errorf("raw link: %w", err)
	}
	if err := l.openSockets(); err != nil {
		l.routes.Close()
		return nil, err
	}
	for _, p := range cfg.Ports {
		if err := l.BindPort(p); err != nil {
			l.Close()
			return nil, err
		}
	}
	return l, nil
}

func (l *Link) openSockets() error {
	one := l.cfg.Local
	if !one.IsValid() {
		one = l.cfg.Peer
	}
	var socks []*mmsg.Socket
	for _, v6 := range []bool{false, true} {
		if one.IsValid() && one.Is6() != v6 {
			continue
		}
		s, err := l.openSocket(v6)
		if v6 && len(socks) > 0 && errors.Is(err, unix.EAFNOSUPPORT) {
			continue // a host without IPv6
		}
		if err == nil {
			socks = append(socks, s)
			if err = l.sinks.add(v6, l.bindAndConnect); err != nil {
				err = fmt.Errorf("raw link: %w", err)
			}
		}
		if err != nil {
			for _, s := range socks {
				s.Close()
			}
			l.sinks.close()
			return err
		}
	}
	var err error
	if l.group, err = mmsg.NewGroup(l.cfg.Poll, socks...); err != nil {
		l.sinks.close()
		return err
	}
	l.group.OnPark(l.sinks.wakeSinks)
	if !one.IsValid() || one.Is4() {
		if s := l.openShort(); s != nil {
			l.group.AddSideSocket(s, l.isShort)
		}
	}
	return nil
}

func (l *Link) openSocket(v6 bool) (*mmsg.Socket, error) {
	fd, err := mmsg.OpenSocket(v6, unix.SOCK_RAW, iphdr.ProtoSCTP)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		return nil, &rawio.PermissionError{Link: "raw", Capability: "CAP_NET_RAW", Err: err}
	}
	if err != nil {
		return nil, fmt.Errorf("raw link: %w", os.NewSyscallError("socket", err))
	}
	if err := l.setupSocket(fd, v6); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("raw link: %w", err)
	}
	return mmsg.NewSocket(fd, v6, &headerCodec{link: l, v6: v6})
}

// setupSocket filters first: the socket receives from the moment it exists.
func (l *Link) setupSocket(fd int, v6 bool) error {
	prog, err := l.ports.buildFilter(v6, l.cfg.NoPortFilter)
	if err != nil {
		return err
	}
	if err := attachFilter(fd, prog); err != nil {
		return err
	}
	drainSocket(fd) // what came before the filter
	if err := mmsg.SetOptions(fd, socketOptions(v6)...); err != nil {
		return err
	}
	return l.bindAndConnect(fd)
}

// drainSocket takes what a socket has received.
func drainSocket(fd int) {
	for {
		if _, _, err := unix.Recvfrom(fd, nil, unix.MSG_DONTWAIT); err != nil && !errors.Is(err, unix.EINTR) {
			return // EAGAIN: nothing is left
		}
	}
}

// bindAndConnect binds and connects a socket as configured.
func (l *Link) bindAndConnect(fd int) error {
	if l.cfg.Local.IsValid() {
		if err := unix.Bind(fd, sockaddrOf(l.cfg.Local)); err != nil {
			return fmt.Errorf("bind to %v: %w", l.cfg.Local, err)
		}
	}
	if l.cfg.Peer.IsValid() {
		if err := unix.Connect(fd, sockaddrOf(l.cfg.Peer)); err != nil {
			return fmt.Errorf("connect to %v: %w", l.cfg.Peer, err)
		}
	}
	return nil
}

// socketOptions make the header ours and ask for ICMP errors and, for IPv6, for the other header
// fields. They keep the kernel from refusing packets longer than a path MTU that it learned by
// itself, because we probe.
func socketOptions(v6 bool) []mmsg.Option {
	if v6 {
		return []mmsg.Option{
			mmsg.EnableOption(unix.IPPROTO_IPV6, unix.IPV6_HDRINCL),
			{Level: unix.IPPROTO_IPV6, Name: unix.IPV6_MTU_DISCOVER, Value: unix.IPV6_PMTUDISC_PROBE},
			mmsg.EnableOption(unix.IPPROTO_IPV6, unix.IPV6_RECVERR),
			mmsg.EnableOption(unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO),
			mmsg.EnableOption(unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS),
		}
	}
	return []mmsg.Option{
		mmsg.EnableOption(unix.IPPROTO_IP, unix.IP_HDRINCL),
		{Level: unix.IPPROTO_IP, Name: unix.IP_MTU_DISCOVER, Value: unix.IP_PMTUDISC_PROBE},
		mmsg.EnableOption(unix.IPPROTO_IP, unix.IP_RECVERR),
	}
}

func sockaddrOf(a netip.Addr) unix.Sockaddr { return mmsg.SockaddrOf(netip.AddrPortFrom(a, 0)) }

// KernelSCTP reports whether this host's kernel has its own SCTP loaded. Such a kernel also gets
// every SCTP packet, knows nothing of our associations, and answers our peers with ABORT. Do not
// use the raw link then. Unload the module ("rmmod sctp"), or keep it from answering by a rule of
// nftables (docs/migrating.md). Or use the tun link, whose addresses the kernel does not own, or
// the udp link.
func KernelSCTP() bool { return kernelsctp.IsLoaded() }
