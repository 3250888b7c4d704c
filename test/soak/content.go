//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
)

const (
	patternSize = 4 << 20
	poison      = 0xee // what memory holds where nothing was written
	guard       = 512  // octets behind each placement that are looked at
)

// What a content is for, so that a request is not mistaken for its reply.
const (
	forRequest = iota
	forReply
	forRead
	forWrite
	forPull
	forPush
)

// pattern is the same random octets in all processes. Every content is a piece of it, at an offset
// that depends on the session and the message, so that a wrong piece, a stale one, or one at the
// wrong place is noticed.
var pattern = func() []byte {
	b := make([]byte, patternSize)
	rand.NewChaCha8([32]byte([]byte("what the soak's messages contain"))).Read(b)
	return b
}()

// pieceAt returns where in pattern the n octets of a content begin.
func pieceAt(id uint64, seq, use, n int) int {
	h := id ^ uint64(seq)<<20 ^ uint64(use)<<60
	h ^= h >> 33 // the finalizer of MurmurHash3
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	h ^= h >> 33
	return int(h % uint64(patternSize-n))
}

func contentPiece(id uint64, seq, use, n int) []byte {
	at := pieceAt(id, seq, use, n)
	return pattern[at : at+n]
}

// isPlaced reports whether the first n octets of area are the content and those behind it
// untouched, and clears the area.
func isPlaced(area []byte, n int, want []byte) bool {
	beyond := area[n:min(n+guard, len(area))]
	ok := bytes.Equal(area[:n], want) && isPoison(beyond)
	fillPoison(area[:n])
	fillPoison(beyond)
	return ok
}

func isPoison(b []byte) bool {
	for _, c := range b {
		if c != poison {
			return false
		}
	}
	return true
}

func fillPoison(b []byte) {
	for i := range b {
		b[i] = poison
	}
}

// head is the beginning of each message.
type head struct {
	id   uint64
	seq  uint32
	turn uint32 // count of replies
	n    uint32 // octets of content, here or elsewhere
	stag uint32
	op   uint8
	slot uint8
	lane uint16 // SCTP: stream, or unordered
}

const headLen = 32

func (h *head) encodeTo(b []byte) {
	binary.BigEndian.PutUint64(b, h.id)
	binary.BigEndian.PutUint32(b[8:], h.seq)
	binary.BigEndian.PutUint32(b[12:], h.turn)
	binary.BigEndian.PutUint32(b[16:], h.n)
	binary.BigEndian.PutUint32(b[20:], h.stag)
	b[24], b[25] = h.op, h.slot
	binary.BigEndian.PutUint16(b[26:], h.lane)
	copy(b[28:], "soak")
}

// decodeFrom reads a head and reports whether it is one.
func (h *head) decodeFrom(b []byte) bool {
	if len(b) < headLen || string(b[28:headLen]) != "soak" {
		return false
	}
	h.id = binary.BigEndian.Uint64(b)
	h.seq = binary.BigEndian.Uint32(b[8:])
	h.turn = binary.BigEndian.Uint32(b[12:])
	h.n = binary.BigEndian.Uint32(b[16:])
	h.stag = binary.BigEndian.Uint32(b[20:])
	h.op, h.slot = b[24], b[25]
	h.lane = binary.BigEndian.Uint16(b[26:])
	return h.seq < perSession && h.n <= patternSize/2
}
