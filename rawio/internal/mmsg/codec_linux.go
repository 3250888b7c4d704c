package mmsg

import (
	"net/netip"
	"sync/atomic"

	"github.com/rddp-go/rddp/rawio"
)

// Codec is what distinguishes one kind of link from another. Decode and DecodeError run on the
// reading goroutine; Encode may run on several goroutines at a time. None of them may keep its
// arguments.
type Codec interface {
	// Decode turns a datagram into a packet and reports whether it is one. It fills in Data, Local,
	// Remote and ECN; Data must be a view into m.Data.
	Decode(m *Message, p *rawio.Packet) bool
	// DecodeError turns an ICMP error into a packet of another kind, likewise.
	DecodeError(e *ICMPError, p *rawio.Packet) bool
	// Encode says what goes in front of a packet's Vec and where the datagram goes.
	Encode(p *rawio.Packet, o *Outgoing) error
}

// Message is one received datagram.
type Message struct {
	Data    []byte
	From    netip.AddrPort
	Control Control
}

// ICMPError is one ICMP or ICMPv6 message from a socket's error queue.
type ICMPError struct {
	V6         bool
	Type, Code uint8
	Info       uint32         // next-hop MTU, where there is one
	To         netip.AddrPort // where the quoted packet was sent
	Data       []byte         // the quote, from what the socket's kind calls its payload
	Control    Control
}

// FamilyError reports a packet from an IPv4 address to an IPv6 one, or the reverse.
type FamilyError struct{ Src, Dst netip.Addr }

func (e *FamilyError) Error() string {
	return "cannot send from " + e.Src.String() + " to " + e.Dst.String() + ": the address families differ"
}

// Stats counts packets and the reasons for losing them.
type Stats struct {
	RxPackets   atomic.Uint64 // handed up, ICMP reports included
	RxICMP      atomic.Uint64 // ICMP reports handed up
	RxMalformed atomic.Uint64 // refused by the codec
	RxIgnored   atomic.Uint64 // ICMP messages that SCTP ignores
	TxPackets   atomic.Uint64 // taken by the kernel
	TxFull      atomic.Uint64 // ENOBUFS, or EAGAIN for a second
	TxTooLong   atomic.Uint64 // EMSGSIZE
	TxErrors    atomic.Uint64 // every other refusal

	RxCalls, TxCalls atomic.Uint64 // system calls that received or sent
	TxUnsegmented    atomic.Uint64 // sockets that gave up UDP_SEGMENT, as the kernel refused it
}

// CountSent counts a packet by what became of it.
func (s *Stats) CountSent(err error) {
	switch err {
	case nil:
		s.TxPackets.Add(1)
	case rawio.ErrFull:
		s.TxFull.Add(1)
	case rawio.ErrTooLong:
		s.TxTooLong.Add(1)
	default:
		s.TxErrors.Add(1)
	}
}
