package ddpadapt

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Sessions live over packets that come in any order, and end in every way there is: each count is
// that of what is there all the while, and zero when nothing is left, whether the sessions have
// ended one by one, by a restart, or with the association.
func TestEveryAccountIsZeroHoweverSessionsEnd(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 40
	}
	most := [4]int{} // sessions, pending, refused, octets that came early
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 3))
		a, b := newPair(t)
		for _, e := range []*end{a, b} {
			e.cfg.MaxPending = 3
		}
		idle := [2]int{a.Held(), b.Held()}
		all, users := [2][]*Session{}, make(map[*Session]*user)
		var flight []*packet
		ends := [2]*end{a, b}
		hear := func(i int) {
			for ev, ok := ends[i].PollEvent(); ok; ev, ok = ends[i].PollEvent() {
				if ev.Kind == EventInitiate {
					all[i] = append(all[i], ev.Session)
				}
			}
		}
		move := func(i int) { // packets leave, and some arrive, in any order; acknowledgements come back
			flight = append(flight, ends[i].pullPackets()...)
			rnd.Shuffle(len(flight), func(j, k int) { flight[j], flight[k] = flight[k], flight[j] })
			for range rnd.IntN(len(flight) + 1) {
				p := flight[0]
				flight = flight[1:]
				to := ends[0]
				if p.from == to {
					to = ends[1]
				}
				if to.Place(0, p.data, nil) == assoc.Consumed {
					p.arrived = true
				} else { // it is sent again
					flight = append(flight, p)
				}
			}
			a.ackArrived()
			b.ackArrived()
		}
		act := func(i int) {
			e := ends[i]
			if len(all[i]) == 0 || rnd.IntN(5) == 0 {
				u := e.newStream(8)
				if s, err := e.Open(0, -1, u.Stream, make([]byte, rnd.IntN(100))); err == nil {
					all[i], users[s] = append(all[i], s), u
				}
				return
			}
			s := all[i][rnd.IntN(len(all[i]))]
			switch rnd.IntN(8) {
			case 0, 1, 2:
				if u := users[s]; u != nil {
					_ = u.sendText("text")
					s.Ready()
				} else if u = e.newStream(8); s.Accept(0, u.Stream, nil) == nil {
					users[s] = u
				}
			case 3:
				_ = s.Reject(0, nil)
			case 4:
				_ = s.Terminate(0)
			case 5:
				if rnd.IntN(3) == 0 {
					s.Abort()
				}
			case 6:
				if u := users[s]; u != nil {
					u.CloseSend()
				}
			case 7:
				switch lies := seed%3 > 0; { // what it makes wait for ever ends with the association
				case !lies:
				case s.State() == Pending && rnd.IntN(4) == 0: // it does not wait for the answer
					_, seg := encodeLine("1 segment early")
					e.injectMessage(s.Stream(), PPIDSegment, wire.FlagU, seg)
				case rnd.IntN(20) == 0: // something of no session
					e.injectMessage(s.Stream(), PPIDControl, wire.FlagU, []byte{0, 9, 0, 2})
				}
			}
		}
		for range 150 {
			i := rnd.IntN(2)
			act(i)
			move(i)
			hear(0)
			hear(1)
			for _, e := range ends {
				e.checkCounts()
			}
			for k, n := range [4]int{b.numSessions, b.Pending(), b.unackedRefusals, b.earlyOctets} {
				most[k] = max(most[k], n)
			}
		}
		switch way := seed % 3; way {
		case 0: // one by one
			for round := 0; round < 100 && a.numSessions+b.numSessions > 0; round++ {
				for i, e := range ends {
					for _, s := range slices.Clone(all[i]) {
						_ = s.Reject(0, nil)
						s.Abort()
					}
					move(i)
					hear(i)
					e.checkCounts()
				}
			}
		case 1:
			for _, e := range ends {
				e.a.life++
				e.HandleEvent(0, assoc.Event{Kind: assoc.EventRestart})
			}
		case 2:
			for _, e := range ends {
				e.HandleEvent(0, assoc.Event{Kind: assoc.EventDown, Err: errors.New("the end")})
			}
		}
		for i, e := range ends {
			hear(i)
			e.checkCounts()
			what := fmt.Sprintf("seed %d, end %d", seed, i)
			check.That(t, e.numSessions == 0 && e.Pending() == 0 && e.unackedRefusals == 0 && e.earlyOctets == 0 &&
				e.Active() == 0, "%s: %d sessions, %d pending, %d refused, %d octets that came early", what,
				e.numSessions, e.Pending(), e.unackedRefusals, e.earlyOctets)
			check.That(t, e.records.numPageTables == 0 && e.records.numPages == len(e.records.freePages) &&
				len(e.records.free) == max(len(e.records.slab)-1, 0), "%s: %d windows, %d pages, %d records of %d",
				what, e.records.numPageTables, e.records.numPages, len(e.records.free), len(e.records.slab))
			check.That(t, e.Idle(), "%s: there is something to be sent", what)
			check.That(t, e.Held()-idle[i] <= maxSparePages*600+maxSpareRecords*100, "%s: %d octets are held", what,
				e.Held()-idle[i])
		}
	}
	check.That(t, most[0] > 3 && most[1] > 1 && most[2] > 0 && most[3] > 0,
		"sessions, pending, refused, octets that came early were %v at most: too few", most)
}
