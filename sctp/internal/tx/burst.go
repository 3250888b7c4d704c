package tx

import "github.com/rddp-go/rddp/rawio"

// burst is a transmission opportunity: what may leave at once (section 6.1, D), and what waits for
// more to go with it.
type burst struct {
	left              int        // packets left in this opportunity
	ackedOctets       int        // octets of chunks acknowledged since it began
	deferral          deferral   // what is not sent in it
	enqueuedSinceSack bool       // a message was queued since an opportunity that a SACK brought about
	moreExpected      bool       // see Expect
	credit            int32      // packets that earlier ones have left to this one
	coalesceEndAt     rawio.Time // until when what is queued waits for more, or Never
	paceAt            rawio.Time // when the packet that Poll held back may go, or Never
}

// StartBurst begins a transmission opportunity: the packets of Max.Burst may go (section 6.1, D).
// An owner may handle many received packets before it transmits, or a peer may acknowledge many at
// once. Then there is one opportunity for every two full packets acknowledged, as a SACK for every
// second packet would have given (section 6.2). Unless in strict RFC mode, two trains may go in any
// case: all of a message of 64 KiB. Links move a train as one.
func (s *Sender) StartBurst(now rawio.Time) {
	if s.burst.paceAt != rawio.Never && s.burst.ackedOctets == 0 {
		return // the one before goes on, packet by packet
	}
	p := s.DataPath()
	n := (s.burst.ackedOctets + p.pmdcs) / (2 * p.pmdcs) // to the nearest: a full chunk leaves room for a SACK
	credit := 0                                          // what opportunities that all had to wait in have left over
	if s.burst.deferral == deferAll {
		credit = min(int(s.burst.credit)+s.cfg.MaxBurst, trainOctets/p.pmdcs+1)
	}
	s.burst.credit = int32(credit)
	s.burst.left = s.cfg.MaxBurst*max(n, 1) + credit
	s.chooseDeferral(now, p, s.burst.ackedOctets > 0)
	s.burst.ackedOctets = 0
	if !s.cfg.StrictRFC {
		s.burst.left = max(s.burst.left, 2*trainOctets/p.pmdcs)
	}
}

// burstAllows reports whether Max.Burst lets a further packet to p go. Unless in strict RFC mode,
// it does not bound paced paths, nor the first packets of a path.
func (s *Sender) burstAllows(p *Path) bool {
	return s.burst.left > 0 || s.cfg.MaxBurst == 0 || !s.cfg.StrictRFC && (s.isPaced(p) || p.rttEst.srtt == 0)
}
