//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/rddp-go/rddp/internal/test/netns"
	"github.com/rddp-go/rddp/sctp/wire"
	"github.com/rddp-go/rddp/test/attack/forge"
	"golang.org/x/sys/unix"
)

// wireTap sends and sees whole IP packets at the attacker's end of the wire to the victim. No stack
// is behind it: nothing is answered but what an attack answers.
type wireTap struct {
	fd  int
	to  unix.SockaddrLinklayer
	udp bool // SCTP travels in UDP
	// header is what precedes SCTP in a packet, octets.
	header int
	rnd    *rand.Rand
	seen   *reactionLog
	rows   *rowTracker

	sent, octets atomic.Uint64 // IP packets, and their octets
	sentAs       []sentPacket  // packets, while it is not nil

	mu    sync.Mutex
	peers map[netip.AddrPort]*peer // by own address and SCTP port
}

// sentPacket is when a packet was sent, and what length that had which it, or the datagram in it,
// carried.
type sentPacket struct {
	at     time.Time
	length int
}

// networkOrder is for the protocol field of packet sockets.
func networkOrder(v uint16) uint16 { return v<<8 | v>>8 }

// packetSocket opens a packet socket on a device of a namespace.
func packetSocket(f *family, ns *netns.NS, device string) (fd, index int, err error) {
	err = ns.Do(func() error {
		dev, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		index = dev.Index
		fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, int(networkOrder(f.ether)))
		if err != nil {
			return err
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 8<<20); err != nil {
			return err
		}
		// Reads end now and then, so that the reader can.
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}); err !=
			nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: networkOrder(f.ether), Ifindex: index})
	})
	return fd, index, err
}

// newWireTap opens the attacker's end: gateway is the hardware address of the victim's.
func newWireTap(f *family, ns *netns.NS, device string, gateway net.HardwareAddr, udp bool, seen *reactionLog) (
	*wireTap,
	error) {
	fd, index, err := packetSocket(f, ns, device)
	if err != nil {
		return nil, err
	}
	w := &wireTap{fd: fd, udp: udp, seen: seen, rows: seen.rows, rnd: rand.New(rand.NewPCG(1, 2)),
		peers: make(map[netip.AddrPort]*peer)}
	w.to = unix.SockaddrLinklayer{Protocol: networkOrder(f.ether), Ifindex: index, Halen: 6}
	copy(w.to.Addr[:], gateway)
	w.header = len(w.carrySCTP(f.victimAddr, f.friendAddr, 0, nil))
	return w, nil
}

// sendIP sends one IP packet.
func (w *wireTap) sendIP(ip []byte) error {
	w.sent.Add(1)
	w.octets.Add(uint64(len(ip)))
	if w.sentAs != nil {
		w.sentAs = append(w.sentAs, sentPacket{time.Now(), len(ip) - w.header})
	}
	if err := unix.Sendto(w.fd, ip, 0, &w.to); err != nil {
		return fmt.Errorf("a packet of %d octets: %w", len(ip), err)
	}
	return nil
}

// buildPacket puts an IP header, and those between, in front of what they carry.
func buildPacket(ls ...gopacket.SerializableLayer) []byte {
	buf := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(buf, gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true},
		ls...); err != nil {
		panic(err) // of layers that were made here
	}
	return buf.Bytes()
}

// ipHeader is what gopacket has of IPv4 and IPv6 alike.
type ipHeader interface {
	gopacket.NetworkLayer
	gopacket.SerializableLayer
}

func ipHeaderOf(src, dst netip.Addr, proto layers.IPProtocol) ipHeader {
	if src.Is6() {
		return &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: proto, SrcIP: src.AsSlice(), DstIP: dst.AsSlice()}
	}
	return ipv4Header(src, dst, proto)
}

func ipv4Header(src, dst netip.Addr, proto layers.IPProtocol) *layers.IPv4 {
	return &layers.IPv4{Version: 4, TTL: 64, Protocol: proto, SrcIP: src.AsSlice(), DstIP: dst.AsSlice(),
		Flags: layers.IPv4DontFragment}
}

// encapPort is where the victim takes SCTP in UDP, and where all of it comes from.
const encapPort = 9899

// carrySCTP makes the IP packet that carries an SCTP packet.
func (w *wireTap) carrySCTP(src, dst netip.Addr, from uint16, sctp []byte) []byte {
	w.rows.noteSource(sctp)
	if w.udp {
		return udpDatagram(src, dst, from, sctp)
	}
	return buildPacket(ipHeaderOf(src, dst, layers.IPProtocolSCTP), gopacket.Payload(sctp))
}

// udpDatagram is one of UDP to the encapsulation port.
func udpDatagram(src, dst netip.Addr, from uint16, payload []byte) []byte {
	ip, u := ipHeaderOf(src, dst, layers.IPProtocolUDP), &layers.UDP{SrcPort: layers.UDPPort(from), DstPort: encapPort}
	if err := u.SetNetworkLayerForChecksum(ip); err != nil {
		panic(err)
	}
	b := buildPacket(ip, u, gopacket.Payload(payload))
	if u.Checksum == 0 { // it is sent as its other zero: over IPv6 it must not be left out
		binary.BigEndian.PutUint16(b[len(b)-len(payload)-2:], 0xFFFF)
	}
	return b
}

// sendSCTP sends an SCTP packet with a right checksum.
func (w *wireTap) sendSCTP(src, dst netip.AddrPort, tag uint32, chunks []byte) error {
	return w.sendIP(w.carrySCTP(src.Addr(), dst.Addr(), encapPort, forge.Packet(src.Port(), dst.Port(), tag, chunks)))
}

// sendFragments sends an IP packet in fragments of at most 1500 octets.
func (w *wireTap) sendFragments(src, dst netip.Addr, payload []byte) error {
	const most = 1448 // a multiple of 8 that leaves room for the headers of IPv6
	id := w.rnd.Uint32()
	w.rows.noteSource(payload)
	for at := 0; at < len(payload); at += most {
		end := min(at+most, len(payload))
		if err := w.sendIP(ipFragment(src, dst, id, at, end < len(payload), payload[at:end])); err != nil {
			return err
		}
	}
	return nil
}

// ipFragment is a piece of an SCTP packet from octet at on. IPv6 has a header of its own for it
// (RFC 8200 section 4.5).
func ipFragment(src, dst netip.Addr, id uint32, at int, more bool, piece []byte) []byte {
	if src.Is6() {
		b := binary.BigEndian.AppendUint16([]byte{byte(layers.IPProtocolSCTP), 0}, uint16(at))
		if more {
			b[3]++
		}
		b = binary.BigEndian.AppendUint32(b, id)
		return buildPacket(ipHeaderOf(src, dst, layers.IPProtocolIPv6Fragment), gopacket.Payload(append(b, piece...)))
	}
	ip := ipv4Header(src, dst, layers.IPProtocolSCTP)
	ip.Flags, ip.Id, ip.FragOffset = 0, uint16(id), uint16(at/8)
	if more {
		ip.Flags = layers.IPv4MoreFragments
	}
	return buildPacket(ip, gopacket.Payload(piece))
}

// sendICMP sends an ICMP report about a packet that the victim is to have sent to remote.
func (w *wireTap) sendICMP(from netip.Addr, victim, remote netip.AddrPort, t icmpError, mtu uint32, tag uint32) error {
	head := binary.BigEndian.AppendUint32(
		binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, victim.Port()), remote.Port()), tag)
	quoted := w.carrySCTP(victim.Addr(), remote.Addr(), encapPort,
		append(head, 0, 0, 0, 0, byte(wire.ChunkSack), 0, 0, 16))
	if from.Is4() {
		msg := &layers.ICMPv4{TypeCode: layers.CreateICMPv4TypeCode(t.typ, t.code), Seq: uint16(mtu)}
		return w.sendIP(buildPacket(ipHeaderOf(from, victim.Addr(), layers.IPProtocolICMPv4), msg,
			gopacket.Payload(quoted)))
	}
	ip, msg := ipHeaderOf(from, victim.Addr(), layers.IPProtocolICMPv6),
		&layers.ICMPv6{TypeCode: layers.CreateICMPv6TypeCode(t.typ, t.code)}
	if err := msg.SetNetworkLayerForChecksum(ip); err != nil {
		panic(err)
	}
	return w.sendIP(buildPacket(ip, msg, gopacket.Payload(append(uint32Octets(mtu|t.pointer), quoted...))))
}

// readPackets takes in what the victim sends to the attacker and to the innocent, until done is
// closed.
func (w *wireTap) readPackets(done <-chan struct{}) {
	forEachPacket(w.fd, done, func(ip []byte) {
		src, dst, sctp := w.seen.noteIPPacket(ip, w.udp)
		if sctp == nil {
			return
		}
		w.mu.Lock()
		p := w.peers[netip.AddrPortFrom(dst, binary.BigEndian.Uint16(sctp[2:]))]
		w.mu.Unlock()
		if p != nil {
			p.handlePacket(src, append([]byte(nil), sctp...))
		}
	})
}

// forEachPacket calls f for each IP packet that comes in, until done is closed.
func forEachPacket(fd int, done <-chan struct{}, f func(ip []byte)) {
	b := make([]byte, 1<<16)
	for {
		select {
		case <-done:
			return
		default:
		}
		n, from, err := unix.Recvfrom(fd, b, 0)
		if err != nil {
			continue // nothing came
		}
		if ll, ok := from.(*unix.SockaddrLinklayer); ok && ll.Pkttype != unix.PACKET_OUTGOING {
			f(b[:n])
		}
	}
}
