// Package must ends a test that cannot go on.
package must

import (
	"testing"

	"github.com/rddp-go/rddp/internal/check"
)

// OK ends the test by an error that it did not expect.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Do is OK for a call whose other result nobody needs: must.Do(call())(t).
func Do[T any](_ T, err error) func(t testing.TB) {
	return func(t testing.TB) {
		t.Helper()
		OK(t, err)
	}
}

// Get is the result of a call that must not fail: x := must.Get(call())(t).
func Get[T any](x T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		OK(t, err)
		return x
	}
}

// Equal is check.Equal, and ends the test.
func Equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if !check.Equal(t, what, got, want) {
		t.FailNow()
	}
}

// Slice is check.Slice, and ends the test.
func Slice[E comparable](t testing.TB, what string, got, want []E) {
	t.Helper()
	if !check.Slice(t, what, got, want) {
		t.FailNow()
	}
}
