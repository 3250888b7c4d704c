package testpriv

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// AsNobody runs f without any privilege, on a thread of its own that has given up all capabilities
// and ends with f.
func AsNobody(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: nobody else may get the thread
		var none [2]unix.CapUserData
		if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
			t.Error(err)
			return
		}
		f(t)
	}()
	<-done
}
