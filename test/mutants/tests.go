package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// tests are the tests of one package, compiled.
type tests struct {
	pkg    string // as the go tool names it, ./sctp/assoc
	dir    string
	binary string
	args   []string
	took   time.Duration // without a fault
	slow   []string      // those that took longer than slowTest
	quiet  time.Duration // what says nothing for so long hangs
	net    bool          // they reach the network, where two runs might meet
}

// verdict is what the tests of a package say.
type verdict struct {
	failed bool
	test   string // that failed, if it is known
	what   string // of its failure
	output string
	quiet  time.Duration // the longest that they said nothing
}

var (
	firstFailure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	subFailure   = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+/\S+)`)
	passed       = regexp.MustCompile(`(?m)^--- PASS: (\w+) \(([0-9.]+s)\)`)
	began        = regexp.MustCompile(`(?m)^=== RUN   (\w+)`)
)

// slowTest is what a test may take to run before those of other packages.
const slowTest = time.Second

// slowOnes returns the slow tests, by what all have printed.
func slowOnes(out string) (names []string) {
	for _, m := range passed.FindAllStringSubmatch(out, -1) {
		if took, err := time.ParseDuration(m[2]); err == nil && took > slowTest {
			names = append(names, m[1])
		}
	}
	return names
}

// runTests runs the tests, or those of one name, under a fault (0: none), and stops at the first
// failure. It leaves out the tests to skip.
func (t *tests) runTests(number int, only string, skip []string) verdict {
	args := append([]string{"-test.failfast", "-test.v", "-test.timeout=20m"}, t.args...)
	if only != "" {
		args = append(args, "-test.run=^"+only+"$")
	}
	if len(skip) > 0 {
		args = append(args, "-test.skip=^"+anyOf(skip)+"$")
	}
	// 8 GiB of addresses are enough for any test.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c := exec.CommandContext(ctx, t.binary, args...)
	if sh, err := exec.LookPath("sh"); err == nil {
		c = exec.CommandContext(ctx, sh, append([]string{"-c", `ulimit -v 8388608; exec "$0" "$@"`, t.binary},
			args...)...)
	}
	c.Dir, c.WaitDelay = t.dir, time.Second
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%d", switchEnv, number))
	quiet := t.quiet
	if number != 0 && only == "" {
		quiet = min(quiet, 10*slowTest) // the slow ones are left out
	}
	w := &listener{limit: quiet, last: time.Now(), timer: time.AfterFunc(quiet, cancel)}
	defer w.timer.Stop()
	c.Stdout, c.Stderr = w, w
	err := runAndCount(c)
	v := parseOutput(w.text.String(), err, ctx.Err() != nil)
	v.quiet = max(w.longest, time.Since(w.last))
	return v
}

// anyOf matches each of the names.
func anyOf(names []string) string { return "(" + strings.Join(names, "|") + ")" }

// listener keeps what tests say, and stops those that say nothing for too long.
type listener struct {
	text    strings.Builder
	limit   time.Duration
	timer   *time.Timer
	last    time.Time
	longest time.Duration // between two words
}

func (l *listener) Write(p []byte) (int, error) {
	now := time.Now()
	l.longest, l.last = max(l.longest, now.Sub(l.last)), now
	l.timer.Reset(l.limit)
	return l.text.Write(p)
}

// parseOutput reads what tests have printed.
func parseOutput(out string, err error, hung bool) verdict {
	v := verdict{failed: err != nil, output: out}
	if err == nil {
		return v
	}
	if all := began.FindAllStringSubmatch(out, -1); all != nil {
		v.test = all[len(all)-1][1]
	}
	switch m := firstFailure.FindStringSubmatch(out); {
	case hung:
		v.what = strings.TrimSpace(v.test + " (hangs)")
	case m == nil:
		v.what = strings.TrimSpace(v.test + " (crash)")
	default:
		v.test, v.what = m[1], m[1]
		if m := subFailure.FindStringSubmatch(out); m != nil {
			v.what = m[1]
		}
	}
	return v
}

var processor atomic.Int64 // time of all that was run

// runAndCount runs a command and counts its processor time.
func runAndCount(c *exec.Cmd) error {
	err := c.Run()
	if p := c.ProcessState; p != nil {
		processor.Add(int64(p.UserTime() + p.SystemTime()))
	}
	return err
}

// outcome is what became of a fault.
type outcome int

const (
	caught outcome = iota
	survived
	broken
)

func (o outcome) String() string { return [...]string{"caught", "SURVIVED", "NO FAULT"}[o] }

type result struct {
	fault   *fault
	outcome outcome
	detail  string // the package and test that caught it, or what is wrong with it
	took    time.Duration
}

// tryUntilCaught runs the tests that may notice a fault until one does, the slow ones of all
// packages last. A test that fails without the fault too, say because the machine is too busy for
// it, notices nothing.
func tryUntilCaught(number int, list []*tests) (outcome, string) {
	var names, shaky []string
	for _, t := range list {
		names = append(names, t.pkg)
		if what := t.findNoticing(number, "", t.slow, &shaky); what != "" {
			return caught, what
		}
	}
	for _, t := range list {
		if len(t.slow) == 0 {
			continue
		}
		if what := t.findNoticing(number, anyOf(t.slow), nil, &shaky); what != "" {
			return caught, what
		}
	}
	detail := strings.Join(names, " ")
	if shaky != nil {
		detail += "; fails without the fault too: " + strings.Join(shaky, ", ")
	}
	return survived, detail
}

// findNoticing returns the package and the test that notices a fault, or nothing.
func (t *tests) findNoticing(number int, only string, skip []string, shaky *[]string) string {
	for range 5 {
		v := t.runTests(number, only, skip)
		switch {
		case !v.failed:
			return ""
		case !t.runTests(0, v.test, nil).failed:
			return strings.TrimPrefix(t.pkg, "./") + " " + v.what
		}
		*shaky = append(*shaky, v.what)
		if v.test == "" {
			return ""
		}
		skip = append(slices.Clone(skip), v.test)
	}
	return ""
}

// binaryName is a file for the compiled tests of a package.
func binaryName(dir, pkg string) string {
	return filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(pkg, "./"), "/", "-")+".test")
}
