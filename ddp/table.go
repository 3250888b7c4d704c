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
	// MaxPerPD caps the regions of one Protection Domain so that no local user takes more than its
	// share (section 8.3.2 item 5); 0 means no cap. Set it before the first registration.
	MaxPerPD int

	rand  io.Reader
	tags  *tagger // nil before the first registration
	perPD map[PD]int
	live  int // registered regions
	used  int // slots that are not nil: live ones and graves

	devices deviceAtomics

	ram atomic.Int64 // octets of all regions, windows apart, that are no devices

	// slots is an open-addressed hash table: a power of two of slots, probed linearly from the low bits
	// of the STag, which are random already. At most half of them are used, so a probe ends soon, also
	// for an STag that a peer made up.
	slots atomic.Pointer[[]atomic.Pointer[Region]]
}

// grave marks the slot of a deregistered region, so that probes go on past it. Its STag is 0.
var grave = new(Region)

const minSlots = 64

// NewTable returns an empty table that draws its secret, 16 octets at the first registration, from rand.
func NewTable(rand io.Reader) *Table {
	t := &Table{rand: rand, perPD: make(map[PD]int)}
	t.store(make([]atomic.Pointer[Region], minSlots))
	return t
}

func (t *Table) store(s []atomic.Pointer[Region]) { t.slots.Store(&s) }

// Len returns the number of registered regions.
func (t *Table) Len() int { return t.live }

// LenIn returns the number of registered regions of a Protection Domain, windows included.
func (t *Table) LenIn(pd PD) int { return t.perPD[pd] }

// All calls yield with each registered region, in no order, until it says false. The table must not change meanwhile.
func (t *Table) All(yield func(*Region) bool) {
	s := t.slots.Load()
	if s == nil {
		return
	}
	for i := range *s {
		if r := (*s)[i].Load(); r != nil && r != grave && !yield(r) {
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

// Register makes a region with a fresh, unpredictable STag (sections 8.3 and 8.3.1 item 4). It fails
// with ErrRange when Base and length wrap 64 bits, with ErrTooManyRegions, or when no randomness can be read.
func (t *Table) Register(sp Spec) (*Region, error) {
	if wraps(sp.Base, sp.Mem.Len()) {
		return nil, ErrRange
	}
	return t.add(&Region{pd: sp.PD, scope: sp.Scope, mem: sp.Mem, base: sp.Base}, sp.Access)
}

// add gives r an STag.
func (t *Table) add(r *Region, a Access) (*Region, error) {
	if t.MaxPerPD > 0 && t.perPD[r.pd] >= t.MaxPerPD {
		return nil, ErrTooManyRegions
	}
	if t.tags == nil {
		tags, err := newTagger(t.rand)
		if err != nil {
			return nil, err
		}
		t.tags = tags
	}
	tag := t.tags.next()
	for t.Lookup(tag) != nil { // only after 2^32 registrations
		tag = t.tags.next()
	}
	r.stag, r.table = tag, t
	r.access.Store(uint32(a))
	t.reserve()
	insert(*t.slots.Load(), r)
	t.used++
	t.live++
	t.perPD[r.pd]++
	t.count(r, 1)
	return r, nil
}

// Deregister ends the STag for good: Lookup does not find it, and when Deregister has returned no
// stream writes to the memory any more.
func (t *Table) Deregister(r *Region) error {
	s := *t.slots.Load()
	i, ok := t.find(s, r)
	if !ok {
		return ErrNoSuchRegion
	}
	s[i].Store(grave)
	t.live--
	if t.perPD[r.pd]--; t.perPD[r.pd] == 0 {
		delete(t.perPD, r.pd)
	}
	t.count(r, -1)
	r.Invalidate()
	return nil
}

// count adds the memory of a region, or takes it away. That of a window is its parent's.
func (t *Table) count(r *Region, times int) {
	if r.parent == nil {
		t.ram.Add(int64(times * len(r.mem.b)))
	}
}

// SetAccess grants and revokes rights (section 8.3.1 item 5). When it has returned, no access that
// the new rights forbid is in flight, and none will be made for a request that was accepted before.
// Streams that use the STag meanwhile wait for the change.
func (t *Table) SetAccess(r *Region, a Access) error {
	if _, ok := t.find(*t.slots.Load(), r); !ok {
		return ErrNoSuchRegion
	}
	r.hold()
	r.access.Store(uint32(a))
	r.resume()
	return nil
}

// Rebind gives the STag another buffer, TO range and set of rights, and makes it valid if it was
// invalidated (section 8.3 items 1 and 2). When it has returned nothing writes to the old buffer, and what
// was resolved before, such as a posted receive or the source of a Read that waits for its turn, fails with
// ErrRevoked. Windows of the region end. It fails with ErrRange when base and length wrap 64 bits, and with
// ErrWindow for a window.
func (t *Table) Rebind(r *Region, mem Memory, base uint64, a Access) error {
	if wraps(base, mem.Len()) {
		return ErrRange
	}
	if _, ok := t.find(*t.slots.Load(), r); !ok {
		return ErrNoSuchRegion
	}
	if r.parent != nil {
		return ErrWindow
	}
	r.hold()
	t.count(r, -1)
	r.mem, r.base = mem, base
	t.count(r, 1)
	r.access.Store(uint32(a))
	r.gen.Add(1)
	r.word.And(^uint32(wordInvalid))
	r.resume()
	return nil
}

// find returns the slot of r.
func (t *Table) find(s []atomic.Pointer[Region], r *Region) (uint32, bool) {
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

// reserve makes room for one more region. Lookups that run meanwhile see the old array or the new one,
// which hold the same regions.
func (t *Table) reserve() {
	old := *t.slots.Load()
	if t.used+1 <= len(old)/2 {
		return
	}
	size := minSlots
	for size < 4*(t.live+1) {
		size *= 2
	}
	fresh := make([]atomic.Pointer[Region], size)
	for i := range old {
		if r := old[i].Load(); r != nil && r != grave {
			insert(fresh, r)
		}
	}
	t.used = t.live
	t.store(fresh)
}

// insert puts r into the first free slot of its probe sequence. A grave is not used again: a probe that
// has passed it must keep finding what lies behind.
func insert(s []atomic.Pointer[Region], r *Region) {
	mask := uint32(len(s) - 1)
	i := uint32(r.stag) & mask
	for s[i].Load() != nil {
		i = (i + 1) & mask
	}
	s[i].Store(r)
}

// wraps reports whether base+n needs more than 64 bits; a sum of exactly 2^64 counts (section 7.1).
func wraps(base, n uint64) bool { return base+n < base }
