package sctp

import (
	"testing"

	"github.com/rddp-go/rddp/compat/original"
)

// A program that compiles with the original compiles with this package. The original compiles on Linux alone.
func TestNamesAreThoseOfTheOriginal(t *testing.T) {
	original.Compare(t, "github.com/free5gc/sctp", "v1.1.0", "linux/amd64")
}
