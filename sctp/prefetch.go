package sctp

import (
	"sync/atomic"
	"unsafe"

	"github.com/rddp-go/rddp/internal/prefetch"
	"github.com/rddp-go/rddp/sctp/assoc"
)

const (
	// manyAssocsMin is how many associations a Transport has when the memory of those that packets
	// come for, or the program writes to, is mostly in no cache.
	manyAssocsMin = 512

	// fetchDistance is how many packets ahead fetch is called, fetchMoreDistance is for fetchReader
	// and fetchMore, and fetchLastDistance for fetchLast.
	fetchDistance     = 4
	fetchMoreDistance = 2
	fetchLastDistance = 1

	fetchTimersDistance = 8 // how many ahead fetchTimerFields is

	messageFetchOctets = 128 // of what a message lies in
	channelFetchOctets = 104 // of what its reader waits for
)

// transportsWithMany is how many Transports have a crowd: a program's caches are for all of them,
// and who writes a message is to know of it before the association is there.
var transportsWithMany atomic.Int32

// updateManyAssocs says whether there is a crowd when the number of associations has changed.
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

// connFor returns the association of the i-th of n packets, nil if it was handled or has none. What
// was left open is looked for now.
func (r *receiver) connFor(i, n int) *Conn {
	if r.t.manyAssocs.Load() {
		r.prefetchConns(i, n)
	}
	if r.isDeferred[i] {
		r.resolveDeferred(i)
	}
	return r.conns[i]
}

// prefetchConns has the memory come that the associations of those behind the i-th of n packets are
// about to need.
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

// prefetchRest is the other half of ahead, for when some work lies between.
func (r *receiver) prefetchRest() {
	r.fetchingConn.fetchRest()
	r.fetchedConn.fetchMore()
	r.fetchingConn, r.fetchedConn = nil, nil
}

// fetchHead has the memory come that each packet looks at of an association, which is too much to
// ask for at once: the rest is left to fetchRest. fetchMore is for what it leads to, fetchReader
// for who reads it, and fetchLast for the goroutine that waits there. Each is called when what is
// before it is there, or is to come at once. There may be none.
func (c *Conn) fetchHead() {
	if c != nil {
		prefetch.Range(c, 0, lockFetchedEnd)
		prefetch.Range(c, unsafe.Offsetof(c.numWriters), unsafe.Offsetof(c.a))
		assocOf(c).Prefetch()
	}
}

// lockFetchedEnd is where what is looked at of the gate ends.
const lockFetchedEnd = unsafe.Offsetof(Conn{}.assocLock) + unsafe.Offsetof(assocLock{}.backlogMu)

// assocOf is that of an association that is not looked at.
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

// fetchTimerFields has the memory come that says for when the timer of an association is set.
func (c *Conn) fetchTimerFields() {
	prefetch.Range(c, unsafe.Offsetof(c.timerAt), unsafe.Offsetof(c.heapID))
}

func (c *Conn) fetchMore() {
	if c != nil {
		assocOf(c).PrefetchNext()
		c.fetchConnPointees()
	}
}

// fetchToWrite has the memory come that writing a message looks at, and waiting for the answer, and
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
