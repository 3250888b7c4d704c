package rdma

import (
	"cmp"
	"context"
	"errors"
	"net"
)

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

// joinContexts returns a context that ends with ctx, and with other.
func joinContexts(ctx, other context.Context) (both context.Context, stop func()) {
	both, cancel := context.WithCancel(ctx)
	undo := context.AfterFunc(other, cancel)
	return joinedContext{both, ctx}, func() {
		undo()
		cancel()
	}
}

// joinedContext has the error of the caller's context as soon as that has one.
type joinedContext struct {
	context.Context
	own context.Context
}

func (c joinedContext) Err() error { return cmp.Or(c.own.Err(), c.Context.Err()) }

// reasonOf returns why a call has failed: err, or net.ErrClosed if what it was made of was closed,
// and use has ended therefore, while its own context has not.
func reasonOf(err error, own, use context.Context) error {
	if use.Err() != nil && own.Err() == nil && !errors.Is(err, net.ErrClosed) {
		return net.ErrClosed
	}
	return err
}
