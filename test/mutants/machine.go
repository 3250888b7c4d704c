package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The machine makes mutants by operators (operators.go, concurrency.go). It draws a sample of them
// (draw.go), and weaves it into the tree at once (graft.go). Then the tests that come to a mutant's
// statement run under it until one fails. Those of its own package come first, and slow ones last.
// A failure counts when the test passes without the mutant, has passed many times before, and fails
// once more with it.

// sampling says what the machine does.
type sampling struct {
	options
	sample    int
	seed      string
	ids       []string       // these, of the working copy, instead of a sample
	packages  *regexp.Regexp // draw from these alone
	of        int            // draw from so many packages, which the seed draws too (0: all)
	budget    time.Duration  // of processor time without a fault, for the tests of other packages
	again     bool           // try those again that were not caught
	near      int            // only the tests of so many packages, its own first
	steady    int            // how often a test has to pass before it counts
	least     float64        // the score that is asked for
	survivors string         // a directory for their diffs
	docs      bool
}

type mutationRun struct {
	sampling
	scope  *scope
	dir    string
	plain  checkedOutTree
	raced  checkedOutTree
	order  map[string][]string // the packages whose tests may notice a mutant of another
	mu     sync.Mutex          // guards suites
	suites map[string]*suite
	state  *state
	print  sync.Mutex
}

// runMachine does what was asked for and reports whether the score is good.
func runMachine(o sampling) (bool, error) {
	start := time.Now()
	m := &mutationRun{sampling: o, suites: make(map[string]*suite)}
	defer m.removeTemp()
	var err error
	if m.scope, err = parseScope(scopeText); err != nil {
		return false, err
	}
	reasons, err := parseEquivalent(equivalentText)
	if err != nil {
		return false, err
	}
	if err := m.openState(); err != nil {
		return false, err
	}
	list, sample, race, err := m.prepareSample(reasons)
	if err != nil || len(sample)+len(race) == 0 {
		return false, cmp.Or(err, errors.New("there are no such mutants"))
	}
	fmt.Printf("mutants: %d by machine and %d of concurrency, seed %s, state in %s\n", len(sample), len(race), m.seed,
		m.dir)
	if m.order, err = m.plain.testOrder(m.scope.packages); err != nil {
		return false, err
	}
	for p, list := range m.order {
		if m.near > 0 {
			m.order[p] = list[:min(m.near, len(list))]
		}
	}
	var todo []*mutant
	for _, x := range slices.Concat(sample, race) {
		f := m.state.fates[x.id]
		if (f.Outcome == "" || m.again && f.Outcome != fateCaught) && (reasons[x.mutantKey()] == "" || m.ids != nil) {
			todo = append(todo, x)
		}
	}
	if err := m.plain.putMutants(list, sample); err != nil {
		return false, err
	}
	if len(race) > 0 {
		if err := m.raced.putMutants(list, race); err != nil {
			return false, err
		}
	}
	var first error
	forEachParallel(m.jobs, todo, func(x *mutant) {
		f, err := m.tryMutant(x)
		if err == nil {
			err = m.state.addResult(f)
		}
		m.print.Lock()
		defer m.print.Unlock()
		if err != nil {
			first = cmp.Or(first, err)
			return
		}
		fmt.Printf("%-9s %5.1fs  %s  %s %s\n", f.Outcome, f.Seconds, x, f.By, f.How)
		if m.ids != nil {
			fmt.Print(x.diffText())
		}
		first = cmp.Or(first, m.noteSurvivor(x, f))
	})
	if first != nil {
		return false, first
	}
	r := newScore(m, sample, race, reasons)
	r.took = time.Since(start)
	r.printScore(os.Stdout)
	if m.docs {
		if err := r.updateDocs("docs/dev/reliability.md"); err != nil {
			return false, err
		}
	}
	return r.isGood(m.least), nil
}

// openState finds the directory of the sample, or makes one that is removed in the end.
func (m *mutationRun) openState() (err error) {
	id, err := treeID()
	if err != nil {
		return err
	}
	m.seed = cmp.Or(m.seed, id)
	if m.ids != nil {
		if m.dir, err = os.MkdirTemp("", "mutants"); err != nil {
			return err
		}
		interrupted := make(chan os.Signal, 1)
		signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
		go func() {
			<-interrupted
			os.RemoveAll(m.dir)
			os.Exit(2)
		}()
	} else {
		cache, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s-%s-%d-of-%d", id, m.seed, m.sample, m.of)
		if m.packages != nil {
			name += fmt.Sprintf("-%x", sha256.Sum256([]byte(m.packages.String())))[:9]
		}
		m.dir = filepath.Join(cache, "rddp-mutants", name)
	}
	m.state, err = openState(m.dir)
	return err
}

// removeTemp removes what is not needed to go on.
func (m *mutationRun) removeTemp() {
	if m.ids != nil {
		os.RemoveAll(m.dir)
	}
}

// prepareSample makes the trees and draws the sample.
func (m *mutationRun) prepareSample(reasons map[string]string) (list []*typedPackage, sample, race []*mutant,
	err error) {
	clean := checkedOutTree(filepath.Join(m.dir, "clean"))
	m.plain, m.raced = checkedOutTree(filepath.Join(m.dir, "plain")), checkedOutTree(filepath.Join(m.dir, "race"))
	for _, t := range []checkedOutTree{clean, m.plain, m.raced} {
		if err := os.RemoveAll(string(t)); err != nil {
			return nil, nil, nil, err
		}
		if m.ids != nil {
			_, err = checkoutWork(string(t))
		} else {
			_, err = newCheckout(string(t))
		}
		if err == nil {
			err = t.joinPion()
		}
		if err != nil {
			return nil, nil, nil, err
		}
	}
	if list, err = clean.loadPackages(m.scope.packages); err != nil {
		return nil, nil, nil, err
	}
	plain, raced := allMutants(m.scope, list)
	if err := checkOutdated(reasons, plain, raced); err != nil {
		return nil, nil, nil, err
	}
	if m.ids != nil {
		return list, mutantsNamed(plain, m.ids), mutantsNamed(raced, m.ids), nil
	}
	from := *m.scope
	if m.packages != nil {
		other := func(pkg string) bool { return !m.packages.MatchString(pkg) }
		from.packages = slices.DeleteFunc(slices.Clone(from.packages), other)
	}
	if m.of > 0 {
		from.packages = sampleBy(from.packages, m.seed, m.of, func(pkg string) string { return pkg })
	}
	if sample, err = drawSample(&from, list, plain, m.sample, m.seed); err != nil {
		return nil, nil, nil, err
	}
	if race, err = drawSample(&from, list, raced, raceShare(m.sample), m.seed); err != nil {
		return nil, nil, nil, err
	}
	return list, sample, race, nil
}

// raceShare is how many mutants of concurrency come with a sample. A small one has none: to compile
// and measure the tests under the race detector takes longer than all the rest of it.
func raceShare(sample int) int {
	if sample < 100 {
		return 0
	}
	return sample / 20
}

// mutantsNamed returns the mutants with these names.
func mutantsNamed(all map[string][]*mutant, ids []string) (list []*mutant) {
	for _, pkg := range slices.Sorted(maps.Keys(all)) {
		for _, x := range all[pkg] {
			if slices.Contains(ids, x.id) {
				list = append(list, x)
			}
		}
	}
	return list
}

// testOrder returns for each package the packages with tests that can notice what is wrong with it:
// its own first, then those that build on the fewest packages.
func (t checkedOutTree) testOrder(packages []string) (map[string][]string, error) {
	c := t.goCommand(append([]string{"list", "-test", "-json=ImportPath,Dir,Deps"}, modules...)...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -test: %w", err)
	}
	type binary struct {
		ImportPath, Dir string
		Deps            []string
	}
	var all []binary
	paths := make(map[string]string) // of packages, by what they are imported as
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var b binary
		if err := d.Decode(&b); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		path, err := filepath.Rel(string(t), b.Dir)
		if err != nil {
			return nil, err
		}
		if _, ok := strings.CutSuffix(b.ImportPath, ".test"); ok {
			b.ImportPath = path
			all = append(all, b)
		} else if !strings.Contains(b.ImportPath, " ") { // not one that is compiled again for a test
			paths[b.ImportPath] = path
		}
	}
	for i := range all {
		var deps []string
		for _, d := range all[i].Deps {
			d, _, _ = strings.Cut(d, " ")
			if path := paths[d]; path != "" {
				deps = append(deps, path)
			}
		}
		all[i].Deps = deps
	}
	slices.SortStableFunc(all, func(a, b binary) int { return cmp.Compare(len(a.Deps), len(b.Deps)) })
	order := make(map[string][]string)
	for _, p := range packages {
		for _, b := range all {
			switch {
			case b.ImportPath == p:
				order[p] = slices.Insert(order[p], 0, p)
			case slices.Contains(b.Deps, p):
				order[p] = append(order[p], b.ImportPath)
			}
		}
	}
	return order, nil
}

// suiteOf returns the tests of a package, compiled and measured.
func (m *mutationRun) suiteOf(pkg string, race bool) (*suite, error) {
	name := strings.ReplaceAll(pkg, "/", "-")
	t := m.plain
	if race {
		name, t = name+"-race", m.raced
	}
	m.mu.Lock()
	s := m.suites[name]
	if s == nil {
		s = &suite{pkg: pkg, race: race, bin: filepath.Join(m.dir, name+".test"), dir: filepath.Join(string(t), pkg)}
		m.suites[name] = s
	}
	m.mu.Unlock()
	s.ready.Do(func() { s.err = m.compileSuite(s, t, name) })
	return s, s.err
}

func (m *mutationRun) compileSuite(s *suite, t checkedOutTree, name string) (err error) {
	if s.net, err = t.usesNetwork("./" + s.pkg); err != nil {
		return err
	}
	if s.pkg == "internal/test/simulation" {
		s.args = []string{fmt.Sprint("-seeds=", m.seeds)}
	}
	if _, err := os.Stat(s.bin); err != nil {
		build := t.buildTests
		if s.race {
			build = t.buildRace
		}
		if err := build("./"+s.pkg, s.bin); err != nil {
			return err
		}
	}
	list, found := m.state.knownTests(name)
	if s.tests = list; found {
		for _, x := range list {
			x.suite = s
		}
		return nil
	}
	if err := s.measureBaseline(); err != nil {
		return err
	}
	for _, x := range s.tests {
		if x.Shaky {
			fmt.Printf("shaky            %s %s fails without a fault and counts for nothing\n", s.pkg, x.Name)
		}
	}
	return m.state.keepTests(name, s.tests)
}

// tryMutant lets the tests run under a mutant.
func (m *mutationRun) tryMutant(x *mutant) (f mutantResult, err error) {
	start := time.Now()
	defer func() { f.Seconds = time.Since(start).Seconds() }()
	f = mutantResult{ID: x.id, Outcome: fateUncovered}
	if by, how, err := m.askFormer(x); how != "" || err != nil {
		f.Outcome, f.By, f.How = fateCaught, by, how
		return f, err
	}
	var others time.Duration
	hangs := 0
	for _, slow := range []bool{false, true} {
		for i, pkg := range m.order[x.pkg] {
			s, err := m.suiteOf(pkg, x.race)
			if err != nil {
				return f, err
			}
			for _, group := range groupTests(s.testsReaching(x.site, slow), slow) {
				if f.Outcome == fateUncovered {
					f.Outcome = fateSurvived
				}
				if i > 0 {
					if m.budget > 0 && others+totalTime(group) > m.budget {
						continue
					}
					others += totalTime(group)
				}
				for len(group) > 0 {
					t, how := m.runUntilCaught(s, x, group)
					if how == "" {
						break
					}
					if t == nil { // all of them together
						t = &test{Name: "TestMain"}
					}
					if how != "hangs" {
						f.Outcome, f.By, f.How = fateCaught, pkg+" "+t.Name, how
						return f, nil
					}
					f.Outcome, f.By, f.How = fateLate, pkg+" "+t.Name, how
					if hangs++; hangs == 3 {
						return f, nil
					}
					group = slices.DeleteFunc(group, func(u *test) bool { return u == t })
				}
			}
		}
	}
	return f, nil
}

// askFormer lets the one test run that caught the mutant in another tree, and says how it failed.
func (m *mutationRun) askFormer(x *mutant) (by, how string, err error) {
	pkg, name, _ := strings.Cut(m.state.former[x.id], " ")
	if !slices.Contains(m.order[x.pkg], pkg) {
		return "", "", nil
	}
	s, err := m.suiteOf(pkg, x.race)
	if err != nil {
		return "", "", err
	}
	for _, t := range s.tests {
		if t.Name == name && t.reachesSite(x.site) {
			if _, how = m.runUntilCaught(s, x, []*test{t}); how != "hangs" {
				return pkg + " " + name, how, nil
			}
		}
	}
	return "", "", nil
}

func groupTests(list []*test, each bool) (all [][]*test) {
	if len(list) == 0 {
		return nil
	}
	if !each {
		return [][]*test{list}
	}
	for _, t := range list {
		all = append(all, []*test{t})
	}
	return all
}

func totalTime(list []*test) (d time.Duration) {
	for _, t := range list {
		d += t.Spent.Processor
	}
	return d
}

// runUntilCaught runs tests under a mutant until one fails that counts. It returns that one, none
// where the process fails behind them all, and how it failed.
func (m *mutationRun) runUntilCaught(s *suite, x *mutant, group []*test) (*test, string) {
	group = slices.Clone(group)
	for len(group) > 0 {
		v, _ := s.processOf(group, x.number, 1, "")
		if !v.failed {
			return nil, ""
		}
		how := "by an assertion"
		switch {
		case strings.HasSuffix(v.what, "(hangs)"):
			how = "hangs"
		case strings.HasSuffix(v.what, "(crash)"):
			how = "crashes"
		}
		i := slices.IndexFunc(group, func(t *test) bool { return t.Name == v.test })
		if i < 0 || how == "crashes" && strings.Contains(v.output, "--- PASS: "+v.test+" ") {
			clean, _ := s.processOf(group, 0, 1, "")
			again, _ := s.processOf(group, x.number, 1, "")
			if !clean.failed && again.failed {
				return nil, how
			}
			return nil, ""
		}
		t := group[i]
		if s.isSteady(t, m.steady) {
			clean, _ := s.processOf([]*test{t}, 0, 1, "")
			tries := 1
			if s.race {
				tries = 3 // the detector sees what happens, not what might
			}
			for range tries {
				if again, _ := s.processOf([]*test{t}, x.number, 1, ""); again.failed && !clean.failed {
					return t, how
				}
			}
		}
		group = slices.Delete(group, i, i+1)
	}
	return nil, ""
}

// noteSurvivor writes the diff of a survivor where other people look for it.
func (m *mutationRun) noteSurvivor(x *mutant, f mutantResult) error {
	if m.survivors == "" || f.Outcome == fateCaught {
		return nil
	}
	name := filepath.Join(m.survivors, strings.ReplaceAll(x.pkg, "/", "-")+".txt")
	w, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s (%s) %s\n%s\n", x, f.Outcome, f.By, x.diffText())
	return errors.Join(err, w.Close())
}
