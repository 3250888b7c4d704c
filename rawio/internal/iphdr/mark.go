package iphdr

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/rawio"
)

// Amend writes a mark into a header that Put4, Put6 or Fragment has written.
func Amend(b []byte, m rawio.Mark) {
	if m == (rawio.Mark{}) {
		return
	}
	class := m.Class &^ 3
	if b[0]>>4 == 6 {
		b[0], b[1] = b[0]|class>>4, b[1]|class<<4
		if m.TTL > 0 {
			b[7] = m.TTL
		}
		return
	}
	b[1] |= class
	if m.TTL > 0 {
		b[8] = m.TTL
	}
	binary.BigEndian.PutUint16(b[10:], 0)
	binary.BigEndian.PutUint16(b[10:], ^fold(Sum(0, b[:Len4])))
}
