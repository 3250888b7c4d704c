package wire

import "encoding/binary"

// initLen is the length of INIT and INIT ACK in front of the parameters.
const initLen = 20

// Init is a view of an INIT or INIT ACK chunk, which share one layout (RFC 9260 sections 3.3.2 and
// 3.3.3).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Type = 1, 2  |  Chunk Flags  |         Chunk Length          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                         Initiate Tag                          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|          Advertised Receiver Window Credit (a_rwnd)           |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|  Number of Outbound Streams   |   Number of Inbound Streams   |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                          Initial TSN                          |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	\                                                               \
//	/              Optional/Variable-Length Parameters              /
//	\                                                               \
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Init []byte

// AsInit returns c as an INIT or INIT ACK chunk. The values of the fixed fields and the parameters
// are not checked.
func AsInit(c Chunk) (Init, error) {
	t := ChunkInit
	if len(c) > 0 && c.Type() == ChunkInitAck {
		t = ChunkInitAck
	}
	if err := asChunk(c, t, initLen, MaxChunkLen); err != nil {
		return nil, err
	}
	return Init(c), nil
}

// Type returns ChunkInit or ChunkInitAck.
func (i Init) Type() ChunkType { return ChunkType(i[0]) }

// Tag returns the Initiate Tag. 0 is not valid.
func (i Init) Tag() uint32 { return binary.BigEndian.Uint32(i[4:]) }

// ARwnd returns the Advertised Receiver Window Credit in octets. Below 1500 is not valid.
func (i Init) ARwnd() uint32 { return binary.BigEndian.Uint32(i[8:]) }

// OutStreams returns the Number of Outbound Streams (OS). 0 is not valid.
func (i Init) OutStreams() uint16 { return binary.BigEndian.Uint16(i[12:]) }

// InStreams returns the Number of Inbound Streams (MIS). 0 is not valid.
func (i Init) InStreams() uint16 { return binary.BigEndian.Uint16(i[14:]) }

// TSN returns the Initial TSN.
func (i Init) TSN() TSN { return TSN(binary.BigEndian.Uint32(i[16:])) }

// Params returns an iterator over the parameters.
func (i Init) Params() Params { return Params{tlvReader{rest: i[initLen:]}} }

// InitFields are the fixed fields of INIT and INIT ACK.
type InitFields struct {
	Tag        uint32 // Initiate Tag, not 0
	ARwnd      uint32 // octets, at least 1500
	OutStreams uint16 // OS, not 0
	InStreams  uint16 // MIS, not 0
	TSN        TSN    // Initial TSN
}

// AppendInit appends an INIT or INIT ACK chunk, as t says, without parameters. Append parameters,
// then call CloseChunk.
func AppendInit(b []byte, t ChunkType, f InitFields) []byte {
	b = appendChunkHeader(b, t, 0, initLen)
	b = binary.BigEndian.AppendUint32(b, f.Tag)
	b = binary.BigEndian.AppendUint32(b, f.ARwnd)
	b = binary.BigEndian.AppendUint16(b, f.OutStreams)
	b = binary.BigEndian.AppendUint16(b, f.InStreams)
	return binary.BigEndian.AppendUint32(b, uint32(f.TSN))
}
