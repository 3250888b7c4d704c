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
