package machine

import (
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Line is how long a cache line takes from one processor to another and back: several times as long
// where the two share no cache. A host moves virtual processors about, so it may change while
// something is measured. 0: there is only one processor, or nobody may choose.
func Line() time.Duration {
	var may unix.CPUSet
	if unix.SchedGetaffinity(0, &may) != nil || may.Count() < 2 || runtime.GOMAXPROCS(0) < 2 {
		return 0
	}
	var at [2]int
	for i, n := 0, 0; n < len(at); i++ {
		if may.IsSet(i) {
			at[n] = i
			n++
		}
	}
	return new(line).pingPongBetween(at)
}

// The shortest of some goes counts, as others may have had a processor during the rest.
const (
	goes  = 10
	trips = 1000 // of a go
)

// line has a cache line for itself, and the ones beside it, which some processors fetch together.
type line struct {
	_ [128]byte
	n atomic.Int64
	_ [128]byte
}

// pingPongBetween plays ping-pong on two processors.
func (l *line) pingPongBetween(at [2]int) time.Duration {
	ready, both, took := make(chan bool), make(chan bool), make(chan time.Duration)
	go func() {
		ready <- keepTo(at[1])
		if !<-both {
			return
		}
		for i := int64(0); i < 2*goes*trips; i += 2 {
			l.awaitValue(i + 1)
			l.n.Store(i + 2)
		}
	}()
	go func() {
		here := keepTo(at[0])
		ok := <-ready && here
		both <- ok
		if !ok {
			took <- 0
			return
		}
		took <- l.playSide()
	}()
	return <-took
}

// playSide is one side, which begins. It returns how long a line took there and back.
func (l *line) playSide() (shortest time.Duration) {
	for i := int64(0); i < 2*goes*trips; {
		began := time.Now()
		for range trips {
			l.n.Store(i + 1)
			i += 2
			l.awaitValue(i)
		}
		if took := time.Since(began); shortest == 0 || took < shortest {
			shortest = took
		}
	}
	return shortest / trips
}

func (l *line) awaitValue(n int64) {
	for l.n.Load() != n {
	}
}

// keepTo keeps this goroutine to a processor. Its thread ends with it.
func keepTo(cpu int) bool {
	var set unix.CPUSet
	set.Set(cpu)
	runtime.LockOSThread()
	return unix.SchedSetaffinity(0, &set) == nil
}
