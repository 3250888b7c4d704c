package rdma

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/fair"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp"
)

// Listener takes requests for sessions on one SCTP port.
type Listener struct {
	d  *Device
	sl *sctp.Listener

	mu      sync.Mutex    // a leaf lock
	req     []*Request    // guarded by mu: that wait for Accept
	waiting fair.Store    // places in req
	ready   chan struct{} // one token: there may be some

	once sync.Once
	done chan struct{}
}

// Listen takes requests on an SCTP port; 0 picks a free one. It fails with rawio.ErrPortInUse when the
// port is taken.
func (d *Device) Listen(port uint16) (*Listener, error) {
	l := &Listener{d: d, ready: make(chan struct{}, 1), done: make(chan struct{}),
		waiting: fair.Store{Max: int64(d.limits.MaxRequests)}}
	sl, err := d.t.Listen(port, d.sctpConfig(false, l, nil))
	if err != nil {
		return nil, err
	}
	l.sl = sl
	return l, nil
}

// Port returns the SCTP port.
func (l *Listener) Port() uint16 { return l.sl.Port() }

// Accept returns the next request. It fails with net.ErrClosed after Close and with the context's
// error when that ends first.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	for {
		if r := l.next(); r != nil {
			return r, nil
		}
		select {
		case <-l.ready:
		case <-l.done:
			return nil, net.ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// offer has a request wait for Accept, and says whether there is a place for it.
func (l *Listener) offer(r *Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done:
		return false
	default:
	}
	if !l.waiting.Take(r.from, 1) {
		return false
	}
	l.req = append(l.req, r)
	l.wake()
	return true
}

// wake lets one that waits in Accept look.
func (l *Listener) wake() {
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// next takes the oldest request, nil if there is none.
func (l *Listener) next() *Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.req) == 0 {
		return nil
	}
	r := l.req[0]
	l.req[0], l.req = nil, l.req[1:]
	l.waiting.Give(r.from, 1)
	if len(l.req) > 0 {
		l.wake() // the next one that waits
	}
	return r
}

// withdrawn forgets a request whose session has ended: whoever asks and leaves is not to fill the places of others, nor to have
// its association kept.
func (l *Listener) withdrawn(r *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.req, r); i >= 0 {
		l.waiting.Give(r.from, 1)
		l.req = slices.Delete(l.req, i, i+1)
	}
}

// Close stops taking requests, and ends those that nobody has accepted. QPs that were accepted live on.
func (l *Listener) Close() error {
	l.once.Do(func() {
		l.sl.Close()
		close(l.done) // what is offered from now on is refused; next waits for an offer that has not seen it
		for r := l.next(); r != nil; r = l.next() {
			r.p.conn.Gate().Lock()
			r.s.Abort()
			r.p.conn.Gate().Unlock()
		}
	})
	return nil
}

// Request is a peer's wish for a session (RFC 5043 section 6.4): answer it with Accept or Reject.
type Request struct {
	p       *peer
	s       *ddpadapt.Session
	private []byte
	setup   *Setup
	from    netip.Addr // by whose part of the Listener's places it waits
}

// PrivateData returns what the peer sent along, 512 octets at most (RFC 5043 section 5.2.3).
func (r *Request) PrivateData() []byte { return r.private }

// Setup returns what the peer says of itself and asks for, if it wants to negotiate (QPConfig.Negotiate,
// QPConfig.PeerToPeer).
func (r *Request) Setup() (s Setup, ok bool) {
	if r.setup == nil {
		return s, false
	}
	return *r.setup, true
}

// RemoteAddr returns the peer's address and SCTP port.
func (r *Request) RemoteAddr() netip.AddrPort { return r.p.remote() }

// Accept connects qp to the peer and sends private data, 512 octets at most, along. Post receives on
// qp first: the peer may send as soon as it learns of the acceptance. A peer that negotiates gets an answer in
// kind, with 508 octets of private data at most: the ORD of qp is cut to the peer's IRD.
func (r *Request) Accept(qp *QP, private []byte) error {
	if err := checkPrivate(private, r.setup != nil); err != nil {
		return err
	}
	if err := qp.reserve(); err != nil {
		return err
	}
	_, now := r.p.conn.Gate().Lock()
	defer r.p.conn.Gate().Unlock()
	if r.s.State() != ddpadapt.Pending {
		qp.release()
		return cmp.Or(r.s.Err(), ddpadapt.ErrState)
	}
	qp.held = qp.memory()
	r.p.queues += qp.held
	qp.bind(r.p, r.s) // first: segments that came early are delivered from within
	err := r.accept(now, qp, private)
	if err != nil {
		qp.uncharge(r.p)
	}
	qp.connected(err)
	return err
}

// accept answers the Initiate in kind. Under the gate.
func (r *Request) accept(now rawio.Time, qp *QP, private []byte) error {
	if r.setup == nil {
		return r.s.Accept(now, qp.core.Stream(), private)
	}
	reply := qp.answer(*r.setup)
	err := r.s.AcceptEnhanced(now, qp.core.Stream(), reply, private)
	if err == nil {
		qp.theirs = r.setup
		_ = qp.core.LimitORD(int(reply.ORD)) // it has not started, unless what came early has ended it
	}
	return err
}

// Reject refuses the session (RFC 5043 section 6.3); private data says why to the peer's program.
func (r *Request) Reject(private []byte) error {
	_, now := r.p.conn.Gate().Lock()
	defer r.p.conn.Gate().Unlock()
	return r.rejected(r.s.Reject(now, private))
}

func (r *Request) rejected(err error) error {
	if d := r.p.d; err == nil {
		d.count(&d.stats.Rejected)
	}
	return err
}

// RejectSetup refuses a peer that negotiates (RFC 6581 section 9.1), and says what would have been acceptable, such as the ORD
// that is needed here: the peer's IRD was less. It fails with ddpadapt.ErrState for one that does not negotiate.
func (r *Request) RejectSetup(s Setup, private []byte) error {
	_, now := r.p.conn.Gate().Lock()
	defer r.p.conn.Gate().Unlock()
	return r.rejected(r.s.RejectEnhanced(now, s, private))
}
