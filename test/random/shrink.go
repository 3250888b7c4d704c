package random

import (
	"slices"
	"time"
)

// Shrink makes a schedule that violates an invariant as short as it can, while still reports that
// it violates the same one. By delta debugging it takes away acts and associations first. Then it
// takes away hosts that are not needed, and then whatever makes the rest special. It tries at most
// tries schedules.
func Shrink(s Schedule, tries int, still func(*Schedule) bool) Schedule {
	x := &shrinker{best: s, tries: tries, still: still}
	for before := -1; before != x.scheduleSize() && x.tries > 0; {
		before = x.scheduleSize()
		x.shortenRun()
		x.dropActs()
		x.dropAssocs()
		x.dropHosts()
		x.dropSpecials()
		x.halveAmounts()
	}
	return x.best
}

// Fails says whether a schedule violates that invariant.
func Fails(i Invariant) func(*Schedule) bool {
	return func(s *Schedule) bool {
		v := s.Run().Violation
		return v != nil && v.Invariant == i
	}
}

type shrinker struct {
	best  Schedule
	tries int
	still func(*Schedule) bool
}

func (x *shrinker) scheduleSize() int {
	return len(x.best.Acts) + len(x.best.Assocs) + len(x.best.Hosts)
}

// tryChange takes over a schedule that still fails.
func (x *shrinker) tryChange(change func(s *Schedule)) bool {
	if x.tries <= 0 {
		return false
	}
	x.tries--
	s := x.best
	s.Hosts, s.Assocs, s.Acts = slices.Clone(s.Hosts), slices.Clone(s.Assocs), slices.Clone(s.Acts)
	change(&s)
	if !x.still(&s) {
		return false
	}
	x.best = s
	return true
}

// shortenRun tries to end the world earlier.
func (x *shrinker) shortenRun() {
	for x.best.Length > time.Second && x.tryChange(func(s *Schedule) {
		s.Length /= 2
		s.Acts = slices.DeleteFunc(s.Acts, func(a Act) bool { return a.At >= s.Length })
	}) {
	}
}

// dropActs removes acts, first many at a time, then one by one.
func (x *shrinker) dropActs() {
	for n := len(x.best.Acts); n > 0; n /= 2 {
		for at := 0; at < len(x.best.Acts); {
			end := min(at+n, len(x.best.Acts))
			if !x.tryChange(func(s *Schedule) { s.Acts = slices.Delete(s.Acts, at, end) }) {
				at = end
			}
		}
	}
}

// dropAssocs removes associations with the acts that are theirs.
func (x *shrinker) dropAssocs() {
	for i := len(x.best.Assocs) - 1; i >= 0 && len(x.best.Assocs) > 1; i-- {
		x.tryChange(func(s *Schedule) {
			s.Assocs = slices.Delete(s.Assocs, i, i+1)
			s.Acts = slices.DeleteFunc(s.Acts, func(a Act) bool { return a.Kind < Crash && a.A == i })
			for k := range s.Acts {
				if a := &s.Acts[k]; a.Kind < Crash && a.A > i {
					a.A--
				}
			}
		})
	}
}

// dropHosts removes hosts without an association, with the acts that are theirs.
func (x *shrinker) dropHosts() {
	for i := len(x.best.Hosts) - 1; i >= 0; i-- {
		if slices.ContainsFunc(x.best.Assocs, func(a Assoc) bool { return a.A == i || a.B == i }) {
			continue
		}
		x.tryChange(func(s *Schedule) {
			s.Hosts = slices.Delete(s.Hosts, i, i+1)
			s.Acts = slices.DeleteFunc(s.Acts, func(a Act) bool {
				return a.Kind >= Crash && (a.A == i || a.Kind.ofWay() && a.B == i)
			})
			lower := func(p *int) {
				if *p > i {
					*p--
				}
			}
			for k := range s.Assocs {
				lower(&s.Assocs[k].A)
				lower(&s.Assocs[k].B)
			}
			for k := range s.Acts {
				if a := &s.Acts[k]; a.Kind >= Crash {
					lower(&a.A)
					if a.Kind.ofWay() {
						lower(&a.B)
					}
				}
			}
		})
	}
}

// dropSpecials takes away what makes hosts and associations special.
func (x *shrinker) dropSpecials() {
	for i := range x.best.Hosts {
		for _, change := range []func(h *Host){
			func(h *Host) { h.MTU = 0 },
			func(h *Host) { h.Nets = 1 },
			func(h *Host) { h.Nets-- },
		} {
			h := x.best.Hosts[i]
			if change(&h); h != x.best.Hosts[i] && h.Nets > 0 {
				x.tryChange(func(s *Schedule) { s.Hosts[i] = h })
			}
		}
	}
	for i := range x.best.Assocs {
		for _, change := range []func(a *Assoc){
			func(a *Assoc) { a.Config = 0 },
			func(a *Assoc) { a.Keys = 0 },
			func(a *Assoc) { a.Keys &= encrypted },
			func(a *Assoc) { a.Keys &^= rekeys },
			func(a *Assoc) {
				if a.Use == Both {
					a.Use = Messages
				}
			},
		} {
			a := x.best.Assocs[i]
			if change(&a); a != x.best.Assocs[i] {
				x.tryChange(func(s *Schedule) { s.Assocs[i] = a })
			}
		}
	}
}

// halveAmounts halves what acts say how much or how long of.
func (x *shrinker) halveAmounts() {
	for i := range x.best.Acts {
		for x.best.Acts[i].N > 1 && x.best.Acts[i].Kind != MTU && x.best.Acts[i].Kind != Hole &&
			x.tryChange(func(s *Schedule) { s.Acts[i].N /= 2 }) {
		}
		for x.best.Acts[i].For > time.Millisecond && x.tryChange(func(s *Schedule) { s.Acts[i].For /= 2 }) {
		}
	}
}
