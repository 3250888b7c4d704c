// Package concurrent makes calls run at the same time. What programs may call at once has to be
// guarded. The race detector finds where it is not, if the calls come close to each other. So each
// call loops in a goroutine of its own, and all begin together.
package concurrent

import (
	"runtime"
	"sync"
)

// RunTogether makes each call rounds times beside the others, and returns when all are done. i is
// how often the call was made before.
func RunTogether(rounds int, calls ...func(i int)) {
	var begin, end sync.WaitGroup
	begin.Add(1)
	for _, call := range calls {
		end.Go(func() {
			begin.Wait()
			for i := range rounds {
				call(i)
				runtime.Gosched()
			}
		})
	}
	begin.Done()
	end.Wait()
}

// RunUntilStopped repeats a call beside others, at least once, until the function that it returns
// is called.
func RunUntilStopped(call func()) (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			call()
			select {
			case <-over:
				return
			default:
				runtime.Gosched()
			}
		}
	}()
	return func() { close(over); <-done }
}
