package main

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

const root = "../.."

// A command that runs no test passes, and holds nothing.
func TestCommandsFindTheirTests(t *testing.T) {
	tree := must.Get(readTree(root))(t)
	list := tree.testCommands()
	for _, c := range list {
		for alternative := range strings.SplitSeq(c.expr, "|") {
			names, err := tree.findTests(c, alternative)
			check.That(t, err == nil && len(names) > 0, "%s: %s %s finds no test in %v (%v): %s", c.file, c.flag,
				alternative, c.pkgs, err, c.words)
		}
	}
	for _, file := range []string{"Makefile", "README.md", "CONTRIBUTING.md", "docs/dev/performance.md"} {
		check.That(t, slices.ContainsFunc(list, func(c command) bool { return c.file == file }),
			"no command found in %s", file)
	}
}

// The inputs of a corpus whose target has another name are never tried again.
func TestCorporaHaveTheirTargets(t *testing.T) {
	tree, n := must.Get(readTree(root))(t), 0
	for _, f := range tree.files {
		if dir, target, ok := corpusOf(f); ok {
			n++
			check.That(t, slices.Contains(tree.funcs[dir], target), "%s: there is no %s in %s", f, target, dir)
		}
	}
	check.That(t, n > 0, "%d inputs of fuzz corpora", n)
}

// What the documents say that a test holds, a test of that name in that file does.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	citation := regexp.MustCompile("`([\\w/]+_test\\.go):(\\w+)`")
	tree, n := must.Get(readTree(root))(t), 0
	for _, doc := range tree.files {
		if path.Ext(doc) != ".md" {
			continue
		}
		for _, m := range citation.FindAllStringSubmatch(tree.readText(doc), -1) {
			n++
			there := regexp.MustCompile(`(?m)^func ` + m[2] + `\(`).MatchString(tree.readText(m[1]))
			check.That(t, there, "%s names %s:%s, which is not there", doc, m[1], m[2])
		}
	}
	check.That(t, n >= 100, "%d tests named: docs/dev/hostile.md and docs/dev/reliability.md have more", n)
}

// What the commands of a document or script are taken for.
func TestCommandsAreUnderstood(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		must.OK(t, os.MkdirAll(filepath.Join(dir, path.Dir(name)), 0o755))
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	write("Makefile",
		"x:\n\t$(GO) test ./a -run '^TestOne$$|TestTwo' -v\n\t$(GO) test -run '^$$' -bench '$(BENCH)' ./...\n")
	write("README.md", "Run `go test\n./a/... -run TestThree/sub -v`, or\n\n    go test -bench Fast ./a\n")
	write("docs/dev/experiments.md", "`go test ./a -run TestGone`\n")
	write("a/a_test.go", "package a\n\nfunc TestOne(t *testing.T) {}\nfunc BenchmarkFast(b *testing.B) {}\nfunc "+
		"TestMain(m *testing.M) {}\n")
	write("a/b/b_test.go", "package b\n\nfunc TestThree(t *testing.T) {}\n")
	write("a/b/testdata/fuzz/FuzzGone/1", "")
	write("a/b/testdata/told.txt", "story")
	write("test/mutants/faults/1.txt", "fault one\nin a/a.go\nby ./a\nproves 9260-1-1 a TestOne\n-\tx\n+\ty\n")
	write("test/mutants/scope.txt", "# a comment\nother a\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		must.OK(t, runGit(dir, args...))
	}
	tree := must.Get(readTree(dir))(t)
	got := slices.Concat(tree.listCommands(), tree.listTests(), tree.listCorpora(), tree.listGolden(),
		tree.listFaults())
	slices.Sort(got)
	check.Equal(t, "inventory", strings.Join(got, "\n"), strings.TrimSpace(`
1.txt one: by ./a
1.txt one: fault one
1.txt one: in a/a.go
1.txt one: proves 9260-1-1 a TestOne
corpus a/b FuzzGone 1
golden a/b/testdata/told.txt c478361e6869
run Makefile -run TestTwo: 
run Makefile -run ^TestOne$: a TestOne
run README.md -bench Fast: a BenchmarkFast
run README.md -run TestThree/sub: a/b TestThree
scope other a
test a BenchmarkFast
test a TestOne
test a/b TestThree`))
}

// Every test is run by a target for the gate, or for hours. A package that none names is tried by
// nobody.
func TestEveryTestHasItsTarget(t *testing.T) {
	needMake(t)
	tree := must.Get(readTree(root))(t)
	targets := must.Get(tree.listTargets())(t)
	elsewhere := []string{"compat/free5gc", "compat/ishidawataru", "compat/pion",
		"examples/datachannel"} // modules for themselves: test/compat.sh
	runs := regexp.MustCompile(`^target (?:test|browser) runs (\d+) of (\S+)$`)
	ran := make(map[string]string)
	for _, line := range targets {
		if m := runs.FindStringSubmatch(line); m != nil {
			ran[m[2]] = m[1]
		}
	}
	for dir, names := range tree.funcs {
		names = slices.DeleteFunc(slices.Clone(names), func(s string) bool { return strings.HasPrefix(s, "Benchmark") })
		if len(names) > 0 && !slices.Contains(elsewhere, dir) {
			check.Equal(t, "tests of "+dir+" that a target runs", ran[dir], strconv.Itoa(len(names)))
		}
	}
	for _, want := range []string{"target compat starts test/compat.sh", "target proofs starts test/mutants",
		"target full starts test/random/prove", "target hostile starts test/attack/live"} {
		check.That(t, slices.Contains(targets, want), "the inventory has no line %q", want)
	}
}

// What make would do is read as it says it: variables, other targets, other folders.
func TestTargetsAreUnderstood(t *testing.T) {
	needMake(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"Makefile": "GO ?= go\nALL := ./... ./tool/...\n\ntest: ## all\n\t$(GO) test $(ALL)\n\nrace: ## some\n" +
			"\tCGO_ENABLED=1 $(GO) test -race -run '^TestOne$$' \\\n\t\t./a\n\nfull: ## more\n\t$(MAKE) race\n" +
			"\tcd other && $(GO) test -count=1 .\n\ttest/more.sh\n\t@$(GO) run ./test/soak -x ./a\n\nfuzz-all:\n\techo\n",
		"a/a_test.go":     "package a\n\nfunc TestOne(t *testing.T) {}\nfunc TestTwo(t *testing.T) {}\nfunc BenchmarkA(b *testing.B) {}\n",
		"tool/go.mod":     "module tool\n",
		"tool/t_test.go":  "package t\n\nfunc ExampleT() {}\n",
		"other/go.mod":    "module other\n",
		"other/o_test.go": "package o\n\nfunc FuzzO(f *testing.F) {}\n",
	} {
		must.OK(t, os.MkdirAll(filepath.Join(dir, path.Dir(name)), 0o755))
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		must.OK(t, runGit(dir, args...))
	}
	check.Equal(t, "targets", strings.Join(must.Get(must.Get(readTree(dir))(t).listTargets())(t), "\n"),
		strings.TrimSpace(`
target full runs 1 of a
target full runs 1 of other
target full starts test/more.sh
target full starts test/soak
target race runs 1 of a
target test runs 1 of tool
target test runs 2 of a`))
}

// needMake skips a test where there is no make, but never in the gate.
func needMake(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil && os.Getenv("CI") == "" {
		t.Skip("needs make")
	}
}

// The output of go test -json has the names of subtests.
func TestSubtestsAreListed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.json")
	must.OK(t, os.WriteFile(file, []byte(`{"Action":"run","Package":"github.com/rddp-go/rddp/a","Test":"TestOne/x"}
not json
{"Action":"pass","Package":"github.com/rddp-go/rddp/a","Test":"TestOne/x"}
{"Action":"pass","Package":"github.com/rddp-go/rddp/a"}
`), 0o644))
	check.Equal(t, "lines", strings.Join(must.Get(listSubtests(file))(t), "\n"), "ran a TestOne/x pass")
	must.OK(t, os.WriteFile(file, []byte("ok a 0.1s\n"), 0o644))
	_, err := listSubtests(file)
	check.That(t, err != nil, "no error for an output without -json")
}

// runGit runs git in a folder.
func runGit(dir string, args ...string) error {
	return exec.Command("git", append([]string{"-C", dir}, args...)...).Run()
}
