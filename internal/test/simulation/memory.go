package simulation

import (
	"bytes"

	"github.com/rddp-go/rddp/ddp"
)

// memory is the whole memory of a host, and beside it what the oracle says that it holds. Regions
// lie in it with other data on both sides, so that one octet too many is seen.
type memory struct {
	w      *World
	h      *Host
	actual []byte
	shadow []byte
	// uncertain marks the octets that an operation under way may be changing: their contents are
	// indeterminate until it completes (RFC 5040 section 5.5).
	uncertain []uint8
	end       int // of what is in use
}

const memorySize = 1 << 20

func newMemory(w *World, h *Host) *memory {
	m := &memory{w: w, h: h, actual: make([]byte, memorySize), uncertain: make([]uint8, memorySize)}
	w.rand.Read(m.actual)
	m.shadow = bytes.Clone(m.actual)
	return m
}

// area is a part of a host's memory.
type area struct {
	m      *memory
	off, n int
}

// allocArea takes n octets that border on nothing else in use.
func (m *memory) allocArea(n int) area {
	const guard = 16
	a := area{m, m.end + guard, n}
	m.end = a.off + n + guard
	if m.end > len(m.actual) {
		panic("world: memory too small for the workload")
	}
	return a
}

// allocAligned is alloc with the first octet at an address that is a multiple of 8.
func (m *memory) allocAligned(n int) area {
	m.end = (m.end + 7) &^ 7
	return m.allocArea(n)
}

func (a area) subArea(off, n int) area { return area{a.m, a.off + off, n} }
func (a area) actualBytes() []byte     { return a.m.actual[a.off : a.off+a.n] }
func (a area) expectedBytes() []byte   { return a.m.shadow[a.off : a.off+a.n] }

// fillRandom puts new random octets into a.
func (a area) fillRandom() {
	a.m.w.rand.Read(a.actualBytes())
	copy(a.expectedBytes(), a.actualBytes())
}

// allowWrites says that an operation may now write here.
func (a area) allowWrites() { a.markLoose(true) }

func (a area) markLoose(v bool) {
	for i := a.off; i < a.off+a.n; i++ {
		if a.m.uncertain[i] &^= isLoose; v {
			a.m.uncertain[i] = isLoose | wasLoose
		}
	}
}

const (
	isLoose  = 1 << iota // an operation under way may be changing the octet
	wasLoose             // one may have been
)

// expectExactly says that the operation is complete and what it must have left here.
func (a area) expectExactly(want []byte, what string) {
	a.markLoose(false)
	if !bytes.Equal(a.actualBytes()[:len(want)], want) {
		i := 0
		for a.actualBytes()[i] == want[i] {
			i++
		}
		a.m.w.recordViolation(Octets, a.m.h, "%s: octet %d of %d is %#x, want %#x", what, i, len(want),
			a.actualBytes()[i], want[i])
	}
	copy(a.expectedBytes(), want)
	rest := a.subArea(len(want), a.n-len(want))
	if !bytes.Equal(rest.actualBytes(), rest.expectedBytes()) {
		a.m.w.recordViolation(Outside, a.m.h, "%s: octets beyond the message changed", what)
	}
}

// acceptEither takes what an operation that may not have been carried out has left here: of every
// octet what was there before, or what the operation, or one behind it, was to write. Nothing may
// write here any more.
func (a area) acceptEither(want, later []byte, what string) {
	b, old := a.actualBytes(), a.expectedBytes()
	for i := range b {
		if b[i] != old[i] && (i >= len(want) || b[i] != want[i]) && (i >= len(later) || b[i] != later[i]) {
			a.m.w.recordViolation(Octets, a.m.h, "%s: octet %d of %d is %#x, which is neither old nor new", what, i,
				a.n, b[i])
		}
	}
	copy(old, b)
	a.markLoose(false)
}

// checkMemory compares all memory but what operations under way may be changing.
func (m *memory) checkMemory(when string) {
	const part = 1024
	for at := 0; at < len(m.actual); at += part {
		if !bytes.Equal(m.actual[at:at+part], m.shadow[at:at+part]) {
			m.checkPart(at, at+part, when)
		}
	}
}

func (m *memory) checkPart(from, to int, when string) {
	for i := from; i < to; i++ {
		if v := m.actual[i]; v != m.shadow[i] && m.uncertain[i]&isLoose == 0 {
			what := Outside
			if m.uncertain[i]&wasLoose != 0 {
				what = Revoked // or settled
			}
			m.w.recordViolation(what, m.h, "%s: octet %d outside of every operation changed from %#x to %#x", when, i,
				m.shadow[i], v)
			return
		}
	}
}

// newRegion makes a region of a.
func (a area) newRegion(access ddp.Access, base uint64, scope ddp.StreamID) *ddp.Region {
	r, err := a.m.h.table.Register(ddp.Spec{PD: 1, Mem: ddp.Bytes(a.actualBytes()), Base: base, Access: access,
		Scope: scope})
	if err != nil {
		panic(err)
	}
	return r
}
