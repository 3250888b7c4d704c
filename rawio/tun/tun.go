package tun

import (
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// Config says which device to open and how to set it up.
type Config struct {
	// Name is the device's name, at most 15 characters. It is created unless it exists. Default a
	// new device, rddp0 or the next free number.
	Name string

	// Addrs are the stack's own IP addresses, at least one. The first of a family is the default
	// source towards that family. The host must not have them.
	Addrs []netip.Addr

	// Host are addresses, with the length of their prefixes, that the host gets on the device. The
	// prefixes should hold Addrs. An address of the stack that no prefix holds gets a route of its
	// own to the device. Default none.
	Host []netip.Prefix

	// Routes are more prefixes that the host routes to the device. Default none.
	Routes []netip.Prefix

	// MTU is the device's IP-level MTU in octets. Less than rawio.MinMTU is a *rawio.MTUError; with
	// an IPv6 address it must be at least 1280 (RFC 8200 section 5). Default 1500.
	MTU int

	// Queue is how many packets the device holds until the stack reads them; more are dropped.
	// Default 4096: the kernel's 500 are less than one window of a fast association.
	Queue int

	// Shards is how many queues the device has towards the stack, each read by its own goroutine,
	// at most rawio.MaxShards. The kernel spreads flows over them (IFF_MULTI_QUEUE), not the
	// packets of one. A device that exists must have been made for several. Default 1.
	Shards int

	// Poll is how long ReadBatch polls before it blocks. A negative value blocks at once. Default a
	// few times what waking an idle processor takes here, as long as packets come that soon.
	Poll time.Duration

	// Mark is in the IP headers of packets sent. Default the system's.
	Mark rawio.Mark
}

// Stats counts packets since Open.
type Stats struct {
	RxPackets       uint64 // handed up, ICMP reports included
	RxICMP          uint64 // ICMP reports handed up
	RxEcho          uint64 // echo requests answered
	RxMalformed     uint64 // wrong length, version, checksum, or IPv4-mapped addresses in IPv6
	RxFragments     uint64 // IP fragments of SCTP packets
	RxReassembled   uint64 // packets put together from fragments
	RxFragmentsBad  uint64 // fragments dropped: they overlap, or do not fit together
	RxFragmentsLate uint64 // fragments dropped: the others did not come in time
	RxFragmentsFull uint64 // fragments dropped: there were newer ones, and room for so many
	RxNotOurs       uint64 // for an address that is not the stack's
	RxOther         uint64 // of another protocol than SCTP and ICMP, or fragments of another than SCTP
	RxIgnored       uint64 // ICMP messages that SCTP ignores
	TxPackets       uint64 // taken by the device
	TxFull          uint64 // refused with rawio.ErrFull
	TxTooLong       uint64 // refused with rawio.ErrTooLong
	TxErrors        uint64 // refused for another reason
}

// Prompt implements rawio.Prompter.
func (l *Link) Prompt() rawio.Link { return l }
