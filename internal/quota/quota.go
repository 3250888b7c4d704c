// Package quota shares a resource among the hosts that ask for it, so that none of them keeps all
// others out.
//
//   - In: the address of the host that asks, and the time.
//   - Out: whether it may have more.
//   - Invariant: tables have a fixed size. Hosts that share a slot by chance share its quota.
package quota

import (
	"context"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

// tableSize is the size of the tables.
const tableSize = 1024

var hashSeed = maphash.MakeSeed() // so that no peer can choose whose slot to share

// HostKey returns the address that stands for all of a host: an IPv6 host has a /64 to choose from.
func HostKey(a netip.Addr) netip.Addr {
	if a = a.Unmap().WithZone(""); a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return a
}

// HostGroup is a set of hosts that one customer of a network may have.
type HostGroup = netip.Prefix

// groupPrefixLens are the prefix lengths of an IPv6 address's groups: a link, a site, a large site,
// and a provider with all its customers.
var groupPrefixLens = [...]int{64, 56, 48, 32}

// MaxGroups is how many groups an address is in at most.
const MaxGroups = len(groupPrefixLens)

// GroupsOf appends the groups of an address to list, the smallest first. Each further level may
// have one share more, so that a peer with many addresses has little more than one host. An IPv4
// address is a group of its own.
func GroupsOf(a netip.Addr, list []HostGroup) []HostGroup {
	if a = a.Unmap().WithZone(""); !a.Is6() {
		return append(list, netip.PrefixFrom(a, a.BitLen()))
	}
	for _, n := range groupPrefixLens {
		p, _ := a.Prefix(n)
		list = append(list, p)
	}
	return list
}

func tableSlot(who HostGroup) uint64 { return maphash.Comparable(hashSeed, who) % tableSize }

// RateLimiter lets through All in a second, and Each of one address, or of the smallest of its
// groups. Each larger group may have Each more.
type RateLimiter struct {
	All, Each int

	secondBeganAt time.Time // when it began
	allCount      int
	slotCounts    []int32 // nil until the first address of the second
}

// Allow says whether one more of an address is let through now. Only All bounds an address that is
// not valid.
func (r *RateLimiter) Allow(now time.Time, who netip.Addr) bool {
	if now.Sub(r.secondBeganAt) >= time.Second {
		r.secondBeganAt, r.allCount, r.slotCounts = now, 0, nil
	}
	if r.allCount >= r.All {
		return false
	}
	if who.IsValid() {
		if r.slotCounts == nil {
			r.slotCounts = make([]int32, tableSize)
		}
		var room [MaxGroups]HostGroup
		groups := GroupsOf(who, room[:0])
		for i, g := range groups {
			if int(r.slotCounts[tableSlot(g)]) >= r.Each*(i+1) {
				return false
			}
		}
		for _, g := range groups {
			r.slotCounts[tableSlot(g)]++
		}
	}
	r.allCount++
	return true
}

// LogLimiter bounds the log lines that peers can cause: All in a second, and Each about one
// address. It is safe for concurrent use.
type LogLimiter struct {
	RateLimiter

	mu      sync.Mutex
	leftOut int
}

// Allow says whether a line about who is to be written now, and how many were left out since the
// last.
func (l *LogLimiter) Allow(now time.Time, who netip.Addr) (left int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.RateLimiter.Allow(now, who) {
		l.leftOut++
		return 0, false
	}
	left, l.leftOut = l.leftOut, 0
	return left, true
}

// Log writes a line about the peer at who, or about the program itself if who is not valid. It
// leaves the line out if there were too many recently.
func (l *LogLimiter) Log(logger *slog.Logger, level slog.Level, who netip.Addr, msg string, attrs ...slog.Attr) {
	if !logger.Enabled(context.Background(), level) {
		return
	}
	left, ok := l.Allow(time.Now(), who)
	if !ok {
		return
	}
	if left > 0 {
		attrs = append(attrs, slog.Int("suppressed", left))
	}
	logger.LogAttrs(context.Background(), level, msg, attrs...)
}

// NewServerLimiter returns the limiter of what the servers of the tools write.
func NewServerLimiter() *LogLimiter { return &LogLimiter{RateLimiter: RateLimiter{All: 100, Each: 20}} }

// WithLeftOut adds to a line how many were left out before it.
func WithLeftOut(line string, left int) string {
	if left > 0 {
		line += fmt.Sprintf(" (%d lines left out)", left)
	}
	return line
}

// ClientShares are what clients hold of something. A host may hold no more than is left free by
// all. A group may hold that once for each of its levels. A client that asks for all gets half, the
// next a third of that. So something is always left for a host elsewhere that has nothing yet. The
// zero value holds nothing.
type ClientShares struct{ heldUnits map[HostGroup]int64 }

// RoomFor returns how many units of those that are free an address may take.
func (s *ClientShares) RoomFor(who netip.Addr, free int64) int64 {
	var list [MaxGroups]HostGroup
	groups := GroupsOf(who, list[:0])
	room := free
	for i, g := range groups {
		times := int64(i + 1)
		room = min(room, (times*free-s.heldUnits[g])/(times+1))
	}
	if s.heldUnits[groups[len(groups)-1]] == 0 {
		room = max(room, min(1, free)) // of one unit there is no half
	}
	return max(room, 0)
}

// IsAtLimit reports whether an address holds as many units as one may, or one of its groups as many
// as its levels allow.
func (s *ClientShares) IsAtLimit(who netip.Addr, most int64) bool {
	var list [MaxGroups]HostGroup
	for i, g := range GroupsOf(who, list[:0]) {
		if s.heldUnits[g] >= most*int64(i+1) {
			return true
		}
	}
	return false
}

// NumGroups returns how many groups hold something.
func (s *ClientShares) NumGroups() int { return len(s.heldUnits) }

// AddHeld notes that an address holds so many more, or fewer.
func (s *ClientShares) AddHeld(who netip.Addr, n int64) {
	if s.heldUnits == nil {
		s.heldUnits = make(map[HostGroup]int64)
	}
	var list [MaxGroups]HostGroup
	for _, g := range GroupsOf(who, list[:0]) {
		if s.heldUnits[g] += n; s.heldUnits[g] == 0 {
			delete(s.heldUnits, g)
		}
	}
}

// Semaphore is Max units of something that clients take and give back, in fair Shares.
type Semaphore struct {
	Max int64

	mu        sync.Mutex
	shares    ClientShares // guarded by mu
	usedUnits int64        // guarded by mu
}

// TryAcquire takes n units for an address. It returns false if that would be too many.
func (s *Semaphore) TryAcquire(who netip.Addr, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.shares.RoomFor(who, s.Max-s.usedUnits) {
		return false
	}
	s.usedUnits += n
	s.shares.AddHeld(who, n)
	return true
}

// IsFullFor says whether who can take nothing more.
func (s *Semaphore) IsFullFor(who netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shares.RoomFor(who, s.Max-s.usedUnits) <= 0
}

// UsedUnits returns how many units are taken.
func (s *Semaphore) UsedUnits() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usedUnits
}

// Release gives n units of an address back.
func (s *Semaphore) Release(who netip.Addr, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.usedUnits -= n
	s.shares.AddHeld(who, -n)
}
