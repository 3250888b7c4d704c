package tx

import "math"

// Which destination DATA goes to: RFC 9260 sections 6.4, 6.4.1 and 8.2, RFC 7829 sections 3.2 and
// 4.1. Choosing never changes what is known of a path.

// DataPath returns where new DATA goes. That is the primary path while it is active, else one
// other.
func (s *Sender) DataPath() *Path {
	p := s.paths[s.primaryIndex]
	if p.isUsable() {
		return p
	}
	return s.bestPath(p, preferPresent)
}

// nextPath returns where the next new DATA goes. That is the path that its message names, if it is
// active, else DataPath.
func (s *Sender) nextPath() *Path {
	if m := s.queue.peek(); m != nil && m.Path > 0 {
		if p := s.paths[m.Path-1]; p.isUsable() {
			return p
		}
	}
	return s.DataPath()
}

// Alternate returns where to send again what p did not answer. That is another path if one is as
// good.
func (s *Sender) Alternate(p *Path) *Path {
	return s.bestPath(p, avoidPresent)
}

// retransmitPath returns where a marked chunk goes. After a timeout it is another path than the
// last one, after a Fast Retransmit the same (section 6.4). Where the chunk is too long for that
// path it goes over one that it fits.
func (s *Sender) retransmitPath(r *chunkRecord) *Path {
	p := s.paths[r.path]
	if r.flags&flagTimedOut != 0 || !p.isUsable() {
		p = s.Alternate(p)
	}
	if !p.fitsChunk(r) {
		p = s.widerPath(r, p)
	}
	return p
}

// What the present path is worth among equally good ones.
const (
	preferPresent = -1 // more than any other
	avoidPresent  = 2  // less
)

// bestPath returns the best path, one that is not severed if there is any. It prefers an active
// one, if need be one that is held or suspected. Next comes the potentially failed one with the
// fewest errors, then such an inactive one. Among equals it is the one that differs most from p.
func (s *Sender) bestPath(p *Path, present int) *Path {
	best, least := p, math.MaxInt
	for _, q := range s.paths {
		rank := 0
		switch q.State {
		case Unconfirmed:
			continue // carries no DATA, section 5.4
		case Active:
			rank = int(q.suspicion.level)
		case PotentiallyFailed, Inactive:
			rank = int(q.State)<<16 + q.Errors
		}
		if q.suspicion.sendBlocked {
			rank += int(Inactive+1) << 16
		}
		rank *= 4
		switch {
		case q == p:
			rank += present
		case p.Local.Addr() == q.Local.Addr():
			rank++
		}
		if rank < least {
			best, least = q, rank
		}
	}
	return best
}
