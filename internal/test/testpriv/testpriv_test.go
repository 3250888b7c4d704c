package testpriv

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

// verdict records what Require does to a test.
type verdict struct {
	testing.TB
	skipped, failed bool
}

func (*verdict) Helper()                 {}
func (v *verdict) Skipf(string, ...any)  { v.skipped = true }
func (v *verdict) Fatalf(string, ...any) { v.failed = true }

func TestMissingPrivilegeSkipsExceptInCI(t *testing.T) {
	for _, test := range []struct {
		name, ci string
		want     verdict
	}{
		{"a developer's machine skips", "", verdict{skipped: !hasCapability("CAP_NET_RAW")}},
		{"CI fails", "true", verdict{failed: !hasCapability("CAP_NET_RAW")}},
	} {
		t.Setenv("CI", test.ci)
		var got verdict
		Require(&got, "CAP_NET_RAW")
		// Fatalf and Skipf return here, so that a failed test goes on to be skipped, too.
		check.That(t, got.failed == test.want.failed && got.skipped == (test.want.skipped || test.want.failed),
			"%s: %+v, want %+v", test.name, got, test.want)
	}
}
