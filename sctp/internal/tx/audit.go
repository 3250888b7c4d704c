package tx

import (
	"fmt"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Audit recounts from the records and sets everything that the Sender keeps count of, and says what does not
// agree: flight sizes (RFC 9260 section 7.2), the earliest TSN and the timer of each path, marked and gap-acknowledged
// TSNs, and what Enqueue has taken. It costs a walk over all that is outstanding or queued, and is for simulators
// and tests.
func (s *Sender) Audit() error {
	g := &s.ring
	var flight [MaxPaths]int
	var first [MaxPaths]wire.TSN
	total, data, marked, gapped, held := 0, 0, 0, 0, 0
	for t := g.base; t != g.next; t++ {
		r := g.rec(t)
		in, mark, gap := g.inflight.Has(t), g.marked.Has(t), g.gapped.Has(t)
		switch {
		case in == mark && in == gap, in && mark, in && gap, mark && gap:
			return fmt.Errorf("TSN %d: in flight %v, marked %v, gap-acknowledged %v", t, in, mark, gap)
		case g.countable.Has(t) != (in && r.state&fast == 0):
			return fmt.Errorf("TSN %d: countable %v", t, g.countable.Has(t))
		case in:
			if flight[r.path] == 0 {
				first[r.path] = t
			}
			flight[r.path] += r.chunkLen()
			total += r.chunkLen()
			data += int(r.size)
		case mark:
			marked++
		default:
			gapped++
		}
		if r.state&queued != 0 {
			held += int(r.size)
		}
	}
	for i, p := range s.paths {
		if p.flight != flight[i] || p.flight > 0 && (p.first != first[i] || p.t3 == rawio.Never) {
			return fmt.Errorf("path %d: flight %d, first %d, T3 %d; counted are %d and %d", i, p.flight, p.first, p.t3, flight[i], first[i])
		}
	}
	if s.flight != total || s.data != data || g.nmarked != marked || g.ngapped != gapped {
		return fmt.Errorf("flight %d, data %d, marked %d, gap-acknowledged %d; counted are %d, %d, %d, %d",
			s.flight, s.data, g.nmarked, g.ngapped, total, data, marked, gapped)
	}
	if g.len() > maxOutstanding {
		return fmt.Errorf("%d TSNs outstanding", g.len())
	}
	return s.auditQueue(held)
}

// auditQueue adds what waits to be sent to the octets of Enqueue that are outstanding.
func (s *Sender) auditQueue(held int) error {
	unsent := 0
	for i := range s.queue.n {
		unsent += s.queue.at(i).Len()
	}
	held += unsent
	if s.slot.full && s.slot.queued {
		held += s.slot.msg.Len() - s.slot.off
	}
	if s.unsent != unsent || s.held != held || s.held > s.cfg.SendBuffer {
		return fmt.Errorf("%d octets unsent, %d held of %d; counted are %d and %d", s.unsent, s.held, s.cfg.SendBuffer, unsent, held)
	}
	return nil
}
