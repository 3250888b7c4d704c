package account

import (
	"math"
	"net/netip"
	"sync/atomic"

	"github.com/rddp-go/rddp/internal/fair"
)

const (
	// Quantum is the step in octets by which an Account of that size or more draws.
	Quantum = 64 << 10
	// firstQuantum is the step of a smaller one: most associations are idle.
	firstQuantum = 4 << 10
	// slack is what an Account keeps drawn and does not need before it gives some back.
	slack = 2 * Quantum
)

// Total is what all peers together may make a host hold. Open, Close and Admits need it alone; all else may run concurrently.
type Total struct {
	max   int64
	hosts map[fair.Group]*Host
	_     [64]byte // what follows changes now and then, and by all processors
	used  atomic.Int64
	n     atomic.Int64 // the largest groups in hosts
	_     [48]byte
}

// Host is what one peer address makes a host hold, with all its associations, or what a group of such addresses does: whoever has many to choose from has
// the part of one.
type Host struct {
	key  fair.Group
	of   *Host // the group that it is in; nil: it is in none
	_    [64]byte
	used atomic.Int64
	n    atomic.Int64 // associations, or the members of a group
	_    [48]byte
}

// Account is what one association holds. Only its owner changes it, others may look how much it has drawn.
type Account struct {
	t     *Total
	h     *Host // nil: of no peer
	over  bool  // Close was called
	own   int   // what it has drawn, for the owner
	drawn atomic.Int64
}

// NewTotal returns a Total of so many octets.
func NewTotal(octets int64) *Total { return &Total{max: octets, hosts: make(map[fair.Group]*Host)} }

// Max returns the octets that may be held.
func (t *Total) Max() int64 { return t.max }

// Used returns the octets drawn.
func (t *Total) Used() int64 { return t.used.Load() }

// most7of8 is the soft limit below a hard one.
func most7of8(limit int64) int64 { return limit - limit/8 }

// limit is the most that one of n hosts may hold.
func (t *Total) limit(n int64) int64 {
	l := t.max / 2
	if t.used.Load() > most7of8(t.max) {
		l = min(l, t.max/max(n, 1))
	}
	return l
}

// limitOf is the most that a host, or a group of them, may hold: all that its group may, unless that is under pressure.
func (t *Total) limitOf(h *Host) int64 {
	if h.of == nil {
		return t.limit(t.n.Load())
	}
	return within(t.limitOf(h.of), h.of.used.Load(), h.of.n.Load())
}

// within is the part of one of n in a group that may hold so much, and holds some.
func within(limit, used, n int64) int64 {
	if used > most7of8(limit) {
		limit /= max(n, 1)
	}
	return limit
}

// Admits says whether another association of the host at addr, that begins with so many octets, has room: whether that is a fair share. If
// there is too little left, it is others that have more than theirs and have to go.
func (t *Total) Admits(addr netip.Addr, octets int) bool {
	var room [fair.Levels]fair.Group
	groups := fair.GroupsOf(addr, room[:0])
	var of *Host // the smallest group that there is
	i := len(groups)
	for ; i > 0 && t.hosts[groups[i-1]] != nil; i-- {
		of = t.hosts[groups[i-1]]
	}
	limit, associations := int64(0), int64(1)
	switch {
	case i == 0: // the host is known
		limit, associations = t.limitOf(of), 1+of.n.Load()
	case of == nil:
		limit = t.limit(t.n.Load() + 1)
	default:
		limit = within(t.limitOf(of), of.used.Load(), of.n.Load()+1)
	}
	return int64(round(octets)) <= most7of8(limit)/associations
}

// round returns what an account draws that holds so much.
func round(octets int) int {
	step := Quantum
	if octets < Quantum {
		step = firstQuantum
	}
	return (octets + step - 1) / step * step
}

// Open makes a the account of an association with the host at addr.
func (t *Total) Open(a *Account, addr netip.Addr) {
	var room [fair.Levels]fair.Group
	groups := fair.GroupsOf(addr, room[:0])
	var h *Host
	for i := len(groups) - 1; i >= 0; i-- {
		m := t.hosts[groups[i]]
		if m == nil {
			m = &Host{key: groups[i], of: h}
			t.hosts[groups[i]] = m
			t.members(h).Add(1)
		}
		h = m
	}
	h.n.Add(1)
	a.t, a.h = t, h
}

// members is how many a group has, or the Total.
func (t *Total) members(h *Host) *atomic.Int64 {
	if h == nil {
		return &t.n
	}
	return &h.n
}

// OpenOwn makes a an account of what belongs to no peer alone.
func (t *Total) OpenOwn(a *Account) { a.t = t }

// Share makes b another account of the same host as a, for what has another owner.
func (a *Account) Share(b *Account) { b.t, b.h = a.t, a.h }

// Close ends the account of an association, which has given everything back. Closing again does nothing.
func (t *Total) Close(a *Account) {
	if a.h == nil || a.over {
		return
	}
	a.over = true
	for h := a.h; t.members(h).Add(-1) == 0 && h != nil; h = h.of {
		delete(t.hosts, h.key)
	}
}

// Closed says whether Close was called; as that, it needs the Total alone.
func (a *Account) Closed() bool { return a.over }

// Drawn returns the octets that the account counts as held: what it holds, rounded up.
func (a *Account) Drawn() int64 { return a.drawn.Load() }

// Charge sets what is held now. It says whether others share the change, which is when to look at Over; nearly always it
// touches nothing that others do.
func (a *Account) Charge(held int) (drew bool) {
	if Enough(a.own, held) {
		return false
	}
	a.draw(held)
	return true
}

// Enough says whether Charge changes nothing for an account that has drawn so much: it is enough for what is held, and not far too much.
func Enough(drawn, held int) bool { return held <= drawn && drawn-held < slack }

// Trim is Charge that keeps no more drawn than is held.
func (a *Account) Trim(held int) { a.draw(held) }

func (a *Account) draw(held int) {
	if a.t == nil || held > math.MaxInt-Quantum {
		return
	}
	n := round(held)
	d := int64(n - a.own)
	if d == 0 {
		return
	}
	a.own = n
	a.drawn.Store(int64(n))
	for h := a.h; h != nil; h = h.of {
		h.used.Add(d)
	}
	a.t.used.Add(d)
}

// Pressure says how near the host of an account is to its limit.
type Pressure uint8

// Degrees of pressure.
const (
	Calm    Pressure = iota
	Pressed          // beyond 7/8
	Full             // beyond the limit
)

// Pressure returns that of the account's host. It reads what all share.
func (a *Account) Pressure() Pressure {
	if a.h == nil {
		return Calm
	}
	limit, used := a.t.limitOf(a.h), a.h.used.Load()
	switch {
	case used > limit:
		return Full
	case used > most7of8(limit):
		return Pressed
	}
	return Calm
}

// Fair is what an association of the account's host is never asked to give back.
func (a *Account) Fair() int64 {
	if a.h == nil {
		return math.MaxInt64
	}
	return most7of8(a.t.limitOf(a.h)) / max(a.h.n.Load(), 1)
}

// Over says whether the account's host is under pressure and the account, with so many octets drawn, holds more than is fair.
func (a *Account) Over(drawn int64) bool { return a.Pressure() != Calm && drawn > a.Fair() }

// Eased says whether an account that was Over, with so many octets drawn, is well within what is fair by now, or its host within its
// limit: not so near that it would be over with the next packets.
func (a *Account) Eased(drawn int64) bool {
	if a.h == nil || drawn+slack <= a.Fair() {
		return true
	}
	limit := a.t.limitOf(a.h)
	return a.h.used.Load() <= limit-limit/4
}
