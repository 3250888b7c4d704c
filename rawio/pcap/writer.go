package pcap

import (
	"io"
	"net/netip"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/rddp-go/rddp/rawio"
)

const (
	udpPort = 9899 // the registered SCTP encapsulation port (RFC 6951 section 4.1)
	ttl     = 64

	// The two capture interfaces.
	sent     = 0
	received = 1
)

// Writer writes SCTP packets to a pcapng stream. It is not safe for concurrent use.
type Writer struct {
	ng      *pcapgo.NgWriter
	skipped uint64

	// Reused for every packet.
	buf gopacket.SerializeBuffer
	ip4 layers.IPv4
	ip6 layers.IPv6
	udp layers.UDP
}

// NewWriter writes the head of a pcapng stream to w. It buffers: call Flush at the end.
func NewWriter(w io.Writer) (*Writer, error) {
	options := pcapgo.DefaultNgWriterOptions
	options.SectionInfo.Application = "rddp"
	intf := pcapgo.DefaultNgInterface
	intf.LinkType = layers.LinkTypeRaw
	intf.Name = "sent"
	ng, err := pcapgo.NewNgWriterInterface(w, intf, options)
	if err != nil {
		return nil, err
	}
	intf.Name = "received"
	if _, err := ng.AddInterface(intf); err != nil {
		return nil, err
	}
	return &Writer{
		ng:  ng,
		buf: gopacket.NewSerializeBuffer(),
		ip4: layers.IPv4{Version: 4, Flags: layers.IPv4DontFragment, TTL: ttl},
		ip6: layers.IPv6{Version: 6, HopLimit: ttl},
	}, nil
}

// Sent records a packet that this host transmits: the octets of p.Vec, from p.Local to p.Remote. An
// invalid p.Local is shown as the unspecified address.
func (w *Writer) Sent(at time.Time, p *rawio.Packet) error {
	return w.packet(at, sent, p.Kind, p.ECN, p.Local, p.Remote, p.Vec...)
}

// Received records a packet that this host received: the octets of p.Data, from p.Remote to p.Local.
func (w *Writer) Received(at time.Time, p *rawio.Packet) error {
	return w.packet(at, received, p.Kind, p.ECN, p.Remote, p.Local, p.Data)
}

// Flush hands everything recorded so far to the underlying writer.
func (w *Writer) Flush() error { return w.ng.Flush() }

// Skipped returns how many packets could not be recorded.
func (w *Writer) Skipped() uint64 { return w.skipped }

func (w *Writer) packet(at time.Time, intf int, kind rawio.Kind, ecn uint8, src, dst netip.AddrPort, vec ...[]byte) error {
	srcIP, dstIP := src.Addr().Unmap(), dst.Addr().Unmap()
	if !srcIP.IsValid() {
		srcIP = unspecified(dstIP)
	}
	n := 0
	for _, v := range vec {
		n += len(v)
	}
	over := src.Port() != 0 || dst.Port() != 0
	room := rawio.MaxMTU // octets for UDP and SCTP: the length field of IPv6 excludes its header
	if dstIP.Is4() {
		room -= 20
	}
	if over {
		room -= 8
	}
	if kind != rawio.KindSCTP || srcIP.BitLen() != dstIP.BitLen() || n > room {
		w.skipped++
		return nil
	}
	if err := w.serialize(srcIP, dstIP, src.Port(), dst.Port(), over, ecn, vec, n); err != nil {
		return err
	}
	b := w.buf.Bytes()
	return w.ng.WritePacket(gopacket.CaptureInfo{
		Timestamp: at, CaptureLength: len(b), Length: len(b), InterfaceIndex: intf,
	}, b)
}

// serialize leaves the packet with its headers in w.buf.
func (w *Writer) serialize(src, dst netip.Addr, srcPort, dstPort uint16, over bool, ecn uint8, vec [][]byte, n int) error {
	if err := w.buf.Clear(); err != nil {
		return err
	}
	b, err := w.buf.AppendBytes(n)
	if err != nil {
		return err
	}
	for _, v := range vec {
		b = b[copy(b, v):]
	}

	proto := layers.IPProtocolSCTP
	if over {
		proto = layers.IPProtocolUDP
	}
	var ip interface {
		gopacket.SerializableLayer
		gopacket.NetworkLayer
	}
	if dst.Is4() {
		w.ip4.TOS, w.ip4.Protocol = ecn&3, proto
		w.ip4.SrcIP, w.ip4.DstIP = src.AsSlice(), dst.AsSlice()
		ip = &w.ip4
	} else {
		w.ip6.TrafficClass, w.ip6.NextHeader = ecn&3, proto
		w.ip6.SrcIP, w.ip6.DstIP = src.AsSlice(), dst.AsSlice()
		ip = &w.ip6
	}

	fix := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if over {
		w.udp.SrcPort, w.udp.DstPort = layers.UDPPort(orDefault(srcPort)), layers.UDPPort(orDefault(dstPort))
		if err := w.udp.SetNetworkLayerForChecksum(ip); err != nil {
			return err
		}
		if err := w.udp.SerializeTo(w.buf, fix); err != nil {
			return err
		}
		if u := w.buf.Bytes(); u[6]|u[7] == 0 {
			u[6], u[7] = 0xff, 0xff // zero on the wire means: no checksum (RFC 768)
		}
	}
	return ip.SerializeTo(w.buf, fix)
}

func orDefault(port uint16) uint16 {
	if port == 0 {
		return udpPort
	}
	return port
}

// unspecified returns 0.0.0.0 or ::, of the family of a.
func unspecified(a netip.Addr) netip.Addr {
	if a.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}
