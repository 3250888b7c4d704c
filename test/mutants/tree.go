package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// options say how the tests are run.
type options struct {
	timeout   time.Duration
	seeds     int
	applyOnly bool
}

// tree is a copy of the committed tree.
type tree struct {
	dir string
	options
}

// checkout makes n copies. What it returns with an error is to be removed too.
func checkout(n int, o options) (trees []*tree, err error) {
	root, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return nil, fmt.Errorf("git rev-parse: %w", err)
	}
	archive := exec.Command("git", "archive", "HEAD")
	archive.Dir = strings.TrimSpace(string(root))
	archive.Stderr = os.Stderr
	tar, err := archive.Output()
	if err != nil {
		return nil, fmt.Errorf("git archive: %w", err)
	}
	for range n {
		dir, err := os.MkdirTemp("", "mutants")
		if err != nil {
			return trees, err
		}
		trees = append(trees, &tree{dir, o})
		extract := exec.Command("tar", "-x", "-f", "-")
		extract.Dir, extract.Stdin, extract.Stderr = dir, bytes.NewReader(tar), os.Stderr
		if err := extract.Run(); err != nil {
			return trees, fmt.Errorf("tar: %w", err)
		}
	}
	return trees, nil
}

// outcome is what became of a fault.
type outcome int

const (
	caught outcome = iota
	survived
	notApplied
)

func (o outcome) String() string { return [...]string{"caught", "SURVIVED", "NO FAULT"}[o] }

type result struct {
	outcome outcome
	detail  string // the package and test that caught it, or why it did not apply
	took    time.Duration
}

// try makes the fault, runs its tests until one fails, and restores the file.
func (t *tree) try(f *fault) (r result) {
	start := time.Now()
	defer func() { r.took = time.Since(start) }()
	path := filepath.Join(t.dir, f.file)
	text, err := os.ReadFile(path)
	if err != nil {
		return result{outcome: notApplied, detail: err.Error()}
	}
	wrong, err := f.apply(string(text))
	if err != nil {
		return result{outcome: notApplied, detail: err.Error()}
	}
	if t.applyOnly {
		return result{}
	}
	if err := os.WriteFile(path, []byte(wrong), 0o644); err != nil {
		return result{outcome: notApplied, detail: err.Error()}
	}
	defer os.WriteFile(path, text, 0o644)
	if out, err := t.command("build", "./"+filepath.Dir(f.file)).CombinedOutput(); err != nil {
		return result{outcome: notApplied, detail: "does not compile:\n" + string(out)}
	}
	for _, pkg := range f.tests {
		switch v := t.test(pkg); {
		case v.broken:
			return result{outcome: notApplied, detail: v.output}
		case v.failed:
			return result{detail: strings.TrimPrefix(pkg, "./") + " " + v.what}
		}
	}
	return result{outcome: survived, detail: strings.Join(f.tests, " ")}
}

// verdict is what the tests of a package say.
type verdict struct {
	failed, broken bool // broken: they could not be run
	what           string
	output         string
}

var firstFailure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// test runs the tests of a package.
func (t *tree) test(pkg string) verdict {
	args := []string{"test", "-vet=off", "-count=1", "-failfast", fmt.Sprint("-timeout=", t.timeout)}
	if sh, err := exec.LookPath("sh"); err == nil {
		// A fault may allocate without end: 8 GiB of addresses are enough for any test.
		args = append(args, "-exec", sh+` -c 'ulimit -v 8388608; exec "$0" "$@"'`)
	}
	args = append(args, pkg)
	if pkg == "./internal/world" {
		args = append(args, "-run=^TestSeeds$", fmt.Sprint("-seeds=", t.seeds))
	}
	b, err := t.command(args...).CombinedOutput()
	out := string(b)
	v := verdict{failed: err != nil, output: out}
	if err == nil {
		return v
	}
	v.broken = strings.Contains(out, "[build failed]") || strings.Contains(out, "[setup failed]")
	m := firstFailure.FindStringSubmatch(out)
	switch {
	case strings.Contains(out, "panic: test timed out"), strings.Contains(out, "ran too long"):
		v.what = "(timeout)"
	case m != nil:
		v.what = m[1]
	default:
		v.what = "(crash)"
	}
	return v
}

// command is the go tool in the tree. The copies share what they compile.
func (t *tree) command(args ...string) *exec.Cmd {
	c := exec.Command("go", slices.Insert(args, 1, "-trimpath", "-p=1")...)
	c.Dir = t.dir
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	return c
}
