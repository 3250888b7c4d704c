package mpa

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/internal/crc32c"
)

// Lengths in octets.
const (
	lengthLen      = 2 // ULPDU Length
	crcLen         = 4
	markerLen      = 4
	markerInterval = 512 // from one Marker to the next
	markerGap      = markerInterval - markerLen
)

// Deframer finds FPDUs in what was received. Its zero value is at the first FPDU of a connection
// without CRCs and Markers.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+-------------------------------+
//	|          ULPDU_Length         |  ULPDU ...                    |
//	+-------------------------------+---------------+---------------+
//	|  ...                                          | PAD (0 to 3)  |
//	+-----------------------------------------------+---------------+
//	|                             CRC                               |
//	+---------------------------------------------------------------+
type Deframer struct {
	ChecksCRC  bool
	HasMarkers bool

	// nextMarker is how many octets come before the next Marker; 0 at the first FPDU. All FPDUs are
	// multiples of 4 octets, and so is this.
	nextMarker int
}

// layout is where the parts of an FPDU stand.
type layout struct {
	head    int // octets of a Marker ahead of ULPDU_Length
	ulpdu   int // octets of the ULPDU
	markers int // Markers behind ULPDU_Length
	first   int // octets from ULPDU_Length to the first of these
	total   int // octets in all
}

// layoutOf finds the parts of the FPDU that b begins with; ok is false if b has no ULPDU_Length.
func (d *Deframer) layoutOf(b []byte) (l layout, ok bool) {
	if l.first = d.nextMarker; d.HasMarkers && l.first == 0 {
		l.head, l.first = markerLen, markerGap
	}
	if len(b) < l.head+lengthLen {
		return l, false
	}
	l.ulpdu = int(binary.BigEndian.Uint16(b[l.head:]))
	plain := lengthLen + l.ulpdu + padLen(l.ulpdu) + crcLen
	if d.HasMarkers && plain > l.first {
		l.markers = 1 + (plain-1-l.first)/markerGap
	}
	l.total = l.head + plain + l.markers*markerLen
	return l, true
}

// padLen is the length of the pad behind a ULPDU of n octets.
func padLen(n int) int { return -(lengthLen + n) & 3 }

// Need returns the octets of the FPDU that b begins with, or how many are needed to know.
func (d *Deframer) Need(b []byte) int {
	l, ok := d.layoutOf(b)
	if !ok {
		return l.head + lengthLen
	}
	return l.total
}

// Next returns the ULPDU of the FPDU that b begins with, and the octets of that FPDU. It returns 0
// octets if b does not have all of them. An FPDU with a wrong CRC is an *Error with CodeCRC, one
// with a wrong Marker with CodeMarker; nothing behind it can be trusted. The ULPDU is part of b.
// Markers within are taken out of b, whose octets change then.
func (d *Deframer) Next(b []byte) (ulpdu []byte, n int, err error) {
	l, ok := d.layoutOf(b)
	if !ok || len(b) < l.total {
		return nil, 0, nil
	}
	if sum := l.total - crcLen; d.ChecksCRC && crc32c.Update(0, b[:sum]) != binary.LittleEndian.Uint32(b[sum:]) {
		return nil, 0, &Error{Code: CodeCRC}
	}
	if d.HasMarkers {
		if !d.takeMarkers(b, &l) {
			return nil, 0, &Error{Code: CodeMarker}
		}
		d.nextMarker = l.first + l.markers*markerGap - (l.total - l.head - l.markers*markerLen)
	}
	at := l.head + lengthLen
	return b[at : at+l.ulpdu : at+l.ulpdu], l.total, nil
}

// takeMarkers looks whether all Markers of an FPDU point to its ULPDU_Length, and closes the gaps
// that they leave in the ULPDU.
func (d *Deframer) takeMarkers(b []byte, l *layout) bool {
	if l.head > 0 && fpduPtr(b) != 0 {
		return false
	}
	end := l.head + l.first // of what is in its place
	for i := range l.markers {
		at := l.head + l.first + i*markerInterval
		if fpduPtr(b[at:]) != at-l.head {
			return false
		}
		next := b[at+markerLen : min(at+markerInterval, l.total)]
		end += copy(b[end:], next)
	}
	return true
}

// fpduPtr is the FPDUPTR of a Marker. Its two low bits count as zero (section 4.2).
func fpduPtr(marker []byte) int { return int(binary.BigEndian.Uint16(marker[2:]) &^ 3) }
