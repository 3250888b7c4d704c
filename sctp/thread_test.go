package sctp

import (
	"runtime"
	"testing"
)

// No more goroutines keep their threads than there are processors, and each place is given back.
func TestThreadsAreBounded(t *testing.T) {
	before := held.Load()
	done := make(chan struct{})
	go func() { // a goroutine of its own: its thread ends with it, should one be left locked
		defer close(done)
		all := make([]thread, 2*runtime.NumCPU())
		for range 2 {
			n := int32(0)
			for i := range all {
				all[i].hold()
				all[i].hold()
				if all[i].held {
					n++
				}
			}
			if n == 0 || held.Load() != before+n || held.Load() > int32(runtime.NumCPU()) {
				t.Errorf("%d hold their threads, %d in all, with %d processors", n, held.Load(), runtime.NumCPU())
			}
			for i := range all {
				all[i].release()
				all[i].release()
			}
			if n := held.Load(); n != before {
				t.Errorf("%d hold their threads, %d before", n, before)
			}
		}
	}()
	<-done
}
