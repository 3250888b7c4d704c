package tx

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// What is learnt from chunks that are acknowledged together is what is learnt from one after the other, whatever went before and however they differ.
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
			s.ledger.grow()
			s.ledger.grow()
			at := stamp(l.now)
			for k := range wire.TSN(n) {
				_, r := s.ledger.push()
				*r = record{stamp: at - 5000, size: full, wire: wire.FlagE, state: sent}
				for _, change := range []func(){
					func() { r.stamp = at - 1000*uint32(rnd.IntN(5)) },
					func() { r.size = 100 },
					func() { r.wire |= wire.FlagI },
					func() { r.flags = 1 << rnd.IntN(8) },
					func() { r.path = 1 },
					func() { r.state = back },
					func() { r.spare = 1 },
					func() { r.spare, r.flags = 1, timeout|resent },
					func() { r.state = marked },
				} {
					if one(int(10 + seed%80)) {
						change()
					}
				}
				if k > 0 && one(2) {
					*r = *s.ledger.rec(s.ledger.next - 2)
				}
			}
			some := func() sending {
				r := s.ledger.rec(1 + wire.TSN(rnd.IntN(n)))
				return sending{stamp: r.stamp, tsn: 1 + wire.TSN(rnd.IntN(n)), any: !one(4)}
			}
			for _, p := range s.paths {
				p.first, p.timed, p.timing = 1+wire.TSN(rnd.IntN(n)), 1+wire.TSN(rnd.IntN(n)), one(2)
				p.full, p.latest, p.holes = some(), some(), 3
				p.sack.latest = some()
				if one(2) {
					p.full.stamp, p.sack.latest.stamp = at-9000, at-9000
				}
				p.est.trip.of = time.Duration(rnd.IntN(9)) * time.Millisecond
				p.alarm.first = 1 + wire.TSN(rnd.IntN(n))
			}
			s.tail.out, s.tail.tsn = one(4), 1+wire.TSN(rnd.IntN(n))
			a := &ack{now: l.now, htna: wire.TSN(rnd.IntN(n))}
			for t := wire.TSN(1); t <= n; {
				k := 1
				if i > 0 {
					k = s.together(t, n, s.ledger.rec(t))
					saved += k - 1
				}
				s.ackOne(a, t, s.ledger.rec(t), k)
				t += wire.TSN(k)
			}
			ends[i] = fmt.Sprint(*a, s.acked, s.latest, s.heard, s.tail.out, s.tail.due, s.tail.over != nil, s.tail.repairs)
			for _, p := range s.paths {
				ends[i] += fmt.Sprint("; ", p.sack, p.timing, p.latest, p.disorder.seen, p.alarm, p.holes)
			}
		}
		must.That(t, ends[0] == ends[1], "seed %d: together\n%s\none by one\n%s", seed, ends[1], ends[0])
	}
	check.That(t, saved > 2_000, "%d chunks were alike", saved)
}
