//go:build !linux

package tun

import (
	"net/netip"
	"runtime"

	"github.com/rddp-go/rddp/rawio"
)

// Link is a rawio.Link over a TUN device. It exists on Linux only: elsewhere Open never returns
// one.
type Link struct{ rawio.Link }

// Open fails with a *rawio.UnsupportedError.
func Open(Config) (*Link, error) {
	return nil, &rawio.UnsupportedError{Link: "tun", OS: runtime.GOOS}
}

// Name returns the device's name.
func (*Link) Name() string { return "" }

// LocalAddrs implements rawio.Addresser.
func (*Link) LocalAddrs() []netip.AddrPort { return nil }

// Stats returns the link's counters.
func (*Link) Stats() Stats { return Stats{} }
