package main

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// suite is the tests of one package with the mutants woven in.
type suite struct {
	pkg   string // ./sctp/assoc
	race  bool
	ready sync.Once
	err   error
	bin   string
	dir   string // where they run
	net   bool
	turn  sync.Mutex // of suites that reach the network: one process at a time
	tests []*test
	args  []string
	mu    sync.Mutex // guards what is told of the tests
}

// test is one test function.
type test struct {
	suite *suite
	Name  string
	Spent timeSpent
	Reach []int // sites, in order
	Shaky bool  // it failed without a fault: what it says counts for nothing
	// Steady says that it has passed as often as a test must before its failure counts.
	Steady bool
}

func (t *test) isSlow() bool { return t.Spent.Processor > slowTest || t.Spent.Wall > 2*slowTest }

func (t *test) reachesSite(site int) bool {
	_, found := slices.BinarySearch(t.Reach, site)
	return found && !t.Shaky
}

// processOf runs some tests, a number of times, under a fault (0: none).
func (s *suite) processOf(list []*test, fault, times int, reach string) (verdict, timeSpent) {
	var names []string
	var sum, longest timeSpent
	for _, t := range list {
		names = append(names, t.Name)
		sum.Processor += t.Spent.Processor
		sum.Wall += t.Spent.Wall
		longest.Wall = max(longest.Wall, t.Spent.Wall)
	}
	n := time.Duration(times)
	l := limits{processor: 5*n*sum.Processor + 5*time.Second, wall: 10*n*sum.Wall + time.Minute,
		quiet: 5*longest.Wall + 10*time.Second, octets: addresses}
	if s.race {
		l.octets = resident
	}
	if reach != "" {
		l.processor, l.wall, l.quiet = 5*time.Minute, 10*time.Minute, 5*time.Minute
	}
	p := process{binary: s.bin, dir: s.dir, race: s.race, limits: l,
		args: append([]string{"-test.v", "-test.failfast", "-test.timeout=0", "-test.count=" + strconv.Itoa(times),
			"-test.run=^" + anyOf(names) + "$"}, s.args...),
		env: []string{fmt.Sprintf("%s=%d", switchEnv, fault), reachEnv + "=" + reach}}
	if s.net {
		s.turn.Lock()
		defer s.turn.Unlock()
	}
	return p.runToLimit()
}

// measureBaseline lists the tests and runs each alone, to learn how long it takes and which mutants
// it reaches.
func (s *suite) measureBaseline() error {
	out, _ := process{binary: s.bin, dir: s.dir, race: s.race, args: []string{"-test.list=^(Test|Fuzz|Example)"},
		limits: limits{time.Minute, time.Minute, time.Minute, addresses}}.runToLimit()
	for name := range strings.Lines(out.output) {
		if name = strings.TrimSpace(name); strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") ||
			strings.HasPrefix(name, "Example") {
			s.tests = append(s.tests, &test{suite: s, Name: name})
		}
	}
	for _, t := range s.tests {
		reach := s.bin + ".reach"
		os.Remove(reach)
		for range 2 { // the first may fail because it notes what it reaches, and counts what it allocates
			v, took := s.processOf([]*test{t}, 0, 1, reach)
			t.Spent, t.Shaky = took, v.failed
			if !v.failed {
				break
			}
		}
		if t.Shaky {
			v, took := s.processOf([]*test{t}, 0, 1, "")
			t.Spent, t.Shaky = took, v.failed
		}
		var err error
		if t.Reach, err = readReach(reach); err != nil {
			return err
		}
	}
	return nil
}

// readReach reads what probes have written.
func readReach(file string) (sites []int, err error) {
	f, err := os.Open(file)
	if os.IsNotExist(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		n, err := strconv.Atoi(s.Text())
		if err != nil {
			return nil, err
		}
		sites = append(sites, n)
	}
	slices.Sort(sites)
	return slices.Compact(sites), nil
}

// isSteady reports whether a test has passed often enough in a row. It runs it that often when it
// is asked first; for one that takes a second a quarter of the runs is enough.
func (s *suite) isSteady(t *test, times int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Steady || t.Shaky {
		return t.Steady
	}
	if t.isSlow() {
		times = max(times/4, 1)
	}
	v, _ := s.processOf([]*test{t}, 0, times, "")
	if v.failed { // some count on a process of their own
		for range times {
			if v, _ = s.processOf([]*test{t}, 0, 1, ""); v.failed {
				break
			}
		}
	}
	t.Steady, t.Shaky = !v.failed, v.failed
	return t.Steady
}

// testsReaching returns tests that reach a site, the quickest first.
func (s *suite) testsReaching(site int, slow bool) (list []*test) {
	for _, t := range s.tests {
		if t.isSlow() == slow && t.reachesSite(site) {
			list = append(list, t)
		}
	}
	slices.SortStableFunc(list, func(a, b *test) int { return cmp.Compare(a.Spent.Processor, b.Spent.Processor) })
	return list
}
