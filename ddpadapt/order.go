package ddpadapt

import (
	"unsafe"

	"github.com/rddp-go/rddp/ddp"
)

// record is what is kept of a message that waits for its turn in DDP-SSN order (section 10): nothing
// of its payload, unless it came before the session was accepted.
type record struct {
	placed ddp.Placed
	early  []byte   // a segment's copy, to be placed when the session is accepted
	fn     function // of a control message
	fault  Fault
}

// segment says that the record is a DDP segment and may be well formed.
func (r *record) segment() bool { return r.fn == 0 && r.fault == 0 }

// store holds the records of all sessions of an association, so that one bound covers them: a slab
// with a free list. Index 0 is none.
type store struct {
	slab  []record
	free  []uint16
	pages []*page // empty ones for reuse
	limit int

	npages int // pages, in windows or empty
	tops   int // tables of pages that windows have
}

// maxRecords is what the 16-bit indexes of a page can name.
const maxRecords = 1<<16 - 1

// spareRecords is for how many records room is kept when none is in use.
const spareRecords = 1024

// sparePages bounds the empty pages kept for reuse.
const sparePages = 64

func (st *store) take() uint16 {
	if n := len(st.free); n > 0 {
		i := st.free[n-1]
		st.free = st.free[:n-1]
		return i
	}
	if len(st.slab) == 0 {
		st.slab = make([]record, 1, 16)
	}
	if len(st.slab) > st.limit {
		return 0
	}
	st.slab = append(st.slab, record{})
	return uint16(len(st.slab) - 1)
}

func (st *store) give(i uint16) {
	st.slab[i] = record{}
	st.free = append(st.free, i)
	if len(st.free) == len(st.slab)-1 && cap(st.slab) > spareRecords {
		st.slab, st.free = nil, nil
	}
}

// held returns the octets of memory that records and windows take, in use or for reuse.
func (st *store) held() int {
	return cap(st.slab)*int(unsafe.Sizeof(record{})) + 2*cap(st.free) + 8*cap(st.pages) +
		st.npages*int(unsafe.Sizeof(page{})) + st.tops*int(unsafe.Sizeof([256]*page{}))
}

// page maps 256 neighbouring DDP-SSNs to records.
type page struct {
	at [256]uint16
	n  int
}

// window is the set of records of one session by DDP-SSN. It takes memory for what has arrived, not
// for the gaps that a DDP-SSN claims (section 10).
type window struct {
	pages *[256]*page // by the high octet of the DDP-SSN; nil until the first message out of order
	n     int
}

func (w *window) get(ssn uint16) uint16 {
	if w.n == 0 || w.pages[ssn>>8] == nil {
		return 0
	}
	return w.pages[ssn>>8].at[ssn&255]
}

// skip goes to the last place before end where ssn stands among 256 that have no record.
func (w *window) skip(ssn *uint16, end uint16) {
	if w.n == 0 || w.pages[*ssn>>8] == nil {
		*ssn += min(255-*ssn&255, end-1-*ssn)
	}
}

// put makes a record for ssn, which must have none. It returns nil when the store is full.
func (w *window) put(st *store, ssn uint16) *record {
	i := st.take()
	if i == 0 {
		return nil
	}
	if w.pages == nil {
		w.pages = new([256]*page)
		st.tops++
	}
	p := w.pages[ssn>>8]
	if p == nil {
		if n := len(st.pages); n > 0 {
			p, st.pages = st.pages[n-1], st.pages[:n-1]
		} else {
			p = new(page)
			st.npages++
		}
		w.pages[ssn>>8] = p
	}
	p.at[ssn&255] = i
	p.n++
	w.n++
	return &st.slab[i]
}

// remove takes ssn out of the window and returns its record's index, which the caller gives back to
// the store, or 0.
func (w *window) remove(st *store, ssn uint16) uint16 {
	i := w.get(ssn)
	if i == 0 {
		return 0
	}
	p := w.pages[ssn>>8]
	p.at[ssn&255] = 0
	w.n--
	if p.n--; p.n == 0 {
		w.pages[ssn>>8] = nil
		if len(st.pages) < sparePages {
			st.pages = append(st.pages, p)
		} else {
			st.npages--
		}
	}
	return i
}

// clear gives everything back.
func (w *window) clear(st *store) {
	if w.pages == nil {
		return
	}
	for high, p := range w.pages {
		for low := 0; p != nil && p.n > 0; low++ {
			if i := w.remove(st, uint16(high<<8|low)); i != 0 {
				st.give(i)
			}
		}
	}
	w.pages = nil
	st.tops--
}
