// Package testpriv says what a test needs from the operating system: it skips a test that lacks a
// privilege on a developer's machine, and fails it in CI, where every test has to run.
package testpriv

import (
	"os"
	"testing"
)

// Require skips t unless this process holds every one of the named Linux capabilities, e.g.
// "CAP_NET_RAW". With CI=true in the environment it fails t instead.
func Require(t testing.TB, capabilities ...string) {
	t.Helper()
	for _, c := range capabilities {
		if hasCapability(c) {
			continue
		}
		if os.Getenv("CI") == "true" {
			t.Fatalf("this test needs %s, and CI has to grant it", c)
		}
		t.Skipf("this test needs %s: run it as root on Linux", c)
	}
}
