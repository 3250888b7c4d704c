package udp

import (
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
)

// DefaultPort is the UDP port assigned to SCTP encapsulation, sctp-tunneling (RFC 6951 section 7).
const DefaultPort = 9899

// AnyPort asks Open for a port that the system picks, which suits clients.
const AnyPort = -1

// udpHeaderLen is the length of the UDP header in octets.
const udpHeaderLen = 8

// commonHeaderLen is the length of the SCTP common header in octets (RFC 9260 section 3.1).
const commonHeaderLen = 12

// Config says what to open. The zero value is port 9899 on every local address, IPv4 and IPv6.
type Config struct {
	// Local is the address that the link receives on and sends from. An unspecified address means
	// any of its family. Default the zero Addr: any address of both families.
	Local netip.Addr

	// Port is the local encapsulation port; AnyPort is a free one. Default DefaultPort.
	Port int

	// MTU, in octets, bounds the IP-level MTU that MTU() works with. Less than rawio.MinMTU is a
	// *rawio.MTUError. Default that of the route or interface.
	MTU int

	// Poll is how long ReadBatch polls before it blocks. It spares the 20 microseconds or so that
	// waking an idle processor takes, at the price of a busy one. A negative value blocks at once.
	// The portable path does not poll. Default a few times that, as long as packets come that soon.
	Poll time.Duration

	// Shards is how many sockets receive, each read by its own goroutine, at most rawio.MaxShards.
	// The kernel spreads flows over them (SO_REUSEPORT), not the packets of one. It is for hosts
	// with more than two processors that receive from many peers. The portable path has one.
	// Default 1.
	Shards int

	// NoOffload leaves the kernel's segmentation (UDP_SEGMENT) and coalescing (UDP_GRO) unused.
	// Both move trains of packets through the kernel as one, and make no difference on the wire.
	// Default false.
	NoOffload bool

	// Mark is in the IP headers of packets sent. The portable path has none. Default the system's.
	Mark rawio.Mark
}

// validateAndDefault validates cfg and fills in its defaults.
func (cfg *Config) validateAndDefault() error {
	cfg.Local = cfg.Local.Unmap()
	switch {
	case cfg.MTU != 0 && cfg.MTU < rawio.MinMTU:
		return &rawio.MTUError{MTU: cfg.MTU}
	case cfg.Shards < 0 || cfg.Shards > rawio.MaxShards:
		return fmt.Errorf("udp link: %d shards; it is 1 to %d", cfg.Shards, rawio.MaxShards)
	case cfg.Port == AnyPort:
		cfg.Port = 0
	case cfg.Port == 0:
		cfg.Port = DefaultPort
	case cfg.Port < 0 || cfg.Port > 65535:
		return fmt.Errorf("udp link: %d is no UDP port", cfg.Port)
	}
	return nil
}

// Stats counts packets since Open.
type Stats struct {
	RxPackets   uint64 // handed up, ICMP reports included
	RxICMP      uint64 // ICMP reports handed up
	RxMalformed uint64 // too short for an SCTP common header, or over IPv6 from an IPv4-mapped address
	RxIgnored   uint64 // ICMP messages that SCTP ignores
	RxOverflow  uint64 // dropped by the kernel for want of receive buffer
	TxPackets   uint64 // taken by the kernel
	TxFull      uint64 // refused with rawio.ErrFull
	TxTooLong   uint64 // refused with rawio.ErrTooLong
	TxErrors    uint64 // refused for another reason

	RxCalls, TxCalls uint64 // system calls that received or sent
	TxUnsegmented    uint64 // sockets that gave up UDP_SEGMENT because the path refused it
}

// payloadLimit is the largest SCTP packet that fits an IP packet of mtu octets together with the
// UDP header (RFC 6951 section 5.6).
func payloadLimit(mtu int, v6 bool) int { return max(0, iphdr.PayloadLimit(mtu, v6)-udpHeaderLen) }

// withDefaultPort returns where to send a packet for remote.
func withDefaultPort(remote netip.AddrPort) netip.AddrPort {
	port := remote.Port()
	if port == 0 {
		port = DefaultPort
	}
	return netip.AddrPortFrom(remote.Addr().Unmap(), port)
}

// openError puts a plain sentence in front of the system's error.
func openError(cfg Config, err error) error {
	where := "any address"
	if cfg.Local.IsValid() {
		where = cfg.Local.String()
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf(
			"udp link: UDP port %d of %s is taken by another program; stop it, or choose another port: %w", cfg.Port,
			where, err)
	}
	return fmt.Errorf("udp link: cannot open UDP port %d of %s: %w", cfg.Port, where, err)
}

var (
	_ rawio.Link      = (*Link)(nil)
	_ rawio.Addresser = (*Link)(nil)
)
