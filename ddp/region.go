package ddp

import (
	"runtime"
	"sync/atomic"
)

// PD identifies a Protection Domain (section 8.2). It is local: it never travels on the wire.
type PD uint32

// StreamID identifies a DDP Stream locally (section 8.2). 0 names no stream.
type StreamID uint64

// Access is a set of rights to a region (section 8.3.1).
type Access uint8

// Access rights. LocalWrite lets the region be the sink of the local user's own requests (receives,
// RDMA Read responses); the remote rights let the peer write to it, read from it, or do atomic
// operations on it. RFC 7306 has no right of its own for those: RemoteAtomic is the right to read and to
// write by them alone, so that memory for atomics can be kept from other access (its section 5).
const (
	LocalWrite Access = 1 << iota
	RemoteRead
	RemoteWrite
	RemoteAtomic
)

// Region is a tagged buffer: memory that an STag names (section 5.1.1).
//
// Concurrency: Base, Len and Memory may be called by the holder of the table's mutator lock,
// and by a ULP inside AdmitTagged for the region it is shown. STag, PD, Scope, Access and Valid are safe at any time.
type Region struct {
	stag   STag
	pd     PD
	scope  StreamID
	access atomic.Uint32 // an Access
	mem    Memory
	base   uint64

	// gen counts the changes of the buffer (Rebind): what was resolved before one is void.
	gen atomic.Uint32
	// parent is the region that a memory window is bound to, as that was at parentGen; see window.go.
	parent    *Region
	parentGen uint32

	table *Table

	// word counts the accesses in flight (low bits) beside the two bits below. mem, base and access
	// change only while wordHold keeps new accesses out and the count is zero.
	word atomic.Uint32
}

const (
	wordInvalid = 1 << 31 // new accesses fail
	wordHold    = 1 << 30 // new accesses wait
	wordCount   = wordHold - 1
)

// STag returns the Steering Tag.
func (r *Region) STag() STag { return r.stag }

// PD returns the Protection Domain.
func (r *Region) PD() PD { return r.pd }

// Scope returns the only stream that may use the STag, or 0 when every stream of the PD may.
func (r *Region) Scope() StreamID { return r.scope }

// Access returns the rights granted.
func (r *Region) Access() Access { return Access(r.access.Load()) }

// grants reports whether the buffer is still the one of that generation, with all the rights that are needed.
func (r *Region) grants(gen uint32, need Access) bool {
	return r.gen.Load() == gen && r.Access()&need == need
}

// Base returns the Tagged Offset of the first octet.
func (r *Region) Base() uint64 { return r.base }

// Len returns the length in octets.
func (r *Region) Len() uint64 { return r.mem.Len() }

// Memory returns the memory behind the region.
func (r *Region) Memory() Memory { return r.mem }

// far reports whether the memory is taken to be in no cache, for who places or cuts n octets at a time.
func (r *Region) far(n uint64) bool { return far(r.table.ram.Load(), n) }

// Valid reports whether the STag may be used.
func (r *Region) Valid() bool {
	return r.word.Load()&wordInvalid == 0 && (r.parent == nil || r.parent.Valid() && r.attached())
}

// Invalidate revokes the STag (sections 8.3 and 8.3.1 item 6). It waits for accesses in flight: once
// it has returned, no stream writes to the memory any more. It must not be called from within
// ULP.AdmitTagged or ULP.Buffer. Invalidate is safe for concurrent use and may be repeated.
func (r *Region) Invalidate() {
	r.word.Or(wordInvalid)
	r.drain()
}

// acquire begins an access and reports whether the region is valid; release ends it. An access through a
// window is one to the region behind it as well, so that whoever waits for the one waits for the other.
func (r *Region) acquire() bool {
	if r.parent == nil {
		return r.enter()
	}
	if !r.parent.enter() {
		return false
	}
	if r.attached() && r.enter() {
		return true
	}
	r.parent.leave()
	return false
}

func (r *Region) release() {
	r.leave()
	if r.parent != nil {
		r.parent.leave()
	}
}

func (r *Region) enter() bool {
	for {
		w := r.word.Add(1)
		if w&(wordInvalid|wordHold) == 0 {
			return true
		}
		r.leave()
		if w&wordInvalid != 0 {
			return false
		}
		runtime.Gosched() // held for the length of one change
	}
}

func (r *Region) leave() { r.word.Add(^uint32(0)) }

// drain waits until no access is in flight. It ends because an access lasts for a few copies and no new
// one begins.
func (r *Region) drain() {
	for r.word.Load()&wordCount != 0 {
		runtime.Gosched()
	}
}

// hold keeps new accesses out and waits for those in flight; resume lets them in again.
func (r *Region) hold() {
	r.word.Or(wordHold)
	r.drain()
}

// contains checks that [to, to+n) is within the registered range, octet by octet and without
// arithmetic that can wrap. It returns the offset of to within the memory.
func (r *Region) contains(to, n uint64) (off uint64, ok bool) {
	size := r.mem.Len()
	if to < r.base || to-r.base > size || n > size-(to-r.base) {
		return 0, false
	}
	return to - r.base, true
}

func (r *Region) resume() { r.word.And(^uint32(wordHold)) }
