package forge

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/sctp/wire"
)

// Packet is an SCTP packet with a right checksum.
func Packet(src, dst uint16, tag uint32, chunks ...[]byte) []byte {
	b := wire.AppendHeader(make([]byte, 0, 1500), src, dst, tag)
	for _, c := range chunks {
		b = append(b, c...)
	}
	wire.PutChecksum(b, wire.ChecksumBytes(b))
	return b
}

// AppendChunk appends a chunk of any content, without padding.
func AppendChunk(b []byte, t wire.ChunkType, flags byte, value []byte) []byte {
	b = append(b, byte(t), flags)
	b = binary.BigEndian.AppendUint16(b, uint16(wire.ChunkHeaderLen+len(value)))
	return append(b, value...)
}

// AppendData appends a padded DATA chunk. It sets the length among its fields.
func AppendData(b []byte, f wire.DataFields, payload []byte) []byte {
	f.PayloadLen = len(payload)
	return append(append(wire.AppendDataHeader(b, f), payload...), wire.Padding(len(payload))...)
}

// SetLength sets the length of the last chunk in b, which begins at an offset, after parameters were
// appended to it. A length that the field does not hold stays as it is.
func SetLength(b []byte, at int) []byte {
	if n := len(b) - at; n <= 0xFFFF {
		binary.BigEndian.PutUint16(b[at+2:], uint16(n))
	}
	return b
}

// Padded is a chunk with its padding.
func Padded(b []byte) []byte { return append(b, wire.Padding(len(b))...) }
