package relay

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// A relay that never sleeps has a processor where nothing of this program runs; one that sleeps
// takes nobody's, and has all to choose from.
func TestPlaces(t *testing.T) {
	on := func(fs ...func() error) (set unix.CPUSet) {
		done := make(chan error)
		go func() {
			runtime.LockOSThread() // and the thread ends with this goroutine
			var err error
			for _, f := range append(fs, func() error { return unix.SchedGetaffinity(0, &set) }) {
				if err == nil {
					err = f()
				}
			}
			done <- err
		}()
		must.OK(t, <-done)
		return set
	}
	all := on()
	var list string
	reserve := func() (err error) { list, err = Reserve(); return err }
	defer processors.Zero()
	reserved := on(reserve)
	processors.Zero()
	must.OK(t, Reserved(list))
	check.Equal(t, "processors that Reserve names", processors, all)
	restless, sleeper := &Relay{Restless: true}, &Relay{}
	own := func(r *Relay) func() error { return func() error { set, _ := r.cpuPlaces(); return keepTo(set) } }
	rest := func(r *Relay) func() error { return func() error { _, set := r.cpuPlaces(); return keepTo(set) } }
	relays, beside := on(reserve, own(restless)), on(rest(restless))
	both := 0
	for i := range 1024 {
		if relays.IsSet(i) && beside.IsSet(i) {
			both++
		}
	}
	check.Equal(t, "what the program keeps to", reserved, beside)
	if n := all.Count(); n > 1 {
		check.Slice(t, "processors: the relay's, the others, both", []int{relays.Count(), beside.Count(), both},
			[]int{1, n - 1, 0})
	} else {
		check.Equal(t, "processors of both", both, 1)
	}
	check.Equal(t, "processors beside a relay that sleeps", on(reserve, rest(sleeper)), all)
	check.Equal(t, "processors of a relay that sleeps", on(reserve, own(sleeper)), all)
	check.That(t, Reserved("0,") != nil, "no number is taken for a processor")
}
