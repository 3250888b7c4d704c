package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestJudgeTellsPassFailureAndHang(t *testing.T) {
	failed := errors.New("exit status 1")
	for _, row := range []struct {
		name, out  string
		err        error
		hung       bool
		test, what string
	}{
		{"a pass", "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\n", nil, false, "", ""},
		{"a failure", "=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n--- FAIL: TestB (0.00s)\nFAIL\n", failed, false, "TestB", "TestB"},
		{"a failure below", "=== RUN   TestB\n=== RUN   TestB/row\n--- FAIL: TestB (0.00s)\n    --- FAIL: TestB/row (0.00s)\nFAIL\n", failed, false, "TestB", "TestB/row"},
		{"a crash", "=== RUN   TestA\n=== RUN   TestB\n=== RUN   TestB/row\npanic: out of range\n", failed, false, "TestB", "TestB (crash)"},
		{"a crash at once", "fatal error: out of memory\n", failed, false, "", "(crash)"},
		{"no end", "=== RUN   TestA\n", failed, true, "TestA", "TestA (hangs)"},
	} {
		v := parseOutput(row.out, row.err, row.hung)
		check.That(t, v.failed == (row.err != nil) && v.test == row.test && v.what == row.what, "%s: %+v", row.name, v)
	}
}

func TestSlowOnes(t *testing.T) {
	out :=
		"--- PASS: TestA (0.00s)\n--- PASS: TestB (11.94s)\n    --- PASS: TestB/row (11.94s)\n--- PASS: TestC (1.10s)\nPASS\n"
	check.Slice(t, "slow ones", slowOnes(out), []string{"TestB", "TestC"})
}

// Tests that say nothing for too long are stopped, and the last that began is named.
func TestHangingTestsAreStopped(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs a shell")
	}
	binary := filepath.Join(t.TempDir(), "hangs")
	script := "#!" + sh + "\necho '=== RUN   TestA'\nexec sleep 600\n"
	must.OK(t, os.WriteFile(binary, []byte(script), 0o755))
	v := (&tests{binary: binary, dir: t.TempDir(), quiet: 200 * time.Millisecond}).runTests(1, "", nil)
	check.That(t, v.failed && (v.what == "TestA (hangs)" || v.what == "(hangs)"), "%+v", v)
}
