package rx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Audit recounts what the Receiver holds and says what does not agree: TSNs received beyond the cumulative one,
// octets held, memory for them, and the order of what waits. lent is the user data of messages that Receive has returned
// and Release not taken back. It is for simulators and tests.
func (r *Receiver) Audit(lent int) error {
	if err := r.track.audit(); err != nil {
		return err
	}
	if r.credit < 0 || r.credit > r.reasm.limit {
		return fmt.Errorf("a window of %d octets is advertised of %d", r.credit, r.reasm.limit)
	}
	return r.reasm.audit(lent)
}

// audit: the highest TSN has been received, the one behind the cumulative has not, and nothing is remembered beyond.
func (k *Tracker) audit() error {
	if k.high == k.cum {
		return nil
	}
	if k.high.Less(k.cum) || !k.set.Has(k.high) || k.set.Has(k.cum+1) {
		return fmt.Errorf("cumulative TSN %d, highest %d, which is held: %v, %d is held: %v", k.cum, k.high, k.set.Has(k.high), k.cum+1, k.set.Has(k.cum+1))
	}
	if t, ok := k.set.Next(k.high+1, k.set.Cap()-int(uint32(k.high-k.cum))-1); ok {
		return fmt.Errorf("TSN %d is held beyond the highest, %d", t, k.high)
	}
	return nil
}

func (r *Reassembly) audit(lent int) error {
	seen := make(map[*Message]bool)
	loans := make(map[*loan]int)
	used, mem, skips := lent, 0, 0
	count := func(m *Message) error {
		if seen[m] {
			return nil
		}
		seen[m] = true
		n := 0
		mem += messageCost
		for p := m.head; p != nil; p = p.next {
			n += len(p.data)
			mem += p.cost
			if p.loan != nil {
				if loans[p.loan]++; loans[p.loan] == 1 {
					mem += len(p.loan.buf.B) + loanCost
				}
			}
		}
		if n != m.Size {
			return fmt.Errorf("a message of %d octets has %d", m.Size, n)
		}
		used += n
		if m.skip {
			skips++
		}
		return nil
	}
	var errs []error
	for _, c := range []*chain{&r.ready, &r.later} {
		if (c.first == nil) != (c.last == nil) {
			errs = append(errs, errors.New("a list keeps a message that has left it"))
		}
		for m := c.first; m != nil; m = m.next {
			errs = append(errs, count(m))
		}
	}
	var before *Message
	if m := r.held.edge; m != nil {
		if before = m; m.last != r.held.base || m.begin && m.end {
			errs = append(errs, fmt.Errorf("a message that ends with TSN %d is the one in assembly at %d", m.last, r.held.base))
		}
		errs = append(errs, count(m))
	}
	tables := 0
	for t := r.held.base + 1; int(uint32(t-r.held.base)) < r.held.ends.Cap(); tables++ {
		m := r.held.from(t)
		if m == nil {
			break
		}
		if before != nil && !before.last.Less(m.first) || m.last.Less(m.first) || r.held.parts.Has(m.last) == (m.begin && m.end) || r.held.at(m.last) != m {
			errs = append(errs, fmt.Errorf("TSNs %d to %d are held behind others, in assembly: %v", m.first, m.last, r.held.parts.Has(m.last)))
		}
		if m.last.LessEq(r.held.base) && m.begin && m.end {
			errs = append(errs, fmt.Errorf("TSNs %d to %d are complete, and held at %d still", m.first, m.last, r.held.base))
		}
		errs = append(errs, count(m))
		before, t = m, m.last+1
	}
	if tables != r.held.n {
		errs = append(errs, fmt.Errorf("%d messages in the tables, counted are %d", r.held.n, tables))
	}
	waits := map[wire.StreamID]int{}
	r.waits.each(func(m *Message) {
		s := r.stream(m.Stream)
		q := r.queueOf(m.Stream)
		if waits[m.Stream]++; m.SSN != wire.SSN(m.order) || m.order.before(q.next) || m.order == q.next && !s.due {
			errs = append(errs, fmt.Errorf("stream %d: SSN %d waits for itself", m.Stream, m.SSN))
		}
		if link, _ := r.waits.find(m.key()); *link != m {
			errs = append(errs, fmt.Errorf("stream %d: SSN %d is not found", m.Stream, m.SSN))
		}
		errs = append(errs, count(m))
	})
	for id, s := range r.streams.All {
		n, q := waits[wire.StreamID(id)], streamQueue{}
		if s.waits {
			q = *r.queueOf(wire.StreamID(id))
		}
		if s.waits != (n > 0) || int(q.n) != n || s.due != slices.Contains(r.due, wire.StreamID(id)) {
			errs = append(errs, fmt.Errorf("stream %d: %d messages wait, counted are %d; due: %v", id, q.n, n, s.due))
		}
		if s.waits && wire.SSN(q.next) != s.next {
			errs = append(errs, fmt.Errorf("stream %d: %d is next, of those that wait %d", id, s.next, q.next))
		}
	}
	errs = append(errs, r.auditFree())
	for l, n := range loans {
		if lent == 0 && n != l.pieces || n > l.pieces {
			errs = append(errs, fmt.Errorf("a buffer is lent for %d pieces; counted are %d", l.pieces, n))
		}
	}
	if skips != r.skips || skips > maxSkips+1 {
		errs = append(errs, fmt.Errorf("%d messages skipped, counted are %d", r.skips, skips))
	}
	if used != r.used || lent == 0 && mem != r.store.mem {
		errs = append(errs, fmt.Errorf("%d octets held in %d of memory; counted are %d in %d", r.used, r.store.mem, used, mem))
	}
	// A packet more than the window, which is looked at before each chunk, and the blocks kept for reuse.
	if most := 8*r.limit + 1<<18; r.store.mem > most || r.store.cached > 2*r.store.limit || r.used > r.limit+1<<16 {
		errs = append(errs, fmt.Errorf("%d octets held of %d in %d of memory, %d more cached", r.used, r.limit, r.store.mem, r.store.cached))
	}
	return errors.Join(errs...)
}

// auditFree recounts what is kept for reuse.
func (r *Reassembly) auditFree() error {
	messages, pieces, loans, cached, lists, kept := 0, 0, 0, 0, 0, 0
	for m := r.free; m != nil; m = m.next {
		messages++
	}
	for p := r.store.pieces; p != nil; p = p.next {
		pieces++
		cached += cap(p.data)
	}
	for l := r.store.loans; l != nil; l = l.next {
		loans++
	}
	if r.store.blocks != nil {
		for _, l := range r.store.blocks {
			lists += listCost * cap(l)
			for _, b := range l {
				cached += cap(b)
			}
		}
	}
	pages := 0
	for s := r.held.spare; s != nil; s = s.next {
		kept++
	}
	for i, s := range r.held.dir {
		if s != nil {
			pages++
		}
		t := wire.TSN(64 * i)
		if (s != nil) != r.held.ends.Near(t) {
			return fmt.Errorf("slots for TSNs that end in %d: %v", t, s != nil)
		}
		for j := 0; s != nil && j < len(s.at); j++ {
			if u := t + wire.TSN(j); (s.at[j] != nil) != r.held.ends.Has(u) {
				return fmt.Errorf("the slot for TSNs that end in %d keeps a message: %v", u, s.at[j] != nil)
			}
		}
	}
	if n := r.store.mem - r.store.own.cost + cached + lists + pieces*pieceCost + loans*loanCost; r.store.held() != n {
		return fmt.Errorf("%d octets of memory, counted are %d", r.store.held(), n)
	}
	if l := r.store.last; l != nil && l.pieces == 0 {
		return errors.New("the last buffer was given back")
	}
	if s := &r.store; messages != r.nfree || pieces != s.npiece || loans != s.nloan || cached != s.cached || lists != s.lists ||
		kept != r.held.kept || pages+kept != r.held.pages {
		return fmt.Errorf("kept for reuse: %d messages, %d pieces, %d loans, %d octets in lists of %d, %d and %d pages; counted are %d, %d, %d, %d, %d, %d and %d",
			r.nfree, s.npiece, s.nloan, s.cached, s.lists, r.held.kept, r.held.pages, messages, pieces, loans, cached, lists, kept, pages+kept)
	}
	return nil
}

// Tell returns all that can be seen of the Receiver, and what it counts, for tests that compare it with what it was.
func (r *Receiver) Tell(now rawio.Time) string {
	m, s := &r.reasm, &r.reasm.store
	return fmt.Sprint(r.CumTSN(), r.Gaps(), r.Dups(), r.Window(), r.Buffered(), r.Evicted(), r.Steps(), r.SackDue(now), r.SackPending(),
		r.SackNow(), r.Deadline(), r.ack, r.gaps, r.squeezed, r.credit, r.track.high, m.skips, m.waits.n, len(m.due), m.nfree, m.held.base, m.held.n,
		m.held.edge != nil, m.held.kept, m.held.pages, m.open != nil, s.npiece, s.nloan, s.last != nil, s.cached, s.lists, s.mem)
}

// Inside is what a model of the Receiver compares beside all that others see.
type Inside struct {
	Room    int      // the window, were memory not short
	Memory  int      // octets of it for user data
	Beyond  int      // TSNs received above the cumulative one
	Highest wire.TSN // of the messages held; the cumulative one where there are none
}

// Inside is for tests.
func (r *Receiver) Inside() Inside {
	in := Inside{Room: r.reasm.Window(), Memory: r.reasm.store.mem, Highest: r.track.cum}
	if m := r.reasm.held.highest(); m != nil {
		in.Highest = m.last
	}
	for t := r.track.cum; t != r.track.high; t++ {
		if r.track.set.Has(t + 1) {
			in.Beyond++
		}
	}
	return in
}

// Begin has a stream begin with an SSN, for tests.
func (r *Receiver) Begin(id wire.StreamID, ssn wire.SSN) { r.reasm.stream(id).next = ssn }
