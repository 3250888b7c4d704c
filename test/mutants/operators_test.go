package main

import (
	"go/format"
	"go/importer"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// source has something for each operator.
const source = `package p

import (
	"errors"
	"sync"
	"sync/atomic"
)

type TSN uint32

func (t TSN) Less(u TSN) bool   { return t < u }
func (t TSN) LessEq(u TSN) bool { return t <= u }

type kind int

const (
	open kind = iota
	closed
)

type path struct {
	t1, t3 int
	k      kind
	mu     sync.Mutex
	n      atomic.Int32
}

func (p *path) lookup(a, b TSN, on bool) (int, error) {
	if a.Less(b) && on {
		p.t1 += 7
		return 0, errors.New("early")
	}
	p.pair(p.t1, p.t3)
	return p.t3, nil
}

func (p *path) pair(x, y int) {
	for !p.done() {
		continue
	}
	p.k = open
	z := x + cap(make([]int, 0, 512))
	p.t1 = z
}

func (p *path) done() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n.Load() == 0
}

func (p *path) String() string { return "path" + "!" }
`

// aPackage is a package of one file.
func aPackage(t *testing.T, text string) *typedPackage {
	t.Helper()
	p := &typedPackage{path: "p", names: []string{"p/p.go"}, texts: []string{text}, fset: token.NewFileSet()}
	p.from = importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) {
		file, err := exec.Command("go", "list", "-export", "-f", "{{.Export}}", path).Output()
		if err != nil {
			return nil, err
		}
		return os.Open(strings.TrimSpace(string(file)))
	})
	must.OK(t, p.checkTypes(p.texts, nil))
	return p
}

func theScope(t *testing.T) *scope {
	t.Helper()
	return must.Get(parseScope(scopeText))(t)
}

func TestEachOperatorMakesItsFaults(t *testing.T) {
	list := aPackage(t, source).mutantsOf(theScope(t), 0)
	for _, row := range []struct{ operator, old, new string }{
		{"negate", "if a.Less(b) && on {", "if !(a.Less(b) && on) {"},
		{"negate", "for !p.done() {", "for p.done() {"},
		{"compare", "func (t TSN) Less(u TSN) bool   { return t < u }", "func (t TSN) Less(u TSN) bool   { return t <= u }"},
		{"compare", "return p.n.Load() == 0", "return p.n.Load() != 0"},
		{"serial", "if a.Less(b) && on {", "if a.LessEq(b) && on {"},
		{"serial", "if a.Less(b) && on {", "if b.Less(a) && on {"},
		{"clause", "if a.Less(b) && on {", "if a.Less(b) {"},
		{"clause", "if a.Less(b) && on {", "if on {"},
		{"logic", "if a.Less(b) && on {", "if a.Less(b) || on {"},
		{"drop", "p.k = open", ""},
		{"drop", "p.pair(p.t1, p.t3)", ""},
		{"return", `return 0, errors.New("early")`, ""},
		{"return", "continue", ""},
		{"error", `return 0, errors.New("early")`, "return 0, nil"},
		{"constant", "p.t1 += 7", "p.t1 += (7+1)"},
		{"constant", "p.t1 += 7", "p.t1 += 0"},
		{"arith", "p.t1 += 7", "p.t1 -= 7"},
		{"swap", "p.pair(p.t1, p.t3)", "p.pair(p.t3, p.t1)"},
		{"wrong", "return p.t3, nil", "return p.t1, nil"},
		{"wrong", "p.k = open", "p.k = closed"},
		{"wrong", "if a.Less(b) && on {", "if a.Less(a) && on {"},
		{"lock", "p.mu.Lock()\n\tdefer p.mu.Unlock()", ""},
		{"early", "defer p.mu.Unlock()", "p.mu.Unlock()"},
		{"plain", "return p.n.Load() == 0", "return wovenPlainLoad[int32](&p.n) == 0"},
	} {
		check.That(t, slices.ContainsFunc(list, func(m *mutant) bool {
			return m.operator == row.operator && strings.TrimSpace(m.old) == row.old &&
				strings.TrimSpace(m.new) == row.new
		}), "%s does not make %q of %q", row.operator, row.new, row.old)
	}
	i := slices.IndexFunc(list, func(m *mutant) bool {
		return m.function == "path.String" || strings.Contains(m.by, "512+1")
	})
	check.That(t, i < 0, "number %d is none of ours", i)
}

// A mutant is known by what it changes: who adds a line above it finds it again.
func TestNamesOutliveMovedLines(t *testing.T) {
	names := func(text string) (ids []string) {
		plain, race := allMutants(theScope(t), []*typedPackage{aPackage(t, text)})
		for _, m := range append(plain["p"], race["p"]...) {
			ids = append(ids, m.id)
		}
		return ids
	}
	was := names(source)
	check.Slice(t, "names after a line was put in", was,
		names(strings.Replace(source, "type TSN", "// TSN.\n\ntype TSN", 1)))
	slices.Sort(was)
	check.Equal(t, "names without a second of the same", len(slices.Compact(was)), len(names(source)))
}

// The sample that is woven in compiles, and what does not compile is passed over.
func TestWovenMutantsCompileAndTellWhatIsReached(t *testing.T) {
	p := aPackage(t, source)
	plain, race := allMutants(theScope(t), []*typedPackage{p})
	if good, err := p.compilable(slices.Clone(plain["p"])); err != nil || len(good) == 0 ||
		len(good) == len(plain["p"]) {
		t.Fatalf("%d of %d compile, %v", len(good), len(plain["p"]), err) // z must be used
	} else {
		plain["p"] = good
	}
	all := append(plain["p"], race["p"]...)
	for i, m := range all {
		m.number = i + 1
	}
	texts := must.Get(p.graftMutants(all))(t)
	wrong := make(map[string]bool)
	err := p.checkTypes(texts, wrong)
	must.That(t, err == nil && len(wrong) == 0, "%v, %v", err, wrong)
	for _, text := range texts {
		check.Do(format.Source([]byte(text)))(t)
	}
	probes := strings.Count(texts[0], "wovenHit(")
	check.That(t, probes >= 10 && probes < len(all), "%d probes for %d mutants", probes, len(all))
}

func TestSharesFollowTheSizeOfPackages(t *testing.T) {
	s := &scope{packages: []string{"big", "small", "tool"}, protocol: map[string]bool{"big": true, "small": true}}
	has := map[string]int{"big": 3000, "small": 20, "tool": 1000}
	got := sampleShares(s, has, 1000)
	check.That(t, got["small"] == 20 && got["big"] == 50+695 && got["tool"] == 235, "%v", got)
	got = sampleShares(s, has, 50)
	check.That(t, got["big"]+got["small"]+got["tool"] == 50 && got["small"] >= 2, "%v", got)
	got = sampleShares(s, map[string]int{"big": 3, "small": 1}, 1000)
	check.That(t, got["big"] == 3 && got["small"] == 1, "%v", got)
}

// One seed draws one sample, another seed another; operators take turns.
func TestOneSeedDrawsOneSample(t *testing.T) {
	draw := func(seed string) (s string) {
		plain, _ := allMutants(theScope(t), []*typedPackage{aPackage(t, source)})
		operators := make(map[string]bool)
		for i, m := range drawOrder(plain["p"], seed) {
			s += m.id + " "
			operators[m.operator] = true
			check.That(t, i >= 8 || len(operators) > i, "%s has two turns among the first", m.operator)
		}
		return s
	}
	one, again, other := draw("a"), draw("a"), draw("b")
	check.That(t, one == again && one != other, "the seed does not decide")
}

func TestEquivalents(t *testing.T) {
	here := must.Get(parseEquivalent(equivalentText))(t)
	for key := range here {
		check.OK(t, checkStands(key, "../.."))
	}
	const line = "\n-	count := make(map[string]int)\n"
	check.OK(t, checkStands("test/mutants/fault_test.go TestFaultsApply"+line, "../.."))
	for _, key := range []string{"test/mutants/fault_test.go TestParseRefuses" + line,
		"test/mutants/fault.go load\n-\tno such line\n"} {
		check.That(t, checkStands(key, "../..") != nil, "lines that are not there stand: %s", key)
	}
	plain, race := allMutants(theScope(t), []*typedPackage{aPackage(t, source)})
	entry := "in p/p.go path.pair\n-\tp.k = open\n+\tp.k = closed\nbecause nobody looks\n"
	var reasons map[string]string
	reasons, err := parseEquivalent("# why\n\n" + entry)
	must.That(t, err == nil && checkOutdated(reasons, plain, race) == nil, "%v, %v", err,
		checkOutdated(reasons, plain, race))
	reasons, err = parseEquivalent(strings.Replace(entry, "open", "ajar", 1))
	check.That(t, err == nil && checkOutdated(reasons, plain, race) != nil,
		"an entry of lines that are not there is taken")
	for _, text := range []string{"because\n", entry + entry, "in p/p.go f\n-x\n", "in p/p.go f\n" + entry, "-x\n"} {
		_, err := parseEquivalent(text)
		check.That(t, err != nil, "%q is taken", text)
	}
}

func TestScoreLeavesEquivalentsOut(t *testing.T) {
	m := &mutationRun{state: &state{fates: make(map[string]mutantResult)}}
	m.seed = "0123abcd"
	var list []*mutant
	for i, outcome := range []string{fateCaught, fateCaught, fateLate, fateSurvived, fateUncovered, ""} {
		x := &mutant{id: string(rune('a' + i)), pkg: "p", file: "p/p.go", function: string(rune('f' + i)), old: "\tx()"}
		m.state.fates[x.id] = mutantResult{Outcome: outcome}
		list = append(list, x)
	}
	s := newScore(m, list, nil, map[string]string{list[5].mutantKey(): "nobody looks"})
	got, err := s.inDocs("a\n" + docsBegin + "old\n" + docsEnd + "b\n")
	check.That(t, err == nil && strings.Contains(got, "| p | 6 | 2 | 1 | 1 | 1 | 1 | 60.0 % |\n") &&
		strings.Contains(got, "d p/p.go:0 i  (survived)\n-\tx()\n") &&
		!strings.Contains(got, "old") && strings.HasSuffix(got, docsEnd+"b\n"), "%v %v", got, err)
	check.That(t, !s.isGood(61) && s.isGood(60), "a score of 60 %%")
	_, err = s.inDocs("no marks\n")
	check.That(t, err != nil, "no marks are taken")
}

// Runs end at their limits, and that is told.
func TestRunsEndAtTheirLimits(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs a shell")
	}
	for _, row := range []struct {
		name, script string
		l            limits
	}{
		{"processor time", "while :; do :; done", limits{time.Second, time.Minute, time.Minute, addresses}},
		{"wall clock", "while :; do echo; sleep 0.05; done", limits{time.Minute, 300 * time.Millisecond, time.Minute, addresses}},
		{"silence", "exec sleep 600", limits{time.Minute, time.Minute, 200 * time.Millisecond, addresses}},
	} {
		binary := filepath.Join(t.TempDir(), "test")
		must.OK(t, os.WriteFile(binary, []byte("#!"+sh+"\n"+row.script+"\n"), 0o755))
		v, _ := (process{binary: binary, dir: t.TempDir(), limits: row.l}).runToLimit()
		check.That(t, v.failed && strings.HasSuffix(v.what, "(hangs)"), "%s: %+v", row.name, v)
	}
}

// What was found out before an interruption is not found out again, and a line cut off is no harm.
// Of another tree the test that caught a mutant is known, not that it did.
func TestStateGoesOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tree")
	s := must.Get(openState(dir))(t)
	for _, f := range []mutantResult{{ID: "a", Outcome: fateCaught, By: "p TestA"}, {ID: "b", Outcome: fateLate}} {
		must.OK(t, s.addResult(f))
	}
	b, _ := os.ReadFile(filepath.Join(dir, "fates.jsonl"))
	must.OK(t, os.WriteFile(filepath.Join(dir, "fates.jsonl"), b[:len(b)-4], 0o644))
	s, err := openState(dir)
	check.That(t, err == nil && s.fates["a"].Outcome == fateCaught && s.fates["b"].Outcome == "", "%v, %v", s.fates,
		err)
	s = must.Get(openState(dir + "2"))(t)
	check.That(t, s.fates["a"].Outcome == "" && s.former["a"] == "p TestA" && s.former["b"] == "",
		"of another tree: %v, %v", s.fates, s.former)
}
