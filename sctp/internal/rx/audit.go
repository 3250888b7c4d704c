package rx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Audit recounts what the Receiver holds and returns what does not agree. It looks at TSNs beyond
// the cumulative one, octets held, memory for them, and the order of waiting messages. lent is the
// user data of messages that Receive has returned and Release has not taken back. Audit is for
// simulators and tests.
func (r *Receiver) Audit(lent int) error {
	if err := r.tracker.auditTSNs(); err != nil {
		return err
	}
	if r.advertisedWindow < 0 || r.advertisedWindow > r.reassembly.dataLimit {
		return fmt.Errorf("a window of %d octets is advertised of %d", r.advertisedWindow, r.reassembly.dataLimit)
	}
	memory := 0
	if r.isFrozen() {
		for _, f := range r.aside.frozen {
			lent += f.payload
			memory += len(f.chunk) + frozenCost
		}
	}
	return r.reassembly.auditMessages(lent, memory)
}

// auditTSNs checks that the highest TSN has been received, the one after the cumulative TSN has
// not, and nothing is set beyond.
func (k *Tracker) auditTSNs() error {
	if k.highTSN == k.cumTSN {
		return nil
	}
	if k.highTSN.Less(k.cumTSN) || !k.aboveCum.Has(k.highTSN) || k.aboveCum.Has(k.cumTSN+1) {
		return fmt.Errorf("cumulative TSN %d, highest %d, which is held: %v, %d is held: %v", k.cumTSN, k.highTSN,
			k.aboveCum.Has(k.highTSN), k.cumTSN+1, k.aboveCum.Has(k.cumTSN+1))
	}
	if t, ok := k.aboveCum.Next(k.highTSN+1, k.aboveCum.Cap()-int(uint32(k.highTSN-k.cumTSN))-1); ok {
		return fmt.Errorf("TSN %d is held beyond the highest, %d", t, k.highTSN)
	}
	return nil
}

// auditMessages recounts the messages. Beside them lent octets of user data are held, in mem octets
// of memory.
func (r *Reassembly) auditMessages(lent, mem int) error {
	seen := make(map[*Message]bool)
	loans := make(map[*bufferRef]int)
	used, skips := lent, 0
	count := func(m *Message) error {
		if seen[m] {
			return nil
		}
		seen[m] = true
		n := 0
		mem += messageCost
		for p := m.headPiece; p != nil; p = p.next {
			n += len(p.data)
			mem += p.cost()
			if p.bufRef != nil {
				if loans[p.bufRef]++; loans[p.bufRef] == 1 {
					mem += len(p.bufRef.buf.B) + bufferRefCost
				}
			}
		}
		if n != m.Size {
			return fmt.Errorf("a message of %d octets has %d", m.Size, n)
		}
		used += n
		if m.isPlaceholder {
			skips++
		}
		return nil
	}
	var errs []error
	for _, c := range []*messageList{&r.ready, &r.partial.readyAfter} {
		if (c.first == nil) != (c.last == nil) {
			errs = append(errs, errors.New("a list keeps a message that has left it"))
		}
		for m := c.first; m != nil; m = m.next {
			errs = append(errs, count(m))
		}
	}
	var before *Message
	if m := r.byLastTSN.endsAtBase; m != nil {
		if before = m; m.lastTSN != r.byLastTSN.baseTSN || m.hasBegin && m.hasEnd {
			errs = append(errs, fmt.Errorf("a message that ends with TSN %d is the one in assembly at %d", m.lastTSN,
				r.byLastTSN.baseTSN))
		}
		errs = append(errs, count(m))
	}
	tables := 0
	for t := r.byLastTSN.baseTSN + 1; int(uint32(t-r.byLastTSN.baseTSN)) < r.byLastTSN.lastTSNs.Cap(); tables++ {
		m := r.byLastTSN.firstMessageFrom(t)
		if m == nil {
			break
		}
		if before != nil && !before.lastTSN.Less(m.firstTSN) || m.lastTSN.Less(m.firstTSN) ||
			r.byLastTSN.incompleteTSNs.Has(m.lastTSN) == (m.hasBegin && m.hasEnd) ||
			r.byLastTSN.messageEndingAt(m.lastTSN) != m {
			errs = append(errs, fmt.Errorf("TSNs %d to %d are held behind others, in assembly: %v", m.firstTSN,
				m.lastTSN, r.byLastTSN.incompleteTSNs.Has(m.lastTSN)))
		}
		if m.lastTSN.LessEq(r.byLastTSN.baseTSN) && m.hasBegin && m.hasEnd {
			errs = append(errs, fmt.Errorf("TSNs %d to %d are complete, and held at %d still", m.firstTSN, m.lastTSN,
				r.byLastTSN.baseTSN))
		}
		errs = append(errs, count(m))
		before, t = m, m.lastTSN+1
	}
	if tables != r.byLastTSN.count {
		errs = append(errs, fmt.Errorf("%d messages in the tables, counted are %d", r.byLastTSN.count, tables))
	}
	waits := map[wire.StreamID]int{}
	auditWaiting := func(m *Message) {
		s := r.stateOfStream(m.Stream)
		q := r.queueOf(m.Stream)
		if waits[m.Stream]++; m.SSN != wire.SSN(m.order) || m.order.isBefore(q.nextOrder) || m.order == q.nextOrder &&
			!s.isDue {
			errs = append(errs, fmt.Errorf("stream %d: SSN %d waits for itself", m.Stream, m.SSN))
		}
		errs = append(errs, count(m))
	}
	r.outOfOrder.forEach(func(m *Message) {
		if link, _ := r.outOfOrder.findLink(m.treeKey()); *link != m {
			errs = append(errs, fmt.Errorf("stream %d: SSN %d is not found", m.Stream, m.SSN))
		}
		auditWaiting(m)
	})
	if r.ext != nil {
		errs = append(errs, r.auditExtensions(auditWaiting, count))
	}
	for id, s := range r.streams.table.All {
		n, q := waits[wire.StreamID(id)], streamQueue{}
		if s.hasWaiting {
			q = *r.queueOf(wire.StreamID(id))
		}
		if s.hasWaiting != (n > 0) || int(q.count) != n ||
			s.isDue != slices.Contains(r.streams.due, wire.StreamID(id)) {
			errs = append(errs, fmt.Errorf("stream %d: %d messages wait, counted are %d; due: %v", id, q.count, n,
				s.isDue))
		}
		if s.hasWaiting && wire.SSN(q.nextOrder) != s.nextSSN {
			errs = append(errs, fmt.Errorf("stream %d: %d is next, of those that wait %d", id, s.nextSSN, q.nextOrder))
		}
	}
	errs = append(errs, r.auditFree())
	for l, n := range loans {
		if lent == 0 && n != l.numPieces || n > l.numPieces {
			errs = append(errs, fmt.Errorf("a buffer is lent for %d pieces; counted are %d", l.numPieces, n))
		}
	}
	if skips != r.streams.numPlaceholders || skips > maxPlaceholders+1 {
		errs = append(errs, fmt.Errorf("%d messages skipped, counted are %d", r.streams.numPlaceholders, skips))
	}
	if used != r.heldOctets || lent == 0 && mem != r.store.usedMemory {
		errs = append(errs, fmt.Errorf("%d octets held in %d of memory; counted are %d in %d", r.heldOctets,
			r.store.usedMemory, used, mem))
	}
	// A packet more than the window, which is looked at before each chunk, and the blocks kept for
	// reuse.
	if most := 8*r.dataLimit + 1<<18; r.store.usedMemory > most || r.store.freeBlockOctets > 2*r.store.dataLimit ||
		r.heldOctets > r.dataLimit+1<<16 {
		errs = append(errs, fmt.Errorf("%d octets held of %d in %d of memory, %d more cached", r.heldOctets,
			r.dataLimit, r.store.usedMemory, r.store.freeBlockOctets))
	}
	return errors.Join(errs...)
}

// auditFree recounts what is kept for reuse.
func (r *Reassembly) auditFree() error {
	messages, pieces, loans, cached, lists, kept := 0, 0, 0, 0, 0, 0
	for m := r.store.freeMessages; m != nil; m = m.next {
		messages++
	}
	for p := r.store.freePieces; p != nil; p = p.next {
		pieces++
		cached += cap(p.data)
	}
	for l := r.store.freeRefs; l != nil; l = l.next {
		loans++
	}
	if r.store.freeBlocks != nil {
		for _, l := range r.store.freeBlocks {
			lists += listCost * cap(l)
			for _, b := range l {
				cached += cap(b)
			}
		}
	}
	pages := 0
	for s := r.byLastTSN.sparePages; s != nil; s = s.next {
		kept++
	}
	for i, s := range r.byLastTSN.pageTable {
		if s != nil {
			pages++
		}
		t := wire.TSN(64 * i)
		if (s != nil) != r.byLastTSN.lastTSNs.HasNear(t) {
			return fmt.Errorf("slots for TSNs that end in %d: %v", t, s != nil)
		}
		for j := 0; s != nil && j < len(s.messages); j++ {
			if u := t + wire.TSN(j); (s.messages[j] != nil) != r.byLastTSN.lastTSNs.Has(u) {
				return fmt.Errorf("the slot for TSNs that end in %d keeps a message: %v", u, s.messages[j] != nil)
			}
		}
	}
	n := r.store.usedMemory - r.store.inlineCost() + cached + lists + messages*messageCost + pieces*pieceCost +
		loans*bufferRefCost
	if r.store.inline.messageUsed {
		n -= messageCost
	}
	if r.store.memorySize() != n {
		return fmt.Errorf("%d octets of memory, counted are %d", r.store.memorySize(), n)
	}
	if l := r.store.lastRef; l != nil && l.numPieces == 0 {
		return errors.New("the last buffer was given back")
	}
	if s := &r.store; messages != int(s.numFreeMessages) || pieces != int(s.numFreePieces) ||
		loans != int(s.numFreeRefs) ||
		cached != s.freeBlockOctets || lists != s.freeListOctets ||
		int32(kept) != r.byLastTSN.numSpare || int32(pages+kept) != r.byLastTSN.numPages {
		return fmt.Errorf("kept for reuse: %d messages, %d pieces, %d loans, %d octets in lists of %d, %d and "+
			"%d pages; counted are %d, %d, %d, %d, %d, %d and %d",
			s.numFreeMessages, s.numFreePieces, s.numFreeRefs, s.freeBlockOctets, s.freeListOctets,
			r.byLastTSN.numSpare, r.byLastTSN.numPages, messages, pieces, loans, cached, lists, kept, pages+kept)
	}
	return nil
}

// DumpState returns all that can be seen of the Receiver, and what it counts, for tests that
// compare it with what it was.
func (r *Receiver) DumpState(now rawio.Time) string {
	m, s := &r.reassembly, &r.reassembly.store
	return fmt.Sprint(r.CumTSN(), r.HasGaps(), r.HasDups(), r.Window(), r.Buffered(), r.Evicted(), r.Steps(),
		r.SackDue(now), r.SackPending(),
		r.SackNow(), r.Deadline(), r.ackPolicy, r.hadGaps, r.underPressure, r.advertisedWindow, r.tracker.highTSN,
		m.streams.numPlaceholders, m.outOfOrder.count, len(m.streams.due), s.numFreeMessages, m.byLastTSN.baseTSN,
		m.byLastTSN.count, m.byLastTSN.endsAtBase != nil, m.byLastTSN.numSpare, m.byLastTSN.numPages,
		m.partial.message != nil, s.numFreePieces, s.numFreeRefs, s.lastRef != nil, s.freeBlockOctets,
		s.freeListOctets, s.usedMemory)
}

// Internals is what a model of the Receiver compares beside all that others see.
type Internals struct {
	Room        int      // the window, were memory not short
	Memory      int      // octets of it for user data
	AboveCumTSN int      // TSNs received above the cumulative one
	Highest     wire.TSN // of the messages held; the cumulative one where there are none
}

// Internals is for tests.
func (r *Receiver) Internals() Internals {
	in := Internals{Room: r.reassembly.Window(), Memory: r.reassembly.store.usedMemory, Highest: r.tracker.cumTSN}
	if r.reassembly.interleaves() {
		if p, _ := r.reassembly.ext.interleaving.index.highest(r.tracker.cumTSN); p != nil {
			in.Highest = p.tsn
		}
	}
	if m := r.reassembly.byLastTSN.highestMessage(); m != nil {
		in.Highest = m.lastTSN
	}
	for t := r.tracker.cumTSN; t != r.tracker.highTSN; t++ {
		if r.tracker.aboveCum.Has(t + 1) {
			in.AboveCumTSN++
		}
	}
	return in
}

// SetNextMID has the ordered and the unordered messages of a stream begin with a MID, for tests.
func (r *Receiver) SetNextMID(id wire.StreamID, mid wire.MID) {
	r.reassembly.ext.interleaving.mids.Use(uint16(id)).ordered = mid
	r.reassembly.ext.interleaving.mids.Use(uint16(id)).unordered = mid
	r.SetNextSSN(id, wire.SSN(mid))
}

// SetNextSSN has a stream begin with an SSN, for tests.
func (r *Receiver) SetNextSSN(id wire.StreamID, ssn wire.SSN) {
	r.reassembly.stateOfStream(id).nextSSN = ssn
}
