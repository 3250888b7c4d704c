package iphdr

import "testing"

// Sums that were computed by hand: that of RFC 1071 section 3, and with an odd octet, which counts as the
// first of a pair.
func TestSumsOfRFC1071(t *testing.T) {
	for _, row := range []struct {
		octets []byte
		want   uint16
	}{
		{[]byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}, 0xddf2},
		{[]byte{0x12}, 0x1200},
		{[]byte{0x12, 0x34, 0x56}, 0x6834},
		{[]byte{0xff, 0xff, 0xff, 0xff, 0x01}, 0x0100},
		{[]byte{0xff, 0xff, 0x00, 0x01}, 0x0001},
	} {
		if got := fold(Sum(0, row.octets)); got != row.want {
			t.Errorf("sum of %x is %#04x, want %#04x", row.octets, got, row.want)
		}
	}
}
