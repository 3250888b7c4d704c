package sctp

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

const (
	// writeTimeout is how long a caller waits for a WriteBatch, and lateWriteTimeout while another
	// one is late.
	writeTimeout     = 100 * time.Millisecond
	lateWriteTimeout = 10 * time.Millisecond

	// maxWriteCalls bounds the calls of WriteBatch at a time, each with a goroutine and a copy of
	// its packets.
	maxWriteCalls = 16
)

// boundedWriter writes to a link that may block (see rawio.Prompter). Its callers own an
// association, read the link or serve the timers, and others wait for them. So each WriteBatch of
// the link has a goroutine of its own and a copy of the packets. The caller stops waiting when the
// call is late. Packets to the same address are then dropped until it returns, as a network would.
type boundedWriter struct {
	writeLink   func([]rawio.Packet) (int, error) // to the link
	onLinkEnded func(error)                       // called when the link has ended
	callSlots   chan struct{}                     // has an element for each call in progress
	callPool    sync.Pool                         // *writeCall

	mu        sync.Mutex   // a leaf lock
	lateCalls []*writeCall // guarded by mu: in progress, and the caller has gone on
}

// writeCall is one call of WriteBatch, with packets to one address.
type writeCall struct {
	remote netip.Addr
	batch  packetBatch
	timer  *time.Timer
	done   chan struct{} // filled with boundedWriter.mu held: the call has returned
	n      int
	err    error
}

func newBoundedWriter(write func([]rawio.Packet) (int, error), ended func(error)) *boundedWriter {
	o := &boundedWriter{writeLink: write, onLinkEnded: ended, callSlots: make(chan struct{}, maxWriteCalls)}
	o.callPool.New = func() any { return &writeCall{timer: time.NewTimer(time.Hour), done: make(chan struct{}, 1)} }
	return o
}

// WriteBatch is WriteBatch of the link, but returns in bounded time.
func (o *boundedWriter) WriteBatch(pkts []rawio.Packet) (n int, err error) {
	for n < len(pkts) && err == nil {
		to, end := pkts[n].Remote.Addr(), n+1
		for end < len(pkts) && pkts[end].Remote.Addr() == to {
			end++
		}
		var k int
		k, err = o.sendToAddr(to, pkts[n:end])
		n += k
	}
	return n, err
}

// sendToAddr writes packets to one address. Those of a call that is late count as sent.
func (o *boundedWriter) sendToAddr(to netip.Addr, pkts []rawio.Packet) (n int, err error) {
	patience, drop := o.timeoutFor(to)
	if drop {
		return 0, rawio.ErrFull
	}
	c := o.callPool.Get().(*writeCall)
	c.timer.Reset(patience)
	select {
	case o.callSlots <- struct{}{}:
	case <-c.timer.C:
		o.callPool.Put(c)
		return 0, rawio.ErrFull
	}
	c.remote = to
	c.batch.reset()
	c.batch.appendCopies(pkts)
	go o.runCall(c)
	select {
	case <-c.done:
		c.timer.Stop()
	case <-c.timer.C:
		if o.abandonCall(c) {
			return len(pkts), nil
		}
		<-c.done
	}
	n, err = c.n, c.err
	o.callPool.Put(c)
	return n, err
}

// timeoutFor returns how long to wait for a call to an address, or that its packets are to be
// dropped.
func (o *boundedWriter) timeoutFor(to netip.Addr) (d time.Duration, drop bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case len(o.lateCalls) == 0:
		return writeTimeout, false
	case len(o.lateCalls) == maxWriteCalls,
		slices.ContainsFunc(o.lateCalls, func(c *writeCall) bool { return c.remote == to }):
		return 0, true
	}
	return lateWriteTimeout, false
}

// runCall is one call of WriteBatch.
func (o *boundedWriter) runCall(c *writeCall) {
	n, err := o.writeLink(c.batch.pkts)
	if err != nil && linkEnded(err) {
		o.onLinkEnded(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	c.n, c.err = n, err
	o.lateCalls = slices.DeleteFunc(o.lateCalls, func(l *writeCall) bool { return l == c })
	<-o.callSlots
	c.done <- struct{}{}
}

// abandonCall notes that the caller goes on without a call, unless that has returned. It then keeps
// the memory of the call, which is not used again.
func (o *boundedWriter) abandonCall(c *writeCall) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(c.done) > 0 {
		return false
	}
	o.lateCalls = append(o.lateCalls, c)
	return true
}

// awaitCalls returns when no call is in progress. There are none after it.
func (o *boundedWriter) awaitCalls() {
	for range maxWriteCalls {
		o.callSlots <- struct{}{}
	}
}
