//go:build !rawio_portable

package udp

import (
	"errors"
	"os"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
	"github.com/rddp-go/rddp/rawio/internal/mmsg"
	"github.com/rddp-go/rddp/rawio/internal/route"
	"golang.org/x/sys/unix"
)

// Open opens a UDP link. A taken port gives an error that matches syscall.EADDRINUSE.
func Open(cfg Config) (*Link, error) {
	if err := cfg.validateAndDefault(); err != nil {
		return nil, err
	}
	routes, err := route.Open()
	if err != nil {
		return nil, openError(cfg, err)
	}
	l := &Link{cfg: cfg, routes: routes}
	if err := l.openGroups(); err != nil {
		for _, g := range l.groups {
			g.Close()
		}
		routes.Close()
		return nil, openError(cfg, err)
	}
	return l, nil
}

// openGroups opens the sockets of all shards.
func (l *Link) openGroups() error {
	for len(l.groups) < max(1, l.cfg.Shards) {
		socks, err := l.openFamilies()
		if err != nil {
			return err
		}
		g, err := mmsg.NewGroup(l.cfg.Poll, socks...)
		if err != nil {
			return err
		}
		l.groups = append(l.groups, g)
	}
	if n := len(l.groups); n > 1 {
		for _, s := range l.groups[0].Sockets() {
			if err := spreadFlows(s, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxPortTries is how often to ask the system for a port that is free in both families.
const maxPortTries = 16

// openFamilies opens a socket for each family, with the same port: that of the shards before, if
// any.
func (l *Link) openFamilies() ([]*mmsg.Socket, error) {
	port := l.cfg.Port
	if len(l.groups) > 0 {
		port = int(l.port)
	}
	if a := l.cfg.Local; a.IsValid() {
		s, err := l.openSocket(a.Is6(), port)
		if err != nil {
			return nil, err
		}
		return []*mmsg.Socket{s}, nil
	}
	for try := 1; ; try++ {
		v4, err := l.openSocket(false, port)
		if err != nil {
			return nil, err
		}
		v6, err := l.openSocket(true, int(l.port))
		switch {
		case err == nil:
			return []*mmsg.Socket{v4, v6}, nil
		case errors.Is(err, unix.EAFNOSUPPORT), errors.Is(err, unix.EADDRNOTAVAIL):
			return []*mmsg.Socket{v4}, nil // a host without IPv6
		}
		v4.Close()
		if port != 0 || try == maxPortTries || !errors.Is(err, unix.EADDRINUSE) {
			return nil, err
		}
	}
}

// openSocket opens a bound socket and leaves its port in l.port.
func (l *Link) openSocket(v6 bool, port int) (*mmsg.Socket, error) {
	fd, err := mmsg.OpenSocket(v6, unix.SOCK_DGRAM, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := l.setupSocket(fd, v6, port); err != nil {
		unix.Close(fd)
		return nil, err
	}
	s, err := mmsg.NewSocket(fd, v6, &udpCodec{link: l, v6: v6})
	if err == nil && !l.cfg.NoOffload {
		s.EnableOffload()
	}
	return s, err
}

func (l *Link) setupSocket(fd int, v6 bool, port int) error {
	if err := mmsg.SetOptions(fd, append(socketOptions(v6), markOptions(v6, l.cfg.Mark)...)...); err != nil {
		return err
	}
	// The first shard shares its port only once it has it. So a program that wants the port is
	// refused, as we are where another has it.
	first := len(l.groups) == 0
	if !first {
		if err := mmsg.SetOptions(fd, reusePort); err != nil {
			return err
		}
	}
	if err := unix.Bind(fd, mmsg.SockaddrOf(l.bindAddr(v6, uint16(port)))); err != nil {
		return os.NewSyscallError("bind", err)
	}
	if first && l.cfg.Shards > 1 {
		if err := mmsg.SetOptions(fd, reusePort); err != nil {
			return err
		}
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		l.port = uint16(sa.Port)
	case *unix.SockaddrInet6:
		l.port = uint16(sa.Port)
	}
	return nil
}

// markOptions set what Config.Mark asks for, and what most packets have.
func markOptions(v6 bool, m rawio.Mark) (list []mmsg.Option) {
	level, ttl, class := unix.IPPROTO_IP, unix.IP_TTL, unix.IP_TOS
	if v6 {
		level, ttl, class = unix.IPPROTO_IPV6, unix.IPV6_UNICAST_HOPS, unix.IPV6_TCLASS
	}
	if m.TTL > 0 {
		list = append(list, mmsg.Option{Level: level, Name: ttl, Value: int(m.TTL)})
	}
	return append(list, mmsg.Option{Level: level, Name: class, Value: int(iphdr.DefaultClass(m))})
}

// socketOptions set DF without the kernel's own path MTU in the way (we probe). They ask for ICMP
// errors and for the fields of the IP header. The UDP checksum is on unless SO_NO_CHECK turns it
// off, which nothing here does.
func socketOptions(v6 bool) []mmsg.Option {
	if v6 {
		return []mmsg.Option{
			mmsg.EnableOption(unix.IPPROTO_IPV6, unix.IPV6_V6ONLY),
			{Level: unix.IPPROTO_IPV6, Name: unix.IPV6_MTU_DISCOVER, Value: unix.IPV6_PMTUDISC_PROBE},
			mmsg.EnableOption(unix.IPPROTO_IPV6, unix.IPV6_RECVERR),
			mmsg.EnableOption(unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO),
			mmsg.EnableOption(unix.IPPROTO_IPV6, unix.IPV6_RECVTCLASS),
		}
	}
	return []mmsg.Option{
		{Level: unix.IPPROTO_IP, Name: unix.IP_MTU_DISCOVER, Value: unix.IP_PMTUDISC_PROBE},
		mmsg.EnableOption(unix.IPPROTO_IP, unix.IP_RECVERR),
		mmsg.EnableOption(unix.IPPROTO_IP, unix.IP_PKTINFO),
		mmsg.EnableOption(unix.IPPROTO_IP, unix.IP_RECVTOS),
	}
}
