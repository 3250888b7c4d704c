package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/must"
)

func TestSpreadIsMedianLeastAndMost(t *testing.T) {
	for _, test := range []struct {
		v    []float64
		want spread
	}{
		{[]float64{3}, spread{3, 3, 3}},
		{[]float64{3, 1}, spread{2, 1, 3}},
		{[]float64{9, 1, 3}, spread{3, 1, 9}},
	} {
		s, ok := spreadOf(test.v)
		must.That(t, ok && s == test.want, "%v: %+v", test.v, s)
	}
	if _, ok := spreadOf(nil); ok {
		t.Error("nothing has a median")
	}
}

// figuresOfGBps makes results with these throughputs, 0 for a run that failed.
func figuresOfGBps(v ...float64) (list []*figures) {
	for _, v := range v {
		if v == 0 {
			list = append(list, nil)
			continue
		}
		list = append(list, &figures{GBps: v, Octets: 1e9, CPU: [2]float64{v, v}})
	}
	return list
}

// boardOf has the given results.
func boardOf(results map[spec][]*figures) *board {
	bd := &board{Results: make(map[string][]*figures)}
	for _, s := range allSpecs() {
		if r, ok := results[s]; ok {
			bd.Specs = append(bd.Specs, s)
			bd.Results[s.String()] = r
		}
	}
	return bd
}

func TestRatiosAreTakenWithinARound(t *testing.T) {
	write, pump := ddpbenchSpec("write", "raw", lo64K, big), pumpOver("raw", lo64K)
	c := atLeast(1, 0.75, "", write, pump)
	for _, test := range []struct {
		name      string
		num, den  []*figures
		want      spread
		met, none bool
	}{
		{"the machine was twice as fast in one round", figuresOfGBps(4, 8, 4), figuresOfGBps(5, 10, 5), spread{0.8, 0.8, 0.8}, true, false},
		{"the median decides", figuresOfGBps(4, 3, 5), figuresOfGBps(5, 5, 5), spread{0.8, 0.6, 1}, true, false},
		{"not met", figuresOfGBps(4, 3, 3), figuresOfGBps(5, 5, 5), spread{0.6, 0.6, 0.8}, false, false},
		{"a round in which one failed does not count", figuresOfGBps(4, 0, 5), figuresOfGBps(5, 5, 0), spread{0.8, 0.8, 0.8}, true, false},
		{"all failed", figuresOfGBps(0, 0, 0), figuresOfGBps(5, 5, 5), spread{}, false, true},
	} {
		o := c.outcomeOn(boardOf(map[spec][]*figures{write: test.num, pump: test.den}))
		if o.Met != test.met || (o.Ratio == nil) != test.none || o.Ratio != nil && *o.Ratio != test.want {
			t.Errorf("%s: %+v %+v", test.name, o, o.Ratio)
		}
	}
}

func TestThePeersBestConfigurationCounts(t *testing.T) {
	write, us := ddpbenchSpec("write", "udp", lo1500, big), usrsctpSpecs("udp", lo1500, big)
	c := atLeast(2, 20, "", write, us...)
	bd := boardOf(map[spec][]*figures{write: figuresOfGBps(3, 3, 3), us[0]: figuresOfGBps(0.1, 0.1, 0.9),
		us[1]: figuresOfGBps(0.2, 0.2, 0.1)})
	o := c.outcomeOn(bd)
	must.That(t, o.Ratio != nil && almostEqual(o.Ratio.Median, 15) && !o.Met, "%+v %+v", o, o.Ratio)
	bd.Results[us[1].String()] = figuresOfGBps(0, 0, 0)
	if o := c.outcomeOn(bd); o.Ratio == nil || !almostEqual(o.Ratio.Median, 30) || !o.Met {
		t.Errorf("one that always fails: %+v %+v", o, o.Ratio)
	}
}

func TestBothWaysNeedNotBeatThePump(t *testing.T) {
	write, pump := ddpbenchSpec("write", "raw", lo64K, big), pumpOver("raw", lo64K)
	for _, test := range []struct {
		name           string
		pumpBoth, both float64
		bound          float64
		met            bool
	}{
		{"the pump doubles", 2, 1.2, 1.3, false},
		{"the pump gains nothing", 1, 1.2, 0.95, true},
		{"as much as the pump, but for the scatter", 1.1, 1.05, 1.045, true},
		{"less than the pump", 1.1, 1.04, 1.045, false},
	} {
		bd := boardOf(map[spec][]*figures{
			write: figuresOfGBps(1), bothWays(write): figuresOfGBps(test.both), pump: figuresOfGBps(1),
			bothWays(pump): figuresOfGBps(test.pumpBoth),
		})
		i := slices.IndexFunc(allChecks(), func(c check) bool { return c.num == bothWays(write) })
		must.That(t, i >= 0, "no such check")
		c := allChecks()[i]
		o := c.outcomeOn(bd)
		must.That(t, almostEqual(o.Bound, test.bound) && o.Met == test.met, "%s: %+v", test.name, o)
	}
}

func TestWhatShouldBeLittleIsAtMost(t *testing.T) {
	send, ping, write := pingPong(ddpbenchSpec("send", "raw", lo64K, tiny)), bareLinkPingPong("raw", lo64K),
		ddpbenchSpec("write", "raw", lo64K, big)
	none, some := 0.0, 0.5
	allocs, trip := check{q: allocsPerMessage, num: write, bound: allocated, atMost: true},
		latencyCheck(1.3, "", send, ping)
	near := trip
	near.more = 15
	for _, test := range []struct {
		name           string
		c              check
		num            figures
		limit, verdict string
	}{
		{"a round trip not much longer", trip, figures{P50: 13}, "<= 1.3", met},
		{"a longer one", trip, figures{P50: 14}, "<= 1.3", "not met"},
		{"a longer one, but by little", near, figures{P50: 25}, "<= 1.3 or 15 us more", met},
		{"longer by both measures", near, figures{P50: 25.1}, "<= 1.3 or 15 us more", "not met"},
		{"no allocations at one end", allocs, figures{Allocs: [2]*float64{&none, nil}}, "<= 0.05", met},
		{"allocations at the other", allocs, figures{Allocs: [2]*float64{&none, &some}}, "<= 0.05", "not met"},
		{"allocations that nobody counted", allocs, figures{}, "<= 0.05", "not measured"},
	} {
		bd := boardOf(map[spec][]*figures{test.c.num: {&test.num}, ping: {{P50: 10}}})
		o := test.c.outcomeOn(bd)
		must.That(t, o.limitText() == test.limit && o.verdictText() == test.verdict, "%s: %+v", test.name, o)
	}
}

func TestThePlanHasWhatTheTargetsNeed(t *testing.T) {
	all := allSpecs()
	names := make(map[string]bool)
	for _, s := range all {
		must.That(t, !names[s.String()], "%s is there twice", s)
		names[s.String()] = true
		_, ok := peers[s.Peer]
		must.That(t, ok, "%s: no such peer", s)
		must.That(t, networks[s.Net] != nil, "%s: no such network", s)
	}
	covered := make(map[int]bool)
	for i, c := range allChecks() {
		covered[c.target] = true
		if slices.ContainsFunc(allChecks()[:i], func(b check) bool { return b.what == c.what }) {
			t.Errorf("two checks have the name %q: the book keeps one row", c.what)
		}
		for _, s := range c.specsCompared() {
			must.That(t, names[s.String()], "target %d needs %s", c.target, s)
		}
	}
	for target, about := range targets {
		must.That(t, about == "" || covered[target], "target %d has no check", target)
	}
	if bd := (&board{Specs: all}); len(bd.checkOutcomes()) != len(allChecks()) {
		t.Error("a whole run does not judge all targets")
	}
}

func TestWhatFailedIsShown(t *testing.T) {
	write, pump := ddpbenchSpec("write", "raw", lo64K, big), pumpOver("raw", lo64K)
	bd := boardOf(map[spec][]*figures{write: figuresOfGBps(0, 0, 0), pump: figuresOfGBps(5, 6, 7)})
	bd.Errors = map[string]string{write.String(): "it broke"}
	var text bytes.Buffer
	bd.printTables(&text)
	for _, want := range []string{"failed: " + write.String() + ": it broke", "5.00-7.00", "not measured"} {
		must.That(t, strings.Contains(text.String(), want), "no %q in\n%s", want, &text)
	}
	var doc struct {
		Results map[string][]*figures
		Targets []outcome
		Errors  map[string]string
	}
	var b bytes.Buffer
	must.OK(t, errors.Join(bd.writeJSON(&b), json.Unmarshal(b.Bytes(), &doc)))
	must.That(t, len(doc.Results) == 2 && doc.Results[write.String()][0] == nil && len(doc.Targets) == 1 &&
		!doc.Targets[0].Met && len(doc.Errors) == 1, "%+v", doc)
}

// What was measured with the processors here and there is not compared, as long as enough rounds
// are left.
func TestRoundsInWhichTheProcessorsWereMovedDoNotCount(t *testing.T) {
	type pair = [2]time.Duration
	near, far := pair{50, 75}, pair{170, 339}
	left, back := pair{50, 170}, pair{170, 50}
	type round struct {
		num      float64
		at, from pair // the numerator's, the denominator's
	}
	write, pump := ddpbenchSpec("write", "raw", lo64K, big), pumpOver("raw", lo64K)
	for _, test := range []struct {
		name   string
		rounds []round
		median float64
		text   string
	}{
		{"they stay", []round{{6, near, near}, {7, far, far}, {8, near, near}}, 0.7, "0.600-0.800"},
		{"moved between two runs", []round{{6, near, near}, {7, far, far}, {8, near, near}, {2, far, near}, {3, near, far}}, 0.7, "0.600-0.800, 2 left out"},
		{"moved during one", []round{{6, near, near}, {7, far, far}, {8, near, near}, {9, left, far}, {9, near, back}}, 0.7, "0.600-0.800, 2 left out"},
		{"too few are left", []round{{6, near, near}, {7, far, far}, {8, near, far}}, 0.7, "0.600-0.800"},
		{"nobody knows where they were", []round{{6, near, near}, {7, far, far}, {8, near, near}, {7, far, pair{}}}, 0.7, "0.600-0.800"},
		{"one that failed is not one that was left out", []round{{6, near, near}, {7, far, far}, {8, near, near}, {0, near, far}}, 0.7, "0.600-0.800"},
	} {
		var num, den []*figures
		for _, r := range test.rounds {
			num, den = append(num, figuresOfGBps(r.num)...), append(den, figuresOfGBps(10)...)
			for f, at := range map[*figures]pair{num[len(num)-1]: r.at, den[len(den)-1]: r.from} {
				if f != nil {
					f.Line = at
				}
			}
		}
		bd := boardOf(map[spec][]*figures{write: num, pump: den})
		row := bd.tableOf(targetRows)[1]
		must.That(t, row[2] == formatNumber(test.median) && row[3] == test.text, "%s: %q", test.name, row)
	}
}

// Where a target allows a difference, it is that of the rounds in which the processors stayed.
func TestADifferenceIsTakenWhereTheProcessorsStayed(t *testing.T) {
	near, far := [2]time.Duration{50, 50}, [2]time.Duration{170, 170}
	pair := overUDP.withTCP(handed)
	c := check{q: medianLatency, num: pair[1], den: pair[:1], bound: 1.5, atMost: true, more: 15}
	var num, den []*figures
	for range 3 {
		num, den = append(num, &figures{P50: 20, Line: near}), append(den, &figures{P50: 10, Line: near})
	}
	for range 4 {
		num, den = append(num, &figures{P50: 50, Line: far}), append(den, &figures{P50: 10, Line: near})
	}
	o := c.outcomeOn(boardOf(map[spec][]*figures{c.num: num, c.den[0]: den}))
	must.That(t, o.Met && o.Ratio.Median == 2 && o.Moved == 4, "%+v %+v", o, o.Ratio)
}

func TestARunSaysWhereTheProcessorsWere(t *testing.T) {
	write, pump := ddpbenchSpec("write", "raw", lo64K, big), pumpOver("raw", lo64K)
	num, den := figuresOfGBps(1, 0, 1), figuresOfGBps(1, 1, 1)
	num[0].Line, num[2].Line, den[0].Line = [2]time.Duration{51, 170}, [2]time.Duration{160, 340},
		[2]time.Duration{60, 50}
	bd := boardOf(map[spec][]*figures{write: num, pump: den})
	const want = " A line between two processors and back took 50-340 ns; in 2 of 3 runs they were moved."
	must.That(t, bd.lineTimes() == want, "%q", bd.lineTimes())
	must.That(t, boardOf(map[spec][]*figures{write: figuresOfGBps(1)}).lineTimes() == "", "nobody looked")
}
