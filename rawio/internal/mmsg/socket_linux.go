package mmsg

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Socket buffers in octets. The kernel charges a packet of 1500 octets more than 2 KB. So this
// holds a window of 16 MiB, which a peer may send without a pause.
const (
	receiveBufOctets = 32 << 20
	sendBufOctets    = 4 << 20
)

// Socket is one datagram socket. The runtime's poller does not watch it; see package wait.
type Socket struct {
	fd          int // while file is open
	file        *os.File
	rc          syscall.RawConn
	codec       Codec
	v6          bool
	idleSenders senderPool

	segmenting  atomic.Bool // the kernel segments, as far as it is known
	isFull      atomic.Bool // a writer has timed out: no writer waits until a batch has gone
	icmpPending atomic.Bool // a send call has reported an ICMP message: no receive call will
}

// NewSocket takes over fd, which is a datagram or raw socket of the IPv6 or IPv4 family.
func NewSocket(fd int, v6 bool, codec Codec) (*Socket, error) {
	raiseBuffer(fd, unix.SO_RCVBUFFORCE, unix.SO_RCVBUF, receiveBufOctets)
	raiseBuffer(fd, unix.SO_SNDBUFFORCE, unix.SO_SNDBUF, sendBufOctets)
	f := os.NewFile(uintptr(fd), "socket") // blocking, so that it stays out of the poller: all calls have MSG_DONTWAIT
	rc, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Socket{fd: fd, file: f, rc: rc, codec: codec, v6: v6}, nil
}

// OpenSocket opens a socket of the IPv6 or IPv4 family, with an Errno when that fails.
func OpenSocket(v6 bool, kind, proto int) (fd int, err error) {
	domain := unix.AF_INET
	if v6 {
		domain = unix.AF_INET6
	}
	return unix.Socket(domain, kind|unix.SOCK_CLOEXEC, proto)
}

// raiseBuffer sets a buffer size past the system's limit where we may, and else up to it.
func raiseBuffer(fd, force, plain, n int) {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, n) != nil {
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, plain, n) // the kernel caps it; never fails for size
	}
}

// Control runs f on the descriptor, which stays open meanwhile.
func (s *Socket) Control(f func(fd int) error) error {
	var inner error
	if err := s.rc.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

// memInfo is what SO_MEMINFO returns, indexed as in linux/sock_diag.h: octets, and packets dropped.
// All is 0 in a kernel before 4.12.
type memInfo [9]uint32

const (
	memReceived = 0
	memRcvBuf   = 1
	memDrops    = 8
)

func (m *memInfo) readSocket(fd uintptr) {
	*m = memInfo{}
	getsockopt(fd, unix.SOL_SOCKET, unix.SO_MEMINFO, m[:])
}

// Drops returns how many packets the kernel dropped because the receive buffer was full.
func (s *Socket) Drops() uint64 {
	var m memInfo
	_ = s.rc.Control(m.readSocket)
	return uint64(m[memDrops])
}

// ReceiveBuffer returns how many octets of packets the kernel keeps. The size that the kernel
// reports counts its own overhead. That is as much again for packets of either 1500 octets or 64
// KB.
func (s *Socket) ReceiveBuffer() int {
	n := 0
	_ = s.Control(func(fd int) (err error) {
		n, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		return err
	})
	return n / 2
}

// V6 reports whether this is the IPv6 socket.
func (s *Socket) V6() bool { return s.v6 }

// Close closes a socket that no group has taken over.
func (s *Socket) Close() error { return s.file.Close() }

// SetOptions sets integer socket options in order.
func SetOptions(fd int, options ...Option) error {
	for _, o := range options {
		if err := unix.SetsockoptInt(fd, o.Level, o.Name, o.Value); err != nil {
			return fmt.Errorf("setsockopt level %d option %d: %w", o.Level, o.Name, err)
		}
	}
	return nil
}

// Option is one integer socket option.
type Option struct{ Level, Name, Value int }

// EnableOption is an option that is switched on.
func EnableOption(level, name int) Option { return Option{level, name, 1} }
