package llp

import "encoding/binary"

// Enhanced setup (RFC 6581): 4 octets of connection data stand ahead of the private data. By these
// the two ends agree on how many RDMA Reads may be pending each way.

const (
	// MaxPrivateData is the most private data that a request or its answer carries (RFC 5043
	// section 5.2.3, RFC 5044 section 7.1.1).
	MaxPrivateData = 512
	// MaxDepth is the largest IRD or ORD that a Setup can carry (section 9).
	MaxDepth = 0x3FFE
	// NotNegotiated in place of an IRD or ORD leaves it to the upper layer (section 9.1).
	NotNegotiated = 0x3FFF
	// SetupLen is the length of the connection data in octets.
	SetupLen = 4
	// MaxEnhancedPrivateData is the most private data of an enhanced message: the connection data
	// counts (section 7).
	MaxEnhancedPrivateData = MaxPrivateData - SetupLen
)

// RTR is a set of Ready to Receive indications. The initiator sends one first in the peer-to-peer
// model (section 9.2). Each is a message of no octets.
type RTR uint8

// The indications.
const (
	RTRSend  RTR = 1 << iota // takes a receive of the responder
	RTRWrite                 // RDMA Write: any DDP stream can take it
	RTRRead                  // RDMA Read: needs an IRD of 1
)

// LeftToULP leaves both depths to the upper layer.
var LeftToULP = Setup{IRD: NotNegotiated, ORD: NotNegotiated}

// Setup is the connection data of an enhanced message (section 9). From this side it is a request
// or a commitment, see Setup.Answer. Each depth is at most MaxDepth, or NotNegotiated.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+---------------------------+-+-+---------------------------+
//	|A|B|        IRD                |C|D|        ORD                |
//	+-+-+---------------------------+-+-+---------------------------+
type Setup struct {
	IRD        uint16 // inbound RDMA Reads that the sender of the Setup serves at a time
	ORD        uint16 // outbound RDMA Reads that it wants to have pending, or will have at most
	PeerToPeer bool   // A: the initiator sends one of RTR ahead of all else
	RTR        RTR    // B, C, D: Send, Write, Read; what the sender supports
}

const (
	bitA      = 0x80000000
	bitB      = 0x40000000
	bitC      = 0x00008000
	bitD      = 0x00004000
	maskDepth = 0x3FFF
	shiftIRD  = 16
)

var rtrBits = [...]struct {
	rtr RTR
	bit uint32
}{{RTRSend, bitB}, {RTRWrite, bitC}, {RTRRead, bitD}}

// encodeWord encodes s. B, C and D are 0 when A is.
func (s Setup) encodeWord() uint32 {
	w := uint32(s.IRD&maskDepth)<<shiftIRD | uint32(s.ORD&maskDepth)
	if s.PeerToPeer {
		w |= bitA
		for _, f := range rtrBits {
			if s.RTR&f.rtr != 0 {
				w |= f.bit
			}
		}
	}
	return w
}

// parseWord decodes connection data. B, C and D are ignored when A is 0.
func parseWord(w uint32) Setup {
	s := Setup{IRD: uint16(w >> shiftIRD & maskDepth), ORD: uint16(w & maskDepth), PeerToPeer: w&bitA != 0}
	for _, f := range rtrBits {
		if s.PeerToPeer && w&f.bit != 0 {
			s.RTR |= f.rtr
		}
	}
	return s
}

// JoinSetup returns the private data of an enhanced message: s, and then the upper layer's.
func JoinSetup(s Setup, private []byte) []byte {
	return append(AppendSetup(make([]byte, 0, SetupLen+len(private)), s), private...)
}

// AppendSetup appends the connection data to b.
func AppendSetup(b []byte, s Setup) []byte { return binary.BigEndian.AppendUint32(b, s.encodeWord()) }

// SplitSetup takes the private data of an enhanced message apart. It returns nil if there is no
// connection data, which section 7 can be read to allow of a Reject.
func SplitSetup(b []byte) (*Setup, []byte) {
	if len(b) < SetupLen {
		return nil, b
	}
	s := parseWord(binary.BigEndian.Uint32(b))
	return &s, b[SetupLen:]
}

// CheckSetup refuses depths that do not fit their field (ErrDepth), and private data that is too
// long to follow them (ErrPrivateDataTooLong).
func CheckSetup(s Setup, private []byte) error {
	switch {
	case s.IRD > NotNegotiated || s.ORD > NotNegotiated:
		return ErrDepth
	case len(private) > MaxEnhancedPrivateData:
		return ErrPrivateDataTooLong
	}
	return nil
}

// MatchModel gives an answer the connection model that was asked for (section 9.2).
func MatchModel(s, asked Setup) Setup {
	s.PeerToPeer = asked.PeerToPeer
	if s.RTR == 0 {
		s.RTR = RTRWrite
	}
	return s
}

// Answer is the responder's part of the negotiation (sections 9.1 and 9.2). asked is the
// initiator's Setup. own are the responder's depths and the indications that it can take. The
// responder's ORD is that of the reply, or its own where that is NotNegotiated. Its IRD is its own.
func (own Setup) Answer(asked Setup) (reply Setup) {
	reply = Setup{IRD: own.IRD, ORD: own.ORD, RTR: own.RTR & asked.RTR}
	if asked.ORD == NotNegotiated {
		reply.IRD = NotNegotiated
	}
	switch {
	case asked.IRD == NotNegotiated:
		reply.ORD = NotNegotiated
	case own.ORD != NotNegotiated:
		reply.ORD = min(own.ORD, asked.IRD)
	}
	if reply.RTR == 0 {
		reply.RTR = own.RTR // none that was asked for: say what there is
	}
	return MatchModel(reply, asked)
}

// Conclude is the initiator's part of the negotiation, once the responder has replied to own, the
// initiator's Setup. It returns the initiator's ORD, NotNegotiated where that stays as it is. It
// also returns the indication to send first, 0 if none. Errors: ErrInsufficientIRD, ErrNoRTR.
func (own Setup) Conclude(reply Setup) (ord uint16, first RTR, err error) {
	ord = own.ORD
	switch {
	case reply.IRD == NotNegotiated:
		ord = NotNegotiated
	case own.ORD != NotNegotiated:
		ord = min(own.ORD, reply.IRD)
	}
	if reply.ORD != NotNegotiated && reply.ORD > own.IRD { // which NotNegotiated is above
		return ord, 0, ErrInsufficientIRD
	}
	if !own.PeerToPeer && !reply.PeerToPeer {
		return ord, 0, nil
	}
	for _, first := range [...]RTR{RTRWrite, RTRRead, RTRSend} { // what costs the responder least
		if own.PeerToPeer && reply.PeerToPeer && own.RTR&reply.RTR&first != 0 && (first != RTRRead || ord > 0) {
			return ord, first, nil
		}
	}
	return ord, 0, ErrNoRTR
}
