package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.OK(t, os.WriteFile(path, []byte(text), 0o644))
}

func TestFindTargets(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "a/a_test.go", "package a\n\n// FuzzA is one.\n//\n//fuzz:covers ./b ./c\nfunc FuzzA(f "+
		"*testing.F) {}\nfunc TestA(t *testing.T) {}\n")
	writeFile(t, ".", "a/b_test.go", "package a\n\nfunc FuzzB(f *testing.F) {}\nconst s = `\nfunc FuzzC(f "+
		"*testing.F) {}\n`\n")
	writeFile(t, ".", "a/c_plan9_test.go", "package a\n\nfunc FuzzD(f *testing.F) {}\n")
	writeFile(t, ".", "other/go.mod", "module other\n")
	writeFile(t, ".", "other/a_test.go", "package other\n\nfunc FuzzE(f *testing.F) {}\n")
	list, err := findTargets(".", regexp.MustCompile("."))
	must.That(t, err == nil && len(list) == 2 && list[0].String() == "./a FuzzA" && list[1].String() == "./a FuzzB",
		"found %v, %v", list, err)
	check.That(t, slices.Equal(list[0].covers, []string{"./b", "./c"}) && slices.Equal(list[1].covers, []string{"./a"}),
		"they cover %v and %v", list[0].covers, list[1].covers)
	if list, _ := findTargets(".", regexp.MustCompile("FuzzB")); len(list) != 1 {
		t.Errorf("found %v", list)
	}
}

const head = `date: 2026-01-02
fuzz: elapsed: 0s, gathering baseline coverage: 0/4 completed
fuzz: elapsed: 0s, gathering baseline coverage: 4/4 completed, now fuzzing with 1 workers
fuzz: elapsed: 3s, execs: 1200 (400/sec), new interesting: 5 (total: 9)
`

const tail = `PASS
ok  	example.org/a	6.5s
PASS
coverage: 81.5% of statements in ./b
`

func TestReadLog(t *testing.T) {
	const longer = "fuzz: elapsed: 6s, execs: 3000 (600/sec), new interesting: 7 (total: 11)\n"
	const end = "PASS\nok  \texample.org/a\t6.5s\n"
	for _, row := range []struct {
		name, log string
		passed    bool
	}{
		{"ran without a measurement of what is covered", head + longer + end + notMeasured, true},
		{"an input that crashed, and no measurement", head + "--- FAIL: FuzzA (0.02s)\nFAIL\n" + notMeasured, false},
		{"a log without an end", head + longer, false},
		{"ran to its end", head + "fuzz: elapsed: 6s, execs: 3000 (600/sec), new interesting: 7 (total: 11)\n" + tail, true},
		{"the time was over a moment too early",
			head + "fuzz: elapsed: 6s, execs: 3000 (600/sec), new interesting: 7 (total: 11)\n" +
				"--- FAIL: FuzzA (6.50s)\n    context deadline exceeded\nFAIL\nexit status 1\nPASS\ncoverage: 81.5% of statements in ./b\n", true},
		{"an input that crashed", head + "--- FAIL: FuzzA (0.02s)\nFAIL\n", false},
		{"the corpus does not pass", strings.TrimSuffix(head+tail, "PASS\ncoverage: 81.5% of statements in ./b\n") + "--- FAIL: FuzzA\nFAIL\n", false},
		{"an input that never ends", head + strings.Repeat("fuzz: elapsed: 30s, execs: 1201 (0/sec), new interesting: 5 (total: 9)\n", 8) + tail, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			writeFile(t, dir, "log", row.log)
			r, err := readLog(target{pkg: "./a", name: "FuzzA", covers: []string{"./b"}}, filepath.Join(dir, "log"))
			must.That(t, err == nil && r.passed == row.passed, "passed %v, %v", r.passed, err)
			want := "| `a` FuzzA | 6s | 3,000 | 500 | 7 | 11 | 81.5% of `b` |\n"
			if strings.HasSuffix(row.log, notMeasured) {
				want = strings.Replace(want, "81.5%", "?", 1)
			}
			check.That(t, !r.passed || strings.Contains(resultTable([]result{r}), want), "table:\n%s",
				resultTable([]result{r}))
		})
	}
}

func TestUpdateKeepsTheRest(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", docs, "before\n"+begin+"old\n"+end+"after\n")
	r := result{target: target{pkg: "./a", name: "FuzzA", covers: []string{"./b"}}, date: "2026-01-02"}
	must.OK(t, updateTable([]result{r}))
	b, _ := os.ReadFile(docs)
	s := string(b)
	check.That(t, strings.HasPrefix(s, "before\n"+begin) && strings.HasSuffix(s, end+"after\n") &&
		!strings.Contains(s, "old") &&
		strings.Contains(s, "2026-01-02") && strings.Contains(s, "FuzzA"), "%s", s)
	writeFile(t, ".", docs, "no marks\n")
	check.That(t, updateTable([]result{r}) != nil, "a file without the marks")
}

func TestResumeRunsWhatHasNotEndedWell(t *testing.T) {
	dir := t.TempDir()
	list := []target{{pkg: "./a", name: "FuzzA"}, {pkg: "./a", name: "FuzzB"}, {pkg: "./b", name: "FuzzA"}}
	writeFile(t, dir, "_a.FuzzA.log", head+tail)
	writeFile(t, dir, "_a.FuzzB.log", head)
	o := options{logs: dir, resume: true}
	due := o.dueTargets(list)
	check.That(t, len(due) == 2 && due[0].name == "FuzzB" && due[1].pkg == "./b", "due: %v", due)
	o.resume = false
	if due := o.dueTargets(list); len(due) != 3 {
		t.Errorf("due: %v", due)
	}
}

// What has failed is in the log itself, for a machine of which nothing else is left.
func TestInputThatFailedIsQuoted(t *testing.T) {
	t.Chdir(t.TempDir())
	const input = "go test fuzz v1\n[]byte(\"\\x01\")\n"
	writeFile(t, ".", "a/testdata/fuzz/FuzzA/0b5e", input)
	var b strings.Builder
	a := target{pkg: "./a", name: "FuzzA"}
	a.quoteFailed(&b,
		[]byte(head+
			"--- FAIL: FuzzA (0.02s)\n    \n    Failing input written to testdata/fuzz/FuzzA/0b5e\n    To re-run:\n"))
	check.That(t, strings.HasSuffix(b.String(), "0b5e:\n"+input), "the log has %q", b.String())
}
