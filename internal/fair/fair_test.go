package fair

import (
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

// One that asks for all gets its part, and leaves the others theirs, in each second anew.
func TestNobodyTakesTheShareOfOthers(t *testing.T) {
	r := Rate{All: 10, Each: 4}
	lines, left := Lines{Rate: r}, 0
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

// All clients together take what there is, one host half of it, and what they give back others have.
func TestOneTakesHalfOfAStore(t *testing.T) {
	s := Store{Max: 11}
	one, same, other, third := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2"), netip.MustParseAddr("2001:db8:0:1::1"), netip.MustParseAddr("10.0.0.1")
	for i, step := range []struct {
		who  netip.Addr
		n    int64 // below 0: is given back
		full bool  // for who, then
		want bool
	}{{one, 5, true, true}, {same, 1, true, false}, {other, 6, false, false}, {other, 4, false, true}, {third, 3, false, false}, {third, 2, true, true},
		{other, 1, true, false}, {third, -2, false, true}, {other, 1, true, true}, {one, -5, false, true}, {same, 5, true, true}} {
		got := true
		if step.n < 0 {
			s.Give(step.who, -step.n)
		} else {
			got = s.Take(step.who, step.n)
		}
		check.That(t, got == step.want && s.Full(step.who) == step.full, "step %d: taken %v, full %v", i, got, s.Full(step.who))
	}
	s.Give(other, 5)
	check.That(t, len(s.taken) == 1 && s.Used() == 5, "%d hosts are remembered", len(s.taken))
}
