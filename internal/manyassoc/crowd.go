// Package manyassoc lets calls meet. What programs may call at once has to be guarded, and the race
// detector tells where it is not, if only the calls come close to each other: so each goes round
// and round in a goroutine of its own, all beginning together.
package manyassoc

import (
	"runtime"
	"sync"
)

// RunTogether makes each call so many times beside the others, and returns when all have. A call is
// told how often it was made before.
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

// RunUntilStopped makes a call again and again beside others until the function that it returns is
// called, at least once.
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
