package tx

import (
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// What is taken for lost may only be late: packets change places on the way. A path over which a chunk has come behind one that was sent later reorders:
// from then on time alone says what is lost there, whatever came in between. And where the peer has had a chunk twice that was sent again, it was not
// lost: the path gets more patience, for a while, and if none was of all that were sent again since cwnd was reduced, the reduction is taken
// back (RFC 8985 section 6.2; the duplicates that a SACK lists are its DSACK).
const (
	// lastingRecoveries is how many recoveries more patience lasts.
	lastingRecoveries = 16
	// latelyResent is of how many chunks it is known at most that they were sent again. A power of two.
	latelyResent = 128
	// undoneAtMost is at how much patience a reduction is still taken back: by then a chunk may be late by a whole round trip.
	undoneAtMost = 3
)

// disorder is what is known of it about one path.
type disorder struct {
	more   int32    // quarters of the shortest round trip of patience, beyond the first
	lasts  int32    // recoveries that it does
	again  int32    // chunks sent again since cwnd was reduced of which nobody knows that they were not lost
	until  wire.TSN // when it is acknowledged, patience grows again, if within
	within bool
	seen   bool // the path reorders
	over   bool // the recovery in which again was counted is
	undo   bool // the reduction may be taken back
}

// resentChunk is a chunk that was taken for lost.
type resentChunk struct {
	tsn  wire.TSN
	path uint8
	on   bool
}

// patience returns how long after its transmission a chunk is lost if one sent later has arrived: a round trip, and some quarters of
// the shortest, a round trip at most, for packets that have changed places (RFC 8985 section 6.2).
func (p *Path) patience() time.Duration {
	return p.est.srtt + min(p.est.trip.get()/4*time.Duration(1+p.disorder.more), p.est.srtt)
}

// suspect notes that a chunk is taken for lost.
func (s *Sender) suspect(t wire.TSN, p *Path) {
	if s.resent == nil {
		s.resent = new([latelyResent]resentChunk)
	}
	d := &p.disorder
	if d.over && !s.recovery {
		d.again, d.over = 0, false
	}
	d.again++
	s.resent[t%latelyResent] = resentChunk{t, p.index, true}
}

// late takes that a chunk which was taken for lost was not: it has arrived before it was sent again, or twice. It is so for others only if
// they are not asked about once more.
func (s *Sender) late(now rawio.Time, t wire.TSN) {
	if s.resent == nil {
		return
	}
	r := &s.resent[t%latelyResent]
	if !r.on || r.tsn != t {
		return
	}
	r.on = false
	p := s.paths[r.path]
	d := &p.disorder
	s.rare().Spurious++
	d.lasts = lastingRecoveries
	if !d.within || d.until.Less(s.ledger.base) {
		d.more, d.until, d.within = min(d.more+1, 1<<10), s.ledger.next, true
	}
	if d.again--; !s.recovery {
		s.undo(now, p)
	}
}

// undo takes the reduction back if all was late: not while more may turn out to be lost, and not from a peer that says so again and again, as what it says
// makes chunks wait for longer.
func (s *Sender) undo(now rawio.Time, p *Path) {
	if d := &p.disorder; d.undo && d.again == 0 && d.more <= undoneAtMost {
		d.undo = false
		p.cc.Undo(now)
	}
}

// recovered takes that Fast Recovery is over.
func (s *Sender) recovered(now rawio.Time) {
	for _, p := range s.paths {
		s.undo(now, p)
		d := &p.disorder
		d.over = true
		if d.lasts > 0 {
			if d.lasts--; d.lasts == 0 {
				d.more = 0
			}
		}
	}
}

// resentHeld is what is kept of chunks that were sent again, in octets.
func (s *Sender) resentHeld() int {
	if s.resent == nil {
		return 0
	}
	return int(unsafe.Sizeof(*s.resent))
}
