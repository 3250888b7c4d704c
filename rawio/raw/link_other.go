//go:build !linux

package raw

import (
	"net/netip"
	"runtime"

	"github.com/rddp-go/rddp/rawio"
)

// Link is a rawio.Link over raw sockets. It exists on Linux only: elsewhere Open never returns one.
type Link struct{ rawio.Link }

// Open fails with a *rawio.UnsupportedError.
func Open(Config) (*Link, error) {
	return nil, &rawio.UnsupportedError{Link: "raw", OS: runtime.GOOS}
}

// BindPort implements rawio.PortBinder.
func (*Link) BindPort(uint16, ...netip.Addr) error {
	return &rawio.UnsupportedError{Link: "raw", OS: runtime.GOOS}
}

// UnbindPort implements rawio.PortBinder.
func (*Link) UnbindPort(uint16) {}

// LocalAddrs implements rawio.Addresser.
func (*Link) LocalAddrs() []netip.AddrPort { return nil }

// Stats returns the link's counters.
func (*Link) Stats() Stats { return Stats{} }

// KernelSCTP reports whether this host's kernel has an SCTP of its own that would answer our
// packets. Off Linux there is no raw link to disturb.
func KernelSCTP() bool { return false }
