package ddpadapt

import (
	"unsafe"

	"github.com/rddp-go/rddp/ddp"
)

// record is what is kept of a message that waits for its turn in DDP-SSN order (section 10). It has
// nothing of the payload, unless the message came before the session was accepted.
type record struct {
	placed       ddp.Placed
	earlyPayload []byte       // a segment's copy, to be placed when the session is accepted
	fn           functionCode // of a control message
	fault        Fault
}

// isSegment says that the record is a DDP segment and may be well formed.
func (r *record) isSegment() bool { return r.fn == 0 && r.fault == 0 }

// recordStore holds the records of all sessions of an association, so that one bound covers them.
// It is a slab with a free list. Index 0 is none.
type recordStore struct {
	slab        []record
	free        []uint16
	freePages   []*recordPage // empty ones for reuse
	recordLimit int

	numPages      int // pages, in windows or empty
	numPageTables int // tables of pages that windows have
}

// maxRecords is what the 16-bit indexes of a page can name.
const maxRecords = 1<<16 - 1

// maxSpareRecords is the number of records that memory is kept for when none is in use.
const maxSpareRecords = 1024

// maxSparePages bounds the empty pages kept for reuse.
const maxSparePages = 64

func (st *recordStore) allocRecord() uint16 {
	if n := len(st.free); n > 0 {
		i := st.free[n-1]
		st.free = st.free[:n-1]
		return i
	}
	if len(st.slab) == 0 {
		st.slab = make([]record, 1, 16)
	}
	if len(st.slab) > st.recordLimit {
		return 0
	}
	st.slab = append(st.slab, record{})
	return uint16(len(st.slab) - 1)
}

func (st *recordStore) freeRecord(i uint16) {
	st.slab[i] = record{}
	st.free = append(st.free, i)
	if len(st.free) == len(st.slab)-1 && cap(st.slab) > maxSpareRecords {
		st.slab, st.free = nil, nil
	}
}

// heldOctets returns the octets of memory that records and windows take, in use or for reuse.
func (st *recordStore) heldOctets() int {
	return cap(st.slab)*int(unsafe.Sizeof(record{})) + 2*cap(st.free) + 8*cap(st.freePages) +
		st.numPages*int(unsafe.Sizeof(recordPage{})) + st.numPageTables*int(unsafe.Sizeof([256]*recordPage{}))
}

// recordPage maps 256 neighbouring DDP-SSNs to records.
type recordPage struct {
	recordIndex [256]uint16
	numRecords  int
}

// recordWindow is the set of records of one session by DDP-SSN. It takes memory for what has
// arrived, not for the gaps that a DDP-SSN claims (section 10).
type recordWindow struct {
	pages      *[256]*recordPage // by the high octet of the DDP-SSN; nil until the first message out of order
	numRecords int
}

func (w *recordWindow) get(ssn uint16) uint16 {
	if w.numRecords == 0 || w.pages[ssn>>8] == nil {
		return 0
	}
	return w.pages[ssn>>8].recordIndex[ssn&255]
}

// skipEmptyPage goes to the last place before end where ssn stands among 256 that have no record.
func (w *recordWindow) skipEmptyPage(ssn *uint16, end uint16) {
	if w.numRecords == 0 || w.pages[*ssn>>8] == nil {
		*ssn += min(255-*ssn&255, end-1-*ssn)
	}
}

// addRecord makes a record for ssn, which must have none. It returns nil when the store is full.
func (w *recordWindow) addRecord(st *recordStore, ssn uint16) *record {
	i := st.allocRecord()
	if i == 0 {
		return nil
	}
	if w.pages == nil {
		w.pages = new([256]*recordPage)
		st.numPageTables++
	}
	p := w.pages[ssn>>8]
	if p == nil {
		if n := len(st.freePages); n > 0 {
			p, st.freePages = st.freePages[n-1], st.freePages[:n-1]
		} else {
			p = new(recordPage)
			st.numPages++
		}
		w.pages[ssn>>8] = p
	}
	p.recordIndex[ssn&255] = i
	p.numRecords++
	w.numRecords++
	return &st.slab[i]
}

// removeRecord takes ssn out of the window and returns its record's index, or 0. The caller gives
// the record back to the store.
func (w *recordWindow) removeRecord(st *recordStore, ssn uint16) uint16 {
	i := w.get(ssn)
	if i == 0 {
		return 0
	}
	p := w.pages[ssn>>8]
	p.recordIndex[ssn&255] = 0
	w.numRecords--
	if p.numRecords--; p.numRecords == 0 {
		w.pages[ssn>>8] = nil
		if len(st.freePages) < maxSparePages {
			st.freePages = append(st.freePages, p)
		} else {
			st.numPages--
		}
	}
	return i
}

// clear gives everything back.
func (w *recordWindow) clear(st *recordStore) {
	if w.pages == nil {
		return
	}
	for high, p := range w.pages {
		for low := 0; p != nil && p.numRecords > 0; low++ {
			if i := w.removeRecord(st, uint16(high<<8|low)); i != 0 {
				st.freeRecord(i)
			}
		}
	}
	w.pages = nil
	st.numPageTables--
}
