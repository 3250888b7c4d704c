package tx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// missLimit is the miss indication on which a chunk is fast-retransmitted (section 7.2.4).
const missLimit = 3

// detectLoss is the step of a SACK that looks at what is missing below the highest TSN newly
// acknowledged. In Fast Recovery, when the cumulative TSN advances, it goes up to the highest that
// the SACK reports (section 7.2.4). A chunk is lost when its time is over (RFC 8985 section 6.2),
// or on the third miss indication. A SACK may stand for several. So a chunk below three reported
// ones has missed three times at once, unless in strict RFC mode (RFC 6675 section 4).
func (s *Sender) detectLoss(k *sackInProgress) (all bool) {
	g, now := &s.outstanding, k.receivedAt
	limit := k.acked.highestNewlyAcked
	if s.recovery.active && k.acked.cumAdvanced {
		limit = k.acked.highestNamed
	}
	if limit.Less(k.missesFrom) {
		return true
	}
	third := missedBelow(k.chunk)
	missing := s.work.walk(&g.lossEligible, k.missesFrom, limit)
	for missing.next() {
		t, r := missing.tsn, g.recordOf(missing.tsn)
		if int(uint32(t-k.cumTSN)) < third && r.flags&flagResent == 0 && !s.cfg.StrictRFC &&
			s.paths[r.path].latestDelivered.isAfter(r.sentStamp, t) {
			r.missCount = missLimit - 1
		}
		switch left, known := s.rackTimeLeft(now, t, r); {
		case known && left <= 0:
			s.declareLost(now, t, r, &k.lostPaths)
		case !known || !s.paths[r.path].reordering.isObserved:
			s.addMiss(now, t, r, &k.lostPaths)
		}
	}
	k.missesFrom = missing.tsn
	return !missing.cut
}

// missedBelow returns the third highest TSN that the gap blocks of a SACK name, as an offset from
// the cumulative TSN. What is missing below it has missed three.
func missedBelow(k wire.Sack) int {
	left, below := missLimit, 1<<16
	for i := k.NumGaps() - 1; i >= 0; i-- {
		start, end := k.Gap(i)
		if start == 0 || end < start || int(end) >= below {
			break
		}
		below = int(start)
		if n := int(end-start) + 1; n < left {
			left -= n
		} else {
			return int(end) - left + 1
		}
	}
	return 0
}

// addMiss counts a miss indication and marks the chunk on the third.
func (s *Sender) addMiss(now rawio.Time, t wire.TSN, r *chunkRecord, lost *PathSet) {
	if r.missCount++; r.missCount < missLimit || s.overRetransmitBudget() {
		return
	}
	s.declareLost(now, t, r, lost)
}

// declareLost marks a chunk that is taken for lost.
func (s *Sender) declareLost(now rawio.Time, t wire.TSN, r *chunkRecord, lost *PathSet) {
	p := s.paths[r.path]
	if r.state != stateWithheld {
		lost.add(p.Index())
		s.recovery.recordLoss(t, p)
	}
	if p.rateSampler != nil {
		s.rateLost(now, t, r, p)
	}
	r.flags = r.flags&^flagTimedOut | flagFastRetransmitted
	s.markLost(now, t, r, p)
}
