// Command mutants measures the tests: it makes one small fault after another in a copy of the
// committed tree and tells which tests notice. A fault that none notices shows a test that is
// missing.
//
//	go run ./test/mutants [-run regexp] [-j tests at a time]    faults made by hand
//	go run ./test/mutants -proofs [-run regexp] [-sample 150]   those that prove a row, or some of them
//	go run ./test/mutants -sample 1000 [-seed s] [-docs]        mutants made by machine
//	go run ./test/mutants -id 0123abcd,...                      some of these again, in the working copy
//
// The faults are in the directory faults, one file for each layer. All that are within one function
// are compiled into the tests at once, and an environment variable chooses one of them: so a fault
// costs no compilation, only the tests until the first that fails. Run it as root: without, the
// tests of raw sockets and TUN devices skip themselves, and what they would catch survives.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() {
	var o options
	run := flag.String("run", "", "only faults whose name matches this regexp")
	flag.IntVar(&o.jobs, "j", 2, "tests to run at a time")
	flag.IntVar(&o.seeds, "seeds", 300, "worlds that internal/test/simulation runs")
	check := flag.Bool("check", false, "only say which faults do not apply")
	proofs := flag.Bool("proofs", false,
		"only show that each fault which proves a row is caught by the test that cites it")
	draft := flag.String("draft", "", "with -proofs, the faults of this file instead: which test that cites the "+
		"row catches them?")
	rows := flag.String("rows", "", "print the rows of a sample of 200 by this seed, 8 hexadecimal digits, and "+
		"which are proved")
	s := machineFlags()
	flag.Parse()
	o.jobs = max(o.jobs, 1)
	var ok bool
	var err error
	switch {
	case *rows != "":
		ok, err = printSample(*rows)
	case *proofs || *draft != "":
		ok, err = runProofs(proving{match: *run, draft: *draft, sample: s.sample, seed: s.seed, jobs: o.jobs})
	case s.sample > 0 || s.ids != nil:
		s.options = o
		ok, err = runMachine(*s)
	default:
		ok, err = runFaults(*run, *check, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// machineFlags are those of the mutants made by machine.
func machineFlags() *sampling {
	s := new(sampling)
	flag.IntVar(&s.sample, "sample", 0, "make so many mutants by machine instead; with -proofs, only so many faults")
	flag.StringVar(&s.seed, "seed", "", "of the sample (the first 8 digits of the tree's id)")
	flag.Func("id", "only the mutants of these names, separated by commas, in the working copy", func(v string) error {
		s.ids = strings.Split(v, ",")
		return nil
	})
	flag.Func("packages", "draw from the packages that match this regexp alone", func(v string) (err error) {
		s.packages, err = regexp.Compile(v)
		return err
	})
	flag.IntVar(&s.of, "of", 0, "draw the sample from so many packages, which the seed draws too (0: from all)")
	flag.DurationVar(&s.budget, "budget", 0, "processor time of other packages' tests for one mutant (0: no limit)")
	flag.BoolVar(&s.again, "again", false, "try those of the sample again that were not caught")
	flag.IntVar(&s.near, "near", 0, "let the tests of only so many packages run, a mutant's own first (0: of "+
		"all that build on it)")
	flag.IntVar(&s.steady, "steady", 20, "times that a test has to pass before its failure counts")
	flag.Float64Var(&s.least, "least", 97, "the score, in percent, below which this fails")
	flag.StringVar(&s.survivors, "survivors", "", "a directory for the diffs of survivors, as they come")
	flag.BoolVar(&s.docs, "docs", false, "bring the table in docs/dev/reliability.md up to date")
	return s
}

// runFaults runs the faults that match and prints what became of them. It reports whether all were
// caught.
func runFaults(match string, check bool, o options) (ok bool, err error) {
	start := time.Now()
	re, err := regexp.Compile(match)
	if err != nil {
		return false, err
	}
	list, err := loadFaults()
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
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		os.RemoveAll(dir)
		os.Exit(2)
	}()
	r := runner{options: o, dir: dir}
	if r.spare, err = newCheckout(dir + "/spare"); err != nil {
		return false, err
	}
	if errs := applyAll(r.spare, list); check || errs != nil {
		fmt.Printf("mutants: %d faults apply, %d do not\n", len(list)-len(errs), len(errs))
		return true, errors.Join(errs...)
	}
	if err := r.prepareFaults(chosen); err != nil {
		return false, err
	}
	results := r.runAll(chosen)
	for _, f := range equivalent {
		fmt.Printf("equivalent         %-42s %s\n", f.name, f.equivalent)
	}
	return printReport(os.Stdout, results, equivalent, time.Since(start)), nil
}

// applyAll returns what is wrong with each fault that does not apply to the tree.
func applyAll(t checkedOutTree, list []*fault) (errs []error) {
	for _, f := range list {
		text, err := os.ReadFile(string(t) + "/" + f.file)
		if err == nil {
			var s string
			if s, err = f.applyTo(string(text)); err == nil {
				err = checkSyntax(s)
			}
		}
		for _, pkg := range f.tests {
			if _, e := os.Stat(string(t) + "/" + pkg); err == nil {
				err = e
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("fault %s: %w", f.name, err))
		}
	}
	return errs
}
