package rdma

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// callerSignal is a signal of a Device without a link. A goroutine that waits for a completion of
// one TCP connection reads it meanwhile.
type callerSignal struct {
	token       chan struct{}
	reads       atomic.Pointer[tcpConn] // that the waiting goroutine reads, while that may block
	waitEndedAt rawio.Time              // when the waiting goroutine returned last; its own
}

func newCallerSignal() *callerSignal { return &callerSignal{token: make(chan struct{}, 1)} }

func (s *callerSignal) C() <-chan struct{} { return s.token }

func (s *callerSignal) Set() {
	select {
	case s.token <- struct{}{}:
	default:
		return
	}
	s.rouse()
}

// rouse makes a goroutine that reads look at its channels.
func (s *callerSignal) rouse() {
	if t := s.reads.Load(); t != nil {
		t.interruptRead()
	}
}

func (s *callerSignal) Brings() {}

func (s *callerSignal) Wait(a, b <-chan struct{}) bool {
	select {
	case <-s.token:
		return true
	case <-a:
	case <-b:
	}
	return false
}

// waitReady waits until ready is set, which it reports, or ctx ends. The goroutine may read the
// only TCP connection that has completions for c meanwhile.
func (c *CQ) waitReady(ctx context.Context) (set bool) {
	s, ok := c.ready.(*callerSignal)
	if !ok {
		c.ctxWatch.watchContext(ctx, c.dev)
		return c.ready.Wait(ctx.Done(), nil)
	}
	c.ctxWatch.watchContext(ctx, s)
	if t := c.soleTCPConn(); t != nil {
		return s.waitReading(t, ctx.Done())
	}
	return s.Wait(ctx.Done(), nil)
}

// soleTCPConn returns the TCP connection of the only QP that completes here, nil if there is none.
func (c *CQ) soleTCPConn() *tcpConn {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.qps) != 1 {
		return nil
	}
	for _, a := range c.qps {
		if p := a.qp.peer.Load(); p != nil {
			t, _ := p.conn.(*tcpConn)
			return t
		}
	}
	return nil
}

// quickReturn is how soon a goroutine has to wait again to read the connection itself.
const quickReturn = time.Millisecond

// waitReading is Wait for a goroutine that may read t.
func (s *callerSignal) waitReading(t *tcpConn, done <-chan struct{}) (set bool) {
	select {
	case <-s.token:
		return true // at once: this says nothing of how quick the caller is
	default:
	}
	set = s.readOrWait(t, done)
	s.waitEndedAt = readClock()
	return set
}

// readOrWait reads t until the signal is set or done is closed. It waits if it may not read, or can
// no more.
func (s *callerSignal) readOrWait(t *tcpConn, done <-chan struct{}) (set bool) {
	if t.role.Take(t.lends.Load(), readClock().Sub(s.waitEndedAt) < quickReturn) {
		set, ended := s.readUntilSet(t, done)
		t.role.Leave(readClock(), t.lends.Load() && t.waiters.Load() == 0)
		if !ended {
			return set
		}
	}
	t.waiters.Add(1)
	defer t.waiters.Add(-1)
	return s.Wait(done, nil)
}

// readUntilSet reads t until the signal is set or done is closed. ended says that there is nothing
// to read any more. The caller has the role.
func (s *callerSignal) readUntilSet(t *tcpConn, done <-chan struct{}) (set, ended bool) {
	defer s.reads.Store(nil)
	for t.in.outcome == readOn {
		s.reads.Store(t) // from here on Set and rouse have readOnce return
		select {
		case <-s.token:
			return true, false
		case <-done:
			return false, false
		default:
			t.readOnce(s)
		}
	}
	return false, true
}

// interruptRead has the goroutine that reads leave its system call.
func (t *tcpConn) interruptRead() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.readInterrupted && !t.isOver {
		t.readInterrupted = true
		t.nc.SetReadDeadline(longAgo)
	}
}
