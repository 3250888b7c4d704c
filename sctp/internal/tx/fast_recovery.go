package tx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// lossRecovery is what is lost, or may be, and the reaction to it.
type lossRecovery struct {
	active          bool                         // in Fast Recovery (7.2.4)
	bypassCwnd      bool                         // the packet that ignores cwnd on entering it is still to be sent
	exitTSN         wire.TSN                     // where Fast Recovery ends
	pathsToMark     PathSet                      // where T3-rtx has more to mark
	rackAt          rawio.Time                   // when what is missing may be lost, or Never
	pathSuspectedAt rawio.Time                   // when a path was last left
	recentLosses    *[maxRecentLosses]recentLoss // what was taken for lost recently, by TSN; nil: nothing ever was
}

// enterFastRecovery reacts to the chunks that were marked by miss indications (section 7.2.4,
// points 2 to 6).
func (s *Sender) enterFastRecovery(now rawio.Time, lost PathSet) {
	if lost == 0 || s.recovery.active {
		return
	}
	for _, p := range s.paths {
		if lost.Has(p.Index()) {
			s.reduceCwnd(now, p)
			p.reordering.mayUndo = !s.cfg.StrictRFC
		}
	}
	s.recovery.active, s.recovery.bypassCwnd = true, s.outstanding.numToRetransmit > 0
	s.recovery.exitTSN = s.outstanding.nextTSN - 1
	s.stats.rare().FastRetransmits++
}

// reduceCwnd is the reaction to a loss.
func (s *Sender) reduceCwnd(now rawio.Time, p *Path) {
	p.cc.OnLoss(now)
	p.tsnsSentAtReduction, p.cwndFull = s.SentTSNs(), sendOrder{}
	p.spuriousTimeout.possible = false // that could not be taken back
}

// exitRecovery leaves Fast Recovery when its exit point is acknowledged (section 6.2.1, D iv).
func (s *Sender) exitRecovery(now rawio.Time) {
	if s.recovery.active && s.recovery.exitTSN.Less(s.outstanding.firstUnacked) {
		s.recovery.active = false
		s.endRecovery(now)
	}
	s.updateBypassCwnd()
}

// updateBypassCwnd no longer lets a packet ignore cwnd when the reason for it has gone, or there is
// nothing to send in it.
func (s *Sender) updateBypassCwnd() {
	v := &s.recovery
	v.bypassCwnd = v.bypassCwnd && (v.active || s.tailProbe.pending) && s.outstanding.numToRetransmit > 0
}
