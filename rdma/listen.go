package rdma

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/quota"
	"github.com/rddp-go/rddp/rawio"
)

// Listener takes requests for sessions on one port.
type Listener struct {
	dev   *Device
	lower lowerListener

	mu       sync.Mutex      // a leaf lock
	requests []*Request      // guarded by mu: that wait for Accept
	places   quota.Semaphore // places in req
	ready    chan struct{}   // one token: there may be some

	closeOnce sync.Once
	done      chan struct{}
}

// newListener makes a Listener that nothing hands requests to yet.
func (d *Device) newListener() *Listener {
	return &Listener{dev: d, ready: make(chan struct{}, 1), done: make(chan struct{}),
		places: quota.Semaphore{Max: int64(d.limits.MaxRequests)}}
}

// Port returns the port.
func (l *Listener) Port() uint16 { return l.lower.Port() }

// Accept returns the next request. It fails with net.ErrClosed after Close of the Listener or the
// Device, and with the context's error when that ends first.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	for {
		if r := l.nextRequest(); r != nil {
			return r, nil
		}
		select {
		case <-l.ready:
		case <-l.done:
			return nil, net.ErrClosed
		case <-l.dev.closing.Done():
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// offerRequest has a request wait for Accept, and says whether there is a place for it.
func (l *Listener) offerRequest(r *Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done:
		return false
	default:
	}
	if !l.places.TryAcquire(r.fromAddr, 1) {
		return false
	}
	l.requests = append(l.requests, r)
	l.wakeAccept()
	return true
}

// wakeAccept wakes one caller of Accept.
func (l *Listener) wakeAccept() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// nextRequest takes the oldest request, nil if there is none.
func (l *Listener) nextRequest() *Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.requests) == 0 {
		return nil
	}
	r := l.requests[0]
	l.requests[0], l.requests = nil, l.requests[1:]
	l.places.Release(r.fromAddr, 1)
	if len(l.requests) > 0 {
		l.wakeAccept() // the next one that waits
	}
	return r
}

// withdrawRequest forgets a request whose session has ended. A peer that asks and leaves must not
// fill the places of others, or keep its association.
func (l *Listener) withdrawRequest(r *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.requests, r); i >= 0 {
		l.places.Release(r.fromAddr, 1)
		l.requests = slices.Delete(l.requests, i, i+1)
	}
}

// Close stops taking requests, and ends those that nobody has accepted. QPs that were accepted live
// on.
func (l *Listener) Close() error {
	l.closeOnce.Do(func() {
		l.lower.Close()
		close(l.done) // later offers are refused; nextRequest waits for one that has not seen it
		for r := l.nextRequest(); r != nil; r = l.nextRequest() {
			r.abort()
		}
	})
	return nil
}

// Request is a peer's wish for a session (RFC 5043 section 6.4): answer it with Accept or Reject.
type Request struct {
	p        *peer
	session  session
	private  []byte
	setup    *Setup
	fromAddr netip.Addr // in whose share of the Listener's places it waits
}

// PrivateData returns what the peer sent along, 512 octets at most (RFC 5043 section 5.2.3).
func (r *Request) PrivateData() []byte { return r.private }

// Setup returns what the peer says of itself and asks for, if it wants to negotiate
// (QPConfig.Negotiate, QPConfig.PeerToPeer).
func (r *Request) Setup() (s Setup, ok bool) {
	if r.setup == nil {
		return s, false
	}
	return *r.setup, true
}

// RemoteAddr returns the peer's address and port.
func (r *Request) RemoteAddr() netip.AddrPort { return r.p.conn.remoteAddr() }

// Accept connects qp to the peer and sends private data along, 512 octets at most. Post receives on
// qp first: the peer may send as soon as it learns of the acceptance. A peer that negotiates gets
// an answer in kind, with 508 octets of private data at most. The ORD of qp is then cut to the
// peer's IRD. Where the peer has gone already, Accept fails and qp is as before: close it, or let
// it take another request.
func (r *Request) Accept(qp *QP, private []byte) error {
	if err := checkPrivateData(private, r.setup != nil); err != nil {
		return err
	}
	if err := qp.reserveSession(); err != nil {
		return err
	}
	now := r.p.conn.lock()
	defer r.p.conn.unlock()
	if !r.session.awaitsAnswer() {
		qp.cancelReservation()
		return cmp.Or(r.session.Err(), llp.ErrState)
	}
	qp.chargedOctets = qp.heldOctets()
	r.p.chargedOctets += qp.chargedOctets
	qp.bindSession(r.p, r.session) // first: segments that came early are delivered from within
	err := r.acceptSession(now, qp, private)
	if err != nil {
		qp.unchargePeer(r.p)
	}
	qp.finishSetup(err)
	return err
}

// acceptSession answers the peer in kind. Under the connection lock.
func (r *Request) acceptSession(now rawio.Time, qp *QP, private []byte) error {
	if r.setup == nil {
		return r.session.accept(now, qp.core.Stream(), nil, private)
	}
	reply := qp.setupAnswer(*r.setup)
	err := r.session.accept(now, qp.core.Stream(), &reply, private)
	if err == nil {
		qp.peerSetup = r.setup
		_ = qp.core.LimitORD(int(reply.ORD)) // it has not started, unless what came early has ended it
	}
	return err
}

// abort ends the session of a request that nobody has answered.
func (r *Request) abort() {
	r.p.conn.lock()
	r.session.Abort()
	r.p.conn.unlock()
}

// Reject refuses the session (RFC 5043 section 6.3); private data says why to the peer's program.
func (r *Request) Reject(private []byte) error {
	return r.reject(nil, private)
}

// reject refuses the session, by a setup if the peer negotiates.
func (r *Request) reject(setup *Setup, private []byte) error {
	now := r.p.conn.lock()
	err := r.session.reject(now, setup, private)
	r.p.conn.unlock()
	if err == nil {
		r.p.dev.countStat(&r.p.dev.stats.Rejected)
		r.p.conn.waitLeft()
	}
	return err
}

// RejectSetup refuses a peer that negotiates (RFC 6581 section 9.1). It says what would have been
// acceptable, such as the ORD needed here when the peer's IRD was less. It fails with
// llp.ErrState for a peer that does not negotiate.
func (r *Request) RejectSetup(s Setup, private []byte) error {
	return r.reject(&s, private)
}
