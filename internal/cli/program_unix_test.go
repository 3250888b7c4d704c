//go:build unix

package cli

import (
	"syscall"
	"testing"
)

// A signal that comes twice is one: the program goes on to its end.
func TestSignalThatComesTwice(t *testing.T) {
	ctx := UntilSignal(syscall.SIGUSR1)
	if ctx.Err() != nil {
		t.Fatal("it ends by itself")
	}
	for range 2 {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGUSR1); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
	}
}
