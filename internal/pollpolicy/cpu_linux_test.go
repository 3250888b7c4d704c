package pollpolicy

import (
	"runtime"
	"testing"

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
