package wire

import "encoding/binary"

// Lengths of DATA in octets.
const (
	// DataHeaderLen is the length of a DATA chunk in front of its user data.
	DataHeaderLen = 16
	// MaxDataPayload is the most user data that one DATA chunk can hold.
	MaxDataPayload = MaxChunkLen - DataHeaderLen
)

// Flags of DATA and I-DATA.
const (
	FlagE = 0x01 // ending fragment
	FlagB = 0x02 // beginning fragment
	FlagU = 0x04 // unordered
	FlagI = 0x08 // immediate: the SACK should not be delayed

	dataFlags = FlagE | FlagB | FlagU | FlagI
)

// Data is a view of a DATA chunk (RFC 9260 section 3.3.1).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Type = 0    |  Res  |I|U|B|E|            Length             |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              TSN                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|      Stream Identifier S      |   Stream Sequence Number n    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                  Payload Protocol Identifier                  |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	\                                                               \
//	/                 User Data (seq n of Stream S)                 /
//	\                                                               \
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Data []byte

// AsData returns c as a DATA chunk. A chunk without user data is returned too: the receiver needs
// its TSN for the ABORT with CauseNoUserData (RFC 9260 section 6.2).
func AsData(c Chunk) (Data, error) {
	if err := asChunk(c, ChunkData, DataHeaderLen, MaxChunkLen); err != nil {
		return nil, err
	}
	return Data(c), nil
}

// LoneData returns the DATA chunk of a packet that has nothing but one, with user data, and false
// for any other.
func LoneData(p Packet) (Data, bool) {
	c := p[CommonHeaderLen:]
	if len(c) <= DataHeaderLen || ChunkType(c[0]) != ChunkData {
		return nil, false
	}
	n := int(binary.BigEndian.Uint16(c[2:]))
	if n > len(c) || len(c)-n > (-n&3) { // so that it is longer than its header too
		return nil, false
	}
	return Data(c[:n:n]), true
}

// Flags returns the I, U, B and E bits. The reserved bits are masked out.
func (d Data) Flags() uint8 { return d[1] & dataFlags }

// I reports whether the sender asks for a SACK without delay.
func (d Data) I() bool { return d[1]&FlagI != 0 }

// U reports whether the message is unordered; SSN then means nothing.
func (d Data) U() bool { return d[1]&FlagU != 0 }

// B reports whether this is the first fragment of a message.
func (d Data) B() bool { return d[1]&FlagB != 0 }

// E reports whether this is the last fragment of a message.
func (d Data) E() bool { return d[1]&FlagE != 0 }

// TSN returns the Transmission Sequence Number.
func (d Data) TSN() TSN { return TSN(binary.BigEndian.Uint32(d[4:])) }

// Stream returns the Stream Identifier.
func (d Data) Stream() StreamID { return StreamID(binary.BigEndian.Uint16(d[8:])) }

// SSN returns the Stream Sequence Number. Ignore it when U is set.
func (d Data) SSN() SSN { return SSN(binary.BigEndian.Uint16(d[10:])) }

// PPID returns the Payload Protocol Identifier; 16 is the octets 00 00 00 10 in the packet.
func (d Data) PPID() uint32 { return binary.BigEndian.Uint32(d[12:]) }

// Payload returns the user data, without padding.
func (d Data) Payload() []byte { return d[DataHeaderLen:] }

// DataFields are the fields of a DATA chunk.
type DataFields struct {
	Flags      uint8 // FlagI, FlagU, FlagB, FlagE
	TSN        TSN
	Stream     StreamID
	SSN        SSN
	PPID       uint32
	PayloadLen int // octets of user data, 1 to MaxDataPayload
}

// AppendDataHeader appends the DataHeaderLen octets in front of the user data. The caller puts
// PayloadLen octets of user data and Padding(PayloadLen) after it.
func AppendDataHeader(b []byte, f DataFields) []byte {
	b = binary.BigEndian.AppendUint64(b,
		uint64(ChunkData)<<56|uint64(f.Flags&dataFlags)<<48|uint64(uint16(DataHeaderLen+f.PayloadLen))<<32|uint64(
			f.TSN))
	return binary.BigEndian.AppendUint64(b, uint64(f.Stream)<<48|uint64(f.SSN)<<32|uint64(f.PPID))
}
