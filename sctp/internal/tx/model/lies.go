package model

import "github.com/rddp-go/rddp/sctp/wire"

// Lie is what a peer says that is not so.
type Lie struct {
	Name  string
	Found bool // nothing but a lie can be that, and the sender finds it out
	Peer  Peer
}

// Honest acknowledges each packet at once.
func Honest(x *Exchange, came []wire.TSN) {
	if came != nil {
		x.Say(x.honest())
	}
}

// gapTo names all but the next TSN, up to one.
func gapTo(cum, to wire.TSN) (g []wire.GapBlock) {
	if n := uint16(to - cum); cum.Less(to) && n >= 2 {
		g = append(g, wire.GapBlock{Start: 2, End: n})
	}
	return g
}

// naming is honest for a second, and then acknowledges one chunk alone in each SACK: by its offset in a gap block, 0 for none.
func naming(which func(x *Exchange) uint16) Peer {
	return func(x *Exchange, came []wire.TSN) {
		if x.Ticks < 1000 {
			Honest(x, came)
		} else if came == nil {
			x.Guess(func() wire.SackFields {
				k := wire.SackFields{CumTSN: x.Acked(), ARwnd: x.Window()}
				if n := which(x); n > 0 {
					k.Gaps = []wire.GapBlock{{Start: n, End: n}}
				}
				return k
			})
		}
	}
}

// Lies are what a sender that believes it would send more for.
func Lies() []Lie {
	return []Lie{
		{"all that was sent is acknowledged", true, func(x *Exchange, came []wire.TSN) {
			if came == nil {
				x.Guess(func() wire.SackFields { return wire.SackFields{CumTSN: x.Sent(), ARwnd: x.Window()} })
			}
		}},
		{"named in a gap block", false, func(x *Exchange, came []wire.TSN) {
			if came == nil {
				x.Guess(func() wire.SackFields {
					return wire.SackFields{CumTSN: x.Cum, ARwnd: x.Window(), Gaps: gapTo(x.Cum, x.Sent())}
				})
			}
		}},
		{"losses are concealed", true, func(x *Exchange, came []wire.TSN) {
			if came != nil {
				x.Say(wire.SackFields{CumTSN: came[len(came)-1], ARwnd: x.Window()})
			}
		}},
		{"each SACK comes ten times", false, func(x *Exchange, came []wire.TSN) {
			for range 10 {
				Honest(x, came)
			}
		}},
		{"all are duplicates", false, func(x *Exchange, came []wire.TSN) {
			if came != nil {
				var dups []wire.TSN
				for i := range wire.TSN(100) {
					dups = append(dups, came[0]-i)
				}
				x.Say(x.honest(dups...))
			}
		}},
		{"what was lost has come twice", false, func(x *Exchange, came []wire.TSN) {
			if came == nil {
				return
			}
			k := x.honest()
			for t := k.CumTSN + 1; len(k.Gaps) > 0 && t.Less(came[0]); t++ {
				x.asked[t] = x.asked[t] || !x.Got(t)
			}
			for _, t := range came {
				if x.asked[t] {
					k.Dups = append(k.Dups, t)
				}
			}
			x.Say(k)
		}},
		{"what was not lost is missing, and has come twice", false, func(x *Exchange, came []wire.TSN) {
			if came == nil {
				return
			}
			k := x.honest()
			for _, t := range came {
				if t == x.hidden {
					k.Dups, x.hidden = came, 0
				} else if t%200 == 0 && x.hidden == 0 && t == x.Cum {
					x.hidden = t
				}
			}
			if x.hidden != 0 {
				k.CumTSN, k.Gaps = x.hidden-1, gapTo(x.hidden-1, x.Cum)
			}
			x.Say(k)
		}},
		{"T3-rtx that found a loss was early, all has come twice", false, func(x *Exchange, came []wire.TSN) {
			switch k := x.honest(); {
			case came == nil || x.hidden != 0 && !x.Got(x.hidden):
			case len(k.Gaps) > 0 && x.hidden == 0:
				x.hidden = x.Cum + 1
			default:
				if len(k.Gaps) == 0 {
					x.hidden = 0
				}
				k.Dups = came
				x.Say(k)
			}
		}},
		{"taken back, and acknowledged again", false, func(x *Exchange, came []wire.TSN) {
			if turn := x.Ticks % 40; len(x.asked) == 0 && x.Acked()+1 < x.Cum { // as over a path that reorders, where nothing is lost at once
				x.asked[0] = true
				x.Say(wire.SackFields{CumTSN: x.Acked(), ARwnd: x.Window(), Gaps: gapTo(x.Acked(), x.Cum)})
				x.Say(x.honest())
			} else if turn == 39 {
				Honest(x, []wire.TSN{})
			} else if came == nil {
				x.Guess(func() wire.SackFields {
					k := wire.SackFields{CumTSN: x.Acked(), ARwnd: x.Window()}
					if turn%2 == 0 {
						k.Gaps = gapTo(k.CumTSN, x.Cum)
					}
					return k
				})
			}
		}},
		{"all but the last are missing, again and again", false, naming(func(x *Exchange) uint16 {
			if n := uint16(x.Sent() - x.Acked()); n >= 2 && x.Got(x.Sent()) {
				return n
			}
			return 0
		})},
		{"all are missing in turn", false, naming(func(x *Exchange) uint16 {
			if n := uint16(x.Cum - x.Acked()); x.Acked().Less(x.Cum) && n > 2 {
				return 2 + uint16(x.Ticks)%(n-1)
			}
			return 0
		})},
	}
}
