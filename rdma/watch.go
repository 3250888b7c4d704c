package rdma

import "context"

// watch has a goroutine that waits for a signal look at its context when that ends. A program waits with the same context again and
// again, so the watch stays. It belongs to the waiting goroutine.
type watch struct {
	done   <-chan struct{} // of the context
	forget func() bool     // ends the watch
}

func (w *watch) on(ctx context.Context, d *Device) {
	done := ctx.Done()
	if done == w.done {
		return
	}
	if w.forget != nil {
		w.forget()
	}
	w.done, w.forget = done, context.AfterFunc(ctx, d.t.Layer().Rouse)
}
