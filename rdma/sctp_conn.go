package rdma

import (
	"crypto/tls"
	"net/netip"
	"unsafe"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/upper"
	"github.com/rddp-go/rddp/sctp/wire"
)

// sctpConn is one association of a Device: the Upper of its sctp.Conn. The embedded Mux places,
// supplies and orders.
type sctpConn struct {
	*ddpadapt.Mux // owner of the association only
	peer

	a            *assoc.Assoc
	c            *sctp.Conn
	streamClaims int // owner only: Connects about to open a session
	vacantSweeps int // owner only: sweeps without a session
}

var (
	_ connection     = (*sctpConn)(nil)
	_ upper.Protocol = (*sctpConn)(nil)
)

func newSCTPConn(d *Device, c *sctp.Conn, a *assoc.Assoc, initiator bool, l *Listener) *sctpConn {
	s := &sctpConn{a: a, c: c, peer: peer{dev: d, listener: l}}
	s.peer.conn = s
	pending := d.limits.MaxPending
	if l == nil {
		pending = -1 // nobody listens here: every Initiate is refused
	}
	s.Mux = ddpadapt.NewMux(a, ddpadapt.Config{Initiator: initiator, MaxPending: pending,
		MaxEarly: d.limits.MaxEarly, MaxOutOfOrder: d.limits.MaxOutOfOrder})
	return s
}

// sctp returns the association that the peer is, nil if it is none.
func (p *peer) sctp() *sctpConn {
	s, _ := p.conn.(*sctpConn)
	return s
}

func (s *sctpConn) lock() rawio.Time {
	_, now := s.c.Upper().Lock()
	return now
}

func (s *sctpConn) unlock() { s.c.Upper().Unlock() }

func (s *sctpConn) unlockAt(now rawio.Time) { s.c.Upper().UnlockAt(now) }

func (s *sctpConn) peek(look func()) { s.c.Upper().Peek(func(*assoc.Assoc) { look() }) }

func (s *sctpConn) remoteAddr() netip.AddrPort { return s.c.RemoteAddr().(sctp.Addr).AddrPort }

func (s *sctpConn) remoteAddrLocked() netip.AddrPort {
	return netip.AddrPortFrom(s.a.PeerAddr().Addr(), s.a.PeerPort())
}

func (s *sctpConn) connectionState() (tls.ConnectionState, bool) { return s.c.ConnectionState() }

// flushLater needs a call only if nobody is about to make one: the lock's owner may be done for
// now.
func (s *sctpConn) flushLater() {
	s.deferCall(func() {
		s.lockConn()
		s.unlock()
	})
}

// detach has others served in between: there may be much to copy.
func (s *sctpConn) detach(of session, within []byte) {
	for more := true; more; {
		s.lockConn()
		more = of.Detach(within)
		s.unlock()
	}
}

func (s *sctpConn) waitLeft() {}

// breakOff ends the association: what has gone wrong with one stream may be wrong with others.
func (s *sctpConn) breakOff(err *rdmap.InternalError) { s.a.Break(err) }

func (s *sctpConn) peerStats() PeerStats {
	s.lock()
	defer s.unlock()
	return PeerStats{s.Sessions(), s.Mux.Stats()}
}

func (s *sctpConn) abortFor(reason string) { s.c.Abort(reason) }

// Held returns the octets of memory that the peer makes this side hold. Owner only.
func (s *sctpConn) Held() int {
	return int(unsafe.Sizeof(*s)) + s.Mux.Held() + s.chargedOctets +
		s.Mux.Pending()*(requestOctets+llp.MaxPrivateData)
}

// claimStream keeps the association for one more session; it returns false when it has ended or is
// full.
func (s *sctpConn) claimStream() bool {
	s.lock()
	defer s.unlock()
	if s.Mux.Err() != nil || s.a.State() != assoc.Established || s.Sessions()+s.streamClaims >= s.Streams() {
		return false
	}
	s.streamClaims++
	return true
}

// shutdownIfUnused ends an association that this side set up once it has no session left (RFC 5041
// section 3).
func (s *sctpConn) shutdownIfUnused(now rawio.Time) {
	if s.listener == nil && s.Sessions() == 0 && s.streamClaims == 0 && s.a.State() == assoc.Established {
		s.a.Shutdown(now)
	}
}

// sweepIdle ends an association that has had no session for long enough. It does so gracefully, and
// at once if the peer does not go along for as long again. A session that waits only for
// acknowledgements does not count: the peer may never send them.
func (s *sctpConn) sweepIdle() {
	now := s.lock()
	if s.vacantSweeps++; s.Mux.Active()+s.streamClaims > 0 {
		s.vacantSweeps = 0
	}
	over := s.vacantSweeps == sweepsPerTimeout+1 && s.a.State() == assoc.Established
	switch {
	case over:
		s.a.Shutdown(now)
	case s.vacantSweeps > 2*sweepsPerTimeout+1:
		s.a.Abort(now, []byte("idle"))
	}
	s.unlock()
	if over {
		s.dev.countStat(&s.dev.stats.VacantEnded)
	}
}

// eventsPerCall is how many events of sessions are handled before others are served: all sessions
// may end at once.
const eventsPerCall = 8

// Place is that of the Mux, at a known time.
func (s *sctpConn) Place(now rawio.Time, d wire.Data, buf *rawio.Buf) assoc.Verdict {
	s.now = now
	return s.Mux.Place(now, d, buf)
}

// PlaceRow is that of the Mux, at a known time.
func (s *sctpConn) PlaceRow(now rawio.Time, row assoc.Row) int {
	s.now = now
	return s.Mux.PlaceRow(now, row)
}

// Acked is that of the Mux, at a known time.
func (s *sctpConn) Acked(now rawio.Time, id wire.StreamID, token uint64) {
	s.now = now
	s.Mux.Acked(now, id, token)
}

// AckedRun is that of the Mux, at a known time.
func (s *sctpConn) AckedRun(now rawio.Time, id wire.StreamID, token uint64, n int) {
	s.now = now
	s.Mux.AckedRun(now, id, token, n)
}

// HandleReceived takes what came fragmented, and then what all that has happened means to sessions.
func (s *sctpConn) HandleReceived(now rawio.Time) (more bool) {
	s.now = now
	more = s.Mux.HandleReceived(now)
	more = s.runQPWork() || more
	for range eventsPerCall {
		if !s.Eventful() {
			return more
		}
		ev, ok := s.PollEvent()
		if !ok {
			return more
		}
		s.handleSessionEvent(ev)
		// EventUp: or a restart has undone what was begun before.
		if ev.Kind == ddpadapt.EventEnded || ev.Kind == ddpadapt.EventUp {
			s.shutdownIfUnused(now)
		}
	}
	return true
}

func (s *sctpConn) handleSessionEvent(ev ddpadapt.Event) {
	if ev.Session == nil {
		s.reportAssoc(ev.Kind == ddpadapt.EventUp, ev.Err)
		return
	}
	if r, ok := ev.Session.Owner.(*Request); ok && ev.Kind != ddpadapt.EventInitiate { // nobody has answered it
		s.withdrawRequest(r)
	}
	q, _ := ev.Session.Owner.(*QP)
	switch ev.Kind {
	case ddpadapt.EventInitiate:
		s.offerRequest(sctpSession{ev.Session}, ev.Private, ev.Setup)
	case ddpadapt.EventAccepted:
		q.handleAccepted(ev.Private, ev.Setup)
	case ddpadapt.EventRejected:
		q.finishSetup(ev.Err)
		q.finishSession(ev.Err)
	case ddpadapt.EventTerminated:
		if q != nil {
			q.handleTerminated(ev.Err)
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

// reportAssoc reports the beginning and the end of the association. After a restart the Mux goes
// on, and counts on.
func (s *sctpConn) reportAssoc(up bool, err error) {
	if err == assoc.ErrShutdown {
		err = nil
	}
	var addTo func(*Stats)
	if s.Mux.Err() != nil {
		sum := s.Mux.Stats()
		addTo = func(st *Stats) { counters.Add(&st.Sessions, &sum) }
	}
	s.reportConn(up, err, addTo)
}

// sctpSession is a session on a pair of SCTP streams.
type sctpSession struct{ *ddpadapt.Session }

func (s sctpSession) streamNumber() int { return int(s.Session.Stream()) }

func (s sctpSession) setOwner(owner any) { s.Session.Owner = owner }

func (s sctpSession) awaitsAnswer() bool { return s.State() == ddpadapt.Pending }

func (s sctpSession) accept(now rawio.Time, stream *ddp.Stream, setup *Setup, private []byte) error {
	if setup == nil {
		return s.Accept(now, stream, private)
	}
	return s.AcceptEnhanced(now, stream, *setup, private)
}

func (s sctpSession) reject(now rawio.Time, setup *Setup, private []byte) error {
	if setup == nil {
		return s.Reject(now, private)
	}
	return s.RejectEnhanced(now, *setup, private)
}
