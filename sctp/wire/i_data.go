package wire

import "encoding/binary"

// Lengths of I-DATA in octets.
const (
	// IDataHeaderLen is the length of an I-DATA chunk in front of its user data.
	IDataHeaderLen = 20
	// MaxIDataPayload is the most user data that one I-DATA chunk can hold.
	MaxIDataPayload = MaxChunkLen - IDataHeaderLen
)

// IData is a view of an I-DATA chunk (RFC 8260 section 2.1).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|   Type = 64   |  Res  |I|U|B|E|       Length = Variable       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              TSN                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|       Stream Identifier       |           Reserved            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                      Message Identifier                       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|    Payload Protocol Identifier / Fragment Sequence Number     |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	\                                                               \
//	/                           User Data                           /
//	\                                                               \
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type IData []byte

// AsIData returns c as an I-DATA chunk. As with AsData, the user data may be empty.
func AsIData(c Chunk) (IData, error) {
	if err := asChunk(c, ChunkIData, IDataHeaderLen, MaxChunkLen); err != nil {
		return nil, err
	}
	return IData(c), nil
}

// Flags returns the I, U, B and E bits. The reserved bits are masked out.
func (d IData) Flags() uint8 { return d[1] & dataFlags }

// I reports whether the sender asks for a SACK without delay.
func (d IData) I() bool { return d[1]&FlagI != 0 }

// U reports whether the message is unordered.
func (d IData) U() bool { return d[1]&FlagU != 0 }

// B reports whether this is the first fragment of a message.
func (d IData) B() bool { return d[1]&FlagB != 0 }

// E reports whether this is the last fragment of a message.
func (d IData) E() bool { return d[1]&FlagE != 0 }

// TSN returns the Transmission Sequence Number.
func (d IData) TSN() TSN { return TSN(binary.BigEndian.Uint32(d[4:])) }

// Stream returns the Stream Identifier.
func (d IData) Stream() StreamID { return StreamID(binary.BigEndian.Uint16(d[8:])) }

// MID returns the Message Identifier.
func (d IData) MID() MID { return MID(binary.BigEndian.Uint32(d[12:])) }

// PPID returns the Payload Protocol Identifier and true for a first fragment. Other fragments do
// not carry one.
func (d IData) PPID() (uint32, bool) {
	if !d.B() {
		return 0, false
	}
	return binary.BigEndian.Uint32(d[16:]), true
}

// FSN returns the Fragment Sequence Number, which is 0 for a first fragment.
func (d IData) FSN() FSN {
	if d.B() {
		return 0
	}
	return FSN(binary.BigEndian.Uint32(d[16:]))
}

// Payload returns the user data, without padding.
func (d IData) Payload() []byte { return d[IDataHeaderLen:] }

// IDataFields are the fields of an I-DATA chunk.
type IDataFields struct {
	Flags      uint8 // FlagI, FlagU, FlagB, FlagE
	TSN        TSN
	Stream     StreamID
	MID        MID
	PPID       uint32 // sent when FlagB is set
	FSN        FSN    // sent when FlagB is not set
	PayloadLen int    // octets of user data, 1 to MaxIDataPayload
}

// AppendIDataHeader appends the IDataHeaderLen octets in front of the user data. The caller puts
// PayloadLen octets of user data and Padding(PayloadLen) after it.
func AppendIDataHeader(b []byte, f IDataFields) []byte {
	b = appendChunkHeader(b, ChunkIData, f.Flags&dataFlags, IDataHeaderLen+f.PayloadLen)
	b = binary.BigEndian.AppendUint32(b, uint32(f.TSN))
	b = binary.BigEndian.AppendUint16(b, uint16(f.Stream))
	b = append(b, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(f.MID))
	if f.Flags&FlagB != 0 {
		return binary.BigEndian.AppendUint32(b, f.PPID)
	}
	return binary.BigEndian.AppendUint32(b, uint32(f.FSN))
}
