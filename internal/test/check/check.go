// Package check notes what a test finds to be wrong, and lets the test go on.
package check

import (
	"errors"
	"os"
	"slices"
	"strings"
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

// That says what is wrong, in the words of the format, unless ok.
func That(t testing.TB, ok bool, format string, args ...any) bool {
	t.Helper()
	if !ok {
		t.Errorf(format, args...)
	}
	return ok
}

// Documented looks for a line, or how one begins, in the package comment of what is tested.
func Documented(t testing.TB, line string) bool {
	t.Helper()
	doc, err := os.ReadFile("doc.go")
	return OK(t, err) && That(t, strings.Contains(string(doc), "\n//"+line), "doc.go lacks\n//%s", line)
}

// OK notes an error that was not expected.
func OK(t testing.TB, err error) bool {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

// Do is OK for a call whose other result nobody needs: check.Do(call())(t).
func Do[T any](_ T, err error) func(t testing.TB) bool {
	return func(t testing.TB) bool {
		t.Helper()
		return OK(t, err)
	}
}

// Error compares two errors as errors.Is does; what says when the first came. No error is wanted
// when want is nil.
func Error(t testing.TB, what string, got, want error) bool {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
		return false
	}
	return true
}

// Fails is Error for a call that has another result: check.Fails(call())(t, what, want).
func Fails[T any](_ T, err error) func(t testing.TB, what string, want error) bool {
	return func(t testing.TB, what string, want error) bool {
		t.Helper()
		return Error(t, what, err, want)
	}
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
		t.Errorf("%s: got %d, want %d elements; from %d on got %v, want %v", what, len(got), len(want), at,
			g[:min(most, len(g))], w[:min(most, len(w))])
	}
	return equal
}
