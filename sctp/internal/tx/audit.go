package tx

import (
	"cmp"
	"fmt"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tsnset"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Audit recounts from the states of the chunks everything that the Sender keeps count of, and says
// what does not agree. It covers sums and sets, the order of sending, the timer of each path, and
// what Enqueue has taken. It walks over all that is outstanding or queued, and is for simulators
// and tests.
func (s *Sender) Audit() error {
	g, held := &s.outstanding, 0
	if err := g.auditSets(s.paths); err != nil {
		return err
	}
	for t := g.firstUnacked; t != g.nextTSN; t++ {
		r := g.recordOf(t)
		// A chunk that was sent again is found in the order of sending, which time alone does not
		// tell.
		ago := int32(s.delivered.latest.sentStamp - r.sentStamp)
		late := r.isIn(inFlight) && (r.flags&flagFastRetransmitted == 0 || !s.cfg.StrictRFC) &&
			s.delivered.latest.isAfter(r.sentStamp, t)
		switch {
		case r.flags&(flagResent|flagProbeCopied) == 0 && r.unreportedDups > 0:
			return fmt.Errorf("TSN %d: sent once, and %d times again", t, r.unreportedDups)
		case g.lossEligible.Has(t) && !late, late && (r.flags&flagResent == 0 || ago > 0) && !g.lossEligible.Has(t) &&
			!s.sack.active:
			return fmt.Errorf("TSN %d: eligible for loss %v", t, g.lossEligible.Has(t))
		case s.withheld.isChunk(t) != (r.state == stateWithheld || r.state == stateWithheldQueued):
			return fmt.Errorf("TSN %d is %v; TSN %d is withheld: %v", t, r.state, s.withheld.tsn, s.withheld.isActive)
		}
		if r.flags&flagEnqueued != 0 {
			held += int(r.size)
		}
	}
	for i, p := range s.paths {
		if (p.flight.octets > 0) != (p.timers.t3At != rawio.Never) && !s.recovery.pathsToMark.Has(i) {
			return fmt.Errorf("path %d: flight %d, T3 %d", i, p.flight.octets, p.timers.t3At)
		}
	}
	if s.recovery.bypassCwnd && (!s.recovery.active && !s.tailProbe.pending || g.numToRetransmit == 0) {
		return fmt.Errorf("a packet is urgent in Fast Recovery: %v, with %d marked", s.recovery.active,
			g.numToRetransmit)
	}
	return s.auditQueue(held)
}

// auditSets recounts flight sizes (RFC 9260 section 7.2), the earliest TSN of each path, and all
// that has a set.
func (g *outstanding) auditSets(paths []*Path) error {
	var flight [MaxPaths]int
	var first [MaxPaths]wire.TSN
	sum := outstanding{}
	for t := g.firstUnacked; t != g.nextTSN; t++ {
		r, in := g.recordOf(t), chunkSets(0)
		for i, p := range paths {
			if uint32(t-g.firstUnacked) < uint32(p.flight.tsns.Cap()) && p.flight.tsns.Has(t) {
				if in |= inFlight; i != int(r.path) {
					return fmt.Errorf("TSN %d is in flight to path %d, and was sent to path %d", t, i, r.path)
				}
			}
		}
		for i, set := range []*tsnset.Set{&g.toRetransmit, &g.gapAcked, &g.unacked, &g.reneged} {
			if set.Has(t) {
				in |= inToRetransmit << i
			}
		}
		if in != setsOfState[r.state] || in == 0 && r.state != stateAbandoned {
			return fmt.Errorf("TSN %d is %v, and in the accounts %05b", t, r.state, in)
		}
		if sum.addToCounts(in, 1); in&inFlight != 0 {
			if flight[r.path] == 0 {
				first[r.path] = t
			}
			flight[r.path] += r.chunkLen()
			sum.flightSize += r.chunkLen()
			sum.dataInFlight += int(r.size)
		}
	}
	for i, p := range paths {
		if p.flight.octets != flight[i] || p.flight.octets > 0 && p.flight.first != first[i] {
			return fmt.Errorf("path %d: flight %d, first %d; counted are %d and %d", i, p.flight.octets, p.flight.first,
				flight[i], first[i])
		}
	}
	if g.flightSize != sum.flightSize || g.dataInFlight != sum.dataInFlight ||
		g.numToRetransmit != sum.numToRetransmit || g.numGapAcked != sum.numGapAcked || g.numReneged != sum.numReneged {
		return fmt.Errorf("flight %d, data %d, marked %d, gap-acknowledged %d, owed %d; counted are %d, %d, %d, %d, %d",
			g.flightSize, g.dataInFlight, g.numToRetransmit, g.numGapAcked, g.numReneged, sum.flightSize,
			sum.dataInFlight, sum.numToRetransmit, sum.numGapAcked, sum.numReneged)
	}
	octets := 0
	if len(g.chunkRing) > len(g.inlineRecords) {
		octets = len(g.chunkRing) * int(unsafe.Sizeof(chunkRecord{}))
	}
	for _, set := range g.allSets() {
		octets += set.Held()
	}
	if g.len() > maxOutstanding || octets != g.memoryOctets {
		return fmt.Errorf("%d TSNs outstanding, %d octets of records and sets; counted are %d", g.len(), octets,
			g.memoryOctets)
	}
	return nil
}

// auditQueue adds what waits to be sent to the octets of Enqueue that are outstanding.
func (s *Sender) auditQueue(held int) error {
	unsent := 0
	for m := range s.queue.allWaiting {
		unsent += m.Len()
	}
	unsent -= s.queue.begunOctets()
	held += unsent
	if s.queue.current.loaded && s.queue.current.fromQueue {
		held += s.queue.current.rest()
	}
	most := cmp.Or(s.cfg.SendBuffer, MaxBuffer)
	if s.queue.streams != nil && s.queue.streams.hadOwn {
		most += mostOwn
	}
	if most += most / reserveShare; s.queue.waitingOctets != unsent || s.queue.bufferedOctets != held ||
		s.queue.bufferedOctets > most {
		return fmt.Errorf("%d octets unsent, %d held of %d; counted are %d and %d", s.queue.waitingOctets,
			s.queue.bufferedOctets, most, unsent, held)
	}
	if y := s.queue.streams; y != nil && y.amounts != nil {
		return y.amounts.audit(held)
	}
	return nil
}

// audit compares the sums with what streams have.
func (y *streamAmounts) audit(held int) error {
	octets, passed := 0, 0
	for id, x := range y.amounts.All {
		if octets, passed = octets+x.octets, passed+x.passed; x.passed < 0 || x.passed > x.octets {
			return fmt.Errorf("stream %d has %d octets, %d of the reserve", id, x.octets, x.passed)
		}
	}
	if octets != held || passed != y.passed {
		return fmt.Errorf("streams have %d octets, %d of the reserve; counted are %d and %d", octets, passed, held,
			y.passed)
	}
	return nil
}

// DumpState returns all that the Sender counts and has measured. Tests compare it with what it was.
func (s *Sender) DumpState() string {
	g, b, v, u, w := &s.outstanding, []byte(nil), &s.recovery, &s.burst, &s.window
	b = fmt.Append(b, s.Stats(), *s.work.steps, g.firstUnacked, g.nextTSN, g.flightSize, g.dataInFlight, g.rwnd,
		w.largest, s.Queued(), s.NextTimeout(), v.active, v.bypassCwnd, u.left, u.credit, u.ackedOctets, u.deferral,
		u.enqueuedSinceSack, u.moreExpected, u.coalesceEndAt, s.work.renegeCredit, w.probing, w.probeAnswered,
		w.probeIsCut, s.delivered.latest, g.lossEligibleTo, s.tailProbe.pending, s.tailProbe.unacked,
		s.tailProbe.tsn, s.sack.active, g.numToRetransmit, g.numGapAcked, g.numReneged)
	for _, p := range s.paths {
		b = fmt.Append(b, " ", p.State, p.mtu, p.rttEst, p.flight.octets, p.cc.Window(), p.cc.Ssthresh(), p.timers.t3At,
			p.timers.ptoAt, p.pacing.nextSendAt, p.lastSentAt, p.idleSince,
			p.blackHoleTimeouts, p.onePacketOnly, p.tsnsSentAtReduction, p.timing.active, p.timing.tsn,
			p.timing.startedAt,
			p.latestDelivered, p.suspicion,
			p.rackTimeout(), p.sackDelays.longestDelay(), p.renegedOctets, p.timers.early.expiries, p.IsBlackHole(),
			p.NeedsRTTProof())
		if c := p.rateSampler; c != nil {
			b = fmt.Append(b, c.delivered, c.lost, c.appLimitedUntil)
		}
	}
	for t := g.firstUnacked; t != g.nextTSN; t++ {
		c := g.recordOf(t)
		b = append(b, c.flags, c.missCount, c.unreportedDups, c.path)
	}
	return string(b)
}

// ChunkInfo is what a model of the Sender compares of one outstanding TSN, besides what is visible
// to all.
type ChunkInfo struct {
	Arrived bool // a gap block has named it
	Owed    bool // SACKs have not paid yet for its being looked at
	Misses  int
}

// ChunkInfo is for tests.
func (s *Sender) ChunkInfo(t wire.TSN) ChunkInfo {
	r := s.outstanding.recordOf(t)
	return ChunkInfo{Arrived: r.state == stateGapAcked, Owed: r.isIn(inReneged), Misses: int(r.missCount)}
}
