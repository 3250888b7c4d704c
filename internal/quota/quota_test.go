package quota

import (
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// One that asks for all gets its part, and leaves the others theirs, in each second anew.
func TestNobodyTakesTheShareOfOthers(t *testing.T) {
	r := RateLimiter{All: 10, Each: 4}
	lines, left := LogLimiter{RateLimiter: r}, 0
	greedy := []netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")} // one host
	for second := range 3 {
		now := time.Unix(int64(second), 0)
		for i := range 50 {
			must.That(t, r.Allow(now.Add(time.Duration(i)), greedy[i%2]) == (i < 4),
				"second %d: request %d of the greedy: %v", second, i, i >= 4)
			if n, ok := lines.Allow(now, greedy[0]); ok != (i < 4) || ok && n != left {
				t.Fatalf("second %d: line %d: %v, %d left out, want %d", second, i, ok, n, left)
			} else if left = 0; i == 49 {
				left = 46
			}
		}
		for i := range 9 { // of nobody in particular
			must.That(t, r.Allow(now.Add(time.Second-1), netip.Addr{}) == (i < 6),
				"second %d: request %d of the others: %v", second, i, i >= 6)
		}
	}
}

// One host gets half of a Store, whoever comes then gets less, and what they give back others have.
func TestOneTakesHalfOfAStore(t *testing.T) {
	s := Semaphore{Max: 11}
	one, same, other, third := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"),
		netip.MustParseAddr("2001:db8:0:1::1"), netip.MustParseAddr("10.0.0.1")
	for i, step := range []struct {
		who  netip.Addr
		n    int64 // below 0: is given back
		full bool  // for the address, then
		want bool
	}{{one, 5, true, true}, {same, 1, true, false}, {other, 3, false, false}, {other, 2, true, true},
		{third, 3, false, false}, {third, 2, true, true},
		{other, 1, true, false}, {third, -2, false, true}, {other, 1, true, false}, {one, -5, false, true},
		{other, 2, false, true}, {same, 3, true, true}} {
		got := true
		if step.n < 0 {
			s.Release(step.who, -step.n)
		} else {
			got = s.TryAcquire(step.who, step.n)
		}
		check.That(t, got == step.want && s.IsFullFor(step.who) == step.full, "step %d: taken %v, full %v", i, got,
			s.IsFullFor(step.who))
	}
	s.Release(other, 4)
	s.Release(one, 3)
	check.That(t, len(s.shares.heldUnits) == 0 && s.UsedUnits() == 0, "%d groups are remembered",
		len(s.shares.heldUnits))
}

// However many addresses hostile clients choose from a network, and however many networks a few of
// them have, a host elsewhere finds a place, of 16 as the tools have them. A store of one goes to
// the first.
func TestAHostElsewhereFindsAPlace(t *testing.T) {
	network := func(prefix string, octet int) (list []netip.Addr) {
		for i := range 256 {
			a := netip.MustParseAddr(prefix).As16()
			a[octet] = byte(i)
			list = append(list, netip.AddrFrom16(a))
		}
		return list
	}
	for _, row := range []struct {
		name   string
		greedy []netip.Addr
		max    int64
		left   int64 // for the host
	}{
		{"one address", []netip.Addr{netip.MustParseAddr("192.0.2.1")}, 16, 4},
		{"two /64s", network("2001:db8::1", 7)[:2], 16, 3},
		{"two /64s of two providers", []netip.Addr{netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db9::1")}, 16, 2},
		{"a /56", network("2001:db8::1", 7), 16, 3},
		{"a /48", network("2001:db8::1", 6), 16, 2},
		{"a /32", network("2001:db8::1", 5), 16, 2},
		{"a /32 of 512 MiB", network("2001:db8::1", 5), 512 << 20, 50 << 20},
		{"a store of one", nil, 1, 1},
	} {
		s := Semaphore{Max: row.max}
		for range 3 {
			for _, a := range row.greedy {
				for n := row.max; n > 0; {
					if !s.TryAcquire(a, n) {
						n /= 2
					}
				}
			}
		}
		left := int64(0)
		for s.TryAcquire(netip.MustParseAddr("10.0.0.1"), max(row.max>>12, 1)) {
			left += max(row.max>>12, 1)
		}
		check.That(t, left >= row.left, "%s: %d of %d are left for a host elsewhere, want %d", row.name, left,
			row.max, row.left)
	}
	lines := RateLimiter{All: 100, Each: 20}
	for range 2 {
		for _, a := range append(network("2001:db8::1", 7), network("2001:db8::1", 5)...) {
			lines.Allow(time.Unix(1, 0), a)
		}
	}
	check.That(t, lines.Allow(time.Unix(1, 0), netip.MustParseAddr("10.0.0.1")),
		"the lines of a network leave none for a host elsewhere")
}
