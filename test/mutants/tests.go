package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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
	limit  time.Duration // what exceeds it hangs
	net    bool          // they reach the network, where two runs might meet
}

// verdict is what the tests of a package say.
type verdict struct {
	failed bool
	test   string // that failed, if it is known
	what   string // of its failure
	output string
}

var (
	firstFailure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	subFailure   = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+/\S+)`)
	running      = regexp.MustCompile(`running tests:\s+(\w+)`)
)

// run runs the tests, or those of one name, under a fault (0: none), and stops at the first failure. It leaves
// out the tests to skip.
func (t *tests) run(number int, only string, skip []string) verdict {
	args := append([]string{"-test.failfast", fmt.Sprint("-test.timeout=", t.limit)}, t.args...)
	if only != "" {
		args = append(args, "-test.run=^"+only+"$")
	}
	if len(skip) > 0 {
		args = append(args, "-test.skip=^("+strings.Join(skip, "|")+")$")
	}
	// Tests that do not even end by themselves are stopped, and 8 GiB of addresses are enough for any.
	ctx, cancel := context.WithTimeout(context.Background(), t.limit+10*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, t.binary, args...)
	if sh, err := exec.LookPath("sh"); err == nil {
		c = exec.CommandContext(ctx, sh, append([]string{"-c", `ulimit -v 8388608; exec "$0" "$@"`, t.binary}, args...)...)
	}
	c.Dir, c.WaitDelay = t.dir, time.Second
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%d", switchEnv, number))
	out, err := output(c)
	return judge(string(out), err)
}

// judge reads what tests have printed.
func judge(out string, err error) verdict {
	v := verdict{failed: err != nil, output: out}
	if err == nil {
		return v
	}
	if m := firstFailure.FindStringSubmatch(out); m != nil {
		v.test, v.what = m[1], m[1]
		if m := subFailure.FindStringSubmatch(out); m != nil {
			v.what = m[1]
		}
		return v
	}
	if m := running.FindStringSubmatch(out); m != nil {
		v.test = m[1]
	}
	switch {
	case strings.Contains(out, "panic: test timed out"), err.Error() == "signal: killed":
		v.what = strings.TrimSpace(v.test + " (timeout)")
	default:
		v.what = strings.TrimSpace(v.test + " (crash)")
	}
	return v
}

var processor atomic.Int64 // time of all that was run

// output runs a command and counts its processor time.
func output(c *exec.Cmd) ([]byte, error) {
	out, err := c.CombinedOutput()
	if p := c.ProcessState; p != nil {
		processor.Add(int64(p.UserTime() + p.SystemTime()))
	}
	return out, err
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

// try runs the tests that may notice a fault until one does. A test that fails without the fault too, say
// because the machine is too busy for it, notices nothing.
func try(number int, list []*tests) (outcome, string) {
	var names, shaky []string
	for _, t := range list {
		var skip []string
		for {
			v := t.run(number, "", skip)
			if !v.failed {
				break
			}
			if !t.run(0, v.test, nil).failed {
				return caught, strings.TrimPrefix(t.pkg, "./") + " " + v.what
			}
			shaky = append(shaky, v.what)
			if v.test == "" || len(skip) == 5 {
				break
			}
			skip = append(skip, v.test)
		}
		names = append(names, t.pkg)
	}
	detail := strings.Join(names, " ")
	if shaky != nil {
		detail += "; fails without the fault too: " + strings.Join(shaky, ", ")
	}
	return survived, detail
}

// binaryName is a file for the compiled tests of a package.
func binaryName(dir, pkg string) string {
	return filepath.Join(dir, strings.ReplaceAll(strings.TrimPrefix(pkg, "./"), "/", "-")+".test")
}
