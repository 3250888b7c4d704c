package pollpolicy

import (
	"runtime"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"golang.org/x/sys/unix"
)

// The processor that this runs on is told by its number.
func TestTheNumberOfTheProcessor(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all unix.CPUSet
	must.OK(t, unix.SchedGetaffinity(0, &all))
	defer func() { must.OK(t, unix.SchedSetaffinity(0, &all)) }()
	for cpu := range 1024 {
		if !all.IsSet(cpu) {
			continue
		}
		var one unix.CPUSet
		one.Set(cpu)
		must.OK(t, unix.SchedSetaffinity(0, &one))
		check.Equal(t, "processor", currentProcessor(), cpu)
	}
}

// A spin ends when its time is over, or what it waits for.
func TestASpinEndsByEither(t *testing.T) {
	for _, over := range []bool{true, false} {
		began, looks := time.Now(), 0
		spinFor(5*time.Millisecond, func() bool { looks++; return over })
		took := time.Since(began)
		check.That(t, over && looks == 1 || !over && took >= 5*time.Millisecond,
			"over %v: %v and %d looks", over, took, looks)
	}
}
