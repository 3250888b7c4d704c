package rdma

import "context"

// contextWatch wakes a goroutine that waits for a signal when its context ends. A program waits
// with the same context again and again, so the watch stays. It belongs to the waiting goroutine.
type contextWatch struct {
	done      <-chan struct{} // of the context
	stopWatch func() bool     // ends the watch
}

// watchContext has r roused when ctx ends.
func (w *contextWatch) watchContext(ctx context.Context, r rouser) {
	done := ctx.Done()
	if done == w.done {
		return
	}
	if w.stopWatch != nil {
		w.stopWatch()
	}
	w.done, w.stopWatch = done, context.AfterFunc(ctx, r.rouse)
}

// rouser makes goroutines that wait look at their channels.
type rouser interface{ rouse() }
