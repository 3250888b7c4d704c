package raw

import (
	"errors"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// ErrTooManyPorts reports that a link has as many bound ports as fit into its socket filter.
var ErrTooManyPorts = errors.New("too many SCTP ports bound on one raw link")

// Config says what to open. The zero value is a link of every local address, IPv4 and IPv6, without
// a bound port.
type Config struct {
	// Local is the address that the link receives on and sends from. An unspecified address means
	// any of its family. Default the zero Addr: any address of both families.
	Local netip.Addr

	// Peer is the only address the link receives from; the kernel drops the rest. Default any.
	Peer netip.Addr

	// MTU, in octets, bounds the IP-level MTU that MTU() works with. Less than rawio.MinMTU is a
	// *rawio.MTUError. Default that of the route or interface.
	MTU int

	// Ports are SCTP ports to bind at once, as with BindPort. Default none.
	Ports []uint16

	// Poll is how long ReadBatch polls before it blocks. It spares the 20 microseconds or so that
	// waking an idle processor takes, at the price of a busy one. A negative value blocks at once.
	// Default a few times that, as long as packets come that soon.
	Poll time.Duration

	// Mark is in the IP headers of packets sent. Default the system's.
	Mark rawio.Mark

	// NoPortFilter lets packets for every port in, for captures and tests. Ports are still claimed.
	// Default false.
	NoPortFilter bool
}

// Stats counts packets since Open.
type Stats struct {
	RxPackets   uint64 // handed up, ICMP reports included
	RxICMP      uint64 // ICMP reports handed up
	RxMalformed uint64 // wrong IP header or source, or too short for an SCTP common header
	RxIgnored   uint64 // ICMP messages that SCTP ignores (RFC 9260 section 10)
	RxOverflow  uint64 // dropped by the kernel for want of receive buffer
	TxPackets   uint64 // taken by the kernel
	TxFull      uint64 // refused with rawio.ErrFull
	TxTooLong   uint64 // refused with rawio.ErrTooLong
	TxErrors    uint64 // refused for another reason

	RxCalls, TxCalls uint64 // system calls that received or sent
}

// Prompt implements rawio.Prompter.
func (l *Link) Prompt() rawio.Link { return l }
