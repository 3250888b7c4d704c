package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// options say how the tests are run.
type options struct {
	jobs  int
	seeds int
}

// runner runs faults.
type runner struct {
	options
	dir      string         // for all that it makes
	woven    checkedOutTree // with all faults that are within one function
	spare    checkedOutTree // for the others, one at a time
	tests    map[string]*tests
	apart    map[*fault]bool
	building sync.Mutex // of the spare tree
	printing sync.Mutex
}

// prepareFaults weaves the faults in and compiles the tests that may notice them. It makes sure
// that these pass without a fault: else what they say of one means nothing.
func (r *runner) prepareFaults(faults []*fault) (err error) {
	if r.woven, err = newCheckout(r.dir + "/woven"); err != nil {
		return err
	}
	apart, err := r.woven.weaveFaults(faults)
	if err != nil {
		return err
	}
	r.apart, r.tests = make(map[*fault]bool), make(map[string]*tests)
	for _, f := range apart {
		r.apart[f] = true
	}
	var all []*tests
	for _, f := range faults {
		for _, pkg := range f.tests {
			if r.tests[pkg] == nil {
				r.tests[pkg] = &tests{pkg: pkg, binary: binaryName(r.dir, pkg), quiet: 10 * time.Minute,
					dir: filepath.Join(string(r.woven), pkg)}
				all = append(all, r.tests[pkg])
			}
		}
	}
	var first error
	forEachParallel(r.jobs, all, func(t *tests) {
		if err := r.compileOne(t); err != nil {
			r.printing.Lock()
			defer r.printing.Unlock()
			first = cmp.Or(first, err)
		}
	})
	return first
}

// compileOne compiles the tests of a package and runs them.
func (r *runner) compileOne(t *tests) error {
	var err error
	if t.net, err = r.woven.usesNetwork(t.pkg); err != nil {
		return err
	}
	if t.pkg == "./internal/test/simulation" {
		t.args = []string{"-test.run=^TestSeeds$", fmt.Sprint("-seeds=", r.seeds)}
	}
	if err := r.woven.buildTests(t.pkg, t.binary); err != nil {
		return err
	}
	for tries := 1; ; tries++ { // a busy machine may fail some that race with time
		start := time.Now()
		v := t.runTests(0, "", nil)
		if t.took = time.Since(start); !v.failed {
			t.quiet, t.slow = max(5*v.quiet, 5*time.Second), slowOnes(v.output)
			return nil
		}
		if tries == 3 {
			return fmt.Errorf("%s fails without a fault:\n%s", t.pkg, v.output)
		}
	}
}

// runAll tries each fault and prints what becomes of it. Faults of one layer whose tests reach the
// network go one after the other.
func (r *runner) runAll(faults []*fault) []result {
	var all []result
	forEachParallel(r.jobs, r.faultUnits(faults), func(unit []*fault) {
		for _, f := range unit {
			v := r.runFault(f)
			r.printing.Lock()
			all = append(all, v)
			fmt.Printf("%-10s %5.1fs  %-42s %s\n", v.outcome, v.took.Seconds(), f.name, v.detail)
			r.printing.Unlock()
		}
	})
	return all
}

// faultUnits returns the faults in lists that may be tried beside each other, the longest first.
func (r *runner) faultUnits(faults []*fault) (units [][]*fault) {
	network := make(map[string][]*fault) // by layer
	for _, f := range faults {
		if slices.ContainsFunc(f.tests, func(pkg string) bool { return r.tests[pkg].net }) {
			network[f.layerOf()] = append(network[f.layerOf()], f)
		} else {
			units = append(units, []*fault{f})
		}
	}
	for _, list := range network {
		units = append(units, list)
	}
	slices.SortStableFunc(units, func(a, b []*fault) int { return len(b) - len(a) })
	return units
}

// runFault tries a fault.
func (r *runner) runFault(f *fault) result {
	start := time.Now()
	v := result{fault: f}
	var list []*tests
	for _, pkg := range f.tests {
		list = append(list, r.tests[pkg])
	}
	slices.SortStableFunc(list, func(a, b *tests) int { return cmp.Compare(a.took, b.took) })
	if r.apart[f] {
		r.building.Lock()
		defer r.building.Unlock()
		start = time.Now()
		v.outcome, v.detail = r.inSpare(f, list)
	} else {
		v.outcome, v.detail = tryUntilCaught(f.number, list)
	}
	v.took = time.Since(start)
	return v
}

// inSpare makes a fault in the spare tree and tries it there.
func (r *runner) inSpare(f *fault, list []*tests) (o outcome, detail string) {
	err := r.spare.withFault(f, func() {
		for _, t := range list {
			u := *t
			u.binary = binaryName(r.dir, t.pkg+"-apart")
			if err := r.spare.buildTests(t.pkg, u.binary); err != nil {
				o, detail = broken, err.Error()
				return
			}
			v := u.runTests(0, "", t.slow)
			if !v.failed && len(t.slow) > 0 {
				v = u.runTests(0, anyOf(t.slow), nil)
			}
			if v.failed && !t.runTests(0, v.test, nil).failed {
				o, detail = caught, strings.TrimPrefix(t.pkg, "./")+" "+v.what
				return
			}
		}
		o, detail = survived, strings.Join(f.tests, " ")
	})
	if err != nil {
		return broken, err.Error()
	}
	return o, detail
}

// forEachParallel hands every item to one of n workers.
func forEachParallel[T any](n int, items []T, do func(T)) {
	queue := make(chan T)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for item := range queue {
				do(item)
			}
		})
	}
	for _, item := range items {
		queue <- item
	}
	close(queue)
	wg.Wait()
}
