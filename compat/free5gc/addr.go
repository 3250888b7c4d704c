package sctp

import (
	"fmt"
	"net"
	"syscall"

	"github.com/rddp-go/rddp/compat"
)

// SCTPAddr is the addresses and the port of one end.
type SCTPAddr struct {
	IPAddrs []net.IPAddr
	Port    int
}

// ResolveSCTPAddr resolves "a/b:port".
func ResolveSCTPAddr(network, addrs string) (*SCTPAddr, error) {
	list, port, err := compat.ResolveAddr(network, addrs)
	if err != nil {
		return nil, err
	}
	return &SCTPAddr{list, port}, nil
}

// ToRawSockAddrBuf returns the addresses as sockaddrs.
func (a *SCTPAddr) ToRawSockAddrBuf() []byte { return compat.RawAddrs(a.IPAddrs, a.Port) }

func (a *SCTPAddr) String() string {
	if a == nil {
		return "<nil>"
	}
	return compat.FormatAddr(a.IPAddrs, a.Port)
}

// Network returns "sctp".
func (a *SCTPAddr) Network() string { return "sctp" }

// addrs returns the addresses, or none if a is nil.
func (a *SCTPAddr) addrs() []net.IPAddr {
	if a == nil {
		return nil
	}
	return a.IPAddrs
}

// parseAddrs parses sockaddrs.
func parseAddrs(raw []byte, _ int, err error) (*SCTPAddr, error) {
	if err != nil {
		return nil, err
	}
	list, port, err := compat.ParseAddrs(raw)
	if err == nil && len(list) == 0 {
		err = syscall.EINVAL // the socket has no address
	}
	if err != nil {
		return nil, err
	}
	return &SCTPAddr{list, port}, nil
}

// noAddr is the error of a call that needs an address and got none.
func noAddr(call string) error {
	return fmt.Errorf("sctp: %s: the address is nil: %w", call, syscall.EINVAL)
}

// SCTPBind is sctp_bindx for the descriptor of a socket of this package.
func SCTPBind(fd int, addr *SCTPAddr, flags int) error {
	s := compat.Find(fd)
	switch {
	case flags != SCTP_BINDX_ADD_ADDR && flags != SCTP_BINDX_REM_ADDR:
		return syscall.EINVAL
	case addr == nil:
		return noAddr("SCTPBind")
	case s == nil:
		return syscall.EBADF
	}
	return s.Bind(addr.ToRawSockAddrBuf(), flags == SCTP_BINDX_REM_ADDR)
}

// SCTPConnect is sctp_connectx for the descriptor of a socket of this package.
func SCTPConnect(fd int, addr *SCTPAddr) (int, error) {
	s := compat.Find(fd)
	switch {
	case addr == nil:
		return 0, noAddr("SCTPConnect")
	case s == nil:
		return 0, syscall.EBADF
	}
	id, err := s.Connect(addr.ToRawSockAddrBuf())
	return int(id), err
}
