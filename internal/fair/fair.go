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
const places = 256

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

func place(who netip.Addr) uint64 { return maphash.Comparable(seed, Key(who)) % places }

// Rate lets through All in a second, and Each of one address.
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
		if n := &r.each[place(who)]; int(*n) >= r.Each {
			return false
		} else {
			*n++
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

// Room counts what waits of each address.
type Room [places]int32

// Of returns the count of who.
func (r *Room) Of(who netip.Addr) *int32 { return &r[place(who)] }

// Store is Max units of something that clients take and give back, of one address at most half of it, or one.
type Store struct {
	Max int64

	mu    sync.Mutex
	taken map[netip.Addr]int64 // guarded by mu
	all   int64                // guarded by mu
}

// Take takes n units for who; it returns false where that would be too many.
func (s *Store) Take(who netip.Addr, n int64) bool {
	who = Key(who)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n > s.room(who) {
		return false
	}
	if s.taken == nil {
		s.taken = make(map[netip.Addr]int64)
	}
	s.all += n
	s.taken[who] += n
	return true
}

// room returns how many units who could take. The lock is held.
func (s *Store) room(who netip.Addr) int64 { return min(s.Max-s.all, max(s.Max/2, 1)-s.taken[who]) }

// Full says that who could take nothing more.
func (s *Store) Full(who netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.room(Key(who)) <= 0
}

// Used returns how many units are taken.
func (s *Store) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}

// Give gives back what who has taken.
func (s *Store) Give(who netip.Addr, n int64) {
	who = Key(who)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all -= n
	if s.taken[who] -= n; s.taken[who] == 0 {
		delete(s.taken, who)
	}
}
