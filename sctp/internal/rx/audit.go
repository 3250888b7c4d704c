package rx

import (
	"errors"
	"fmt"
)

// Audit recounts what the Receiver holds and says what does not agree: TSNs received beyond the cumulative one,
// octets held, memory for them, and the order of what waits. lent is the user data of messages that Receive has returned
// and Release not taken back. It is for simulators and tests.
func (r *Receiver) Audit(lent int) error {
	if err := r.track.audit(); err != nil {
		return err
	}
	if r.credit < 0 || r.credit > r.cfg.RecvBuffer {
		return fmt.Errorf("a window of %d octets is advertised of %d", r.credit, r.cfg.RecvBuffer)
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
		for p := m.head; p != nil; p = p.next {
			n += len(p.data)
			mem += p.cost
			if p.loan != nil {
				if loans[p.loan]++; loans[p.loan] == 1 {
					mem += len(p.loan.buf.B)
				}
			}
		}
		if n != m.Size {
			return fmt.Errorf("a message of %d octets has %d", m.Size, n)
		}
		used += n
		if m.loose && n == 0 {
			mem += pieceCost
			skips++
		}
		return nil
	}
	var errs []error
	for _, c := range []*chain{&r.ready, &r.later} {
		for m := c.first; m != nil; m = m.next {
			errs = append(errs, count(m))
		}
	}
	for i := range r.held.len() {
		if i > 0 && !r.held.at(i-1).last.Less(r.held.at(i).first) {
			errs = append(errs, errors.New("what is held is not in TSN order"))
		}
		errs = append(errs, count(r.held.at(i)))
	}
	for i := range r.streams {
		s := &r.streams[i]
		for k := range s.wait.len() {
			if s.wait.at(k).SSN == s.next || k > 0 && s.wait.at(k-1).SSN-s.next >= s.wait.at(k).SSN-s.next {
				errs = append(errs, fmt.Errorf("stream %d: SSN %d waits at %d, next is %d", i, s.wait.at(k).SSN, k, s.next))
			}
			errs = append(errs, count(s.wait.at(k)))
		}
	}
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
