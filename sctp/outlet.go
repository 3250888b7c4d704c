package sctp

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

const (
	// outletPatience is how long a caller waits for a WriteBatch, and outletLess while another one is late.
	outletPatience = 100 * time.Millisecond
	outletLess     = 10 * time.Millisecond

	// outletMost bounds the calls of WriteBatch at a time, each with a goroutine and a copy of its packets.
	outletMost = 16
)

// outlet writes to a link that may block (see rawio.Prompter). Its callers own an association, read
// the link or serve the timers, and others wait for them. So each WriteBatch of the link has a
// goroutine of its own, and a copy of the packets, and the caller stops waiting when it is late.
// Packets to the same address are then dropped until it returns, as a network would.
type outlet struct {
	write func([]rawio.Packet) (int, error) // to the link
	ended func(error)                       // called when the link has ended
	calls chan struct{}                     // has an element for each call in progress
	idle  sync.Pool                         // *outletCall

	mu   sync.Mutex    // a leaf lock
	late []*outletCall // guarded by mu: in progress, and the caller has gone on
}

// outletCall is one call of WriteBatch, with packets to one address.
type outletCall struct {
	to    netip.Addr
	out   combined
	timer *time.Timer
	done  chan struct{} // filled with outlet.mu held: the call has returned
	n     int
	err   error
}

func newOutlet(write func([]rawio.Packet) (int, error), ended func(error)) *outlet {
	o := &outlet{write: write, ended: ended, calls: make(chan struct{}, outletMost)}
	o.idle.New = func() any { return &outletCall{timer: time.NewTimer(time.Hour), done: make(chan struct{}, 1)} }
	return o
}

// WriteBatch is that of the link, but returns in bounded time.
func (o *outlet) WriteBatch(pkts []rawio.Packet) (n int, err error) {
	for n < len(pkts) && err == nil {
		to, end := pkts[n].Remote.Addr(), n+1
		for end < len(pkts) && pkts[end].Remote.Addr() == to {
			end++
		}
		var k int
		k, err = o.send(to, pkts[n:end])
		n += k
	}
	return n, err
}

// send writes packets to one address. Those of a call that is late count as sent.
func (o *outlet) send(to netip.Addr, pkts []rawio.Packet) (n int, err error) {
	patience, drop := o.patience(to)
	if drop {
		return 0, rawio.ErrFull
	}
	c := o.idle.Get().(*outletCall)
	c.timer.Reset(patience)
	select {
	case o.calls <- struct{}{}:
	case <-c.timer.C:
		o.idle.Put(c)
		return 0, rawio.ErrFull
	}
	c.to = to
	c.out.reset()
	c.out.add(pkts)
	go o.call(c)
	select {
	case <-c.done:
		c.timer.Stop()
	case <-c.timer.C:
		if o.leave(c) {
			return len(pkts), nil
		}
		<-c.done
	}
	n, err = c.n, c.err
	o.idle.Put(c)
	return n, err
}

// patience returns how long to wait for a call to an address, or that its packets are to be dropped.
func (o *outlet) patience(to netip.Addr) (d time.Duration, drop bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case len(o.late) == 0:
		return outletPatience, false
	case len(o.late) == outletMost, slices.ContainsFunc(o.late, func(c *outletCall) bool { return c.to == to }):
		return 0, true
	}
	return outletLess, false
}

// call is one call of WriteBatch.
func (o *outlet) call(c *outletCall) {
	n, err := o.write(c.out.pkts)
	if err != nil && linkEnded(err) {
		o.ended(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	c.n, c.err = n, err
	o.late = slices.DeleteFunc(o.late, func(l *outletCall) bool { return l == c })
	<-o.calls
	c.done <- struct{}{}
}

// leave notes that the caller goes on without a call, unless that has returned. It then keeps the
// memory of the call, which is not used again.
func (o *outlet) leave(c *outletCall) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(c.done) > 0 {
		return false
	}
	o.late = append(o.late, c)
	return true
}

// drain returns when no call is in progress. There are none after it.
func (o *outlet) drain() {
	for range outletMost {
		o.calls <- struct{}{}
	}
}
