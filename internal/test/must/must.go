// Package must ends a test that cannot go on.
package must

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
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

// Two is Get for a call with two results: x, y := must.Two(call())(t).
func Two[X, Y any](x X, y Y, err error) func(t testing.TB) (X, Y) {
	return func(t testing.TB) (X, Y) {
		t.Helper()
		OK(t, err)
		return x, y
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

// That is check.That, and ends the test.
func That(t testing.TB, ok bool, format string, args ...any) {
	t.Helper()
	if !check.That(t, ok, format, args...) {
		t.FailNow()
	}
}

// Error is check.Error, and ends the test.
func Error(t testing.TB, what string, got, want error) {
	t.Helper()
	if !check.Error(t, what, got, want) {
		t.FailNow()
	}
}

// Fails is Error for a call that has another result: must.Fails(call())(t, what, want).
func Fails[T any](_ T, err error) func(t testing.TB, what string, want error) {
	return func(t testing.TB, what string, want error) {
		t.Helper()
		Error(t, what, err, want)
	}
}
