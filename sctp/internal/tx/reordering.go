package tx

import (
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// What is taken for lost may only be late: packets change places on the way. A path reorders if a
// chunk has come after one that was sent later over it. From then on time alone says what is lost
// there, whatever came in between.
//
// A chunk that was sent again and that the peer has had twice was not lost. The reordering window
// of the path then grows for a while. If none of the chunks sent again since cwnd was reduced was
// lost, the reduction is taken back. RFC 8985 section 6.2 has this; the duplicates that a SACK
// lists are its DSACK.
const (
	// reorderingRecoveries is how many recoveries a longer reordering window
	// lasts.
	reorderingRecoveries = 16
	// maxRecentLosses is of how many chunks it is known at most that they were sent again. A power
	// of two.
	maxRecentLosses = 128
	// maxUndoQuarters is the largest reordering window at which a reduction is still taken back. By
	// then a chunk may be late by a whole round trip.
	maxUndoQuarters = 3
)

// reordering is what is known about the reordering of one path.
type reordering struct {
	extraQuarters     int32    // of the reordering window, in quarters of the shortest round trip, beyond the first
	recoveriesLeft    int32    // recoveries that they last
	unconfirmedLosses int32    // chunks sent again since cwnd was reduced that may have been lost
	growAgainTSN      wire.TSN // when it is acknowledged the window may grow again, if growAgainSet
	growAgainSet      bool
	isObserved        bool // the path reorders
	recoveryOver      bool // the recovery of unconfirmedLosses is over
	mayUndo           bool // the reduction may be taken back
}

// recentLoss is a chunk that was taken for lost.
type recentLoss struct {
	tsn        wire.TSN
	path       uint8
	unresolved bool
}

// rackTimeout returns how long after its transmission a chunk is lost if one sent later has
// arrived. It is a round trip and the reordering window (RFC 8985 section 6.2). That is some
// quarters of the shortest round trip, a round trip at most.
func (p *Path) rackTimeout() time.Duration {
	return p.rttEst.srtt + min(p.rttEst.minRTT.get()/4*time.Duration(1+p.reordering.extraQuarters), p.rttEst.srtt)
}

// recordLoss notes that a chunk is taken for lost.
func (v *lossRecovery) recordLoss(t wire.TSN, p *Path) {
	if v.recentLosses == nil {
		v.recentLosses = new([maxRecentLosses]recentLoss)
	}
	d := &p.reordering
	if d.recoveryOver && !v.active {
		d.unconfirmedLosses, d.recoveryOver = 0, false
	}
	d.unconfirmedLosses++
	v.recentLosses[t%maxRecentLosses] = recentLoss{t, p.index, true}
}

// observeLateArrival learns of a chunk that is acknowledged while it waits to be sent again.
func (s *Sender) observeLateArrival(now rawio.Time, c ackedChunks) {
	if c.record.isIn(inToRetransmit) {
		s.onSpuriousLoss(now, c.first)
	}
}

// observeReordering learns whether the chunk has come after one that was sent later.
func (p *Path) observeReordering(c ackedChunks) {
	if c.record.flags&flagAmbiguous == 0 {
		p.reordering.isObserved = p.reordering.isObserved || p.sack.priorDelivered.isAfter(c.record.sentStamp, c.first)
	}
}

// onSpuriousLoss handles a chunk that was taken for lost and was not: it has arrived before it was
// sent again, or twice. Each such chunk counts once, and no other chunk does.
func (s *Sender) onSpuriousLoss(now rawio.Time, t wire.TSN) {
	if s.recovery.recentLosses == nil {
		return
	}
	r := &s.recovery.recentLosses[t%maxRecentLosses]
	if !r.unresolved || r.tsn != t {
		return
	}
	r.unresolved = false
	p := s.paths[r.path]
	d := &p.reordering
	s.stats.rare().Spurious++
	d.recoveriesLeft = reorderingRecoveries
	if !d.growAgainSet || d.growAgainTSN.Less(s.outstanding.firstUnacked) {
		d.extraQuarters, d.growAgainTSN, d.growAgainSet = min(d.extraQuarters+1, 1<<10), s.outstanding.nextTSN, true
	}
	if d.unconfirmedLosses--; !s.recovery.active {
		p.undoReduction(now)
	}
}

// undoReduction takes the reduction back if all was late. It does not while more may turn out to be
// lost. Nor does it for a peer that says so again and again: what it says makes chunks wait for
// longer.
func (p *Path) undoReduction(now rawio.Time) {
	if d := &p.reordering; d.mayUndo && d.unconfirmedLosses == 0 && d.extraQuarters <= maxUndoQuarters {
		d.mayUndo = false
		p.cc.Undo(now)
	}
}

// endRecovery handles the end of Fast Recovery.
func (s *Sender) endRecovery(now rawio.Time) {
	for _, p := range s.paths {
		p.undoReduction(now)
		d := &p.reordering
		d.recoveryOver = true
		if d.recoveriesLeft > 0 {
			if d.recoveriesLeft--; d.recoveriesLeft == 0 {
				d.extraQuarters = 0
			}
		}
	}
}

// held returns the octets of memory behind it.
func (v *lossRecovery) held() int {
	if v.recentLosses == nil {
		return 0
	}
	return int(unsafe.Sizeof(*v.recentLosses))
}
