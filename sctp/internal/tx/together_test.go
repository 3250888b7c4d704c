package tx

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// What is learnt from chunks that are acknowledged together is what is learnt from one after the
// other, whatever went before and however they differ.
func TestAcknowledgedTogetherIsAsOneByOne(t *testing.T) {
	const n = 12
	saved := 0
	for seed := range uint64(2_000) {
		var ends [2]string
		for i := range ends {
			rnd := rand.New(rand.NewPCG(9260, seed))
			one := func(of int) bool { return rnd.IntN(of) == 0 }
			l := newLab(t, 2)
			l.now = 20 * ms
			s := l.s
			s.outstanding.growRing()
			s.outstanding.growRing()
			at := stampOf(l.now)
			for k := range wire.TSN(n) {
				_, r := s.outstanding.appendRecord()
				*r = chunkRecord{sentStamp: at - 5000, size: full, wireFlags: wire.FlagE, state: stateInFlight}
				for _, change := range []func(){
					func() { r.sentStamp = at - 1000*uint32(rnd.IntN(5)) },
					func() { r.size = 100 },
					func() { r.wireFlags |= wire.FlagI },
					func() { r.flags = 1 << rnd.IntN(8) },
					func() { r.path = 1 },
					func() { r.state = stateReneged },
					func() { r.unreportedDups = 1 },
					func() { r.unreportedDups, r.flags = 1, flagTimedOut|flagResent },
					func() { r.state = stateLost },
				} {
					if one(int(10 + seed%80)) {
						change()
					}
				}
				if k > 0 && one(2) {
					*r = *s.outstanding.recordOf(s.outstanding.nextTSN - 2)
				}
			}
			some := func() sendOrder {
				r := s.outstanding.recordOf(1 + wire.TSN(rnd.IntN(n)))
				return sendOrder{sentStamp: r.sentStamp, tsn: 1 + wire.TSN(rnd.IntN(n)), isSet: !one(4)}
			}
			for _, p := range s.paths {
				p.flight.first, p.timing.tsn, p.timing.active = 1+wire.TSN(rnd.IntN(n)), 1+wire.TSN(rnd.IntN(n)), one(2)
				p.cwndFull, p.latestDelivered, p.blackHoleTimeouts = some(), some(), 3
				p.sack.priorDelivered = some()
				if one(2) {
					p.cwndFull.sentStamp, p.sack.priorDelivered.sentStamp = at-9000, at-9000
				}
				p.rttEst.minRTT.current = time.Duration(rnd.IntN(9)) * time.Millisecond
				p.spuriousTimeout.firstTSN = 1 + wire.TSN(rnd.IntN(n))
			}
			s.tailProbe.unacked, s.tailProbe.tsn = one(4), 1+wire.TSN(rnd.IntN(n))
			a := &sackInProgress{receivedAt: l.now, acked: ackedInfo{highestNewlyAcked: wire.TSN(rnd.IntN(n))}}
			for t := wire.TSN(1); t <= n; {
				k := 1
				if i > 0 {
					k = s.countSentTogether(t, n, s.outstanding.recordOf(t))
					saved += k - 1
				}
				s.ackChunks(a, t, s.outstanding.recordOf(t), k)
				t += wire.TSN(k)
			}
			ends[i] = fmt.Sprint(*a, s.burst.ackedOctets, s.delivered.latest, s.delivered.at, s.tailProbe.unacked,
				s.tailProbe.pending, s.tailProbe.answeredPath != nil, s.tailProbe.repairedLoss)
			for _, p := range s.paths {
				ends[i] += fmt.Sprint("; ", p.sack, p.timing.active, p.latestDelivered, p.reordering.isObserved,
					p.spuriousTimeout, p.blackHoleTimeouts)
			}
		}
		must.That(t, ends[0] == ends[1], "seed %d: together\n%s\none by one\n%s", seed, ends[1], ends[0])
	}
	check.That(t, saved > 2_000, "%d chunks were alike", saved)
}
