package raw

import (
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/rddp-go/rddp/internal/portregistry"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/mmsg"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// boundPorts is the set of SCTP ports that a link owns.
type boundPorts struct {
	mu     sync.Mutex
	claims map[uint16][]portClaim // guarded by mu
	closed bool                   // guarded by mu
}

// portClaim is a port at one address of this host.
type portClaim struct {
	addr    netip.Addr // invalid: at all
	release func()
}

// BindPort implements rawio.PortBinder: it claims the port in this network namespace and lets its
// packets in. A program that moves its threads between network namespaces has to call it in the
// link's. Where addresses are named others may have the port at others; what this link has already
// stays as it is. Port 0 is refused with syscall.EINVAL, since no SCTP packet may carry it.
func (l *Link) BindPort(port uint16, at ...netip.Addr) error {
	s := &l.ports
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return os.ErrClosed
	case port == 0:
		return fmt.Errorf("cannot bind SCTP port 0: %w", unix.EINVAL)
	case s.claims[port] == nil && len(s.claims) == maxBoundPorts:
		return ErrTooManyPorts
	}
	if len(at) == 0 {
		at = []netip.Addr{{}}
	}
	had := len(s.claims[port])
	err := error(nil)
	for _, a := range at {
		a = a.Unmap().WithZone("")
		if slices.ContainsFunc(s.claims[port], func(c portClaim) bool { return c.addr == a }) {
			continue
		}
		var release func()
		if release, err = portregistry.ClaimPort(port, portregistry.PlaceAt(a, 0)); err != nil {
			break
		}
		if s.claims == nil {
			s.claims = make(map[uint16][]portClaim)
		}
		s.claims[port] = append(s.claims[port], portClaim{a, release})
	}
	if err == nil {
		err = l.updateFilters()
	}
	if err != nil {
		l.dropClaims(port, had)
	}
	return err
}

// UnbindPort implements rawio.PortBinder.
func (l *Link) UnbindPort(port uint16) {
	l.ports.mu.Lock()
	defer l.ports.mu.Unlock()
	l.dropClaims(port, 0)
	_ = l.updateFilters() // at worst the port's packets still come in, and no association has the port
}

// dropClaims gives up the claims of a port but for the first n.
func (l *Link) dropClaims(port uint16, n int) {
	s := &l.ports
	for _, c := range s.claims[port][n:] {
		c.release()
	}
	if n > 0 {
		s.claims[port] = s.claims[port][:n]
		return
	}
	delete(s.claims, port)
}

// close gives up every claim.
func (s *boundPorts) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, list := range s.claims {
		for _, c := range list {
			c.release()
		}
	}
	s.claims, s.closed = nil, true
}

// isBound says whether a port is bound at an address.
func (s *boundPorts) isBound(port uint16, a netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.claims[port], func(c portClaim) bool {
		return !c.addr.IsValid() || c.addr == a.Unmap().WithZone("")
	})
}

// updateFilters gives the sockets a filter for the present set of ports.
func (l *Link) updateFilters() error {
	for _, s := range l.group.Sockets() {
		prog, err := l.ports.buildFilter(s.V6(), l.cfg.NoPortFilter)
		if err != nil {
			return err
		}
		if err := s.Control(func(fd int) error { return attachFilter(fd, prog) }); err != nil {
			return err
		}
	}
	return nil
}

// maxBoundPorts keeps the filter, two instructions a port that is bound at all addresses, below the
// kernel's 4096 (BPF_MAXINSNS).
const (
	maxBoundPorts = 2000
	maxFilterLen  = 4096
)

// buildFilter assembles a program that keeps packets for the bound ports. An IPv4 raw socket shows
// its filter the IP header, an IPv6 one begins at SCTP. A load beyond the packet's end drops it.
func (s *boundPorts) buildFilter(v6, all bool) ([]unix.SockFilter, error) {
	const everything = 1 << 18 // octets of the packet to keep
	prog := []bpf.Instruction{bpf.RetConstant{Val: everything}}
	if !all {
		prog = prog[:0]
		if v6 {
			prog = append(prog, bpf.LoadAbsolute{Off: 2, Size: 2})
		} else {
			prog = append(prog, bpf.LoadMemShift{Off: 0}, bpf.LoadIndirect{Off: 2, Size: 2})
		}
		for _, p := range slices.Sorted(maps.Keys(s.claims)) {
			block := s.addrFilter(s.claims[p], v6, bpf.RetConstant{Val: everything})
			prog = append(prog, bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(p), SkipFalse: uint8(len(block))})
			prog = append(prog, block...)
		}
		prog = append(prog, bpf.RetConstant{Val: 0})
	}
	if len(prog) > maxFilterLen {
		return nil, ErrTooManyPorts
	}
	return mmsg.AssembleFilter(prog)
}

// addrFilter is the part of the filter for packets to one port. It keeps those for the addresses at
// which the port is bound.
func (s *boundPorts) addrFilter(claims []portClaim, v6 bool, keep bpf.Instruction) (prog []bpf.Instruction) {
	const network = 1<<32 - 0x100000 // SKF_NET_OFF: from here on offsets count from the IP header
	offset, words := uint32(network+16), 1
	if v6 {
		offset, words = network+24, 4
	}
	for _, c := range claims {
		if !c.addr.IsValid() {
			return []bpf.Instruction{keep}
		}
		if c.addr.Is6() != v6 {
			continue
		}
		ip := c.addr.AsSlice()
		for i := range words {
			prog = append(prog, bpf.LoadAbsolute{Off: offset + uint32(4*i), Size: 4},
				bpf.JumpIf{Cond: bpf.JumpEqual, Val: binary.BigEndian.Uint32(ip[4*i:]),
					SkipFalse: uint8(2*(words-i-1) + 1)})
		}
		prog = append(prog, keep)
	}
	return append(prog, bpf.RetConstant{Val: 0})
}

func attachFilter(fd int, prog []unix.SockFilter) error {
	return os.NewSyscallError("SO_ATTACH_FILTER", mmsg.AttachFilter(fd, unix.SO_ATTACH_FILTER, prog))
}

var (
	_ rawio.Link       = (*Link)(nil)
	_ rawio.PortBinder = (*Link)(nil)
	_ rawio.Addresser  = (*Link)(nil)
	_ rawio.Featurer   = (*Link)(nil)
	_ mmsg.Codec       = (*headerCodec)(nil)
)
