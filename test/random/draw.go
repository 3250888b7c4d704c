package random

import (
	"slices"
	"time"

	"github.com/rddp-go/rddp/rawio/simnet"
)

// Draw makes the schedule of a seed. It is a short and busy world, or a long one. In a long one
// there is little to do for most of the time, and much goes wrong for long.
func Draw(seed uint64) Schedule {
	d := drawer{simnet.NewRand(mixSeed(seed, 1)), Schedule{Seed: seed}}
	busy := d.n(3) > 0
	d.s.Length = time.Duration(1+d.n(20)) * time.Minute
	if !busy {
		d.s.Length = time.Duration(20+d.n(340)) * time.Minute
	}
	d.drawHosts()
	d.drawAssocs()
	ops, faults := 5+d.n(1<<d.n(9)), d.n(1<<d.n(7))
	for range ops {
		d.drawOp()
	}
	for range faults {
		d.drawFault()
	}
	for i := range d.s.Assocs {
		if a := &d.s.Assocs[i]; a.Use == RDMA && !a.UDP && mixSeed(seed, 12, uint64(i))%2 == 0 {
			a.Use, a.Keys = RDMAOverTCP, 0
		}
	}
	slices.SortStableFunc(d.s.Acts, func(a, b Act) int { return int(a.At - b.At) })
	return d.s
}

// DrawExtended is Draw with associations that all have messages, and extensions: half of them all that
// there are. They live ten minutes at most.
func DrawExtended(seed uint64) Schedule {
	s := Draw(seed)
	s.Length = min(s.Length, 10*time.Minute)
	rnd := simnet.NewRand(mixSeed(seed, 8))
	for i := range s.Assocs {
		a := &s.Assocs[i]
		if a.Use == RDMA || a.Use == RDMAOverTCP {
			a.Use = Messages
		}
		if a.Extras = 1 + rnd.IntN(maxExtras); rnd.IntN(2) == 0 {
			a.Extras |= firstScheduler - 1
		}
	}
	for i := range s.Acts {
		if a := &s.Acts[i]; a.Kind == Work {
			a.Kind, a.B = Say, a.B%2
		}
	}
	return s
}

// DrawEncrypted is Draw with associations that are all encrypted, and with more crashes. They live ten
// minutes at most.
func DrawEncrypted(seed uint64) Schedule {
	s := Draw(seed)
	s.Length = min(s.Length, 10*time.Minute)
	rnd := simnet.NewRand(mixSeed(seed, 10))
	for range rnd.IntN(5) {
		a := s.Assocs[rnd.IntN(len(s.Assocs))]
		s.Acts = append(s.Acts, Act{At: time.Duration(rnd.Float64() * float64(s.Length)), Kind: Crash,
			A: []int{a.A, a.B}[rnd.IntN(2)], For: time.Duration(1+rnd.IntN(1<<rnd.IntN(16))) * time.Millisecond})
	}
	slices.SortStableFunc(s.Acts, func(a, b Act) int { return int(a.At - b.At) })
	for i := range s.Assocs {
		a := &s.Assocs[i]
		if a.Keys = encrypted | rnd.IntN(maxKeys+1); rnd.IntN(2) == 0 {
			a.Keys |= restartsA | restartsB
		}
		if a.Use == RDMAOverTCP {
			a.Use = RDMA
		}
	}
	return s
}

// DrawOverTCP is Draw with hosts that all have RDMA over TCP between them. They live ten minutes at
// most.
func DrawOverTCP(seed uint64) Schedule {
	s := Draw(seed)
	s.Length = min(s.Length, 10*time.Minute)
	for i := range s.Hosts {
		s.Hosts[i].NAT = false
	}
	for i := range s.Assocs {
		a := &s.Assocs[i]
		*a = Assoc{Use: RDMAOverTCP, A: a.A, B: a.B}
	}
	for i := range s.Acts {
		switch a := &s.Acts[i]; a.Kind {
		case Say:
			a.Kind, a.B = Work, a.B*(1+a.N%8)
		case Starve, Hangup:
			a.Kind, a.For = Hurl, 0
		}
	}
	return s
}

type drawer struct {
	*simnet.Rand
	s Schedule
}

func (d *drawer) n(n int) int { return d.IntN(n) }

// drawSpan draws a time between least and most, short ones as often as long ones.
func (d *drawer) drawSpan(least, most time.Duration) time.Duration {
	for range d.n(6) {
		most /= 4
	}
	if most <= least {
		return least
	}
	return least + time.Duration(d.Float64()*float64(most-least))
}

func (d *drawer) drawHosts() {
	n := 2
	if d.n(2) == 0 {
		n += d.n(15)
	}
	wide := d.n(2) == 0 // whether there is more than one network at all
	for range n {
		h := Host{Nets: 1}
		switch {
		case d.n(5) == 0:
			h.NAT = true
		case wide:
			h.Nets += d.n(3)
		}
		if d.n(6) == 0 {
			h.MTU = []int{576, 1280, 9000, 65535}[d.n(4)]
			if h.Nets > 1 && h.MTU < 1280 {
				h.MTU = 1280 // which IPv6 asks for
			}
		}
		d.s.Hosts = append(d.s.Hosts, h)
	}
	d.s.Hosts[0].NAT = false // somebody has to be reachable
}

func (d *drawer) drawAssocs() {
	for range 1 + d.n(2*len(d.s.Hosts)) {
		a := Assoc{A: d.n(len(d.s.Hosts)), B: d.n(len(d.s.Hosts)), Config: d.Uint64() >> 32,
			Use: []Use{Messages, Messages, Both, RDMA}[d.n(4)]}
		if d.n(4) == 0 {
			a.Config = 0
		}
		if d.s.Hosts[a.B].NAT {
			a.A, a.B = a.B, a.A
		}
		if a.A == a.B || d.s.Hosts[a.B].NAT {
			a.B = 0
		}
		if a.A == a.B {
			a.A = 1 + d.n(len(d.s.Hosts)-1)
		}
		if a.UDP = d.s.Hosts[a.A].NAT || d.n(6) == 0; a.UDP && a.Use == Both {
			a.Use = Messages
		}
		if x := simnet.NewRand(mixSeed(d.s.Seed, 7, uint64(len(d.s.Assocs)))); a.Use != RDMA && x.IntN(2) == 0 {
			a.Extras = 1 + x.IntN(maxExtras)
		} else if x.IntN(4) == 0 {
			a.Keys = encrypted | x.IntN(maxKeys+1)
		}
		d.s.Assocs = append(d.s.Assocs, a)
	}
}

// drawOp draws what users do.
func (d *drawer) drawOp() {
	i := d.n(len(d.s.Assocs))
	act := Act{At: time.Duration(d.Float64() * float64(d.s.Length)), A: i, B: d.n(2)}
	if d.n(4) == 0 {
		act.At = time.Duration(d.n(1000)) * time.Millisecond
	}
	rdma := d.s.Assocs[i].Use == RDMA
	switch k := d.n(16); {
	case k < 12 && rdma:
		act.Kind, act.N, act.B = Work, 1+d.n(1<<d.n(12)), d.n(4)*d.n(2)
		act.For = time.Duration(d.Float64() * float64(d.n(2)) * float64(d.s.Length-act.At))
	case k < 12:
		act.Kind, act.N, act.For = Say, 1+d.n(1<<d.n(12)), d.drawSpan(0, d.s.Length)
		if d.n(2) == 0 {
			act.For = time.Duration(d.Float64() * float64(d.s.Length-act.At)) // a trickle
		}
	case k < 14 && !rdma:
		act.Kind, act.For = Starve, d.drawSpan(time.Second, 2*time.Minute)
	case k < 15 && !rdma:
		act.Kind = Hangup
	default:
		act.Kind = Hurl
	}
	d.s.Acts = append(d.s.Acts, act)
}

// drawFault draws what goes wrong: mostly where there is an association.
func (d *drawer) drawFault() {
	as := d.s.Assocs[d.n(len(d.s.Assocs))]
	act := Act{At: time.Duration(d.Float64() * float64(d.s.Length)), Kind: Crash + Kind(d.n(int(kinds-Crash))),
		A: as.A, B: as.B, Net: d.n(4) - 1}
	if d.n(2) == 0 {
		act.A, act.B = act.B, act.A
	}
	if d.n(3) > 0 {
		act.Net = -1
	}
	long := min(d.s.Length, 2*time.Hour)
	act.For = d.drawSpan(10*time.Millisecond, long)
	switch act.Kind {
	case Crash:
		act.For = d.drawSpan(time.Millisecond, 10*time.Minute)
	case Jump:
		act.For = d.drawSpan(time.Millisecond, 10*time.Hour)
	case Rebind, Roam:
		act.For = 0
	case Loss:
		act.N = 1 + d.n(60)
	case Duplicate, Reorder, Mark:
		act.N = 1 + d.n(40)
	case Corrupt, Late:
		act.N = 1 + d.n(20)
	case Route, Jitter:
		act.N = 1 + d.n(1<<d.n(12))
	case Rate:
		act.N = 5 + d.n(1<<d.n(13))
	case MTU, Hole:
		act.N = []int{576, 1000, 1280, 1400, 1492}[d.n(5)]
	}
	if act.Kind.ofHost() {
		act.B, act.Net = 0, 0
	}
	d.s.Acts = append(d.s.Acts, act)
}
