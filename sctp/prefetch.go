package sctp

import (
	"sync/atomic"
	"unsafe"

	"github.com/rddp-go/rddp/internal/prefetch"
	"github.com/rddp-go/rddp/sctp/assoc"
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

	fetchTimersDistance = 8 // how many ahead fetchTimerFields is

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

// connFor returns the association of the i-th of n packets, nil if it was handled or has none. It
// resolves a deferred packet now.
func (r *receiver) connFor(i, n int) *Conn {
	if r.t.manyAssocs.Load() {
		r.prefetchConns(i, n)
	}
	if r.isDeferred[i] {
		r.resolveDeferred(i)
	}
	return r.conns[i]
}

// prefetchConns prefetches the memory that the associations of the packets behind the i-th of n
// will need.
func (r *receiver) prefetchConns(i, n int) {
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

// fetchHead prefetches the memory of an association that each packet looks at. That is too much to
// ask for at once: the rest is left to fetchRest. fetchMore is for what it leads to, fetchReader
// for the reader, and fetchLast for the goroutine that waits there. Each is called when what is
// before it is there, or is to come at once. The Conn may be nil.
func (c *Conn) fetchHead() {
	if c != nil {
		prefetch.Range(c, 0, lockFetchedEnd)
		prefetch.Range(c, unsafe.Offsetof(c.numWriters), unsafe.Offsetof(c.a))
		assocOf(c).Prefetch()
	}
}

// lockFetchedEnd is where the prefetched part of the lock ends.
const lockFetchedEnd = unsafe.Offsetof(Conn{}.assocLock) + unsafe.Offsetof(assocLock{}.backlogMu)

// assocOf returns the core of an association without a look at its memory.
func assocOf(c *Conn) *assoc.Assoc { return prefetch.FieldAt[assoc.Assoc](c, unsafe.Offsetof(c.a)) }

func (c *Conn) fetchRest() {
	if c != nil {
		assocOf(c).PrefetchRest()
	}
}

func (c *Conn) fetchReader() {
	if c != nil {
		c.blockedReader.FetchStack()
	}
}

// fetchTimerFields prefetches the fields for the timer of an association.
func (c *Conn) fetchTimerFields() {
	prefetch.Range(c, unsafe.Offsetof(c.timerAt), unsafe.Offsetof(c.heapID))
}

func (c *Conn) fetchMore() {
	if c != nil {
		assocOf(c).PrefetchNext()
		c.fetchConnPointees()
	}
}

// fetchToWrite prefetches the memory that writing a message and waiting for the answer look at.
// fetchMoreToWrite is fetchMore for that.
func (c *Conn) fetchToWrite() {
	prefetch.Range(c, 0, lockFetchedEnd)
	prefetch.Range(c, unsafe.Offsetof(c.readDeadline), unsafe.Offsetof(c.a))
	assocOf(c).PrefetchSend()
}

func (c *Conn) fetchMoreToWrite() {
	assocOf(c).PrefetchNextSend()
	c.fetchConnPointees()
}

// fetchLastToWrite is the third step.
func (c *Conn) fetchLastToWrite() { assocOf(c).PrefetchLastSend() }

// fetchConnPointees is fetchMore for what the Conn leads to.
func (c *Conn) fetchConnPointees() {
	prefetch.Pointee(&c.sendbuf.ring, messageFetchOctets)
	prefetch.Pointee(&c.sendbuf.msgs, int(unsafe.Sizeof(bufferedMessage{})))
	prefetch.Pointee(&c.readable.tokenCh, channelFetchOctets)
}

func (c *Conn) fetchLast() {
	if c != nil && c.socket == nil {
		prefetch.ChanReceiver(&c.readable.tokenCh)
	}
}
