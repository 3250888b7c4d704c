package tx

import "github.com/rddp-go/rddp/sctp/wire"

// renegeUnnamed is the step of a SACK that takes back the gap acknowledgement of TSNs that it no
// longer names. They are in flight again, with one miss indication (section 6.2.1, D iii).
func (s *Sender) renegeUnnamed(k *sackInProgress) (all bool) {
	if s.outstanding.numGapAcked <= k.acked.namedCount && s.outstanding.numReneged == 0 {
		return true
	}
	c, cum := k.chunk, k.cumTSN
	hole := cum + 1 // the first TSN after the last block
	for i, prev := 0, uint16(0); i < c.NumGaps(); i++ {
		start, end := c.Gap(i)
		if start <= prev || end < start {
			continue
		}
		*s.work.steps++
		if !s.renegeRange(k, hole, cum+wire.TSN(start)) {
			return false
		}
		prev, hole = end, cum+wire.TSN(end)+1
	}
	return s.renegeRange(k, hole, s.outstanding.nextTSN)
}

// renegeRange does that for the TSNs from one to before another, which no block names.
func (s *Sender) renegeRange(k *sackInProgress, from, to wire.TSN) (all bool) {
	g := &s.outstanding
	unnamed := s.work.walk(&g.gapAcked, from, to)
	for unnamed.next() {
		t, r := unnamed.tsn, g.recordOf(unnamed.tsn)
		p := s.paths[r.path]
		g.applyEvent(onRenege, t, r, p)
		s.stats.rare().Reneged++
		p.renegedOctets += r.chunkLen()
		if s.delivered.overtook(t, r) {
			s.markLossEligible(t, r)
		}
		s.addMiss(k.receivedAt, t, r, &k.lostPaths)
	}
	return !unnamed.cut
}
