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
// reader looks after its own buffer, half of which is more than a window of 16 MiB takes, and wakes them before it parks or sleeps.
type sinks struct {
	list []*os.File
	rc   []syscall.RawConn

	// The reader's.
	resting bool
	seen    int // packets since the last look
	alert   int // looks before they may rest again
}

// To change two filters takes the kernel 300 microseconds (2 x AMD EPYC, family 26, model 2), as much as the copies of some thousand packets. So they rest when so many have come since the
// reader did so last.
const (
	lookEvery = 256                // packets
	restAfter = 4096/lookEvery - 1 // looks
	alertFor  = 4096               // looks, behind one that has found the buffer half full
)

// The filters of a sink that is awake, and of one that rests.
var (
	nothing = []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	all     = []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 1}} // the first octet will do
)

// add opens a sink.
func (s *sinks) add(v6 bool, address func(fd int) error) error {
	fd, err := mmsg.Open(v6, unix.SOCK_RAW, iphdr.ProtoSCTP)
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
	if err := attach(fd, nothing); err != nil {
		return err
	}
	if err := mmsg.Set(fd, mmsg.Option{Level: unix.SOL_SOCKET, Name: unix.SO_RCVBUF, Value: 1}); err != nil { // the least there is
		return err
	}
	return address(fd)
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
			_ = rc.Control(func(fd uintptr) { _ = attach(int(fd), all) }) // or it stays awake
		}
	}
}

// wake has the sinks take nothing again.
func (s *sinks) wake() {
	s.seen, s.alert = 0, max(s.alert, restAfter)
	if !s.resting {
		return
	}
	s.resting = false
	for _, rc := range s.rc {
		_ = rc.Control(func(fd uintptr) {
			if attach(int(fd), nothing) != nil {
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
