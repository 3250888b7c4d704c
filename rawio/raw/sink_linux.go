package raw

import (
	"os"
	"syscall"

	"github.com/rddp-go/rddp/rawio/internal/iphdr"
	"github.com/rddp-go/rddp/rawio/internal/mmsg"
	"golang.org/x/sys/unix"
)

// sinks are second sockets with the same addresses as the first that take nothing. When the receive buffer of the
// only raw socket for a packet is full, Linux calls SCTP unreachable by ICMP, and the peer has to end the association
// (RFC 9260 section 10). A sink's buffer is never full.
//
// But Linux makes a copy of each packet for a sink before its filter drops it, a tenth of what a packet of 1500 octets
// costs. So they rest while the link's reader is at work: with a packet or two in a small buffer, which is full then. The
// reader looks after its own buffer, half of which is more than a window of 16 MiB takes, and wakes them before it parks.
type sinks struct {
	list    []*os.File
	rc      []syscall.RawConn
	nothing []unix.SockFilter // the filters of one that is awake, and one that rests
	all     []unix.SockFilter

	// The reader's.
	resting bool
	seen    int // packets since the last look
	alert   int // looks before they may rest again
}

const (
	lookEvery = 256  // packets
	alertFor  = 4096 // looks
)

// add opens a sink.
func (s *sinks) add(v6 bool, address func(fd int) error) error {
	domain := unix.AF_INET
	if v6 {
		domain = unix.AF_INET6
	}
	fd, err := unix.Socket(domain, unix.SOCK_RAW|unix.SOCK_CLOEXEC, iphdr.ProtoSCTP)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), "sink")
	s.list = append(s.list, f)
	rc, err := f.SyscallConn()
	if err != nil {
		return err
	}
	s.rc = append(s.rc, rc)
	s.nothing, s.all = take(0), take(1)
	if err := attach(fd, s.nothing); err != nil {
		return err
	}
	if err := mmsg.Set(fd, mmsg.Option{Level: unix.SOL_SOCKET, Name: unix.SO_RCVBUF, Value: 1}); err != nil { // the least there is
		return err
	}
	return address(fd)
}

// take is a filter that takes so many octets of each packet.
func take(n uint32) []unix.SockFilter {
	return []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: n}}
}

// received counts packets that the reader has got from the group.
func (s *sinks) received(n int, g *mmsg.Group) {
	if s.seen += n; s.seen < lookEvery {
		return
	}
	s.seen = 0
	switch {
	case g.Pressed():
		s.alert = alertFor
		s.wake()
	case s.alert > 0:
		s.alert--
	case !s.resting:
		s.resting = true
		for _, rc := range s.rc {
			_ = rc.Control(func(fd uintptr) { _ = attach(int(fd), s.all) }) // or it stays awake
		}
	}
}

// wake has the sinks take nothing again.
func (s *sinks) wake() {
	s.seen = 0
	if !s.resting {
		return
	}
	s.resting = false
	for _, rc := range s.rc {
		_ = rc.Control(func(fd uintptr) {
			if attach(int(fd), s.nothing) != nil {
				s.resting = true // until the next time
			}
			drain(int(fd))
		})
	}
}

func (s *sinks) close() {
	for _, f := range s.list {
		f.Close()
	}
}
