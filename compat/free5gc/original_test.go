package sctp

import (
	"testing"

	"github.com/rddp-go/rddp/compat/original"
)

// A program that compiles with a version of the original compiles with this package. The original
// compiles on Linux alone.
func TestNamesAreThoseOfTheOriginal(t *testing.T) {
	for _, version := range []string{"v1.1.0", "v1.1.1", "v1.2.0"} {
		t.Run(version, func(t *testing.T) { original.Compare(t, "github.com/free5gc/sctp", version, "linux/amd64") })
	}
}
