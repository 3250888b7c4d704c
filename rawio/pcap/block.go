package pcap

import (
	"encoding/binary"
	"time"
)

// Blocks, options and values of pcapng (draft-ietf-opsawg-pcapng), of which a file here has one section. Its octets are in little-endian order.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockPacket    = 6 // an Enhanced Packet Block

	optHardware    = 2 // of a section
	optOS          = 3
	optApplication = 4
	optName        = 2 // of an interface
	optResolution  = 9

	byteOrder   = 0x1a2b3c4d
	linkTypeRaw = 101
	nanoseconds = 9 // a resolution, of 10^-9 s
)

var le = binary.LittleEndian

// section appends the head of a file.
func section(b []byte, hardware, os, application string) []byte {
	at := len(b)
	b = le.AppendUint32(begin(b, blockSection), byteOrder)
	b = le.AppendUint32(b, 1)          // version 1.0
	b = le.AppendUint64(b, ^uint64(0)) // of unknown length
	b = option(option(option(b, optHardware, hardware), optOS, os), optApplication, application)
	return end(option(b, 0, ""), at)
}

// intf appends a capture interface of raw IP packets.
func intf(b []byte, name string) []byte {
	at := len(b)
	b = le.AppendUint32(begin(b, blockInterface), linkTypeRaw)
	b = le.AppendUint32(b, 0) // packets of any length
	b = option(option(b, optName, name), optResolution, string([]byte{nanoseconds}))
	return end(option(b, 0, ""), at)
}

// packet appends a packet that was captured whole.
func packet(b []byte, at time.Time, intf int, data []byte) []byte {
	from := len(b)
	b = le.AppendUint32(begin(b, blockPacket), uint32(intf))
	ns := uint64(at.UnixNano())
	b = le.AppendUint32(le.AppendUint32(b, uint32(ns>>32)), uint32(ns))
	b = le.AppendUint32(le.AppendUint32(b, uint32(len(data))), uint32(len(data)))
	return end(pad(append(b, data...), from), from)
}

// begin appends the beginning of a block, without its length.
func begin(b []byte, kind uint32) []byte { return le.AppendUint32(le.AppendUint32(b, kind), 0) }

// end appends the end of the block that begins at from, and says at both ends how long it is.
func end(b []byte, from int) []byte {
	n := uint32(len(b) - from + 4)
	le.PutUint32(b[from+4:], n)
	return le.AppendUint32(b, n)
}

// option appends an option; that with the number 0 ends the list.
func option(b []byte, code uint16, value string) []byte {
	from := len(b)
	b = le.AppendUint16(le.AppendUint16(b, code), uint16(len(value)))
	return pad(append(b, value...), from)
}

// pad appends octets up to the next multiple of 4 behind from.
func pad(b []byte, from int) []byte { return append(b, 0, 0, 0)[:from+(len(b)-from+3)&^3] }
