package tx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Observers watch what SACKs say, and learn from it: how long a round trip takes, whether packets
// change places, whether T3-rtx was early. They come in three lists, which are here and nowhere
// else. None of them changes the state of a chunk, or what another learns.

// ackedChunks are chunks that are acknowledged now: one, or several in a row that went together.
// They still have the state of before.
type ackedChunks struct {
	first  wire.TSN
	n      int
	record *chunkRecord // of the first: the others tell the same
	path   *Path        // where they went
}

// last is the TSN of the last of them.
func (c ackedChunks) last() wire.TSN { return c.first + wire.TSN(c.n-1) }

// covers reports whether t is one of them.
func (c ackedChunks) covers(t wire.TSN) bool { return uint32(t-c.first) < uint32(c.n) }

// observeAcked tells of chunks that are acknowledged.
func (s *Sender) observeAcked(now rawio.Time, c ackedChunks) {
	s.observeLateArrival(now, c)          // reordering.go: taken for lost, and it was only late
	c.path.observeRTT(now, c)             // rto.go: the chunk whose round trip is timed
	c.path.observeReordering(c)           // reordering.go: overtaken by one that was sent later
	c.path.observeSackDelay(now, c)       // sack_delay.go: how long the peer waits
	s.observeDelivery(now, c)             // rate_sample.go: how fast data arrives
	c.path.observeSpuriousTimeout(now, c) // spurious_timeout.go: T3-rtx was early
	s.tailProbe.observe(now, c)           // tail_probe.go: the probe has its answer
	c.path.observeLongPacket(c)           // path.go: packets of that length pass
}

// observeDuplicates tells of TSNs that the SACK lists as duplicates. A chunk counts for
// partial_bytes_acked (7.2.2) as often as it was sent again. So a peer cannot open cwnd by
// inventing duplicates.
func (s *Sender) observeDuplicates(now rawio.Time, k wire.Sack) {
	s.tailProbe.duplicate = false
	for i := range k.NumDups() {
		t := k.Dup(i)
		*s.work.steps++
		s.stats.rare().DupsReported++
		s.onSpuriousLoss(now, t)   // reordering.go: what went again was not lost
		s.tailProbe.onDuplicate(t) // tail_probe.go: nor was what the probe is about
		if r := s.outstanding.sentRecord(t); r != nil && r.unreportedDups > 0 {
			s.paths[r.path].spuriousTimeout.onDuplicate(t, r) // spurious_timeout.go: nor what T3-rtx has marked
			r.unreportedDups--
			s.paths[r.path].sack.dupOctets += r.chunkLen()
		}
	}
}

// observeSack tells of what a SACK has acknowledged over p in all. lastOfAll says that nothing is
// outstanding any more.
func (p *Path) observeSack(now rawio.Time, lastOfAll bool) {
	if p.sack.rtt > 0 {
		p.ObserveRTT(p.sack.rtt) // rto.go
	}
	p.pacing.pairs.onAcked(now, p.sack.ackedOctets, p.pmdcs) // packet_pairs.go: the rate of the bottleneck
	if lastOfAll {
		p.learnSackDelay() // sack_delay.go
	}
}
