package rdma

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
)

// peer is a connection as QPs and Listeners see it, of whichever transport. It tells them what
// became of their sessions. The holder of the connection lock owns what does not say otherwise.
type peer struct {
	conn          connection // what it is the peer of
	dev           *Device
	listener      *Listener // nil on the side that set the connection up
	closingQPs    []*QP     // the peer has ended its half; ours follows
	flushingQPs   []*QP     // that have asked for QP.Flush
	chargedOctets int       // octets of the QPs of sessions that the peer has begun
	isUp          bool      // the connection is established, as far as events tell
	now           rawio.Time
	latency       Latency // of the QPs' requests

	mu              sync.Mutex // a leaf lock
	deferred        []func()   // guarded by mu: to be called when the connection lock is free
	runningDeferred bool       // guarded by mu: somebody calls one of them
	cqsToNotify     []*CQ      // guarded by mu: to be notified then
	hasDeferred     atomic.Bool
}

// requestOctets is the memory of a request that waits for Listener.Accept, without its private
// data.
const requestOctets = int(unsafe.Sizeof(Request{})) + 128

// lockConn takes the connection lock.
func (p *peer) lockConn() *peer {
	p.now = p.conn.lock()
	return p
}

// runQPWork does what QPs have asked for, or a part of it: then it reports more.
func (p *peer) runQPWork() (more bool) {
	if len(p.flushingQPs) > 0 {
		p.flushingQPs[0].core.Flush() // which may ask for more
		p.flushingQPs = slices.Delete(p.flushingQPs, 0, 1)
		more = len(p.flushingQPs) > 0
	}
	for _, q := range p.closingQPs {
		q.core.Close()
	}
	p.closingQPs = p.closingQPs[:0]
	return more
}

// offerRequest hands a request of the peer to the listener.
func (p *peer) offerRequest(s session, private []byte, setup *Setup) {
	r := &Request{p: p, session: s, private: private, setup: setup}
	s.setOwner(r)
	p.deferCall(func() {
		if r.fromAddr = p.conn.remoteAddr().Addr(); p.listener.offerRequest(r) {
			return
		}
		// Nobody accepts: the limit of RFC 5043 section 6.4 at the level of the listener.
		p.dev.countStat(&p.dev.stats.RequestsDropped)
		r.abort()
	})
}

// withdrawRequest forgets a request that nobody has answered, and whose session has ended.
func (p *peer) withdrawRequest(r *Request) {
	p.deferCall(func() { p.listener.withdrawRequest(r) })
}

// deferCall has f called when the connection lock is free. It is for rare calls.
func (p *peer) deferCall(f func()) {
	p.mu.Lock()
	p.deferred = append(p.deferred, f)
	p.mu.Unlock()
	p.hasDeferred.Store(true)
}

// deferNotify has cq notified when the connection lock is free.
func (p *peer) deferNotify(cq *CQ) {
	p.mu.Lock()
	p.cqsToNotify = append(p.cqsToNotify, cq)
	p.mu.Unlock()
	p.hasDeferred.Store(true)
}

// Settled does what must not be done under the connection lock. If two goroutines are here, one
// makes the deferred calls, in their order: a request is offered before it is withdrawn.
func (p *peer) Settled() {
	for p.hasDeferred.Load() && p.hasDeferred.Swap(false) {
		for more := true; more; {
			var cq *CQ
			var f func()
			if cq, f, more = p.nextDeferred(); cq != nil {
				cq.notifyWaiters()
			} else if f != nil {
				f()
			}
		}
	}
}

// nextDeferred returns a CQ to notify or a function to call, nil if there is neither, and whether
// there is more.
func (p *peer) nextDeferred() (cq *CQ, f func(), more bool) {
	p.mu.Lock()
	if n := len(p.cqsToNotify); n > 0 {
		cq = p.cqsToNotify[n-1]
		p.cqsToNotify = p.cqsToNotify[:n-1]
	} else if len(p.deferred) > 0 && !p.runningDeferred {
		first := p.deferred[0]
		p.deferred[0] = nil
		p.deferred, p.runningDeferred = p.deferred[1:], true
		f = func() {
			first()
			p.mu.Lock()
			p.runningDeferred = false
			p.mu.Unlock()
		}
	}
	// What comes while f is called is left to the goroutine that calls it.
	more = f != nil || len(p.cqsToNotify) > 0 || len(p.deferred) > 0 && !p.runningDeferred
	p.mu.Unlock()
	return cq, f, more
}
