package tx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
)

// growCwnd is the second step of a SACK. It tells congestion control what was acknowledged, before
// any loss (sections 7.2.1, 7.2.2 and 7.2.4).
func (s *Sender) growCwnd(now rawio.Time) {
	all := s.outstanding.len() == 0
	for _, p := range s.paths {
		p.observeSack(now, all)
		k := &p.sack
		if k.ackedOctets > 0 {
			p.onePacketOnly, p.timers.early.expiries = false, 0
			s.clearCwndFull(p)
		}
		if k.ackedOctets > 0 || k.dupOctets > 0 || all {
			again := min(k.ackedOctets, p.renegedOctets)
			p.renegedOctets -= again
			p.cc.OnAck(now, cc.Ack{
				Octets: k.ackedOctets - again, Full: min(k.cwndLimitedOctets, k.ackedOctets-again), Dups: k.dupOctets,
				Flight: k.priorFlight, Recovery: s.recovery.active || s.ecn.echoed, AllAcked: all,
				RTT: k.rtt, Trip: k.minRTT, Spread: s.isPaced(p),
			})
		}
	}
	s.ecn.echoed = false
}
