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

// Access rights. LocalWrite lets the region be the sink of the local user's own requests: receives,
// RDMA Read responses. The remote rights let the peer write to it, read from it, or do atomic
// operations on it.
//
// RFC 7306 has no right of its own for atomics. RemoteAtomic is the right to read and write by them
// alone, so that memory for atomics can be kept from other access (its section 5).
const (
	LocalWrite Access = 1 << iota
	RemoteRead
	RemoteWrite
	RemoteAtomic
)

// Region is a tagged buffer: memory that an STag names (section 5.1.1).
//
// Concurrency: the holder of the table's mutator lock may call Base, Len and Memory. So may a ULP
// inside AdmitTagged, for the region it is shown. STag, PD, Scope, Access and Valid are safe at any
// time.
type Region struct {
	stag   STag
	pd     PD
	scope  StreamID
	access atomic.Uint32 // an Access
	mem    Memory
	base   uint64

	// bufferGen counts the changes of the buffer (Rebind): what was resolved before one is void.
	bufferGen atomic.Uint32
	// parent is the region that a memory window is bound to, in its generation parentGen; see
	// window.go.
	parent    *Region
	parentGen uint32

	table *Table

	// accessState counts the accesses in flight (low bits) beside the two bits below. mem, base and
	// access change only while accessBlocked keeps new accesses out and the count is zero.
	accessState atomic.Uint32
}

const (
	accessInvalid   = 1 << 31 // new accesses fail
	accessBlocked   = 1 << 30 // new accesses wait
	accessCountMask = accessBlocked - 1
)

// STag returns the Steering Tag.
func (r *Region) STag() STag { return r.stag }

// PD returns the Protection Domain.
func (r *Region) PD() PD { return r.pd }

// Scope returns the only stream that may use the STag, or 0 when every stream of the PD may.
func (r *Region) Scope() StreamID { return r.scope }

// Access returns the rights granted.
func (r *Region) Access() Access { return Access(r.access.Load()) }

// grants reports whether the buffer is still that of generation gen, with all the rights needed.
func (r *Region) grants(gen uint32, need Access) bool {
	return r.bufferGen.Load() == gen && r.Access()&need == need
}

// Base returns the Tagged Offset of the first octet.
func (r *Region) Base() uint64 { return r.base }

// Len returns the length in octets.
func (r *Region) Len() uint64 { return r.mem.Len() }

// Memory returns the memory behind the region.
func (r *Region) Memory() Memory { return r.mem }

// shouldPrefetch reports whether the memory is likely to be in no cache. n is the octets that are
// placed or cut at a time.
func (r *Region) shouldPrefetch(n uint64) bool { return shouldPrefetch(r.table.ramOctets.Load(), n) }

// Valid reports whether the STag may be used.
func (r *Region) Valid() bool {
	return r.accessState.Load()&accessInvalid == 0 && (r.parent == nil || r.parent.Valid() && r.parentUnchanged())
}

// Invalidate revokes the STag (sections 8.3 and 8.3.1 item 6). It waits for accesses in flight:
// once it has returned, no stream writes to the memory any more. It must not be called from within
// ULP.AdmitTagged or ULP.Buffer. Invalidate is safe for concurrent use and may be repeated.
func (r *Region) Invalidate() {
	r.accessState.Or(accessInvalid)
	r.waitForAccesses()
}

// beginAccess begins an access and reports whether the region is valid; endAccess ends it. An
// access through a window is also one to the region behind it, so a wait for either waits for both.
func (r *Region) beginAccess() bool {
	if r.parent == nil {
		return r.addAccess()
	}
	if !r.parent.addAccess() {
		return false
	}
	if r.parentUnchanged() && r.addAccess() {
		return true
	}
	r.parent.removeAccess()
	return false
}

func (r *Region) endAccess() {
	r.removeAccess()
	if r.parent != nil {
		r.parent.removeAccess()
	}
}

func (r *Region) addAccess() bool {
	for {
		w := r.accessState.Add(1)
		if w&(accessInvalid|accessBlocked) == 0 {
			return true
		}
		r.removeAccess()
		if w&accessInvalid != 0 {
			return false
		}
		runtime.Gosched() // held for the length of one change
	}
}

func (r *Region) removeAccess() { r.accessState.Add(^uint32(0)) }

// waitForAccesses waits until no access is in flight. It ends because an access lasts for a few
// copies and no new one begins.
func (r *Region) waitForAccesses() {
	for r.accessState.Load()&accessCountMask != 0 {
		runtime.Gosched()
	}
}

// blockAccesses keeps new accesses out and waits for those in flight. unblockAccesses lets them in
// again.
func (r *Region) blockAccesses() {
	r.accessState.Or(accessBlocked)
	r.waitForAccesses()
}

// contains checks that [to, to+n) is within the registered range, without arithmetic that can wrap.
// It returns the offset of to within the memory.
func (r *Region) contains(to, n uint64) (off uint64, ok bool) {
	size := r.mem.Len()
	if to < r.base || to-r.base > size || n > size-(to-r.base) {
		return 0, false
	}
	return to - r.base, true
}

func (r *Region) unblockAccesses() { r.accessState.And(^uint32(accessBlocked)) }
