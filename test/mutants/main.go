// Command mutants measures the tests: it makes one small fault after another in a copy of the committed
// tree and tells which tests notice. A fault that none notices shows a test that is missing.
//
//	go run ./test/mutants [-run regexp] [-j copies]
//
// The faults are in the directory faults, one file for each layer. Run it as root: without, the tests of
// raw sockets and TUN devices skip themselves, and what they would catch survives.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"sync"
	"time"
)

func main() {
	var (
		run   = flag.String("run", "", "only faults whose name matches this regexp")
		jobs  = flag.Int("j", 2, "copies of the tree to work in at a time")
		limit = flag.Duration("timeout", 90*time.Second, "for the tests of one package; a fault that exceeds it is caught")
		seeds = flag.Int("seeds", 300, "worlds that internal/world runs")
		check = flag.Bool("check", false, "only say which faults do not apply")
	)
	flag.Parse()
	ok, err := measure(*run, max(*jobs, 1), options{timeout: *limit, seeds: *seeds, applyOnly: *check})
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// measure runs the faults that match and prints what became of them. It reports whether all were caught.
func measure(match string, jobs int, o options) (ok bool, err error) {
	re, err := regexp.Compile(match)
	if err != nil {
		return false, err
	}
	list, err := load()
	if err != nil {
		return false, err
	}
	var chosen, equivalent []*fault
	for _, f := range list {
		switch {
		case !re.MatchString(f.name):
		case f.equivalent != "":
			equivalent = append(equivalent, f)
		default:
			chosen = append(chosen, f)
		}
	}
	trees, err := checkout(jobs, o)
	defer func() {
		for _, t := range trees {
			os.RemoveAll(t.dir)
		}
	}()
	if err != nil {
		return false, err
	}
	if !o.applyOnly {
		if err := sound(trees, chosen); err != nil {
			return false, err
		}
	}
	var count [3]int
	each(trees, chosen, func(t *tree, f *fault) {
		r := t.try(f)
		if !o.applyOnly || r.outcome == notApplied {
			print("%-10s %5.1fs  %-42s %s\n", r.outcome, r.took.Seconds(), f.name, r.detail)
		}
		lock.Lock()
		count[r.outcome]++
		lock.Unlock()
	})
	for _, f := range equivalent {
		print("equivalent         %-42s %s\n", f.name, f.equivalent)
	}
	if o.applyOnly {
		print("mutants: %d apply, %d do not\n", count[caught], count[notApplied])
		return count[notApplied] == 0, nil
	}
	print("mutants: %d caught, %d survived, %d did not apply\n", count[caught], count[survived], count[notApplied])
	return count[survived]+count[notApplied] == 0, nil
}

// sound makes sure that the tests pass without a fault: else what they say of one means nothing.
func sound(trees []*tree, faults []*fault) error {
	var packages []string
	for _, f := range faults {
		packages = append(packages, f.tests...)
	}
	slices.Sort(packages)
	var first error
	each(trees, slices.Compact(packages), func(t *tree, pkg string) {
		if r := t.test(pkg); r.failed {
			lock.Lock()
			defer lock.Unlock()
			if first == nil {
				first = fmt.Errorf("%s fails without a fault:\n%s", pkg, r.output)
			}
		}
	})
	return first
}

// each hands every item to one of the trees.
func each[T any](trees []*tree, items []T, do func(*tree, T)) {
	queue := make(chan T)
	var wg sync.WaitGroup
	for _, t := range trees {
		wg.Go(func() {
			for item := range queue {
				do(t, item)
			}
		})
	}
	for _, item := range items {
		queue <- item
	}
	close(queue)
	wg.Wait()
}

var lock sync.Mutex // of the standard output and the counters

func print(format string, args ...any) {
	lock.Lock()
	defer lock.Unlock()
	fmt.Printf(format, args...)
}
