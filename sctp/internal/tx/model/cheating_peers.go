package model

import "github.com/rddp-go/rddp/sctp/wire"

// CheatingPeer is what a peer says that is not so.
type CheatingPeer struct {
	Name     string
	Detected bool // nothing but a lie can be that, and the sender finds it out
	Peer     Peer
}

// HonestPeer acknowledges each packet at once.
func HonestPeer(x *PeerView, came []wire.TSN) {
	if came != nil {
		x.SendSack(x.honestSack())
	}
}

// gapAckUpTo names all but the next TSN, up to one.
func gapAckUpTo(cum, to wire.TSN) (g []wire.GapBlock) {
	if n := uint16(to - cum); cum.Less(to) && n >= 2 {
		g = append(g, wire.GapBlock{Start: 2, End: n})
	}
	return g
}

// singleGapPeer is honest for a second. Then it acknowledges one chunk alone in each SACK, by its
// offset in a gap block; 0 for none.
func singleGapPeer(which func(x *PeerView) uint16) Peer {
	return func(x *PeerView, came []wire.TSN) {
		if x.Ticks < 1000 {
			HonestPeer(x, came)
		} else if came == nil {
			x.SendSackOnArrival(func() wire.SackFields {
				k := wire.SackFields{CumTSN: x.Acked(), ARwnd: x.Window()}
				if n := which(x); n > 0 {
					k.Gaps = []wire.GapBlock{{Start: n, End: n}}
				}
				return k
			})
		}
	}
}

// CheatingPeers are peers to which a sender that believes them would send more.
func CheatingPeers() []CheatingPeer {
	return []CheatingPeer{
		{"all that was sent is acknowledged", true, func(x *PeerView, came []wire.TSN) {
			if came == nil {
				x.SendSackOnArrival(func() wire.SackFields {
					return wire.SackFields{CumTSN: x.HighestSent(), ARwnd: x.Window()}
				})
			}
		}},
		{"named in a gap block", false, func(x *PeerView, came []wire.TSN) {
			if came == nil {
				x.SendSackOnArrival(func() wire.SackFields {
					return wire.SackFields{CumTSN: x.Cum, ARwnd: x.Window(), Gaps: gapAckUpTo(x.Cum, x.HighestSent())}
				})
			}
		}},
		{"losses are concealed", true, func(x *PeerView, came []wire.TSN) {
			if came != nil {
				x.SendSack(wire.SackFields{CumTSN: came[len(came)-1], ARwnd: x.Window()})
			}
		}},
		{"each SACK comes ten times", false, func(x *PeerView, came []wire.TSN) {
			for range 10 {
				HonestPeer(x, came)
			}
		}},
		{"all are duplicates", false, func(x *PeerView, came []wire.TSN) {
			if came != nil {
				var dups []wire.TSN
				for i := range wire.TSN(100) {
					dups = append(dups, came[0]-i)
				}
				x.SendSack(x.honestSack(dups...))
			}
		}},
		{"what was lost has come twice", false, func(x *PeerView, came []wire.TSN) {
			if came == nil {
				return
			}
			k := x.honestSack()
			for t := k.CumTSN + 1; len(k.Gaps) > 0 && t.Less(came[0]); t++ {
				x.reportedMissing[t] = x.reportedMissing[t] || !x.HasReceived(t)
			}
			for _, t := range came {
				if x.reportedMissing[t] {
					k.Dups = append(k.Dups, t)
				}
			}
			x.SendSack(k)
		}},
		{"what was not lost is missing, and has come twice", false, func(x *PeerView, came []wire.TSN) {
			if came == nil {
				return
			}
			k := x.honestSack()
			for _, t := range came {
				if t == x.hiddenTSN {
					k.Dups, x.hiddenTSN = came, 0
				} else if t%200 == 0 && x.hiddenTSN == 0 && t == x.Cum {
					x.hiddenTSN = t
				}
			}
			if x.hiddenTSN != 0 {
				k.CumTSN, k.Gaps = x.hiddenTSN-1, gapAckUpTo(x.hiddenTSN-1, x.Cum)
			}
			x.SendSack(k)
		}},
		{"T3-rtx that found a loss was early, all has come twice", false, func(x *PeerView, came []wire.TSN) {
			switch k := x.honestSack(); {
			case came == nil || x.hiddenTSN != 0 && !x.HasReceived(x.hiddenTSN):
			case len(k.Gaps) > 0 && x.hiddenTSN == 0:
				x.hiddenTSN = x.Cum + 1
			default:
				if len(k.Gaps) == 0 {
					x.hiddenTSN = 0
				}
				k.Dups = came
				x.SendSack(k)
			}
		}},
		{"taken back, and acknowledged again", false, func(x *PeerView, came []wire.TSN) {
			// as over a path that reorders, where nothing is lost at once
			if turn := x.Ticks % 40; len(x.reportedMissing) == 0 && x.Acked()+1 < x.Cum {
				x.reportedMissing[0] = true
				x.SendSack(wire.SackFields{CumTSN: x.Acked(), ARwnd: x.Window(), Gaps: gapAckUpTo(x.Acked(), x.Cum)})
				x.SendSack(x.honestSack())
			} else if turn == 39 {
				HonestPeer(x, []wire.TSN{})
			} else if came == nil {
				x.SendSackOnArrival(func() wire.SackFields {
					k := wire.SackFields{CumTSN: x.Acked(), ARwnd: x.Window()}
					if turn%2 == 0 {
						k.Gaps = gapAckUpTo(k.CumTSN, x.Cum)
					}
					return k
				})
			}
		}},
		{"all but the last are missing, again and again", false, singleGapPeer(func(x *PeerView) uint16 {
			if n := uint16(x.HighestSent() - x.Acked()); n >= 2 && x.HasReceived(x.HighestSent()) {
				return n
			}
			return 0
		})},
		{"all are missing in turn", false, singleGapPeer(func(x *PeerView) uint16 {
			if n := uint16(x.Cum - x.Acked()); x.Acked().Less(x.Cum) && n > 2 {
				return 2 + uint16(x.Ticks)%(n-1)
			}
			return 0
		})},
	}
}
