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
		if n, err := l.writeWhole(pkts[:i]); err != nil {
			return n, err
		}
		if err := l.writeFragments(pkts[i : i+1]); err != nil {
			return i, err
		}
		n, err := l.WriteBatch(pkts[i+1:])
		return i + 1 + n, err
	}
	return l.writeWhole(pkts)
}

// writeWhole sends packets whole.
func (l *Link) writeWhole(pkts []rawio.Packet) (int, error) {
	l.dfMu.RLock()
	defer l.dfMu.RUnlock()
	n, err := l.groups[0].WriteBatch(pkts)
	if err == rawio.ErrTooLong {
		l.routes.ForgetRoutesTo(pkts[n].Remote.Addr())
	}
	return n, err
}

// writeFragments lets the kernel fragment one packet. That is a property of the socket, so nothing
// else is sent meanwhile. IPv4 fragments are as large as the device takes, and without DF, for
// routers to cut again.
func (l *Link) writeFragments(p []rawio.Packet) error {
	s := l.groups[0].SocketOfFamily(p[0].Remote.Addr())
	if s == nil {
		_, err := l.groups[0].WriteBatch(p) // says why
		return err
	}
	l.dfMu.Lock()
	defer l.dfMu.Unlock()
	err := s.Control(func(fd int) error { return mmsg.SetOptions(fd, fragmentOptions(s.V6(), p[0].Fragment)...) })
	if err == nil {
		_, err = l.groups[0].WriteBatch(p)
	}
	return errors.Join(err, s.Control(func(fd int) error { return mmsg.SetOptions(fd, wholeOptions(s.V6())...) }))
}

// minMTU6 is the smallest MTU that the kernel cuts to in IPv6 (RFC 8200 section 5).
const minMTU6 = 1280

func fragmentOptions(v6 bool, mtu int) []mmsg.Option {
	if v6 {
		return []mmsg.Option{
			{Level: unix.IPPROTO_IPV6, Name: unix.IPV6_MTU_DISCOVER, Value: unix.IPV6_PMTUDISC_DONT},
			{Level: unix.IPPROTO_IPV6, Name: unix.IPV6_MTU, Value: max(mtu, minMTU6)},
		}
	}
	return []mmsg.Option{{Level: unix.IPPROTO_IP, Name: unix.IP_MTU_DISCOVER, Value: unix.IP_PMTUDISC_DONT}}
}

// wholeOptions is the state that options leaves.
func wholeOptions(v6 bool) []mmsg.Option {
	if v6 {
		return []mmsg.Option{
			{Level: unix.IPPROTO_IPV6, Name: unix.IPV6_MTU_DISCOVER, Value: unix.IPV6_PMTUDISC_PROBE},
			{Level: unix.IPPROTO_IPV6, Name: unix.IPV6_MTU, Value: 0},
		}
	}
	return []mmsg.Option{{Level: unix.IPPROTO_IP, Name: unix.IP_MTU_DISCOVER, Value: unix.IP_PMTUDISC_PROBE}}
}
