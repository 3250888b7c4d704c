package pcap

import (
	"bufio"
	"io"
	"math"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
)

const (
	defaultUDPPort = 9899 // the registered SCTP encapsulation port (RFC 6951 section 4.1)

	// The two capture interfaces.
	interfaceSent     = 0
	interfaceReceived = 1
)

// Writer writes SCTP packets to a pcapng stream. It is not safe for concurrent use.
type Writer struct {
	out     *bufio.Writer
	skipped uint64

	ipPacket, block []byte // of the last packet, reused for the next one
}

// NewWriter writes the head of a pcapng stream to w. It buffers: call Flush at the end.
func NewWriter(w io.Writer) (*Writer, error) {
	b := bufio.NewWriter(w)
	_, err := b.Write(appendInterface(appendInterface(appendSection(nil, runtime.GOARCH, runtime.GOOS, "rddp"),
		"sent"), "received"))
	return &Writer{out: b}, err
}

// Sent records a packet that this host transmits: the octets of p.Vec, from p.Local to p.Remote. An
// invalid p.Local is shown as the unspecified address.
func (w *Writer) Sent(at time.Time, p *rawio.Packet) error {
	return w.writePacket(at, interfaceSent, p.Kind, p.ECN, p.Local, p.Remote, p.Vec...)
}

// Received records a packet that this host received: the octets of p.Data, from p.Remote to
// p.Local.
func (w *Writer) Received(at time.Time, p *rawio.Packet) error {
	return w.writePacket(at, interfaceReceived, p.Kind, p.ECN, p.Remote, p.Local, p.Data)
}

// Flush hands everything recorded so far to the underlying writer.
func (w *Writer) Flush() error { return w.out.Flush() }

// Skipped returns how many packets could not be recorded.
func (w *Writer) Skipped() uint64 { return w.skipped }

func (w *Writer) writePacket(at time.Time, intf int, kind rawio.Kind, ecn uint8, src, dst netip.AddrPort,
	vec ...[]byte) error {
	srcIP, dstIP := src.Addr().Unmap(), dst.Addr().Unmap()
	if !srcIP.IsValid() {
		srcIP = unspecifiedOf(dstIP)
	}
	n := 0
	for _, v := range vec {
		n += len(v)
	}
	over := src.Port() != 0 || dst.Port() != 0
	proto, head := uint8(iphdr.ProtoSCTP), iphdr.IPv6HeaderLen
	if dstIP.Is4() {
		head = iphdr.IPv4HeaderLen
	}
	if over {
		proto = iphdr.ProtoUDP
		n += iphdr.UDPHeaderLen
	}
	if kind != rawio.KindSCTP || srcIP.BitLen() != dstIP.BitLen() || n > iphdr.PayloadLimit(math.MaxInt, dstIP.Is6()) {
		w.skipped++
		return nil
	}
	w.ipPacket = slices.Grow(w.ipPacket[:0], head+n)[:head+n]
	b := w.ipPacket[head:]
	if over {
		b = b[iphdr.UDPHeaderLen:]
	}
	for _, v := range vec {
		b = b[copy(b, v):]
	}
	if over {
		iphdr.PutUDPHeader(w.ipPacket[head:], netip.AddrPortFrom(srcIP, orDefault(src.Port())),
			netip.AddrPortFrom(dstIP, orDefault(dst.Port())))
	}
	if dstIP.Is4() {
		iphdr.PutIPv4Header(w.ipPacket, n, proto, ecn, srcIP, dstIP)
	} else {
		iphdr.PutIPv6Header(w.ipPacket, n, proto, ecn, srcIP, dstIP)
	}
	w.block = appendPacket(w.block[:0], at, intf, w.ipPacket)
	_, err := w.out.Write(w.block)
	return err
}

func orDefault(port uint16) uint16 {
	if port == 0 {
		return defaultUDPPort
	}
	return port
}

// unspecifiedOf returns 0.0.0.0 or ::, of the family of a.
func unspecifiedOf(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}
