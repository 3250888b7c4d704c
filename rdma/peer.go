package rdma

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// peer is one association of a Device: the Upper of its sctp.Conn. The embedded Mux places,
// supplies and orders; peer tells QPs and Listeners what became of their sessions.
type peer struct {
	*ddpadapt.Mux // owner of the association only

	a             *assoc.Assoc
	dev           *Device
	conn          *sctp.Conn
	listener      *Listener  // nil on the side that set the association up
	closingQPs    []*QP      // owner only: the peer has ended its half; ours follows
	flushingQPs   []*QP      // owner only: that have asked for QP.Flush
	streamClaims  int        // owner only: Connects about to open a session
	chargedOctets int        // owner only: octets of the QPs of sessions that the peer has begun
	vacantSweeps  int        // owner only: sweeps without a session
	isUp          bool       // owner only: the association is established, as far as events tell
	now           rawio.Time // owner only
	latency       Latency    // owner only: of the QPs' requests

	mu              sync.Mutex // a leaf lock
	deferred        []func()   // guarded by mu: to be called when the association lock is free
	runningDeferred bool       // guarded by mu: somebody calls one of them
	cqsToNotify     []*CQ      // guarded by mu: to be notified then
	hasDeferred     atomic.Bool
}

func newPeer(d *Device, conn *sctp.Conn, a *assoc.Assoc, initiator bool, l *Listener) *peer {
	p := &peer{a: a, dev: d, conn: conn, listener: l}
	pending := d.limits.MaxPending
	if l == nil {
		pending = -1 // nobody listens here: every Initiate is refused
	}
	p.Mux = ddpadapt.NewMux(a, ddpadapt.Config{Initiator: initiator, MaxPending: pending,
		MaxEarly: d.limits.MaxEarly, MaxOutOfOrder: d.limits.MaxOutOfOrder})
	return p
}

// remoteAddr returns the peer's address and SCTP port.
func (p *peer) remoteAddr() netip.AddrPort { return p.conn.RemoteAddr().(sctp.Addr).AddrPort }

// remoteAddrLocked is remote for the owner of the association.
func (p *peer) remoteAddrLocked() netip.AddrPort {
	return netip.AddrPortFrom(p.a.PeerAddr().Addr(), p.a.PeerPort())
}

// requestOctets is the memory of a request that waits for Listener.Accept, without its private
// data.
const requestOctets = int(unsafe.Sizeof(Request{})) + 128

// Held returns the octets of memory that the peer makes this side hold. Owner only.
func (p *peer) Held() int {
	return int(unsafe.Sizeof(*p)) + p.Mux.Held() + p.chargedOctets +
		p.Mux.Pending()*(requestOctets+llp.MaxPrivateData)
}

// lockAssoc takes the association lock.
func (p *peer) lockAssoc() *peer {
	_, p.now = p.conn.Upper().Lock()
	return p
}

// claimStream keeps the association for one more session; it returns false when it has ended or is
// full.
func (p *peer) claimStream() bool {
	p.conn.Upper().Lock()
	defer p.conn.Upper().Unlock()
	if p.Err() != nil || p.a.State() != assoc.Established || p.Sessions()+p.streamClaims >= p.Streams() {
		return false
	}
	p.streamClaims++
	return true
}

// shutdownIfUnused ends an association that this side set up once it has no session left (RFC 5041
// section 3).
func (p *peer) shutdownIfUnused(now rawio.Time) {
	if p.listener == nil && p.Sessions() == 0 && p.streamClaims == 0 && p.a.State() == assoc.Established {
		p.a.Shutdown(now)
	}
}

// eventsPerCall is how many events of sessions are handled before others are served: all sessions
// may end at once.
const eventsPerCall = 8

// Place is that of the Mux, at a known time.
func (p *peer) Place(now rawio.Time, d wire.Data, buf *rawio.Buf) assoc.Verdict {
	p.now = now
	return p.Mux.Place(now, d, buf)
}

// PlaceRow is that of the Mux, at a known time.
func (p *peer) PlaceRow(now rawio.Time, row assoc.Row) int {
	p.now = now
	return p.Mux.PlaceRow(now, row)
}

// Acked is that of the Mux, at a known time.
func (p *peer) Acked(now rawio.Time, id wire.StreamID, token uint64) {
	p.now = now
	p.Mux.Acked(now, id, token)
}

// AckedRun is that of the Mux, at a known time.
func (p *peer) AckedRun(now rawio.Time, id wire.StreamID, token uint64, n int) {
	p.now = now
	p.Mux.AckedRun(now, id, token, n)
}

// HandleReceived takes what came fragmented, and then what all that has happened means to sessions.
func (p *peer) HandleReceived(now rawio.Time) (more bool) {
	p.now = now
	more = p.Mux.HandleReceived(now)
	if len(p.flushingQPs) > 0 {
		p.flushingQPs[0].core.Flush() // which may ask for more
		p.flushingQPs = slices.Delete(p.flushingQPs, 0, 1)
		more = more || len(p.flushingQPs) > 0
	}
	for _, q := range p.closingQPs {
		q.core.Close()
	}
	p.closingQPs = p.closingQPs[:0]
	for range eventsPerCall {
		if !p.Eventful() {
			return more
		}
		ev, ok := p.PollEvent()
		if !ok {
			return more
		}
		p.handleSessionEvent(ev)
		// EventUp: or a restart has undone what was begun before.
		if ev.Kind == ddpadapt.EventEnded || ev.Kind == ddpadapt.EventUp {
			p.shutdownIfUnused(now)
		}
	}
	return true
}

func (p *peer) handleSessionEvent(ev ddpadapt.Event) {
	if ev.Session == nil {
		p.reportAssoc(ev.Kind == ddpadapt.EventUp, ev.Err)
		return
	}
	if r, ok := ev.Session.Owner.(*Request); ok && ev.Kind != ddpadapt.EventInitiate { // nobody has answered it
		p.deferCall(func() { p.listener.withdrawRequest(r) })
	}
	q, _ := ev.Session.Owner.(*QP)
	switch ev.Kind {
	case ddpadapt.EventInitiate:
		p.offerRequest(ev)
	case ddpadapt.EventAccepted:
		q.handleAccepted(ev)
	case ddpadapt.EventRejected:
		q.finishSetup(ev.Err)
		q.finishSession(ev.Err)
	case ddpadapt.EventTerminated:
		if q != nil {
			q.handleTerminated(ev)
		}
	case ddpadapt.EventEnded:
		if q != nil {
			q.finishSession(nil)
		}
	case ddpadapt.EventDown:
		if q != nil {
			q.finishSetup(ev.Err)
			q.finishSession(ev.Err)
		}
	}
}

// offerRequest hands an Initiate to the listener.
func (p *peer) offerRequest(ev ddpadapt.Event) {
	r := &Request{p: p, session: ev.Session, private: ev.Private, setup: ev.Setup}
	r.session.Owner = r
	p.deferCall(func() {
		if r.fromAddr = p.remoteAddr().Addr(); p.listener.offerRequest(r) {
			return
		}
		// Nobody accepts: the limit of section 6.4 at the level of the listener.
		p.dev.countStat(&p.dev.stats.RequestsDropped)
		p.conn.Upper().Lock()
		r.session.Abort()
		p.conn.Upper().Unlock()
	})
}

// deferCall has f called when the association lock is free. It is for rare calls.
func (p *peer) deferCall(f func()) {
	p.mu.Lock()
	p.deferred = append(p.deferred, f)
	p.mu.Unlock()
	p.hasDeferred.Store(true)
}

// deferNotify has cq notified when the association lock is free.
func (p *peer) deferNotify(cq *CQ) {
	p.mu.Lock()
	p.cqsToNotify = append(p.cqsToNotify, cq)
	p.mu.Unlock()
	p.hasDeferred.Store(true)
}

// Settled does what must not be done under the association lock. If two goroutines are here, one
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
