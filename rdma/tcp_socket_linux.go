package rdma

import (
	"net"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// tcpSocket asks of the socket of a connection what package net does not.
type tcpSocket struct {
	raw    syscall.RawConn
	iovecs []unix.Iovec
	pieces [][]byte // of the write under way
	n      int      // its result
	errno  syscall.Errno
	doit   func(fd uintptr) bool // the write, made once
}

// newTCPSocket returns nil for what is no TCP connection of the system.
func newTCPSocket(nc net.Conn) *tcpSocket {
	tc, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tc.SyscallConn()
	if err != nil {
		return nil
	}
	s := &tcpSocket{raw: raw}
	s.doit = s.writeNow
	return s
}

// emss returns the EMSS in octets, 0 if it is not known.
func (s *tcpSocket) emss() (n int) {
	if s == nil {
		return 0
	}
	_ = s.raw.Control(func(fd uintptr) { n, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG) })
	return n
}

// tryWrite writes as much of the pieces as TCP takes without waiting. The caller has taken the
// output of the connection, and so is alone.
func (s *tcpSocket) tryWrite(pieces [][]byte) (int, error) {
	s.pieces, s.n, s.errno = pieces, 0, 0
	err := s.raw.Write(s.doit)
	s.pieces = nil
	switch {
	case err != nil:
		return 0, err
	case s.errno == unix.EAGAIN || s.errno == unix.EINTR:
		return 0, nil // the goroutine that waits sees to it
	case s.errno != 0:
		return 0, s.errno
	}
	return s.n, nil
}

// writeNow makes the system call. It never has the caller wait.
func (s *tcpSocket) writeNow(fd uintptr) bool {
	s.iovecs = s.iovecs[:0]
	for _, p := range s.pieces {
		if len(p) > 0 {
			v := unix.Iovec{Base: &p[0]}
			v.SetLen(len(p))
			s.iovecs = append(s.iovecs, v)
		}
	}
	n, _, errno := unix.Syscall(unix.SYS_WRITEV, fd, uintptr(unsafe.Pointer(unsafe.SliceData(s.iovecs))),
		uintptr(len(s.iovecs)))
	if s.errno = errno; errno == 0 {
		s.n = int(n)
	}
	clear(s.iovecs)
	return true
}
