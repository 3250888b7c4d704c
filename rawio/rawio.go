package rawio

import "net/netip"

// MinMTU is the smallest IP-level MTU, in octets, that a link may be configured with. It is what
// RFC 5043 section 9 needs: 512 octets of private data, plus every header above and below SCTP.
const MinMTU = 576

// MaxMTU is the largest IP-level MTU in octets: the total length of an IP packet has 16 bits.
const MaxMTU = 65535

// Overhead returns the octets of IP header in front of an SCTP packet sent to remote. It adds a UDP
// header where remote has an encapsulation port (RFC 6951). IP options and extension headers are
// never sent.
func Overhead(remote netip.AddrPort) int {
	n := 40
	if remote.Addr().Is4() || remote.Addr().Is4In6() {
		n = 20
	}
	if remote.Port() != 0 {
		n += 8
	}
	return n
}

// Kind says what a received Packet is.
type Kind uint8

const (
	// KindSCTP is an SCTP packet. All transmitted packets are of this kind.
	KindSCTP Kind = iota
	// KindPacketTooBig reports ICMP "fragmentation needed" or ICMPv6 "packet too big".
	// Packet.MTU holds the next-hop MTU, Packet.Data the quoted SCTP packet.
	KindPacketTooBig
	// KindProtoUnreachable reports that the peer's host has no SCTP. It stands for ICMP type 3 code
	// 2, ICMPv6 parameter problem code 1 and, over UDP, port unreachable. Packet.Data is the quoted
	// SCTP packet.
	KindProtoUnreachable
	// KindHostUnreachable reports that a router, or this host, has no way to the peer (ICMP type 3
	// codes 0 and 1). The ICMPv6 messages of this kind are not reported: they also come while a
	// neighbour is slow to answer. Packet.Data is the quoted SCTP packet.
	KindHostUnreachable
)

// Packet is one SCTP packet on its way in or out of a Link, or an ICMP report about one.
//
// On receive, Data is a view into Buf and is valid until Release. On transmit, Vec holds the
// packet in pieces that the link writes in order and never joins beforehand.
type Packet struct {
	// Data is the received SCTP packet, common header first. For ICMP kinds it is the part of our
	// own packet that the report quotes; it may be as short as 8 octets.
	Data []byte
	// Vec is the packet to transmit. The link keeps no reference to it after WriteBatch returns.
	Vec [][]byte
	// Buf owns the memory of Data. Several packets may share one Buf.
	Buf *Buf
	// Local is the address on this host, Remote the peer's. For ICMP kinds too: Remote is where
	// the quoted packet was sent to. Port is the UDP encapsulation port (RFC 6951), 0 without UDP.
	// On transmit an invalid Local lets the link choose.
	Local, Remote netip.AddrPort
	// MTU is the next-hop IP-level MTU in octets for KindPacketTooBig, else 0.
	MTU int
	// Kind says what a received packet is.
	Kind Kind
	// ECN is the two-bit ECN field of the IP header (RFC 3168), where the link can see or set it.
	ECN uint8
	// DSCP, on transmit, is the Differentiated Services codepoint (RFC 2474), of six bits.
	// FlowLabel is the flow label of IPv6 (RFC 6437), of 20 bits. 0 leaves them to the link. A link
	// without the feature Marking ignores them.
	DSCP      uint8
	FlowLabel uint32
	// Fragment, on transmit, is the most octets of an IP fragment, headers included. A longer
	// packet is sent as fragments of at most that length. 0 sends it whole, with DF set, or not at
	// all. It is for packets first sent before the path MTU shrank, which cannot be made smaller
	// (RFC 9260 section 6.9). A link that cannot fragment refuses them with ErrTooLong.
	Fragment int
}

// Mark is what a link writes into the IP headers of its packets besides what SCTP decides. The zero
// value is the ordinary one.
type Mark struct {
	TTL   uint8 // or hop limit; 0 means 64, over UDP what the system has
	Class uint8 // TOS or traffic class: the DSCP bits. The lower two are ECN's, and Packet's
}

// Codepoints of the ECN field (RFC 3168 section 5).
const (
	NotECT = 0 // the sender knows nothing of ECN
	ECT1   = 1
	ECT0   = 2 // ECN-capable transport
	CE     = 3 // a router on the way was congested
)

// Release gives a received packet's memory back. It is a no-op without a Buf.
func (p *Packet) Release() {
	if p.Buf != nil {
		p.Buf.Release()
	}
	p.Buf, p.Data = nil, nil
}

// ReleaseAll is Release for each of pkts, and costs less where neighbours lie in one buffer.
func ReleaseAll(pkts []Packet) {
	for i := 0; i < len(pkts); {
		buf, n := pkts[i].Buf, 0
		for ; i < len(pkts) && pkts[i].Buf == buf; i++ {
			pkts[i].Buf, pkts[i].Data = nil, nil
			n++
		}
		if buf != nil {
			buf.releaseMany(n)
		}
	}
}

// Len returns the length in octets of a packet to transmit.
func (p *Packet) Len() int {
	n := 0
	for _, v := range p.Vec {
		n += len(v)
	}
	return n
}

// Link moves SCTP packets. Implementations live in the packages below this one; the package comment
// says how to write another.
type Link interface {
	// ReadBatch fills pkts from the front and returns how many it filled, at least one unless it
	// returns an error. It blocks. The caller releases each packet. Only one goroutine may call
	// ReadBatch at a time. After Close it returns net.ErrClosed, and ErrInterrupted as an
	// Interrupter says. Any other error, or net.ErrClosed without Close, says that the link has
	// ended: all associations end with it.
	ReadBatch(pkts []Packet) (n int, err error)
	// WriteBatch sends pkts in order and returns how many were sent. When n < len(pkts), err says
	// why packet n was refused; the caller may go on with packet n+1. It retains nothing. It is
	// safe for concurrent use. An error that matches net.ErrClosed, os.ErrClosed, io.ErrClosedPipe,
	// EBADF or ENOTSOCK says that the link has ended.
	//
	// It should not block: a link that cannot take a packet drops it, as a network would. A link
	// that never blocks for long says so, see Prompter. Over any other link, a call that has not
	// returned within 100 ms goes on by itself. Until it returns, packets to the same address are
	// dropped.
	WriteBatch(pkts []Packet) (n int, err error)
	// MTU returns the largest SCTP packet, in octets, that fits the path from local to remote
	// without IP fragmentation. The common header counts; the headers of IP and UDP are already
	// taken off.
	MTU(local, remote netip.Addr) int
	// Close ends the link and wakes a blocked ReadBatch, and a WriteBatch that blocks.
	Close() error
}
