//go:build unix

package cli

import (
	"runtime"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/must"
)

// A signal that comes several times at once is one: the program goes on to its end.
func TestSignalThatComesTwice(t *testing.T) {
	ctx := UntilSignal(syscall.SIGHUP)
	must.That(t, ctx.Err() == nil, "it ends by itself")
	for range 5000 {
		must.OK(t, syscall.Kill(syscall.Getpid(), syscall.SIGHUP))
		<-ctx.Done()
		runtime.Gosched()
	}
}
