//go:build !rawio_portable

package udp

import (
	"errors"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/mmsg"
	"golang.org/x/sys/unix"
)

// WriteBatch implements rawio.Link. Besides rawio.ErrTooLong and rawio.ErrFull, the error about a
// packet may be the system's, such as syscall.ENETUNREACH.
func (l *Link) WriteBatch(pkts []rawio.Packet) (int, error) {
	for i := range pkts {
		if pkts[i].Fragment == 0 {
			continue
		}
		if n, err := l.write(pkts[:i]); err != nil {
			return n, err
		}
		if err := l.writeFragments(pkts[i : i+1]); err != nil {
			return i, err
		}
		n, err := l.WriteBatch(pkts[i+1:])
		return i + 1 + n, err
	}
	return l.write(pkts)
}

// write sends packets whole.
func (l *Link) write(pkts []rawio.Packet) (int, error) {
	l.df.RLock()
	defer l.df.RUnlock()
	n, err := l.groups[0].WriteBatch(pkts)
	if err == rawio.ErrTooLong {
		l.routes.Distrust(pkts[n].Remote.Addr())
	}
	return n, err
}

// writeFragments lets the kernel fragment one packet, which is a property of the socket: so nothing else
// is sent meanwhile. Of IPv4 the kernel makes fragments as large as the device takes, without DF, for
// routers to cut again.
func (l *Link) writeFragments(p []rawio.Packet) error {
	s := l.groups[0].Socket(p[0].Remote.Addr())
	if s == nil {
		_, err := l.groups[0].WriteBatch(p) // says why
		return err
	}
	l.df.Lock()
	defer l.df.Unlock()
	err := s.Control(func(fd int) error { return mmsg.Set(fd, fragmenting(s.V6(), p[0].Fragment)...) })
	if err == nil {
		_, err = l.groups[0].WriteBatch(p)
	}
	return errors.Join(err, s.Control(func(fd int) error { return mmsg.Set(fd, whole(s.V6())...) }))
}

// leastIPv6 is the smallest MTU that the kernel cuts to in IPv6 (RFC 8200 section 5).
const leastIPv6 = 1280

func fragmenting(v6 bool, mtu int) []mmsg.Option {
	if v6 {
		return []mmsg.Option{
			{Level: unix.IPPROTO_IPV6, Name: unix.IPV6_MTU_DISCOVER, Value: unix.IPV6_PMTUDISC_DONT},
			{Level: unix.IPPROTO_IPV6, Name: unix.IPV6_MTU, Value: max(mtu, leastIPv6)},
		}
	}
	return []mmsg.Option{{Level: unix.IPPROTO_IP, Name: unix.IP_MTU_DISCOVER, Value: unix.IP_PMTUDISC_DONT}}
}

// whole is the state that options leaves.
func whole(v6 bool) []mmsg.Option {
	if v6 {
		return []mmsg.Option{
			{Level: unix.IPPROTO_IPV6, Name: unix.IPV6_MTU_DISCOVER, Value: unix.IPV6_PMTUDISC_PROBE},
			{Level: unix.IPPROTO_IPV6, Name: unix.IPV6_MTU, Value: 0},
		}
	}
	return []mmsg.Option{{Level: unix.IPPROTO_IP, Name: unix.IP_MTU_DISCOVER, Value: unix.IP_PMTUDISC_PROBE}}
}
