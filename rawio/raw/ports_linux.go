package raw

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/mmsg"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// ports is the set of SCTP ports that a link owns.
type ports struct {
	mu     sync.Mutex
	claims map[uint16]int            // guarded by mu: port to the socket that claims it
	closed bool                      // guarded by mu
	bound  [65536 / 64]atomic.Uint64 // the same set, for readers without the lock
}

func (s *ports) has(port uint16) bool { return s.bound[port/64].Load()>>(port%64)&1 == 1 }

func (s *ports) set(port uint16, on bool) {
	if on {
		s.bound[port/64].Or(1 << (port % 64))
	} else {
		s.bound[port/64].And(^uint64(1 << (port % 64)))
	}
}

// BindPort implements rawio.PortBinder: it claims the port in this network namespace and lets its
// packets in. A program that moves its threads between network namespaces has to call it in the
// link's. Port 0 is refused with syscall.EINVAL, since no SCTP packet may carry it.
func (l *Link) BindPort(port uint16) error {
	s := &l.ports
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return os.ErrClosed
	case port == 0:
		return fmt.Errorf("cannot bind SCTP port 0: %w", unix.EINVAL)
	case s.has(port):
		return fmt.Errorf("SCTP port %d: %w", port, rawio.ErrPortInUse)
	case len(s.claims) == maxPorts:
		return ErrTooManyPorts
	}
	fd, err := claim(port)
	if err != nil {
		return err
	}
	if s.claims == nil {
		s.claims = make(map[uint16]int)
	}
	s.claims[port] = fd
	s.set(port, true)
	if err := l.refilter(); err != nil {
		l.unbind(port)
		return err
	}
	return nil
}

// UnbindPort implements rawio.PortBinder.
func (l *Link) UnbindPort(port uint16) {
	l.ports.mu.Lock()
	defer l.ports.mu.Unlock()
	if l.ports.closed || !l.ports.has(port) {
		return
	}
	l.unbind(port)
	_ = l.refilter() // at worst the port's packets still come in, and nobody knows the port
}

func (l *Link) unbind(port uint16) {
	s := &l.ports
	unix.Close(s.claims[port])
	delete(s.claims, port)
	s.set(port, false)
}

// close gives up every claim.
func (s *ports) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, fd := range s.claims {
		unix.Close(fd)
	}
	s.claims, s.closed = nil, true
}

// claim takes a port for this network namespace: the name of an abstract Unix socket is unique
// there, and goes away with the process that holds it.
func claim(port uint16) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	err = unix.Bind(fd, &unix.SockaddrUnix{Name: "@rddp/sctp/" + strconv.Itoa(int(port))})
	if err == nil {
		return fd, nil
	}
	unix.Close(fd)
	if err == unix.EADDRINUSE {
		return -1, fmt.Errorf("SCTP port %d: %w", port, rawio.ErrPortInUse)
	}
	return -1, os.NewSyscallError("bind", err)
}

// refilter gives the sockets a filter for the present set of ports.
func (l *Link) refilter() error {
	for _, s := range l.group.Sockets() {
		prog, err := l.ports.filter(s.V6(), l.cfg.NoPortFilter)
		if err != nil {
			return err
		}
		if err := s.Control(func(fd int) error { return attach(fd, prog) }); err != nil {
			return err
		}
	}
	return nil
}

// maxPorts keeps the filter, two instructions a port, below the kernel's 4096 (BPF_MAXINSNS).
const maxPorts = 2000

// filter assembles a program that keeps packets for the bound ports. An IPv4 raw socket shows its
// filter the IP header, an IPv6 one begins at SCTP. A load beyond the packet's end drops it.
func (s *ports) filter(v6, all bool) ([]unix.SockFilter, error) {
	const everything = 1 << 18 // octets of the packet to keep
	prog := []bpf.Instruction{bpf.RetConstant{Val: everything}}
	if !all {
		prog = prog[:0]
		if v6 {
			prog = append(prog, bpf.LoadAbsolute{Off: 2, Size: 2})
		} else {
			prog = append(prog, bpf.LoadMemShift{Off: 0}, bpf.LoadIndirect{Off: 2, Size: 2})
		}
		list := make([]uint16, 0, len(s.claims))
		for p := range s.claims {
			list = append(list, p)
		}
		slices.Sort(list)
		for _, p := range list {
			prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(p), SkipFalse: 1}, bpf.RetConstant{Val: everything})
		}
		prog = append(prog, bpf.RetConstant{Val: 0})
	}
	code, err := bpf.Assemble(prog)
	if err != nil {
		return nil, err
	}
	out := make([]unix.SockFilter, len(code))
	for i, c := range code {
		out[i] = unix.SockFilter{Code: c.Op, Jt: c.Jt, Jf: c.Jf, K: c.K}
	}
	return out, nil
}

func attach(fd int, prog []unix.SockFilter) error {
	err := unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
		&unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]})
	return os.NewSyscallError("SO_ATTACH_FILTER", err)
}

var (
	_ rawio.Link       = (*Link)(nil)
	_ rawio.PortBinder = (*Link)(nil)
	_ rawio.Addresser  = (*Link)(nil)
	_ rawio.Featurer   = (*Link)(nil)
	_ rawio.Bufferer   = (*Link)(nil)
	_ mmsg.Codec       = (*codec)(nil)
)
