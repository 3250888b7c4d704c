package race

import "testing"

// Alone says that a test, which takes its time, has one goroutine: the detector would see nothing.
// It is skipped under it.
func Alone(t testing.TB) {
	if Enabled {
		t.Skip("one goroutine: nothing races")
	}
}
