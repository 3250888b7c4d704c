package mpa

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/crc32c"
	"github.com/rddp-go/rddp/internal/prefetch"
)

const (
	// copiedBody is the longest piece of user memory that is copied behind its header: to name it
	// to the system apart costs more.
	copiedBody = 256
	// MaxBatch bounds the octets that are written at once. An FPDU may go beyond it.
	MaxBatch = 256 << 10
	// maxRun is how many segments are cut at once.
	maxRun = 16
	// maxPieces is how many pieces one system call takes on all systems, with room for an FPDU.
	maxPieces = 512
	// minOwn and maxOwn bound the octets of a batch that are not the user's: headers, trailers,
	// Markers, and what is copied.
	minOwn = 2 << 10
	maxOwn = 16 << 10
)

// Batch is FPDUs that are written at once, in pieces: those of the user's memory, and between them
// octets of its own. Its zero value is empty.
type Batch struct {
	pieces [][]byte
	own    []byte // its capacity never changes while pieces refer to it
	begun  int    // octets of own that are in pieces
	octets int    // of all
	ends   []int  // octets up to the end of each FPDU
	isFull bool   // own had no room for another FPDU
}

// Octets returns the octets of all FPDUs.
func (b *Batch) Octets() int { return b.octets }

// FPDUs returns the number of FPDUs.
func (b *Batch) FPDUs() int { return len(b.ends) }

// Pieces returns the octets, in order. They are valid until Reset.
func (b *Batch) Pieces() [][]byte {
	b.flushOwn()
	return b.pieces
}

// Reset makes the batch empty. One that had no room gets more of it.
func (b *Batch) Reset() {
	size := max(cap(b.own), minOwn)
	if b.isFull {
		size = min(2*size, maxOwn)
	}
	if size != cap(b.own) {
		b.own = make([]byte, 0, size)
	}
	clear(b.pieces)
	*b = Batch{pieces: b.pieces[:0], own: b.own[:0], ends: b.ends[:0]}
}

// flushOwn makes a piece of the octets of its own that are in none.
func (b *Batch) flushOwn() {
	if n := len(b.own); n > b.begun {
		b.pieces = append(b.pieces, b.own[b.begun:n:n])
		b.begun = n
	}
}

// Framer makes FPDUs of segments. Its zero value is at the first FPDU of a connection without CRCs
// and Markers.
type Framer struct {
	MakesCRC     bool
	MakesMarkers bool

	nextMarker int // octets before the next Marker, 0 at the first FPDU
	// Of the FPDU that is being made.
	sum         uint32
	sinceHeader int // octets since the beginning of ULPDU_Length
	head        [lengthLen + ddp.MaxHeaderLen]byte
}

// HasRoom reports whether a batch takes another FPDU whose ULPDU has at most mulpdu octets.
func (f *Framer) HasRoom(b *Batch, mulpdu int) bool {
	if b.octets >= MaxBatch || len(b.pieces) > maxPieces-2*f.mostMarkers(mulpdu)-8 {
		return false
	}
	if cap(b.own) == 0 {
		b.Reset()
	}
	b.isFull = cap(b.own)-len(b.own) < lengthLen+ddp.MaxHeaderLen+2*copiedBody+3+crcLen+markerLen*f.mostMarkers(mulpdu)
	return !b.isFull
}

// RoomForRun returns how many FPDUs, each with a ULPDU of mulpdu octets, AppendRun may append to a
// batch that is to have most octets.
func (f *Framer) RoomForRun(b *Batch, mulpdu, most int) int {
	if f.MakesMarkers || mulpdu <= ddp.MaxHeaderLen+copiedBody {
		return 0
	}
	fpdu := lengthLen + mulpdu + padLen(mulpdu) + crcLen
	return min((min(most, MaxBatch)-b.octets)/fpdu, (maxPieces-8-len(b.pieces))/2,
		(cap(b.own)-len(b.own))/(lengthLen+ddp.MaxHeaderLen+3+crcLen), maxRun)
}

// AppendRun makes FPDUs of the n segments of a run, and appends them to the batch, which has room.
// There are no Markers.
func (f *Framer) AppendRun(b *Batch, run *ddp.Run, n int) {
	size, header := len(run.Body)/n, run.HeaderLen()
	ulpdu := header + size
	binary.BigEndian.PutUint16(f.head[:], uint16(ulpdu))
	head := f.head[:lengthLen+header]
	pad := zeros[:padLen(ulpdu)]
	for i := range n {
		run.PutHeader(i, head[lengthLen:])
		b.own = append(b.own, head...)
		b.flushOwn()
		body := run.Body[i*size:][:size:size]
		prefetch.ForRead(run.Beyond[min(i*size, len(run.Beyond)):min((i+1)*size, len(run.Beyond))])
		b.pieces = append(b.pieces, body)
		sum := uint32(0)
		if f.MakesCRC {
			sum = crc32c.Update(crc32c.Update(crc32c.Update(0, head), body), pad)
		}
		b.own = binary.LittleEndian.AppendUint32(append(b.own, pad...), sum)
		b.octets += len(head) + size + len(pad) + crcLen
		b.ends = append(b.ends, b.octets)
	}
}

// mostMarkers bounds the Markers that go with one FPDU.
func (f *Framer) mostMarkers(mulpdu int) int {
	if !f.MakesMarkers {
		return 0
	}
	return 2 + (mulpdu+lengthLen+3+crcLen)/markerGap
}

// Append makes an FPDU of a segment and appends it to the batch, which has room. The batch refers
// to the user's memory.
func (f *Framer) Append(b *Batch, seg *ddp.Segment) {
	n := seg.Len()
	f.sum, f.sinceHeader = 0, 0
	binary.BigEndian.PutUint16(f.head[:], uint16(n))
	copy(f.head[lengthLen:], seg.Header[:seg.HeaderLen])
	f.appendOwn(b, f.head[:lengthLen+seg.HeaderLen])
	for _, body := range seg.Body {
		if len(body) <= copiedBody {
			f.appendOwn(b, body)
		} else {
			f.appendBody(b, body)
		}
	}
	f.appendOwn(b, zeros[:padLen(n)])
	f.markIfDue(b) // a Marker ahead of the CRC belongs to what it covers
	f.nextMarker -= crcLen
	b.own = binary.LittleEndian.AppendUint32(b.own, f.sum)
	b.octets += crcLen
	b.ends = append(b.ends, b.octets)
}

var zeros [3]byte

// appendOwn appends octets by copy, with the Markers that are due.
func (f *Framer) appendOwn(b *Batch, p []byte) {
	for len(p) > 0 {
		n := f.nextStretch(b, len(p))
		b.own = append(b.own, p[:n]...)
		f.count(b, p[:n])
		p = p[n:]
	}
}

// appendBody appends the user's memory, with the Markers that are due.
func (f *Framer) appendBody(b *Batch, p []byte) {
	for len(p) > 0 {
		n := f.nextStretch(b, len(p))
		b.flushOwn()
		b.pieces = append(b.pieces, p[:n:n])
		f.count(b, p[:n])
		p = p[n:]
	}
}

// nextStretch returns how many of n octets come before the next Marker. It makes one that is due.
func (f *Framer) nextStretch(b *Batch, n int) int {
	if !f.MakesMarkers {
		return n
	}
	f.markIfDue(b)
	return min(n, f.nextMarker)
}

// count takes that octets were appended.
func (f *Framer) count(b *Batch, p []byte) {
	if f.MakesCRC {
		f.sum = crc32c.Update(f.sum, p)
	}
	f.nextMarker -= len(p)
	f.sinceHeader += len(p)
	b.octets += len(p)
}

// markIfDue appends the Marker that is due, if one is. It points to the FPDU that is being made.
func (f *Framer) markIfDue(b *Batch) {
	if !f.MakesMarkers || f.nextMarker != 0 {
		return
	}
	at := len(b.own)
	b.own = binary.BigEndian.AppendUint32(b.own, uint32(f.sinceHeader))
	ahead := f.sinceHeader == 0 // of ULPDU_Length
	f.count(b, b.own[at:])
	if f.nextMarker = markerGap; ahead {
		f.sinceHeader = 0
	}
}
