package sctp

import (
	"testing"

	"github.com/rddp-go/rddp/compat/original"
)

// A program that compiles with the original compiles with this package, on each system.
func TestNamesAreThoseOfTheOriginal(t *testing.T) {
	original.Compare(t, "github.com/ishidawataru/sctp", "v0.0.0-20251114114122-19ddcbc6aae2", "linux/amd64",
		"linux/386", "darwin/arm64", "windows/amd64")
}
