package sctp

import "github.com/rddp-go/rddp/internal/ahead"

const (
	// crowded is how many associations a Transport has when the memory of those that packets come for, or the program writes to, is mostly in no cache.
	crowded = 512

	// fetchFirst is how many packets ahead the memory of an association is asked for, fetchNext what that leads to, and fetchLast what that does.
	fetchFirst = 4
	fetchNext  = 2
	fetchLast  = 1

	fetchOctets = 128 // of what a message lies in, and of what its reader waits for
)

// whose returns the association of the i-th of n packets, nil if it was handled or has none, and has the memory come that those behind it are about to need.
func (r *receiver) whose(i, n int) *Conn {
	switch {
	case !r.t.crowd.Load():
		return r.conns[i]
	case i == 0:
		for k := range min(fetchFirst, n) {
			r.conns[k].fetch()
		}
		for k := range min(fetchNext, n) {
			r.conns[k].fetchMore()
		}
		r.conns[0].fetchRest()
	}
	if i+fetchFirst < n {
		r.conns[i+fetchFirst].fetch()
	}
	if i+fetchNext < n {
		r.conns[i+fetchNext].fetchMore()
	}
	if i+fetchLast < n {
		r.conns[i+fetchLast].fetchRest()
	}
	return r.conns[i]
}

// fetch has the memory come that each packet, read and write looks at; fetchMore what it leads to, and fetchRest what that does. Each is called when what is before
// it is there, or is to come at once.
func (c *Conn) fetch() {
	if c != nil {
		ahead.Span(&c.gate.own, &c.readable)
		c.a.Fetch()
	}
}

func (c *Conn) fetchMore() {
	if c != nil {
		c.a.FetchMore()
		ahead.Behind(&c.sendbuf.ring, fetchOctets)
		ahead.Behind(&c.sendbuf.msgs, fetchOctets)
		ahead.Behind(&c.readable.c, fetchOctets)
	}
}

func (c *Conn) fetchRest() {
	if c != nil {
		c.a.FetchLast()
	}
}
