package mmsg

import (
	"net"
	"net/netip"
	"os"
	"syscall"

	"github.com/rddp-go/rddp/rawio"
	"golang.org/x/sys/unix"
)

// SendSingle sends b, with the caller's headers, from the given address where it is valid. It is
// for rare packets: it allocates, and does not wait.
func (s *Socket) SendSingle(b []byte, from netip.Addr, to netip.AddrPort) error {
	var o Outgoing
	if from.IsValid() {
		o.SetSource(from)
	}
	oob := controlBytes(&o.control)[:o.controlLen]
	sa := SockaddrOf(to)
	var errno error
	for range 1 + maxRetries { // the first may fail for an earlier packet: see sendMessages
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

// SocketOfFamily returns the socket of an address's family, nil where there is none.
func (g *Group) SocketOfFamily(a netip.Addr) *Socket { return g.socketOfFamily(a) }
