package sctp

import (
	"sync/atomic"
	"unsafe"

	"github.com/rddp-go/rddp/internal/ahead"
	"github.com/rddp-go/rddp/sctp/assoc"
)

const (
	// crowded is how many associations a Transport has when the memory of those that packets come for, or the program writes to, is mostly in no cache.
	crowded = 512

	// fetchFirst is how many packets ahead fetch is called, fetchNext is for fetchReader and fetchMore, and fetchEnd for fetchLast.
	fetchFirst = 4
	fetchNext  = 2
	fetchEnd   = 1

	fetchTimers = 8 // how many ahead fetchTimes is

	fetchOctets   = 128 // of what a message lies in
	channelOctets = 104 // of what its reader waits for
)

// crowds is how many Transports have a crowd: a program's caches are for all of them, and who writes a message is to know of it before the association is there.
var crowds atomic.Int32

// counted says whether there is a crowd when the number of associations has changed. Called with mu held.
func (t *Transport) counted() {
	if is := len(t.conns) >= crowded; is != t.crowd.Load() {
		t.crowd.Store(is)
		if is {
			crowds.Add(1)
		} else {
			crowds.Add(-1)
		}
	}
}

// whose returns the association of the i-th of n packets, nil if it was handled or has none. What was left open is looked for now.
func (r *receiver) whose(i, n int) *Conn {
	if r.t.crowd.Load() {
		r.ahead(i, n)
	}
	if r.open[i] {
		r.seek(i)
	}
	return r.conns[i]
}

// ahead has the memory come that the associations of those behind the i-th of n packets are about to need.
func (r *receiver) ahead(i, n int) {
	if i == 0 {
		for k := range min(fetchFirst, n) {
			r.conns[k].fetch()
		}
		for k := range min(fetchFirst, n) {
			r.conns[k].fetchRest()
		}
		for k := range min(fetchNext, n) {
			r.conns[k].fetchReader()
			r.conns[k].fetchMore()
		}
		r.conns[0].fetchLast()
	}
	if k := i + fetchFirst; k < n {
		r.conns[k].fetch()
		r.halfway = r.conns[k]
	}
	if k := i + fetchNext; k < n {
		r.conns[k].fetchReader()
		r.fetched = r.conns[k]
	}
	if k := i + fetchEnd; k < n {
		r.conns[k].fetchLast()
	}
}

// aheadStill is the other half of ahead, for when some work lies between.
func (r *receiver) aheadStill() {
	r.halfway.fetchRest()
	r.fetched.fetchMore()
	r.halfway, r.fetched = nil, nil
}

// fetch has the memory come that each packet looks at of an association, which is too much to ask for at once: the rest is left to fetchRest. fetchMore is for what it leads
// to, fetchReader for who reads it, and fetchLast for the goroutine that waits there. Each is called when what is before it is there, or is to come at once. There may be none.
func (c *Conn) fetch() {
	if c != nil {
		ahead.Part(c, 0, gateFetched)
		ahead.Part(c, unsafe.Offsetof(c.writers), unsafe.Offsetof(c.a))
		core(c).Fetch()
	}
}

// gateFetched is where what is looked at of the gate ends.
const gateFetched = unsafe.Offsetof(Conn{}.gate) + unsafe.Offsetof(gate{}.mu)

// core is that of an association that is not looked at.
func core(c *Conn) *assoc.Assoc { return ahead.In[assoc.Assoc](c, unsafe.Offsetof(c.a)) }

func (c *Conn) fetchRest() {
	if c != nil {
		core(c).FetchRest()
	}
}

func (c *Conn) fetchReader() {
	if c != nil {
		c.reader.Wakes()
	}
}

// fetchTimes has the memory come that says for when the timer of an association is set.
func (c *Conn) fetchTimes() {
	ahead.Part(c, unsafe.Offsetof(c.due), unsafe.Offsetof(c.heapNumber))
}

func (c *Conn) fetchMore() {
	if c != nil {
		core(c).FetchMore()
		c.fetchOwn()
	}
}

// fetchToWrite has the memory come that writing a message looks at, and waiting for the answer, and fetchMoreToWrite is fetchMore for that.
func (c *Conn) fetchToWrite() {
	ahead.Part(c, 0, gateFetched)
	ahead.Part(c, unsafe.Offsetof(c.rdl), unsafe.Offsetof(c.a))
	core(c).FetchToSend()
}

func (c *Conn) fetchMoreToWrite() {
	core(c).FetchMoreToSend()
	c.fetchOwn()
}

// fetchLastToWrite is the third step.
func (c *Conn) fetchLastToWrite() { core(c).FetchLastToSend() }

// fetchOwn is fetchMore for what the Conn leads to.
func (c *Conn) fetchOwn() {
	ahead.Behind(&c.sendbuf.ring, fetchOctets)
	ahead.Behind(&c.sendbuf.msgs, int(unsafe.Sizeof(written{})))
	ahead.Behind(&c.readable.c, channelOctets)
}

func (c *Conn) fetchLast() {
	if c != nil && c.socket == nil {
		ahead.Receiver(&c.readable.c)
	}
}
