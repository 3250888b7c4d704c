package tx

import "github.com/rddp-go/rddp/rawio"

// enterFastRecovery reacts to the chunks that were marked by miss indications (section 7.2.4,
// points 2 to 6).
func (s *Sender) enterFastRecovery(now rawio.Time, lost PathSet) {
	if lost == 0 || s.inRecovery {
		return
	}
	for _, p := range s.paths {
		if lost.Has(p.Index()) {
			s.reduceCwnd(now, p)
			p.reordering.mayUndo = !s.cfg.StrictRFC
		}
	}
	s.inRecovery, s.bypassCwnd = true, true
	s.recoveryExit = s.outstanding.nextTSN - 1
	s.rareStats().FastRetransmits++
}

// reduceCwnd is the reaction to a loss.
func (s *Sender) reduceCwnd(now rawio.Time, p *Path) {
	p.cc.OnLoss(now)
	p.tsnsSentAtReduction, p.cwndFull = s.SentTSNs(), sendOrder{}
	p.spuriousTimeout.possible = false // that could not be taken back
}

// exitRecovery leaves Fast Recovery when its exit point is acknowledged (section 6.2.1, D iv).
func (s *Sender) exitRecovery(now rawio.Time) {
	if s.inRecovery && s.recoveryExit.Less(s.outstanding.firstUnacked) {
		s.inRecovery = false
		s.endRecovery(now)
	}
	s.updateBypassCwnd()
}

// updateBypassCwnd no longer lets a packet ignore cwnd when the reason for it has gone, or there is
// nothing to send in it.
func (s *Sender) updateBypassCwnd() {
	s.bypassCwnd = s.bypassCwnd && (s.inRecovery || s.tailProbe.pending) && s.outstanding.numToRetransmit > 0
}
