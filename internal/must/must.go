// Package must ends a test that cannot go on.
package must

import "testing"

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
