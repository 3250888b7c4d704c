package machine

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rddp-go/rddp/internal/test/must"
)

// Whoever asks may go on where it could before, and so may all that it starts.
func TestLookingAtALineMovesNobody(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after unix.CPUSet
	must.OK(t, unix.SchedGetaffinity(0, &before))
	l := Line()
	must.OK(t, unix.SchedGetaffinity(0, &after))
	must.That(t, before == after, "from %v to %v", before, after)
	must.That(t, (l > 0) == (before.Count() > 1 && runtime.GOMAXPROCS(0) > 1), "%v with %d processors", l,
		before.Count())
}

func TestOneProcessorHasNoOther(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	must.That(t, Line() == 0, "a line goes nowhere")
}

// Where nobody may choose a processor the two do not wait for each other.
func TestALineToAProcessorThatIsNotThere(t *testing.T) {
	for _, at := range [][2]int{{0, 1023}, {1023, 0}, {1023, 1022}} {
		took := new(line).pingPongBetween(at)
		must.That(t, took == 0, "to processor %d of %d: %v", at[1], runtime.NumCPU(), took)
	}
}
