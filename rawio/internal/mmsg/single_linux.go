package mmsg

import (
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/rddp-go/rddp/rawio"
	"golang.org/x/sys/unix"
)

// Send sends b, with whatever headers are the caller's, from that address where it is valid. It is for
// what is rare: it allocates, and does not wait.
func (s *Socket) Send(b []byte, from netip.Addr, to netip.AddrPort) error {
	var o Outgoing
	if from.IsValid() {
		o.From(from)
	}
	oob := bytesOf(&o.ctl)[:o.ctlLen]
	sa := Sockaddr(to)
	var errno error
	for range 1 + retries { // the first may fail for an earlier packet: see flush
		err := s.rc.Control(func(fd uintptr) {
			_, errno = unix.SendmsgN(int(fd), b, oob, sa, unix.MSG_DONTWAIT)
		})
		switch {
		case err != nil:
			return net.ErrClosed
		case errno == nil:
			return nil
		case errno == syscall.EAGAIN, errno == syscall.ENOBUFS:
			return rawio.ErrFull
		}
	}
	if errno == syscall.EMSGSIZE {
		return rawio.ErrTooLong
	}
	return os.NewSyscallError("sendmsg", errno)
}

// Socket returns the socket of an address's family, nil where there is none.
func (g *Group) Socket(a netip.Addr) *Socket { return g.socket(a) }
