package sctp

import (
	"sync/atomic"
	"unsafe"

	"github.com/rddp-go/rddp/internal/prefetch"
)

const (
	// manyAssocsMin is how many associations a Transport has when their memory is usually in no
	// cache. It counts those that packets come for or the program writes to.
	manyAssocsMin = 512

	// fetchDistance is how many packets ahead fetchHead is called. fetchMoreDistance is for
	// fetchReader and fetchMore, fetchLastDistance for fetchLast.
	fetchDistance     = 4
	fetchMoreDistance = 2
	fetchLastDistance = 1

	fetchTimersDistance = 8 // how many deadlines ahead prefetchTimer is

	messageFetchOctets = 128 // of what a message lies in
	channelFetchOctets = 104 // of what its reader waits for
)

// transportsWithMany is how many Transports are in many-association mode. A program's caches are
// for all of them, and a writer needs to know it before it has the association.
var transportsWithMany atomic.Int32

// updateManyAssocs updates the many-association mode when the number of associations has changed.
// Called with mu held.
func (t *Transport) updateManyAssocs() {
	if is := len(t.conns) >= manyAssocsMin; is != t.manyAssocs.Load() {
		t.manyAssocs.Store(is)
		if is {
			transportsWithMany.Add(1)
		} else {
			transportsWithMany.Add(-1)
		}
	}
}

// prefetchConns prefetches the memory that the associations of the packets behind the i-th of n
// will need. It does nothing unless there are many associations.
func (r *receiver) prefetchConns(i, n int) {
	if !r.t.manyAssocs.Load() {
		return
	}
	if i == 0 {
		for k := range min(fetchDistance, n) {
			r.conns[k].fetchHead()
		}
		for k := range min(fetchDistance, n) {
			r.conns[k].fetchRest()
		}
		for k := range min(fetchMoreDistance, n) {
			r.conns[k].fetchReader()
			r.conns[k].fetchMore()
		}
		r.conns[0].fetchLast()
	}
	if k := i + fetchDistance; k < n {
		r.conns[k].fetchHead()
		r.fetchingConn = r.conns[k]
	}
	if k := i + fetchMoreDistance; k < n {
		r.conns[k].fetchReader()
		r.fetchedConn = r.conns[k]
	}
	if k := i + fetchLastDistance; k < n {
		r.conns[k].fetchLast()
	}
}

// prefetchRest is the other half of prefetchConns, for when some work lies between.
func (r *receiver) prefetchRest() {
	r.fetchingConn.fetchRest()
	r.fetchedConn.fetchMore()
	r.fetchingConn, r.fetchedConn = nil, nil
}

// The steps of prefetching an association for a packet. Each is called when the memory of the step
// before it is there, or is about to come. The Conn may be nil. It is compared with nil in each
// step: otherwise the compiler looks at its memory, and waits for it.

// fetchHead prefetches the groups before the core, and half of the core: what each packet looks at.
func (c *Conn) fetchHead() {
	if c != nil {
		c.fetchGroups()
		c.core.Prefetch()
	}
}

// fetchGroups prefetches the groups before the core.
func (c *Conn) fetchGroups() { prefetch.Span(&c.t, &c.backlog.count) }

// fetchRest prefetches the rest of the core. It is too much to ask for with fetchHead.
func (c *Conn) fetchRest() {
	if c != nil {
		c.core.PrefetchRest()
	}
}

// fetchReader prefetches the stack of the goroutine that waits for a message.
func (c *Conn) fetchReader() {
	if c != nil {
		c.recv.blockedReader.FetchStack()
	}
}

// fetchMore prefetches what the groups and the core lead to.
func (c *Conn) fetchMore() {
	if c != nil {
		c.core.PrefetchNext()
		c.fetchPointees()
	}
}

// fetchPointees prefetches what the groups lead to.
func (c *Conn) fetchPointees() {
	prefetch.Pointee(&c.send.buffer.ring, messageFetchOctets)
	prefetch.Pointee(&c.send.buffer.msgs, int(unsafe.Sizeof(bufferedMessage{})))
	prefetch.Pointee(&c.recv.readable.tokenCh, channelFetchOctets)
}

// fetchLast prefetches what the runtime keeps of the goroutine that waits for a message.
func (c *Conn) fetchLast() {
	if c != nil && c.recv.socket == nil {
		prefetch.ChanReceiver(&c.recv.readable.tokenCh)
	}
}

// writePrefetch prefetches the memory that a WriteMsg looks at, and waiting for the answer. It does
// so in three steps, and once in a call, however often that waits.
type writePrefetch uint8

// The step that comes next.
const (
	prefetchNothing writePrefetch = iota
	prefetchLocked
	prefetchQueued
)

// beforeLock is the first step. It does nothing unless there are many associations; then the
// others do nothing either.
func (w *writePrefetch) beforeLock(c *Conn) {
	if transportsWithMany.Load() > 0 && c != nil {
		c.fetchGroups()
		c.core.PrefetchSend()
		*w = prefetchLocked
	}
}

// afterLock is the second step, with the association lock held.
func (w *writePrefetch) afterLock(c *Conn) {
	if *w == prefetchLocked {
		c.core.PrefetchNextSend()
		c.fetchPointees()
		*w = prefetchQueued
	}
}

// beforeSend is the third step, for a message that is in the send buffer.
func (w *writePrefetch) beforeSend(c *Conn) {
	if *w == prefetchQueued {
		c.core.PrefetchLastSend()
		*w = prefetchNothing
	}
}

// prefetchTimer prefetches what redistributeSlot looks at of a deadline behind the i-th.
func prefetchTimer(list []wheelEntry, i int) {
	if k := i + fetchTimersDistance; k < len(list) && list[k].c != nil {
		prefetch.Object(&list[k].c.timer)
	}
}
