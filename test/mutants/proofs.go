package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rddp-go/rddp/test/conformance"
)

// A citation says that a test holds a row; a proof shows it. The fault violates the row and nothing
// beside. It changes one statement at most, and handshakes and plain transfers work under it. The
// test that cites the row fails by what it asserts: not by a panic, not by its time, not by a
// compiler. The test need not be the only one that notices.
type proof struct {
	row  string // of conformance
	pkg  string // as in sctp/assoc
	test string // that cites the row
}

// maxProofs is how many rows one fault may prove: one that breaks more is not narrow.
const maxProofs = 2

// works lists the tests that pass under each fault which proves something: set-up and a plain
// transfer, of short messages by SCTP and by Send and RDMA Write, and over the real links.
var works = []proof{
	{pkg: "rdma", test: "TestPlainSCTPBesideRDMA"},
	{pkg: "rawio/udp", test: "TestPacketsArriveUnchangedBothWays"},
	{pkg: "rawio/raw", test: "TestPacketsArriveUnchangedBothWays"},
}

// proofTime is the longest that a test says nothing before it counts as one that hangs.
const proofTime = 10 * time.Second

// claims is what the faults may say that they prove.
type claims struct {
	root  string
	rows  map[string]bool
	cited map[string][]proof
}

// readClaims reads the rows and which tests cite them.
func readClaims(root string) (*claims, error) {
	files, err := conformance.Load(filepath.Join(root, "test", "conformance"))
	if err != nil {
		return nil, err
	}
	cites, err := conformance.Citations(root)
	if err != nil {
		return nil, err
	}
	c := &claims{root: root, rows: make(map[string]bool), cited: citedBy(root, cites)}
	for _, f := range files {
		for _, row := range f.Rows {
			c.rows[row.ID] = true
		}
	}
	return c, nil
}

// checkProofs returns what is wrong with what the faults say that they prove, without running
// anything.
func (c *claims) checkProofs(list []*fault) error {
	var errs []error
	for _, f := range list {
		wrong := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("fault %s: %s", f.name, fmt.Sprintf(format, args...)))
		}
		if len(f.proves) == 0 {
			continue
		}
		if len(f.proves) > maxProofs {
			wrong("proves %d rows: more than %d is not one thing", len(f.proves), maxProofs)
		}
		for _, p := range f.proves {
			switch {
			case !c.rows[p.row]:
				wrong("proves %s, which is no row", p.row)
			case p.test != "" && !slices.Contains(c.cited[p.row], p):
				wrong("%s of %s does not cite %s", p.test, p.pkg, p.row)
			}
		}
		text, err := os.ReadFile(filepath.Join(c.root, f.file))
		if err != nil {
			wrong("%v", err)
			continue
		}
		if is, err := f.applyTo(string(text)); err != nil {
			continue // TestFaultsApply says so
		} else if n, err := countStatements(string(text), is); err != nil || n > 1 {
			wrong("changes %d statements: a proof changes one (%v)", n, err)
		} else if w, err := newWeaver(string(text)); err != nil || errors.Is(w.weaveFault(f), errNotWoven) {
			wrong("is not within one function (%v)", err)
		}
	}
	return errors.Join(errs...)
}

// citedBy has the tests that cite each row.
func citedBy(root string, cites []conformance.Citation) map[string][]proof {
	all := make(map[string][]proof)
	for _, c := range cites {
		dir, err := filepath.Rel(root, filepath.Dir(c.Pos.Filename))
		p := proof{c.ID, filepath.ToSlash(dir), c.Test}
		if err == nil && c.Test != "" && !slices.Contains(all[c.ID], p) {
			all[c.ID] = append(all[c.ID], p)
		}
	}
	return all
}

// prover runs proofs.
type prover struct {
	runner
	draft    bool
	cited    map[string][]proof
	above    map[string][]string // packages in the tests of each of works
	clean    map[proof]bool      // tests that pass without a fault
	cleaning sync.Mutex
}

// proving says which proofs are run.
type proving struct {
	match  string // names of faults
	draft  string // a file of faults instead of ours
	sample int    // so many of them (0: all)
	seed   string // of the sample (none: the tree's id)
	jobs   int
}

// drawProofs draws n of the faults, and leaves them in their order.
func drawProofs(list []*fault, seed string, n int) []*fault {
	drawn := sampleBy(list, seed, n, func(f *fault) string { return f.name })
	return slices.DeleteFunc(slices.Clone(list), func(f *fault) bool { return !slices.Contains(drawn, f) })
}

// runProofs runs the faults that prove something, or those of a draft.
func runProofs(o proving) (ok bool, err error) {
	start := time.Now()
	re, err := regexp.Compile(o.match)
	if err != nil {
		return false, err
	}
	list, err := loadFaults()
	if o.draft != "" {
		var text []byte
		if text, err = os.ReadFile(o.draft); err == nil {
			list, err = parseFaults(string(text))
		}
		for i, f := range list {
			f.number = i + 1
		}
	}
	if err != nil {
		return false, err
	}
	list = slices.DeleteFunc(list, func(f *fault) bool { return len(f.proves) == 0 || !re.MatchString(f.name) })
	c, err := readClaims(".")
	if err != nil {
		return false, err
	}
	list = slices.DeleteFunc(list, func(f *fault) bool {
		e := c.checkProofs([]*fault{f})
		if err = errors.Join(err, e); e != nil {
			fmt.Println("NO FAULT", e)
		}
		return e != nil
	})
	if err != nil && o.draft == "" {
		return false, errors.New("the faults do not prove what they say")
	}
	if o.sample > 0 {
		id, err := treeID()
		if err != nil {
			return false, err
		}
		o.seed = cmp.Or(o.seed, id)
		list = drawProofs(list, o.seed, o.sample)
		fmt.Printf("mutants: %d of the faults that prove a row, seed %s\n", len(list), o.seed)
	}
	dir, err := os.MkdirTemp("", "proofs")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	p := prover{runner: runner{options: options{jobs: o.jobs}, dir: dir}, draft: o.draft != "",
		cited: c.cited, clean: make(map[proof]bool)}
	for again := true; again; {
		if again, err = p.weaveAll(&list); err != nil {
			return false, err
		}
	}
	if err := p.compileTests(list); err != nil {
		return false, err
	}
	rows := make(map[string]bool)
	bad := 0
	forEachParallel(o.jobs, list, func(f *fault) {
		begun := time.Now()
		results := p.tryFault(f)
		p.printing.Lock()
		defer p.printing.Unlock()
		for i, what := range results {
			r := f.proves[i]
			if what == "" {
				rows[r.row] = true
				if p.draft {
					fmt.Printf("ok\t%s\t%s\t%s\t%s\n", f.name, r.row, r.pkg, r.test)
				}
				continue
			}
			bad++
			fmt.Printf("NO PROOF %5.1fs  %s of %s by %s: %s\n", time.Since(begun).Seconds(), f.name, r.row, r.test,
				what)
		}
	})
	fmt.Printf("mutants: %d faults prove %d rows, %d proofs fail, in %v, %v of processor time\n", len(list),
		len(rows), bad,
		time.Since(start).Round(time.Second), time.Duration(processor.Load()).Round(time.Second))
	return bad == 0, nil
}

// weaveAll weaves the faults into one copy of the tree as it stands. It compiles those of a draft
// and leaves those out that do not compile; then it is to be called again. TestFaultsCompile holds
// that ours do.
func (p *prover) weaveAll(list *[]*fault) (again bool, err error) {
	if p.woven != "" {
		if err := os.RemoveAll(string(p.woven)); err != nil {
			return false, err
		}
	}
	if p.woven, err = checkoutWork(p.dir + "/woven"); err != nil {
		return false, err
	}
	apart, err := p.woven.weaveFaults(*list)
	if err != nil {
		return false, err
	}
	for _, f := range apart {
		err = errors.Join(err, fmt.Errorf("fault %s proves a row, but is not within one function", f.name))
	}
	if err != nil && !p.draft {
		return false, err
	}
	*list = slices.DeleteFunc(*list, func(f *fault) bool { return slices.Contains(apart, f) })
	if err != nil {
		fmt.Println("NO FAULT", err)
	}
	if !p.draft {
		return false, nil
	}
	out, err := p.woven.goCommand("build", "-gcflags=-e", "./...", "./cmd/...", "./metrics/...").CombinedOutput()
	if err == nil {
		return false, nil
	}
	wrong := make(map[int]string)
	for _, m := range compileError.FindAllStringSubmatch(string(out), -1) {
		if n := p.woven.faultAt(m[1], m[2]); n > 0 {
			wrong[n] = m[3]
		}
	}
	if len(wrong) == 0 {
		return false, fmt.Errorf("the faults do not compile:\n%s", out)
	}
	*list = slices.DeleteFunc(*list, func(f *fault) bool {
		if wrong[f.number] != "" {
			fmt.Printf("NO FAULT %s: %s\n", f.name, wrong[f.number])
		}
		return wrong[f.number] != ""
	})
	return true, nil
}

var (
	compileError = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: (.*)$`)
	wovenBody    = regexp.MustCompile(`_fault(\d+)(\(|\[)`)
)

// faultAt returns the number of the fault whose body is at a line of a file, or 0.
func (t checkedOutTree) faultAt(file, line string) (number int) {
	text, err := os.ReadFile(filepath.Join(string(t), file))
	n, bad := strconv.Atoi(line)
	if err != nil || bad != nil {
		return 0
	}
	for i, l := range strings.Split(string(text), "\n") {
		if i >= n {
			break
		}
		if strings.HasPrefix(l, "func ") {
			number = 0
			if m := wovenBody.FindStringSubmatch(l); m != nil && !strings.Contains(l, "if "+switchVar) {
				number, _ = strconv.Atoi(m[1])
			}
		}
	}
	return number
}

// compileTests compiles the tests.
func (p *prover) compileTests(list []*fault) error {
	p.tests, p.above = make(map[string]*tests), make(map[string][]string)
	var all []*tests
	add := func(pkg string) {
		if p.tests[pkg] == nil {
			p.tests[pkg] = &tests{pkg: "./" + pkg, binary: binaryName(p.dir, pkg), quiet: proofTime,
				dir: filepath.Join(string(p.woven), pkg)}
			all = append(all, p.tests[pkg])
		}
	}
	for _, w := range works {
		add(w.pkg)
		deps, err := p.woven.dependenciesOf("./" + w.pkg)
		if err != nil {
			return err
		}
		p.above[w.pkg] = deps
	}
	for _, f := range list {
		for _, r := range f.proves {
			for _, c := range p.candidateTests(r) {
				add(c.pkg)
			}
		}
	}
	var errs []error
	forEachParallel(p.jobs, all, func(t *tests) {
		if err := p.woven.buildTests(t.pkg, t.binary); err != nil {
			p.printing.Lock()
			defer p.printing.Unlock()
			errs = append(errs, err)
		}
	})
	return errors.Join(errs...)
}

// candidateTests are the tests that may notice: the one named, or of a draft all that cite the row.
func (p *prover) candidateTests(r proof) []proof {
	if r.test != "" {
		return []proof{r}
	}
	return p.cited[r.row]
}

// tryFault runs a fault. It returns for each row that it proves nothing, or why that is no proof.
func (p *prover) tryFault(f *fault) []string {
	results := make([]string, len(f.proves))
	broken := ""
	for _, w := range works {
		if slices.Contains(p.above[w.pkg], module+filepath.Dir(f.file)) {
			if v := p.tests[w.pkg].runTests(f.number, w.test, nil); v.failed {
				broken = fmt.Sprintf("breaks %s of %s, which it should not", w.test, w.pkg)
				break
			}
		}
	}
	for i := range f.proves {
		if results[i] = broken; broken == "" {
			results[i] = p.tryRow(f, &f.proves[i])
		}
	}
	return results
}

// tryRow tries the tests for one row.
func (p *prover) tryRow(f *fault, r *proof) (why string) {
	all := p.candidateTests(*r)
	if len(all) == 0 {
		return "no test cites it"
	}
	for _, c := range all {
		switch v := p.tests[c.pkg].runTests(f.number, c.test, nil); {
		case !v.failed:
			why += c.test + " does not notice; "
		case v.test != c.test || v.what == c.test+" (hangs)" || v.what == c.test+" (crash)" ||
			dies.MatchString(v.output):
			why += "not by an assertion: " + v.what + "; "
		case !p.passesUnchanged(c):
			why += c.test + " fails without the fault too; "
		default:
			*r = c
			return ""
		}
	}
	if p.draft {
		why += p.otherNoticers(f, all)
	}
	return strings.TrimSuffix(why, "; ")
}

// otherNoticers names the tests beside those that cite the row which notice the fault: that is
// where a citation may belong.
func (p *prover) otherNoticers(f *fault, all []proof) string {
	seen := make(map[string]bool)
	var names []string
	for _, c := range all {
		if seen[c.pkg] {
			continue
		}
		seen[c.pkg] = true
		t := *p.tests[c.pkg]
		t.args = []string{"-test.failfast=false", "-test.short"}
		v := t.runTests(f.number, "", nil)
		for _, m := range firstFailure.FindAllStringSubmatch(v.output, -1) {
			names = append(names, m[1])
		}
	}
	if names == nil {
		return "nor does any other test"
	}
	return "others do: " + strings.Join(names, " ")
}

// dies matches what a test prints that does not end by what it asserts.
var dies = regexp.MustCompile(`(?m)^(panic: |fatal error: |\s*panic: |runtime error|SIG[A-Z]+: )`)

// passesUnchanged reports whether a test passes without a fault.
func (p *prover) passesUnchanged(c proof) bool {
	p.cleaning.Lock()
	defer p.cleaning.Unlock()
	if !p.clean[c] {
		p.clean[c] = !p.tests[c.pkg].runTests(0, c.test, nil).failed
	}
	return p.clean[c]
}

const module = "github.com/rddp-go/rddp/"

// dependenciesOf lists the packages that the tests of a package are made of.
func (t checkedOutTree) dependenciesOf(pkg string) ([]string, error) {
	out, err := t.goCommand("list", "-test", "-deps", pkg).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pkg, err)
	}
	return strings.Fields(string(out)), nil
}

// checkoutWork makes a copy of the tree as it stands in the work tree: who writes a test sees at
// once what it proves.
func checkoutWork(dir string) (checkedOutTree, error) {
	t, err := newCheckout(dir)
	if err != nil {
		return t, err
	}
	root, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return t, fmt.Errorf("git rev-parse: %w", err)
	}
	top := strings.TrimSpace(string(root))
	list := exec.Command("git", "ls-files", "-z", "--modified", "--others", "--exclude-standard")
	list.Dir = top
	names, err := list.Output()
	if err != nil {
		return t, fmt.Errorf("git ls-files: %w", err)
	}
	for name := range bytes.SplitSeq(bytes.TrimSuffix(names, []byte{0}), []byte{0}) {
		if len(name) == 0 {
			continue
		}
		to := filepath.Join(dir, string(name))
		text, err := os.ReadFile(filepath.Join(top, string(name)))
		if errors.Is(err, os.ErrNotExist) {
			if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
				return t, err
			}
			continue
		}
		if err != nil {
			return t, err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return t, err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return t, err
		}
	}
	return t, nil
}
