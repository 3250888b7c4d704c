package tx

import (
	"github.com/rddp-go/rddp/sctp/wire"
)

// acknowledge is the first step of a SACK. It takes what the cumulative TSN covers, then what gap
// blocks name (section 6.2.1, D).
func (s *Sender) acknowledge(k *sackInProgress) (all bool) {
	first := s.outstanding.firstUnacked
	cum := lastOfSlice(first, k.cumTSN)
	k.acked = ackedInfo{highestNewlyAcked: first - 1, highestNamed: cum}
	s.ackCumulative(k, cum)
	if all = cum == k.cumTSN; all && k.chunk != nil {
		all = s.ackGapBlocks(k)
	}
	s.exitRecovery(k.receivedAt)
	k.missesFrom = s.outstanding.firstUnacked
	return all
}

// ackCumulative acknowledges everything up to cum and tells the upper layer.
func (s *Sender) ackCumulative(k *sackInProgress, cum wire.TSN) {
	g := &s.outstanding
	base := g.firstUnacked
	n := int(uint32(cum + 1 - base))
	if n == 0 {
		return
	}
	k.acked.cumAdvanced = true
	g.removeFromSets(n, s.paths)
	var told ackRun
	like := 0 // so many more, of those that were sent together
	for t := base; t != cum+1; t++ {
		*s.work.steps++
		r := g.recordOf(t)
		if like--; like < 0 && r.state < stateGapAcked {
			like = s.countSentTogether(t, cum, r) - 1
			s.ackChunks(k, t, r, like+1)
		}
		if r.flags&flagEnqueued != 0 {
			s.queue.release(r.stream, int(r.size))
		}
		r.body = [2][]byte{} // let go of the user's memory
		g.cumAckFirst(r, s.paths[r.path])
		if r.wireFlags&wire.FlagE != 0 && !told.add(r) {
			s.upper.notifyAcked(k.receivedAt, told)
			told = ackRun{}
			told.add(r)
		}
	}
	s.upper.notifyAcked(k.receivedAt, told)
	s.window.probing = false // it was the only one outstanding
	if s.partial() != nil {
		s.onForwardAcked(k, base)
	}
}

// countSentTogether returns how many chunks from t (that of r) to cum tell the same by their
// acknowledgement. They went once, at the same time, to one path, and nothing was heard of any.
func (s *Sender) countSentTogether(t, cum wire.TSN, r *chunkRecord) int {
	p, n := s.paths[r.path], 1
	if r.state != stateInFlight || r.flags&^flagLongPacket != 0 || s.tailProbe.unacked || p.rateSampler != nil ||
		r.sentStamp == p.cwndFull.sentStamp {
		return n
	}
	for ; t != cum; n++ {
		t++
		if q := s.outstanding.recordOf(t); q.sentStamp != r.sentStamp || q.size != r.size ||
			q.wireFlags != r.wireFlags || q.flags != r.flags || q.path != r.path || q.state != stateInFlight {
			break
		}
	}
	return n
}

// A peer can cause the same work again and again by reneging. The octets of its SACKs pay for that
// work: so many chunks for each octet, and so many at once.
const (
	creditPerSackOctet = 4
	maxRenegeCredit    = 1 << 13
)

// payForReneging takes what so many octets of a SACK pay.
func (w *workBudget) payForReneging(octets int) {
	w.renegeCredit = min(w.renegeCredit+creditPerSackOctet*octets, maxRenegeCredit)
}

// ackGapBlocks acknowledges what is in the gap blocks, and says whether it came to the end. Blocks
// are to ascend. One that does not is passed over, which also bounds the work by the window. A
// reneged chunk that was not sent again is acknowledged only while SACKs have paid for that. Else
// it stays in flight until it is sent again or covered by the cumulative TSN.
func (s *Sender) ackGapBlocks(k *sackInProgress) (all bool) {
	g, c := &s.outstanding, k.chunk
	prev, unacked := uint16(0), s.work.walk(&g.unacked, 0, 0)
	for i := range c.NumGaps() {
		start, end := c.Gap(i)
		if start <= prev || end < start {
			continue
		}
		n := int(end-start) + 1
		prev, k.acked.namedCount = end, k.acked.namedCount+int32(n)
		first, last := k.cumTSN+wire.TSN(start), k.cumTSN+wire.TSN(end)
		k.acked.highestNamed = last
		*s.work.steps++
		for unacked.from, unacked.end = first, last+1; unacked.next(); {
			s.ackGapTSN(k, unacked.tsn)
		}
		if unacked.cut {
			return false
		}
		if g.numReneged == 0 {
			continue
		}
		*s.work.steps++
		t, ok := g.reneged.Next(first, n)
		for ; ok && s.work.renegeCredit > 0; t, ok = g.reneged.Next(t+1, int(uint32(last-t))) {
			s.work.renegeCredit--
			*s.work.steps++
			s.ackGapTSN(k, t)
		}
	}
	return true
}

// ackGapTSN acknowledges a TSN that a gap block names.
func (s *Sender) ackGapTSN(k *sackInProgress, t wire.TSN) {
	r := s.outstanding.recordOf(t)
	s.ackChunks(k, t, r, 1)
	s.outstanding.applyEvent(onGapAck, t, r, s.paths[r.path])
}

// ackChunks takes the acknowledgement of a TSN that was not acknowledged, or of n TSNs from there
// on that went together. The caller changes their states.
func (s *Sender) ackChunks(k *sackInProgress, t wire.TSN, r *chunkRecord, n int) {
	p, octets := s.paths[r.path], n*r.chunkLen()
	c := ackedChunks{t, n, r, p}
	s.observeAcked(k.receivedAt, c)
	if !r.isIn(inToRetransmit) && c.covers(p.flight.first) {
		p.sack.ackedFirst = true
	}
	s.burst.ackedOctets += octets
	p.sack.ackedOctets += octets
	if p.cwndFull.isAfter(r.sentStamp, t) {
		p.sack.cwndLimitedOctets += octets
	}
	r.missCount = 0
	last := c.last()
	s.noteDelivered(k.receivedAt, last, r, p)
	if k.acked.highestNewlyAcked.Less(last) {
		k.acked.highestNewlyAcked = last
	}
	k.acked.newlyAcked = true
	if r.flags&flagMultiPath == 0 { // else it is not known which destination it reached (RFC 7829 section 3.2)
		k.acked.paths.add(p.Index())
	}
}
