package rx

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/rddp-go/rddp/sctp/internal/tsnset"
	"github.com/rddp-go/rddp/sctp/wire"
)

// setAside is DATA that a reset of streams keeps from reassembly (RFC 6525 section 5.2).
//
// The peer may have asked to reset streams, and DATA from before is missing. Then DATA from after
// is deferred: it is as if it were still on its way.
//
// This side may have asked to reset all TSNs. Until the answer is there, it is not known of any
// DATA whether it was sent before or after the reset. It is frozen: acknowledged, and in the order
// of no stream. Messages that the peer gives up, and resets that it asks for, are frozen among it.
type setAside struct {
	isDeferring    bool
	after          wire.TSN        // DATA beyond it is deferred,
	streams        []wire.StreamID // if it is of these streams, in order; nil: all
	deferred       []wire.Chunk
	deferredOctets int

	isFrozen  bool
	frozen    []frozenChunk
	marks     []resetMark // in the order of TSNs
	isGivenUp bool        // what is missing among it will not come
}

// frozenChunk is DATA or FORWARD TSN, or its like with I-DATA, that is frozen.
type frozenChunk struct {
	tsn     wire.TSN // of FORWARD TSN that which it leads to
	chunk   wire.Chunk
	payload int // octets of user data
}

// resetMark is where streams are reset among what is frozen.
type resetMark struct {
	after    wire.TSN
	streams  []wire.StreamID // nil: all
	restarts bool            // TSNs are reset too,
	isFar    bool            // and go on far from those that were: all that is frozen is of before
}

// Bounds of what is set aside.
const (
	maxDeferred       = 64      // chunks
	maxDeferredOctets = 1 << 16 // of them
	maxFrozen         = 1 << 14 // chunks
	frozenCost        = 48      // octets of memory of one beside the chunk itself
)

// ensureAside returns what is set aside, and makes it if there is nothing.
func (r *Receiver) ensureAside() *setAside {
	if r.aside == nil {
		r.aside = new(setAside)
	}
	return r.aside
}

// dropEmptyAside lets the fast ways be taken again.
func (r *Receiver) dropEmptyAside() {
	if !r.aside.isDeferring && !r.aside.isFrozen {
		r.aside = nil
	}
}

// Defer keeps DATA of streams with TSNs beyond after, until TakeDeferred. It is not acknowledged.
// No list means all streams. What finds no place is dropped: the peer sends it again.
func (r *Receiver) Defer(streams []wire.StreamID, after wire.TSN) {
	a := r.ensureAside()
	a.isDeferring, a.after, a.streams = true, after, slices.Sorted(slices.Values(streams))
}

// TakeDeferred ends Defer, and returns what it has kept: it comes now.
func (r *Receiver) TakeDeferred() (list []wire.Chunk) {
	if r.aside == nil || !r.aside.isDeferring {
		return nil
	}
	list = r.aside.deferred
	r.aside.isDeferring, r.aside.streams, r.aside.deferred, r.aside.deferredOctets = false, nil, nil, 0
	r.dropEmptyAside()
	return list
}

// keepsOut says whether a chunk that is new is not admitted now. It may have been deferred.
func (a *setAside) keepsOut(t wire.TSN, stream wire.StreamID, c wire.Chunk) bool {
	if a.isFrozen && len(a.frozen) >= maxFrozen {
		return true
	}
	if !a.isDeferring || !a.after.Less(t) {
		return false
	}
	if _, isListed := slices.BinarySearch(a.streams, stream); a.streams != nil && !isListed {
		return false
	}
	known := slices.ContainsFunc(a.deferred, func(k wire.Chunk) bool { return tsnOf(k) == t })
	if !known && len(a.deferred) < maxDeferred && a.deferredOctets+len(c) <= maxDeferredOctets {
		a.deferred = append(a.deferred, slices.Clone(c))
		a.deferredOctets += len(c)
	}
	return true
}

// tsnOf returns the TSN of DATA or I-DATA.
func tsnOf(c wire.Chunk) wire.TSN {
	if d, err := wire.AsData(c); err == nil {
		return d.TSN()
	}
	d, _ := wire.AsIData(c)
	return d.TSN()
}

// Freeze keeps DATA from reassembly from now on, until RestartTSN or Thaw. It is acknowledged, and
// takes its part of the window.
func (r *Receiver) Freeze() { r.ensureAside().isFrozen = true }

func (r *Receiver) isFrozen() bool { return r.aside != nil && r.aside.isFrozen }

// freeze keeps a chunk that counts as received.
func (r *Receiver) freeze(t wire.TSN, c wire.Chunk, payload int) {
	r.aside.frozen = append(r.aside.frozen, frozenChunk{t, slices.Clone(c), payload})
	r.reassembly.heldOctets += payload
	r.reassembly.store.usedMemory += len(c) + frozenCost
}

// freezeForwardTSN is ForwardTSN and IForwardTSN while DATA is frozen.
func (r *Receiver) freezeForwardTSN(t wire.TSN, c wire.Chunk) bool {
	// One far ahead has to come again: what is frozen would have no order.
	if uint32(t-r.tracker.Cum())-1 >= tsnset.MaxWindow || len(r.aside.frozen) >= maxFrozen {
		r.ackPolicy.NoteData(true)
		return false
	}
	r.ackPolicy.NoteData(false)
	r.tracker.Forward(t)
	r.freeze(t, c, 0)
	return true
}

// unfreeze gives its part of the window back.
func (r *Receiver) unfreeze(f *frozenChunk) {
	r.reassembly.heldOctets -= f.payload
	r.reassembly.store.usedMemory -= len(f.chunk) + frozenCost
}

// Thaw ends Freeze: no TSN was reset. After an error, a *ViolationError or ErrMessageTooBig, the
// association is to be aborted.
func (r *Receiver) Thaw() error {
	if !r.isFrozen() {
		return nil
	}
	isGivenUp := r.aside.isGivenUp
	if err := r.thaw(nil); err != nil {
		return err
	}
	return r.checkThawed(isGivenUp)
}

// checkThawed is Check for what was frozen.
func (r *Receiver) checkThawed(isGivenUp bool) error {
	if isGivenUp {
		r.reassembly.giveUpMissing(r.tracker.Cum())
		return nil
	}
	return r.reassembly.Check(r.tracker.Cum())
}

// thaw ends Freeze. It processes what was frozen in the order of TSNs, and resets streams at the
// marks, one more of which may be given.
func (r *Receiver) thaw(more *resetMark) (err error) {
	list, marks := r.aside.frozen, r.aside.marks
	r.aside.isFrozen, r.aside.frozen, r.aside.marks, r.aside.isGivenUp = false, nil, nil, false
	r.dropEmptyAside()
	slices.SortStableFunc(list, func(a, b frozenChunk) int { return cmp.Compare(int32(a.tsn-b.tsn), 0) })
	if more != nil && more.isFar {
		marks = append(marks, *more)
	} else if more != nil {
		at, _ := slices.BinarySearchFunc(marks, more.after, func(m resetMark, t wire.TSN) int {
			return cmp.Compare(int32(m.after-t), 0)
		})
		marks = slices.Insert(marks, at, *more)
	}
	for i := range list {
		f := &list[i]
		for ; len(marks) > 0 && !marks[0].isFar && marks[0].after.Less(f.tsn); marks = marks[1:] {
			err = cmp.Or(err, r.resetAt(&marks[0]))
		}
		if r.unfreeze(f); err == nil {
			err = r.takeThawed(f)
		}
	}
	for ; len(marks) > 0; marks = marks[1:] {
		err = cmp.Or(err, r.resetAt(&marks[0]))
	}
	return err
}

// resetAt resets streams at a mark.
func (r *Receiver) resetAt(m *resetMark) error {
	if m.restarts {
		r.reassembly.restart(m.after + 1)
		return nil
	}
	return r.reassembly.resetStreams(m.streams, m.after)
}

// takeThawed processes a chunk that was frozen.
func (r *Receiver) takeThawed(f *frozenChunk) error {
	g := &r.reassembly
	if d, err := wire.AsData(f.chunk); err == nil {
		return g.Add(d, nil)
	}
	if d, err := wire.AsIData(f.chunk); err == nil {
		return g.AddInterleaved(d, nil)
	}
	cum := g.byLastTSN.baseTSN
	if cum.Less(f.tsn) { // with I-DATA it goes on while chunks are frozen
		_ = g.Check(f.tsn) // where messages are given up there is no error
	}
	if k, err := wire.AsIForwardTSN(f.chunk); err == nil {
		g.skipAllMIDs(k)
		return nil
	}
	k, _ := wire.AsForwardTSN(f.chunk)
	g.skipAll(k, cum)
	return nil
}

// closeAside gives back all that is set aside.
func (r *Receiver) closeAside() {
	if r.aside == nil {
		return
	}
	for i := range r.aside.frozen {
		r.unfreeze(&r.aside.frozen[i])
	}
	r.aside = nil
}

// memory returns the octets behind it, but for those that the store counts.
func (a *setAside) memory() int {
	if a == nil {
		return 0
	}
	return int(unsafe.Sizeof(*a)) + a.deferredOctets + cap(a.marks)*int(unsafe.Sizeof(resetMark{}))
}
