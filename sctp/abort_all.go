package sctp

import (
	"sync"
	"time"
)

// openTransports are the Transports of this process that are not closed.
var openTransports transportSet

type transportSet struct {
	mu   sync.Mutex
	list map[*Transport]struct{} // guarded by mu
}

func (o *transportSet) add(t *Transport) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.list == nil {
		o.list = make(map[*Transport]struct{})
	}
	o.list[t] = struct{}{}
}

func (o *transportSet) remove(t *Transport) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.list, t)
}

// AbortAll is for a program that is about to exit, as from its handler of SIGTERM. It aborts all
// associations of the process and closes every Transport. That includes those of Dial and Listen,
// of Transports, and of what is built on them. Each peer hears the reason at once. Otherwise it
// would notice only by its HEARTBEATs, as no kernel ends an association in a program's place.
// Messages on their way are lost; Conn.Close is the graceful end. AbortAll returns true when every
// ABORT has left. It returns after that time at the latest, for example if a link takes no packets.
func AbortAll(reason string, within time.Duration) (all bool) {
	return openTransports.abortAll(reason, within)
}

func (o *transportSet) abortAll(reason string, within time.Duration) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.mu.Lock()
		list := make([]*Transport, 0, len(o.list))
		for t := range o.list {
			list = append(list, t)
		}
		o.mu.Unlock()
		var left sync.WaitGroup
		for _, t := range list {
			left.Go(func() {
				for _, c := range t.liveConns() {
					c.Abort(reason)
				}
				t.Close() // whatever came since
			})
		}
		left.Wait()
	}()
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
		return false
	}
}
