package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// RACK (RFC 8985 section 6), over the paths whose packets are spread: a chunk is lost if one sent
// later has arrived, and it left more than a round trip and a little ago. That holds also for one
// that was sent again.

// minRACKTimeout is the shortest time that the timer of RACK runs, and maxRACKChunks how many
// chunks it looks at.
const (
	minRACKTimeout = time.Millisecond
	maxRACKChunks  = maxSliceSteps
)

// isFarPath reports whether the round trip of p is long enough for pacing, RACK and TLP: timers are
// finer than it. In strict RFC mode there are only Max.Burst, miss indications and T3-rtx.
func (s *Sender) isFarPath(p *Path) bool {
	return !s.cfg.StrictRFC && p.IsFar()
}

// rackTimeLeft returns how much of its reordering window a loss-eligible chunk still has. known: a
// chunk sent later to the same path has arrived. Other paths do not count, as their round trips
// differ. Reneged chunks are left to miss indications: it is not known when they were in flight.
func (s *Sender) rackTimeLeft(now rawio.Time, t wire.TSN, r *chunkRecord) (left time.Duration, known bool) {
	p := s.paths[r.path]
	if !p.latestDelivered.isAfter(r.sentStamp, t) || !s.isFarPath(p) || s.overRetransmitBudget() ||
		r.state == stateReneged {
		return 0, false
	}
	return p.rackTimeout() - time.Duration(stampOf(now)-r.sentStamp)*time.Microsecond, true
}

// armRACK starts the timer for the first loss-eligible chunk.
func (s *Sender) armRACK(now rawio.Time) {
	s.recovery.rackAt = rawio.Never
	if t, ok := s.outstanding.lossEligible.Next(s.outstanding.firstUnacked, s.outstanding.len()); ok {
		if left, known := s.rackTimeLeft(now, t, s.outstanding.recordOf(t)); known {
			s.recovery.rackAt = now.Add(max(left, minRACKTimeout))
		}
	}
}

// handleRACKTimeout marks what has been missing for too long.
func (s *Sender) handleRACKTimeout(now rawio.Time) {
	var lost PathSet
	g, next := &s.outstanding, rawio.Never
	t, ok := g.lossEligible.Next(g.firstUnacked, g.len())
	for n := 0; ok && n < maxRACKChunks; n++ {
		*s.work.steps++
		r := g.recordOf(t)
		switch left, known := s.rackTimeLeft(now, t, r); {
		case !known:
		case left <= 0:
			s.declareLost(now, t, r, &lost)
		default:
			next = min(next, now.Add(max(left, minRACKTimeout)))
		}
		t, ok = g.nextInSet(&g.lossEligible, t)
	}
	if s.recovery.rackAt = next; ok {
		s.recovery.rackAt = min(next, now.Add(minRACKTimeout))
	}
	s.enterFastRecovery(now, lost)
	for _, p := range s.paths {
		s.updateTimers(p)
	}
}
