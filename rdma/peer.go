package rdma

import (
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// peer is one association of a Device: the Upper of its sctp.Conn. The embedded Mux places, supplies
// and orders; peer tells QPs and Listeners what became of their sessions.
type peer struct {
	*ddpadapt.Mux // owner of the association only

	a        *assoc.Assoc
	d        *Device
	conn     *sctp.Conn
	listener *Listener  // nil on the side that set the association up
	closing  []*QP      // owner only: the peer has ended its half; ours follows
	flushing []*QP      // owner only: that have asked for QP.Flush
	claims   int        // owner only: Connects about to open a session
	queues   int        // owner only: octets of the QPs of sessions that the peer has begun
	vacant   int        // owner only: sweeps without a session
	up       bool       // owner only: the association is established, as far as events tell
	now      rawio.Time // owner only
	latency  Latency    // owner only: of the QPs' requests

	mu      sync.Mutex // a leaf lock
	after   []func()   // guarded by mu: to be called when the gate is open
	calling bool       // guarded by mu: somebody calls one of them
	cqs     []*CQ      // guarded by mu: to be notified then
	some    atomic.Bool
}

func newPeer(d *Device, conn *sctp.Conn, a *assoc.Assoc, initiator bool, l *Listener) *peer {
	p := &peer{a: a, d: d, conn: conn, listener: l}
	pending := d.limits.MaxPending
	if l == nil {
		pending = -1 // nobody listens here: every Initiate is refused
	}
	p.Mux = ddpadapt.NewMux(a, ddpadapt.Config{Initiator: initiator, MaxPending: pending,
		MaxEarly: d.limits.MaxEarly, MaxOutOfOrder: d.limits.MaxOutOfOrder})
	return p
}

// remote returns the peer's address and SCTP port.
func (p *peer) remote() netip.AddrPort { return p.conn.RemoteAddr().(sctp.Addr).AddrPort }

// addr is remote for the owner of the association.
func (p *peer) addr() netip.AddrPort {
	return netip.AddrPortFrom(p.a.PeerAddr().Addr(), p.a.PeerPort())
}

// requestHeld is the memory of a request that waits for Listener.Accept, without its private data.
const requestHeld = int(unsafe.Sizeof(Request{})) + 128

// Held returns the octets of memory that the peer makes this side hold. Owner only.
func (p *peer) Held() int {
	return int(unsafe.Sizeof(*p)) + p.Mux.Held() + p.queues + p.Mux.Pending()*(requestHeld+ddpadapt.MaxPrivateData)
}

// lock takes the gate.
func (p *peer) lock() *peer {
	_, p.now = p.conn.Gate().Lock()
	return p
}

// claim keeps the association for one more session; it returns false when it has ended or is full.
func (p *peer) claim() bool {
	p.conn.Gate().Lock()
	defer p.conn.Gate().Unlock()
	if p.Err() != nil || p.a.State() != assoc.Established || p.Sessions()+p.claims >= p.Streams() {
		return false
	}
	p.claims++
	return true
}

// leave ends an association that this side set up once it has no session left (RFC 5041 section 3).
func (p *peer) leave(now rawio.Time) {
	if p.listener == nil && p.Sessions() == 0 && p.claims == 0 && p.a.State() == assoc.Established {
		p.a.Shutdown(now)
	}
}

// eventsAtOnce is how many events of sessions are handled before others are served: all sessions may end at once.
const eventsAtOnce = 8

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
	if len(p.flushing) > 0 {
		p.flushing[0].core.Flush() // which may ask for more
		p.flushing = slices.Delete(p.flushing, 0, 1)
		more = more || len(p.flushing) > 0
	}
	for _, q := range p.closing {
		q.core.Close()
	}
	p.closing = p.closing[:0]
	for range eventsAtOnce {
		if !p.Eventful() {
			return more
		}
		ev, ok := p.PollEvent()
		if !ok {
			return more
		}
		p.handle(ev)
		if ev.Kind == ddpadapt.EventEnded || ev.Kind == ddpadapt.EventUp { // or a restart has undone what was begun before
			p.leave(now)
		}
	}
	return true
}

func (p *peer) handle(ev ddpadapt.Event) {
	if ev.Session == nil {
		p.changed(ev.Kind == ddpadapt.EventUp, ev.Err)
		return
	}
	if r, ok := ev.Session.Owner.(*Request); ok && ev.Kind != ddpadapt.EventInitiate { // nobody has answered it
		p.later(func() { p.listener.withdrawn(r) })
	}
	q, _ := ev.Session.Owner.(*QP)
	switch ev.Kind {
	case ddpadapt.EventInitiate:
		p.request(ev)
	case ddpadapt.EventAccepted:
		q.accepted(ev)
	case ddpadapt.EventRejected:
		q.connected(ev.Err)
		q.ended(ev.Err)
	case ddpadapt.EventTerminated:
		if q != nil {
			q.terminated(ev)
		}
	case ddpadapt.EventEnded:
		if q != nil {
			q.ended(nil)
		}
	case ddpadapt.EventDown:
		if q != nil {
			q.connected(ev.Err)
			q.ended(ev.Err)
		}
	}
}

// request hands an Initiate to the listener.
func (p *peer) request(ev ddpadapt.Event) {
	r := &Request{p: p, s: ev.Session, private: ev.Private, setup: ev.Setup}
	r.s.Owner = r
	p.later(func() {
		if r.from = p.remote().Addr(); p.listener.offer(r) {
			return
		}
		// Nobody accepts: the limit of section 6.4 at the level of the listener.
		p.d.count(&p.d.stats.RequestsDropped)
		p.conn.Gate().Lock()
		r.s.Abort()
		p.conn.Gate().Unlock()
	})
}

// later has f called when the gate is open. For what is rare.
func (p *peer) later(f func()) {
	p.mu.Lock()
	p.after = append(p.after, f)
	p.mu.Unlock()
	p.some.Store(true)
}

// wake has cq notified when the gate is open.
func (p *peer) wake(cq *CQ) {
	p.mu.Lock()
	p.cqs = append(p.cqs, cq)
	p.mu.Unlock()
	p.some.Store(true)
}

// Settled does what must not be done under the gate. Of two goroutines that have it one calls what is to be called, in its order: a request is offered before
// it is withdrawn.
func (p *peer) Settled() {
	for p.some.Load() && p.some.Swap(false) {
		for more := true; more; {
			var cq *CQ
			var f func()
			if cq, f, more = p.next(); cq != nil {
				cq.notify()
			} else if f != nil {
				f()
			}
		}
	}
}

// next returns a CQ to notify or a function to call, nil if there is neither, and whether there is more.
func (p *peer) next() (cq *CQ, f func(), more bool) {
	p.mu.Lock()
	if n := len(p.cqs); n > 0 {
		cq = p.cqs[n-1]
		p.cqs = p.cqs[:n-1]
	} else if len(p.after) > 0 && !p.calling {
		first := p.after[0]
		p.after[0] = nil
		p.after, p.calling = p.after[1:], true
		f = func() {
			first()
			p.mu.Lock()
			p.calling = false
			p.mu.Unlock()
		}
	}
	more = f != nil || len(p.cqs) > 0 || len(p.after) > 0 && !p.calling // what came while f is called was left to who calls it
	p.mu.Unlock()
	return cq, f, more
}
