// Package check notes what a test finds to be wrong, and lets the test go on.
package check

import (
	"slices"
	"testing"
)

// Equal compares two values and says whether they are equal; what names them in the message.
func Equal[T comparable](t testing.TB, what string, got, want T) bool {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
	return got == want
}

// Slice is Equal for lists, of which long ones are shown from the first element that differs.
func Slice[E comparable](t testing.TB, what string, got, want []E) bool {
	t.Helper()
	equal := slices.Equal(got, want)
	if !equal {
		const most = 16
		at := 0
		for max(len(got), len(want)) > most && at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		g, w := got[at:], want[at:]
		t.Errorf("%s: got %d, want %d elements; from %d on got %v, want %v", what, len(got), len(want), at, g[:min(most, len(g))], w[:min(most, len(w))])
	}
	return equal
}
