// Package fair shares what there is among those who ask for it, so that none of them keeps all others out. Its tables have a fixed size: who
// shares a place there by chance shares what that may have.
package fair

import (
	"fmt"
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// places is the size of the tables.
const places = 1024

var seed = maphash.MakeSeed() // so that nobody can choose whose place to share

// Key returns the address that stands for all of a host: an IPv6 host has a /64 to choose from.
func Key(a netip.Addr) netip.Addr {
	if a = a.Unmap().WithZone(""); a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}

// Group is a set of hosts that one customer of a network may have.
type Group = netip.Prefix

// lengths are those of the groups of an IPv6 address: what a link has, a site, a large one, and what a provider has for all its customers.
var lengths = [...]int{64, 56, 48, 32}

// Levels is how many groups an address is in at most.
const Levels = len(lengths)

// GroupsOf appends the groups of an address to list, the smallest first: one level more may have one part more, so that whoever has many addresses to choose from has little
// more than one host. An IPv4 address is one alone.
func GroupsOf(a netip.Addr, list []Group) []Group {
	if a = a.Unmap().WithZone(""); !a.Is6() {
		return append(list, netip.PrefixFrom(a, a.BitLen()))
	}
	for _, n := range lengths {
		p, _ := a.Prefix(n)
		list = append(list, p)
	}
	return list
}

func place(who Group) uint64 { return maphash.Comparable(seed, who) % places }

// Rate lets through All in a second, and Each of one address, or of the smallest of its groups; of each larger one as much more.
type Rate struct {
	All, Each int

	second time.Time // when it began
	all    int
	each   [places]int32
}

// Allow says whether one more of who is let through now. An address that is not valid is nobody's: All alone bounds it.
func (r *Rate) Allow(now time.Time, who netip.Addr) bool {
	if now.Sub(r.second) >= time.Second {
		r.second, r.all, r.each = now, 0, [places]int32{}
	}
	if r.all >= r.All {
		return false
	}
	if who.IsValid() {
		var room [Levels]Group
		groups := GroupsOf(who, room[:0])
		for i, g := range groups {
			if int(r.each[place(g)]) >= r.Each*(i+1) {
				return false
			}
		}
		for _, g := range groups {
			r.each[place(g)]++
		}
	}
	r.all++
	return true
}

// Lines bounds what peers can have written: All lines in a second, and Each about one address. It is safe for concurrent use.
type Lines struct {
	Rate

	mu   sync.Mutex
	left int
}

// Allow says whether a line about who is to be written now, and how many were left out since the last.
func (l *Lines) Allow(now time.Time, who netip.Addr) (left int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.Rate.Allow(now, who) {
		l.left++
		return 0, false
	}
	left, l.left = l.left, 0
	return left, true
}

// OfServer returns what the servers of the tools write.
func OfServer() *Lines { return &Lines{Rate: Rate{All: 100, Each: 20}} }

// Line adds to a line how many were left out before it.
func Line(line string, left int) string {
	if left > 0 {
		line += fmt.Sprintf(" (%d lines left out)", left)
	}
	return line
}

// Shares are what clients hold of something. None may hold more than is left free by all, and no group of hosts more than so many times that as it has levels: who asks for all
// gets half, the next a third of that, and something is always left for a host that has nothing yet and is elsewhere. Their zero value holds nothing.
type Shares struct{ taken map[Group]int64 }

// Room returns how many units of those that are free an address may take.
func (s *Shares) Room(who netip.Addr, free int64) int64 {
	var list [Levels]Group
	groups := GroupsOf(who, list[:0])
	room := free
	for i, g := range groups {
		times := int64(i + 1)
		room = min(room, (times*free-s.taken[g])/(times+1))
	}
	if s.taken[groups[len(groups)-1]] == 0 {
		room = max(room, min(1, free)) // of one unit there is no half
	}
	return max(room, 0)
}

// Take notes that an address holds so many more, or fewer.
func (s *Shares) Take(who netip.Addr, n int64) {
	if s.taken == nil {
		s.taken = make(map[Group]int64)
	}
	var list [Levels]Group
	for _, g := range GroupsOf(who, list[:0]) {
		if s.taken[g] += n; s.taken[g] == 0 {
			delete(s.taken, g)
		}
	}
}

// Store is Max units of something that clients take and give back, in fair Shares.
type Store struct {
	Max int64

	mu     sync.Mutex
	shares Shares // guarded by mu
	all    int64  // guarded by mu
}

// Take takes n units for who; it returns false where that would be too many.
func (s *Store) Take(who netip.Addr, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.shares.Room(who, s.Max-s.all) {
		return false
	}
	s.all += n
	s.shares.Take(who, n)
	return true
}

// Full says that who could take nothing more.
func (s *Store) Full(who netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shares.Room(who, s.Max-s.all) <= 0
}

// Used returns how many units are taken.
func (s *Store) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// Give gives back what who has taken.
func (s *Store) Give(who netip.Addr, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all -= n
	s.shares.Take(who, -n)
}
