package race

import "testing"

// Costly says that a test is about figures, about replays or about processes, and takes long under
// the detector. With -short it is skipped there.
func Costly(t testing.TB) {
	if Enabled && testing.Short() {
		t.Skip("costly under the race detector, and not about goroutines: without -short it runs")
	}
}
