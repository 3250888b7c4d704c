package must

import "context"

// Ended is a context that has ended: whoever has it waits for nothing.
func Ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
