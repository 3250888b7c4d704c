package pcap

import (
	"encoding/binary"
	"time"
)

// Blocks, options and values of pcapng (draft-ietf-opsawg-pcapng), of which a file here has one
// section. Its octets are in little-endian order.
const (
	blockSection   = 0x0a0d0d0a
	blockInterface = 1
	blockPacket    = 6 // an Enhanced Packet Block

	optHardware    = 2 // of a section
	optOS          = 3
	optApplication = 4
	optName        = 2 // of an interface
	optResolution  = 9

	byteOrderMagic = 0x1a2b3c4d
	linkTypeRaw    = 101
	nanoseconds    = 9 // a resolution, of 10^-9 s
)

var le = binary.LittleEndian

// appendSection appends the head of a file.
func appendSection(b []byte, hardware, os, application string) []byte {
	at := len(b)
	b = le.AppendUint32(beginBlock(b, blockSection), byteOrderMagic)
	b = le.AppendUint32(b, 1)          // version 1.0
	b = le.AppendUint64(b, ^uint64(0)) // of unknown length
	b = appendOption(appendOption(appendOption(b, optHardware, hardware), optOS, os), optApplication, application)
	return endBlock(appendOption(b, 0, ""), at)
}

// appendInterface appends a capture interface of raw IP packets.
func appendInterface(b []byte, name string) []byte {
	at := len(b)
	b = le.AppendUint32(beginBlock(b, blockInterface), linkTypeRaw)
	b = le.AppendUint32(b, 0) // packets of any length
	b = appendOption(appendOption(b, optName, name), optResolution, string([]byte{nanoseconds}))
	return endBlock(appendOption(b, 0, ""), at)
}

// appendPacket appends a packet that was captured whole.
func appendPacket(b []byte, at time.Time, intf int, data []byte) []byte {
	from := len(b)
	b = le.AppendUint32(beginBlock(b, blockPacket), uint32(intf))
	ns := uint64(at.UnixNano())
	b = le.AppendUint32(le.AppendUint32(b, uint32(ns>>32)), uint32(ns))
	b = le.AppendUint32(le.AppendUint32(b, uint32(len(data))), uint32(len(data)))
	return endBlock(padTo4(append(b, data...), from), from)
}

// beginBlock appends the beginning of a block, without its length.
func beginBlock(b []byte, kind uint32) []byte { return le.AppendUint32(le.AppendUint32(b, kind), 0) }

// endBlock appends the end of the block that begins at from, and says at both ends how long it is.
func endBlock(b []byte, from int) []byte {
	n := uint32(len(b) - from + 4)
	le.PutUint32(b[from+4:], n)
	return le.AppendUint32(b, n)
}

// appendOption appends an option; that with the number 0 ends the list.
func appendOption(b []byte, code uint16, value string) []byte {
	from := len(b)
	b = le.AppendUint16(le.AppendUint16(b, code), uint16(len(value)))
	return padTo4(append(b, value...), from)
}

// padTo4 appends octets up to the next multiple of 4 behind from.
func padTo4(b []byte, from int) []byte { return append(b, 0, 0, 0)[:from+(len(b)-from+3)&^3] }
