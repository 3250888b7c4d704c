package ddp

// Window says what part of a region Table.Bind opens to which stream.
type Window struct {
	PD     PD
	Stream StreamID // the one stream that may use it
	Off    uint64   // of its first octet within the region
	Len    uint64
	Base   uint64 // Tagged Offset of its first octet
	Access Access // remote rights, independent of those of the region
}

// Bind makes a memory window: part of the region of, with its own STag, rights and end, for one
// stream. It is an STag of single-stream scope (section 8.2), which the peer of that stream may
// invalidate. It needs no registration of its own, and ends with the region at the latest.
// Deregister gives it up.
//
// Errors: ErrNoSuchRegion, ErrRevoked, ErrWindow, ErrScope, ErrRights, ErrRange, ErrTooManyRegions.
func (t *Table) Bind(of *Region, w Window) (*Region, error) {
	if _, ok := t.findSlot(*t.slots.Load(), of); !ok {
		return nil, ErrNoSuchRegion
	}
	switch {
	case of.parent != nil:
		return nil, ErrWindow
	case !of.Valid():
		return nil, ErrRevoked
	case of.pd != w.PD || w.Stream == 0 || of.scope != 0 && of.scope != w.Stream:
		return nil, ErrScope
	case w.Access&(RemoteWrite|RemoteAtomic) != 0 && of.Access()&LocalWrite == 0:
		return nil, ErrRights
	case !of.mem.hasRange(w.Off, w.Len) || rangeWraps(w.Base, w.Len):
		return nil, ErrRange
	}
	return t.addRegion(&Region{pd: w.PD, scope: w.Stream, mem: of.mem.subRange(w.Off, w.Len), base: w.Base,
		parent: of, parentGen: of.bufferGen.Load()}, w.Access)
}

// parentUnchanged reports whether the region behind a window still has the buffer that the window
// is part of.
func (r *Region) parentUnchanged() bool { return r.parent.bufferGen.Load() == r.parentGen }

// Within reports whether r is the region of or a window of it.
func (r *Region) Within(of *Region) bool { return r == of || r != nil && r.parent == of }
