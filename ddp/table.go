package ddp

import (
	"io"
	"sync/atomic"
)

// Spec describes a region to register.
type Spec struct {
	PD     PD
	Mem    Memory
	Base   uint64   // Tagged Offset of the first octet
	Access Access   // rights granted; see Table.SetAccess
	Scope  StreamID // the one stream that may use the STag; 0: every stream of the PD
}

// Table maps STags to regions for all streams of a program or of an adapter.
//
// Lookup takes no lock and may run at any time. The other methods are for one caller at a time: the
// owner serialises them.
type Table struct {
	// MaxPerPD caps the regions of one Protection Domain, so that no local user takes more than its
	// share (section 8.3.2 item 5). 0 means no cap. Set it before the first registration.
	MaxPerPD int

	rand         io.Reader
	stags        *stagGenerator // nil before the first registration
	regionsPerPD map[PD]int
	liveRegions  int // registered regions
	usedSlots    int // slots that are not nil: live ones and tombstones

	devices deviceAtomics

	ramOctets atomic.Int64 // octets of all regions, windows apart, that are no devices

	// slots is an open-addressed hash table of a power of two of slots. It is probed linearly from
	// the low bits of the STag, which are random already. At most half the slots are used, so a
	// probe ends soon, also for an STag that a peer made up.
	slots atomic.Pointer[[]atomic.Pointer[Region]]
}

// tombstone marks the slot of a deregistered region, so that probes go on past it. Its STag is 0.
var tombstone = new(Region)

const minSlots = 64

// NewTable returns an empty table that draws its secret, 16 octets at the first registration, from
// rand.
func NewTable(rand io.Reader) *Table {
	t := &Table{rand: rand, regionsPerPD: make(map[PD]int)}
	t.setSlots(make([]atomic.Pointer[Region], minSlots))
	return t
}

func (t *Table) setSlots(s []atomic.Pointer[Region]) { t.slots.Store(&s) }

// Len returns the number of registered regions.
func (t *Table) Len() int { return t.liveRegions }

// LenIn returns the number of registered regions of a Protection Domain, windows included.
func (t *Table) LenIn(pd PD) int { return t.regionsPerPD[pd] }

// All calls yield with each registered region, in no order, until it says false. The table must not
// change meanwhile.
func (t *Table) All(yield func(*Region) bool) {
	s := t.slots.Load()
	if s == nil {
		return
	}
	for i := range *s {
		if r := (*s)[i].Load(); r != nil && r != tombstone && !yield(r) {
			return
		}
	}
}

// Lookup returns the region registered under tag, or nil. The region may be invalidated. It is safe
// for concurrent use with every other method.
func (t *Table) Lookup(tag STag) *Region {
	if tag == 0 {
		return nil
	}
	s := *t.slots.Load()
	mask := uint32(len(s) - 1)
	for i := uint32(tag) & mask; ; i = (i + 1) & mask {
		r := s[i].Load()
		if r == nil {
			return nil
		}
		if r.stag == tag {
			return r
		}
	}
}

// Register makes a region with a fresh, unpredictable STag (sections 8.3 and 8.3.1 item 4). It
// fails with ErrRange when Base and length wrap 64 bits, with ErrTooManyRegions, or when no
// randomness can be read.
func (t *Table) Register(sp Spec) (*Region, error) {
	if rangeWraps(sp.Base, sp.Mem.Len()) {
		return nil, ErrRange
	}
	return t.addRegion(&Region{pd: sp.PD, scope: sp.Scope, mem: sp.Mem, base: sp.Base}, sp.Access)
}

// addRegion gives r an STag.
func (t *Table) addRegion(r *Region, a Access) (*Region, error) {
	if t.MaxPerPD > 0 && t.regionsPerPD[r.pd] >= t.MaxPerPD {
		return nil, ErrTooManyRegions
	}
	if t.stags == nil {
		tags, err := newSTagGenerator(t.rand)
		if err != nil {
			return nil, err
		}
		t.stags = tags
	}
	tag := t.stags.nextSTag()
	for t.Lookup(tag) != nil { // only after 2^32 registrations
		tag = t.stags.nextSTag()
	}
	r.stag, r.table = tag, t
	r.access.Store(uint32(a))
	t.ensureRoom()
	insertRegion(*t.slots.Load(), r)
	t.usedSlots++
	t.liveRegions++
	t.regionsPerPD[r.pd]++
	t.countMemory(r, 1)
	return r, nil
}

// Deregister ends the STag for good: Lookup does not find it. When Deregister has returned, no
// stream writes to the memory any more.
func (t *Table) Deregister(r *Region) error {
	s := *t.slots.Load()
	i, ok := t.findSlot(s, r)
	if !ok {
		return ErrNoSuchRegion
	}
	s[i].Store(tombstone)
	t.liveRegions--
	if t.regionsPerPD[r.pd]--; t.regionsPerPD[r.pd] == 0 {
		delete(t.regionsPerPD, r.pd)
	}
	t.countMemory(r, -1)
	r.Invalidate()
	return nil
}

// countMemory adds the memory of a region, or takes it away. That of a window is its parent's.
func (t *Table) countMemory(r *Region, times int) {
	if r.parent == nil {
		t.ramOctets.Add(int64(times * len(r.mem.b)))
	}
}

// SetAccess grants and revokes rights (section 8.3.1 item 5). When it has returned, no access that
// the new rights forbid is in flight. None will be made for a request accepted before. Streams that
// use the STag meanwhile wait for the change.
func (t *Table) SetAccess(r *Region, a Access) error {
	if _, ok := t.findSlot(*t.slots.Load(), r); !ok {
		return ErrNoSuchRegion
	}
	r.blockAccesses()
	r.access.Store(uint32(a))
	r.unblockAccesses()
	return nil
}

// Rebind gives the STag another buffer, TO range and set of rights. It makes the STag valid if it
// was invalidated (section 8.3 items 1 and 2).
//
// When it has returned, nothing writes to the old buffer. What was resolved before fails with
// ErrRevoked, such as a posted receive or the source of a waiting Read. Windows of the region end.
// Errors: ErrRange when base and length wrap 64 bits, ErrWindow for a window.
func (t *Table) Rebind(r *Region, mem Memory, base uint64, a Access) error {
	if rangeWraps(base, mem.Len()) {
		return ErrRange
	}
	if _, ok := t.findSlot(*t.slots.Load(), r); !ok {
		return ErrNoSuchRegion
	}
	if r.parent != nil {
		return ErrWindow
	}
	r.blockAccesses()
	t.countMemory(r, -1)
	r.mem, r.base = mem, base
	t.countMemory(r, 1)
	r.access.Store(uint32(a))
	r.bufferGen.Add(1)
	r.accessState.And(^uint32(accessInvalid))
	r.unblockAccesses()
	return nil
}

// findSlot returns the slot of r.
func (t *Table) findSlot(s []atomic.Pointer[Region], r *Region) (uint32, bool) {
	if r == nil {
		return 0, false
	}
	mask := uint32(len(s) - 1)
	for i := uint32(r.stag) & mask; ; i = (i + 1) & mask {
		switch s[i].Load() {
		case nil:
			return 0, false
		case r:
			return i, true
		}
	}
}

// ensureRoom makes room for one more region. Concurrent lookups see the old array or the new one,
// which hold the same regions.
func (t *Table) ensureRoom() {
	old := *t.slots.Load()
	if t.usedSlots+1 <= len(old)/2 {
		return
	}
	size := minSlots
	for size < 4*(t.liveRegions+1) {
		size *= 2
	}
	fresh := make([]atomic.Pointer[Region], size)
	for i := range old {
		if r := old[i].Load(); r != nil && r != tombstone {
			insertRegion(fresh, r)
		}
	}
	t.usedSlots = t.liveRegions
	t.setSlots(fresh)
}

// insertRegion puts r into the first free slot of its probe sequence. A tombstone is not used
// again: a probe that has passed it must keep finding what lies behind.
func insertRegion(s []atomic.Pointer[Region], r *Region) {
	mask := uint32(len(s) - 1)
	i := uint32(r.stag) & mask
	for s[i].Load() != nil {
		i = (i + 1) & mask
	}
	s[i].Store(r)
}

// rangeWraps reports whether base+n needs more than 64 bits; a sum of exactly 2^64 counts (section
// 7.1).
func rangeWraps(base, n uint64) bool { return base+n < base }
