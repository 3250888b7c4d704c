package rawio

import (
	"errors"
	"fmt"
	"syscall"
)

// ErrPortInUse reports that an SCTP port is held by another program or by another user of this
// link. It matches syscall.EADDRINUSE.
var ErrPortInUse error = portInUseError{}

type portInUseError struct{}

func (portInUseError) Error() string        { return "SCTP port already in use" }
func (portInUseError) Is(target error) bool { return target == syscall.EADDRINUSE }

// ErrTooLong reports a packet larger than the link takes (EMSGSIZE).
var ErrTooLong error = tooLongError{}

type tooLongError struct{}

func (tooLongError) Error() string        { return "packet longer than the link's MTU" }
func (tooLongError) Is(target error) bool { return target == syscall.EMSGSIZE }

// ErrFull reports that the link's transmit queue is full (ENOBUFS); the packet is lost, as a router
// would lose it.
var ErrFull = errors.New("link transmit queue full")

// ErrInterrupted is returned by a ReadBatch that Interrupter.Interrupt has ended.
var ErrInterrupted = errors.New("read interrupted")

// PermissionError reports that the operating system refused a link for want of a privilege.
type PermissionError struct {
	Link       string // "raw", "tun"
	Capability string // what is missing, e.g. "CAP_NET_RAW"
	Err        error  // the system's error
}

// Error names the missing capability and what works without it.
func (e *PermissionError) Error() string {
	return fmt.Sprintf("the %s link needs %s (%v); run as root or grant the capability, or use the udp link, "+
		"which needs none",
		e.Link, e.Capability, e.Err)
}

// Unwrap returns the system's error.
func (e *PermissionError) Unwrap() error { return e.Err }

// UnsupportedError reports a link that this operating system does not offer.
type UnsupportedError struct {
	Link string // "raw", "tun"
	OS   string // runtime.GOOS
}

// Error names the links that work instead.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("the %s link is not available on %s; use the udp link, which works everywhere, or mem "+
		"within one process", e.Link, e.OS)
}

// Is makes the error match errors.ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

// MTUError reports an MTU below MinMTU.
type MTUError struct {
	MTU int // the refused IP-level MTU in octets
}

func (e *MTUError) Error() string {
	return fmt.Sprintf(
		"MTU of %d octets is below %d, the least that carries a DDP session's private data unfragmented", e.MTU, MinMTU)
}
