package account

import (
	"math"
	"net/netip"
	"sync/atomic"

	"github.com/rddp-go/rddp/internal/quota"
)

const (
	// Quantum is the step in octets by which an Account of that size or more draws.
	Quantum = 64 << 10
	// smallQuantum is the step of a smaller one: most associations are idle.
	smallQuantum = 4 << 10
	// maxExcess is what an Account keeps drawn without need before it gives some back.
	maxExcess = 2 * Quantum
)

// Total is what all peers together may make a host hold. Open, Close and Admits need it
// exclusively; all else may run concurrently.
type Total struct {
	max       int64
	hosts     map[hostKey]*Host
	_         [64]byte // what follows changes rarely, and by all processors
	used      atomic.Int64
	numGroups atomic.Int64 // the largest groups in hosts
	_         [48]byte
}

// Host is what one peer address makes a host hold, with all its associations. It may also be a
// group of such addresses: a peer with many addresses has the share of one.
type Host struct {
	key        hostKey
	parent     *Host // the group that it is in; nil: it is in none
	_          [64]byte
	used       atomic.Int64
	numMembers atomic.Int64 // associations, or the members of a group
	_          [48]byte
}

// Peer is whose an account is.
type Peer struct {
	Addr netip.Addr
	Link uint64 // the number of a link that leads to nobody else, where addresses mean nothing; 0: any other
}

// hostKey names a Host: a group of addresses, or a link.
type hostKey struct {
	group quota.HostGroup
	link  uint64
}

// keysOf appends the keys of the Hosts that a peer is in to list, the smallest first.
func keysOf(p Peer, list []hostKey) []hostKey {
	if p.Link != 0 {
		return append(list, hostKey{link: p.Link})
	}
	var room [quota.MaxGroups]quota.HostGroup
	for _, g := range quota.GroupsOf(p.Addr, room[:0]) {
		list = append(list, hostKey{group: g})
	}
	return list
}

// Account is what one association holds. Only its owner changes it, others may look how much it has
// drawn.
type Account struct {
	total      *Total
	host       *Host // nil: of no peer
	closed     bool  // Close was called
	ownerDrawn int   // what it has drawn, for the owner
	drawn      atomic.Int64
}

// NewTotal returns a Total of so many octets.
func NewTotal(octets int64) *Total {
	return &Total{max: octets, hosts: make(map[hostKey]*Host)}
}

// Max returns the octets that may be held.
func (t *Total) Max() int64 { return t.max }

// Used returns the octets drawn.
func (t *Total) Used() int64 { return t.used.Load() }

// softLimit is the soft limit below a hard one.
func softLimit(limit int64) int64 { return limit - limit/8 }

// groupLimit is the most that one of n hosts may hold.
func (t *Total) groupLimit(n int64) int64 {
	l := t.max / 2
	if t.used.Load() > softLimit(t.max) {
		l = min(l, t.max/max(n, 1))
	}
	return l
}

// limitOf is the most that a host, or a group of them, may hold. That is all that its group may
// hold, unless the group is under pressure.
func (t *Total) limitOf(h *Host) int64 {
	if h.parent == nil {
		return t.groupLimit(t.numGroups.Load())
	}
	return memberLimit(t.limitOf(h.parent), h.parent.used.Load(), h.parent.numMembers.Load())
}

// memberLimit is what one of n members of a group may hold: the group's limit, or beyond the soft
// limit an equal share of it.
func memberLimit(limit, used, n int64) int64 {
	if used > softLimit(limit) {
		limit /= max(n, 1)
	}
	return limit
}

// Admits says whether there is room for another association of a peer, which begins with so many
// octets. It asks whether that is a fair share. If too little is left, other associations have more
// than their share and have to go.
func (t *Total) Admits(p Peer, octets int) bool {
	var room [quota.MaxGroups]hostKey
	keys := keysOf(p, room[:0])
	var of *Host // the smallest group that there is
	i := len(keys)
	for ; i > 0 && t.hosts[keys[i-1]] != nil; i-- {
		of = t.hosts[keys[i-1]]
	}
	limit, associations := int64(0), int64(1)
	switch {
	case i == 0: // the host is known
		limit, associations = t.limitOf(of), 1+of.numMembers.Load()
	case of == nil:
		limit = t.groupLimit(t.numGroups.Load() + 1)
	default:
		limit = memberLimit(t.limitOf(of), of.used.Load(), of.numMembers.Load()+1)
	}
	return int64(roundToQuantum(octets)) <= softLimit(limit)/associations
}

// roundToQuantum returns what an account with so many octets draws.
func roundToQuantum(octets int) int {
	step := Quantum
	if octets < Quantum {
		step = smallQuantum
	}
	return (octets + step - 1) / step * step
}

// Open makes a the account of an association with a peer.
func (t *Total) Open(a *Account, p Peer) {
	var room [quota.MaxGroups]hostKey
	keys := keysOf(p, room[:0])
	var h *Host
	for i := len(keys) - 1; i >= 0; i-- {
		m := t.hosts[keys[i]]
		if m == nil {
			m = &Host{key: keys[i], parent: h}
			t.hosts[keys[i]] = m
			t.memberCount(h).Add(1)
		}
		h = m
	}
	h.numMembers.Add(1)
	a.total, a.host = t, h
}

// memberCount is how many a group has, or the Total.
func (t *Total) memberCount(h *Host) *atomic.Int64 {
	if h == nil {
		return &t.numGroups
	}
	return &h.numMembers
}

// OpenOwn makes a an account of what belongs to no single peer.
func (t *Total) OpenOwn(a *Account) { a.total = t }

// Share makes b another account of a's host, for what has another owner.
func (a *Account) Share(b *Account) { b.total, b.host = a.total, a.host }

// Close ends the account of an association, which has given everything back. Closing again does
// nothing.
func (t *Total) Close(a *Account) {
	if a.host == nil || a.closed {
		return
	}
	a.closed = true
	for h := a.host; t.memberCount(h).Add(-1) == 0 && h != nil; h = h.parent {
		delete(t.hosts, h.key)
	}
}

// Closed says whether Close was called. It is for the one that calls Close.
func (a *Account) Closed() bool { return a.closed }

// Drawn returns the octets that the account counts as held: what it holds, rounded up.
func (a *Account) Drawn() int64 { return a.drawn.Load() }

// Charge sets what is held now. It returns whether shared memory has changed, which is when to look
// at ExceedsShare. Nearly always it touches nothing shared.
func (a *Account) Charge(held int) (drew bool) {
	if Enough(a.ownerDrawn, held) {
		return false
	}
	a.drawFor(held)
	return true
}

// Enough says whether Charge changes nothing for an account that has drawn so much. It is enough
// for what is held, and not far too much.
func Enough(drawn, held int) bool { return held <= drawn && drawn-held < maxExcess }

// Trim is Charge that keeps no more drawn than is held.
func (a *Account) Trim(held int) { a.drawFor(held) }

func (a *Account) drawFor(held int) {
	if a.total == nil || held > math.MaxInt-Quantum {
		return
	}
	n := roundToQuantum(held)
	d := int64(n - a.ownerDrawn)
	if d == 0 {
		return
	}
	a.ownerDrawn = n
	a.drawn.Store(int64(n))
	for h := a.host; h != nil; h = h.parent {
		h.used.Add(d)
	}
	a.total.used.Add(d)
}

// Pressure says how near the host of an account is to its limit.
type Pressure uint8

// Degrees of pressure.
const (
	Calm    Pressure = iota
	Pressed          // beyond 7/8
	Full             // beyond the limit
)

// Pressure returns that of the account's host. It reads shared memory.
func (a *Account) Pressure() Pressure {
	if a.host == nil {
		return Calm
	}
	limit, used := a.total.limitOf(a.host), a.host.used.Load()
	switch {
	case used > limit:
		return Full
	case used > softLimit(limit):
		return Pressed
	}
	return Calm
}

// FairShare is what an association of the account's host is never asked to give back.
func (a *Account) FairShare() int64 {
	if a.host == nil {
		return math.MaxInt64
	}
	return softLimit(a.total.limitOf(a.host)) / max(a.host.numMembers.Load(), 1)
}

// ExceedsShare says whether the account's host is under pressure and the account holds more than is
// fair. drawn is what it has drawn, in octets.
func (a *Account) ExceedsShare(drawn int64) bool {
	return a.Pressure() != Calm && drawn > a.FairShare()
}

// IsEased says whether an account that exceeded its share is well within it by now, or its host
// within its limit. Well within means that the next packets do not take it beyond again. drawn is
// what it has drawn, in octets.
func (a *Account) IsEased(drawn int64) bool {
	if a.host == nil || drawn+maxExcess <= a.FairShare() {
		return true
	}
	limit := a.total.limitOf(a.host)
	return a.host.used.Load() <= limit-limit/4
}
