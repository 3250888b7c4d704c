package wire

import (
	"testing"
)

// FuzzRoundTrip encodes chunks of arbitrary values: what is parsed is what was encoded. kind says
// which chunks.
//
//fuzz:covers ./sctp/wire
func FuzzRoundTrip(f *testing.F) {
	trips := []func(*testing.T, values){roundTripData, roundTripLists, roundTripInit, roundTripControl, roundTripReconfig, roundTripASCONF, roundTripChecksum}
	v4, v6 := []byte{192, 0, 2, 1}, parseHex("20010db8 00000000 00000000 00000001")
	for kind := range trips {
		f.Add(uint8(kind), uint8(3), uint32(7), uint32(16), uint32(9), uint32(1<<16|2), []byte("hello"), v4)
		f.Add(uint8(kind), uint8(0xff), uint32(0xffffffff), uint32(0), uint32(0), uint32(0xffffffff), []byte{0}, v6)
		f.Add(uint8(kind), uint8(0), uint32(12), uint32(4660), uint32(0), uint32(4), parseHex("00020003 00050005"),
			parseHex("00000013 00000013"))
	}
	f.Fuzz(func(t *testing.T, kind, flags uint8, n1, n2, n3, n4 uint32, b, c []byte) {
		trips[int(kind)%len(trips)](t, values{flags, [4]uint32{n1, n2, n3, n4}, b, c})
	})
}
