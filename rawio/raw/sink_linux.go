package raw

import (
	"os"
	"syscall"

	"github.com/rddp-go/rddp/rawio/internal/iphdr"
	"github.com/rddp-go/rddp/rawio/internal/mmsg"
	"golang.org/x/sys/unix"
)

// sinkSockets are second sockets that receive nothing, with the same addresses as the first. If the
// receive buffer of the only raw socket for a packet is full, Linux reports by ICMP that SCTP is
// unreachable. The peer then has to end the association (RFC 9260 section 10). A sink's buffer is
// never full.
//
// But Linux makes a copy of each packet for a sink before its filter drops it. That costs a tenth
// of what a packet of 1500 octets costs. So sinks rest while the link's reader is at work: a packet
// or two then fill their small buffer. The reader checks its own buffer, half of which is more than
// a window of 16 MiB takes. It wakes the sinks before it parks or sleeps.
type sinkSockets struct {
	files    []*os.File
	rawConns []syscall.RawConn

	// The reader's.
	isResting         bool
	packetsSinceCheck int // packets since the last look
	checksUntilRest   int // looks before they may rest again
}

// Changing two filters takes the kernel 300 microseconds (2 x AMD EPYC, family 26, model 2). Copies
// of some thousand packets take as long. So sinks rest only after that many packets since the
// reader last parked or slept.
const (
	packetsPerCheck   = 256                      // packets
	checksBeforeRest  = 4096/packetsPerCheck - 1 // looks
	checksWhenPressed = 4096                     // looks, behind one that has found the buffer half full
)

// The filters of a sink that is awake, and of one that rests.
var (
	dropFilter   = []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	acceptFilter = []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 1}} // the first octet will do
)

// add opens a sink.
func (s *sinkSockets) add(v6 bool, address func(fd int) error) error {
	fd, err := mmsg.OpenSocket(v6, unix.SOCK_RAW, iphdr.ProtoSCTP)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), "sink")
	s.files = append(s.files, f)
	rc, err := f.SyscallConn()
	if err != nil {
		return err
	}
	s.rawConns = append(s.rawConns, rc)
	if err := attachFilter(fd, dropFilter); err != nil {
		return err
	}
	// the minimum
	if err := mmsg.SetOptions(fd, mmsg.Option{Level: unix.SOL_SOCKET, Name: unix.SO_RCVBUF, Value: 1}); err != nil {
		return err
	}
	return address(fd)
}

// countReceived counts packets that the reader has got from the group.
func (s *sinkSockets) countReceived(n int, g *mmsg.Group) {
	if s.packetsSinceCheck += n; s.packetsSinceCheck < packetsPerCheck {
		return
	}
	s.packetsSinceCheck = 0
	switch {
	case g.BufferHalfFull():
		s.checksUntilRest = checksWhenPressed
		s.wakeSinks()
	case s.checksUntilRest > 0:
		s.checksUntilRest--
	case !s.isResting:
		s.isResting = true
		for _, rc := range s.rawConns {
			_ = rc.Control(func(fd uintptr) { _ = attachFilter(int(fd), acceptFilter) }) // or it stays awake
		}
	}
}

// wakeSinks has the sinks take nothing again.
func (s *sinkSockets) wakeSinks() {
	s.packetsSinceCheck, s.checksUntilRest = 0, max(s.checksUntilRest, checksBeforeRest)
	if !s.isResting {
		return
	}
	s.isResting = false
	for _, rc := range s.rawConns {
		_ = rc.Control(func(fd uintptr) {
			if attachFilter(int(fd), dropFilter) != nil {
				s.isResting = true // until the next time
			}
			drainSocket(int(fd))
		})
	}
}

func (s *sinkSockets) close() {
	for _, f := range s.files {
		f.Close()
	}
}
