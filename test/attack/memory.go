package attack

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"

	"github.com/rddp-go/rddp/ddp"
)

// memory is all that the victim's program has: pages, each followed by one that nobody may touch.
type memory struct {
	s      *Simulation
	octets []byte
	guards []byte          // what the guard pages hold
	free   []int           // pages
	given  [numPage]uint64 // the secret that each page was given back with, 0: none
	secret map[uint64]bool
	next   uint64
}

const (
	pageLen = 4096
	numPage = 192
)

// Octets that tell what a piece of memory is. An attacker's payload has none of them (forge.Evil).
const (
	unsent  = 0x5A // what a receive holds before anything has come
	granted = 0x11 // what peers may read
)

func newMemory(s *Simulation) *memory {
	m := &memory{s: s, secret: make(map[uint64]bool)}
	words := make([]uint64, 2*numPage*pageLen/8) // aligned for atomics
	m.octets = make([]byte, 0, len(words)*8)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range words {
		m.octets = binary.NativeEndian.AppendUint64(m.octets, rnd.Uint64())
	}
	m.guards = bytes.Clone(m.octets)
	for i := range numPage {
		m.free = append(m.free, i)
	}
	return m
}

// page is memory of one page that the program uses for something.
type page struct {
	m     *memory
	index int
}

func (p page) pageBytes() []byte { return p.m.octets[2*p.index*pageLen:][:pageLen:pageLen] }

// takePage returns a page full of one octet.
func (m *memory) takePage(octet byte) (page, bool) {
	if len(m.free) == 0 {
		return page{}, false
	}
	p := page{m, m.free[0]}
	m.free = m.free[1:]
	b := p.pageBytes()
	for i := range b {
		b[i] = octet
	}
	return p, true
}

// fillWithSecret is what a program does with memory that is its own again: it keeps a secret there,
// which must not be seen.
func (p page) fillWithSecret() {
	m := p.m
	m.next++
	v := 0xA5C3_0000_0000_0000 | m.next<<8 | 0x3C
	m.secret[v], m.given[p.index] = true, v
	b := p.pageBytes()
	for i := 0; i < len(b); i += 8 {
		binary.BigEndian.PutUint64(b[i:], v)
	}
	m.free = append(m.free, p.index)
}

// findSecrets looks for secrets in what the victim sends.
func (m *memory) findSecrets(b []byte) {
	for i := 0; i+8 <= len(b); i++ {
		if b[i] == 0xA5 && m.secret[binary.BigEndian.Uint64(b[i:])] {
			m.s.recordFailure("memory that was given back is sent: %x", b[max(i-24, 0):min(i+16, len(b))])
			return
		}
	}
	for i := 0; i+16 <= len(b); i++ {
		if b[i] == unsent && bytes.Count(b[i:i+16], []byte{unsent}) == 16 {
			m.s.recordFailure("what a receive holds is sent: %x", b[max(i-24, 0):min(i+16, len(b))])
			return
		}
	}
}

// checkGuards looks at the guard pages, and at pages that were given back.
func (m *memory) checkGuards() {
	for i := range numPage {
		at := (2*i + 1) * pageLen
		if !bytes.Equal(m.octets[at:at+pageLen], m.guards[at:at+pageLen]) {
			m.s.recordFailure("the page behind page %d was written to", i)
		}
	}
	for _, i := range m.free {
		b := page{m, i}.pageBytes()
		if v := m.given[i]; v != 0 && (binary.BigEndian.Uint64(b) != v || !bytes.Equal(b[:pageLen-8], b[8:])) {
			m.s.recordFailure("page %d was written to after it was given back", i)
		}
	}
}

// registerPage makes a region of the page.
func (p page) registerPage(access ddp.Access, scope ddp.StreamID) *ddp.Region {
	r, err := p.m.s.table.Register(ddp.Spec{PD: 1, Mem: ddp.Bytes(p.pageBytes()), Access: access, Scope: scope})
	if err != nil {
		p.m.s.recordFailure("register: %v", err)
	}
	return r
}
