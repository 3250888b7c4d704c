package sctp

import (
	"testing"

	"github.com/rddp-go/rddp/compat/original"
)

// A program that compiles with the original compiles with this package.
func TestNamesAreThoseOfTheOriginal(t *testing.T) {
	original.Compare(t, "github.com/pion/sctp", "v1.12.1", "linux/amd64", "windows/amd64", "darwin/arm64")
}
