package random

import (
	"fmt"
	"slices"
	"time"

	"github.com/rddp-go/rddp/internal/test/simulation"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Invariant is the name of something that must always hold.
type Invariant = simulation.Invariant

// What must hold, besides what internal/test/simulation names. Those of one association are checked
// after each event that it has a part in, the walks over all that it holds every auditEvery of them
// and when it ends.
const (
	Lost                 = simulation.Lost
	Twice                = simulation.Twice
	Order                = simulation.Order
	Octets               = simulation.Octets
	Accounting Invariant = "flight and window accounting exact"
	Monotone   Invariant = "cumulative TSN monotone"
	PastTimer  Invariant = "no timer in the past"
	Memory     Invariant = "bounded memory per peer"
	Progress   Invariant = "progress"
	CleanEnd   Invariant = "clean end"
	Checksum   Invariant = "no damaged packet passes"
	SealedOnce Invariant = "a key seals a number once"
)

const (
	auditEvery = 32 // events of an association
	tick       = 30 * time.Second
	// patience is how long an association may be without progress when nothing has gone wrong for
	// as long. T3-rtx backs off to RTO.Max. Only the next HEARTBEAT may find the path that answers
	// again, and that HEARTBEAT may be lost when a queue overflows.
	patience = 4 * time.Minute
	// blame is how long a fault may be the reason for the end of an association. It is given up
	// after Association.Max.Retrans + 1 expiries at RTO.Max each.
	blame = 15 * time.Minute
	// maxDue is how many events in a row may leave a timer due at once: as many packets may arrive
	// in one moment.
	maxDue = 2000
)

// Violation is an invariant that does not hold.
type Violation struct {
	Invariant Invariant
	At        time.Duration // virtual
	Host      string
	Seed      uint64
	What      string
}

func (v *Violation) Error() string {
	return fmt.Sprintf("%s: seed %d, at %v, host %s: %s", v.Invariant, v.Seed, v.At, v.Host, v.What)
}

// recordViolation records the first violation.
func (r *run) recordViolation(i Invariant, host, format string, args ...any) {
	if r.bad == nil {
		r.bad = &Violation{i, time.Duration(r.g.Now()), host, r.s.Seed, fmt.Sprintf(format, args...)}
	}
}

// assocMonitor is what is known of an association from one event to the next.
type assocMonitor struct {
	h      *host
	peer   *host
	marks  assoc.Marks
	tags   [2]uint32 // own, the peer's
	events int
	due    int        // events in a row with a timer due at once
	dueAt  rawio.Time // which it is
	moved  rawio.Time // when it was last without work, or got on with it

	// The peer's SACKs have named chunks and named them no more: so many, and the last of them may be
	// the TSN before doubtTo, until all up to there is acknowledged.
	reneged uint64
	doubtTo wire.TSN
	inDoubt bool
}

// beginTSNs forgets TSNs: the association goes on with others.
func (w *assocMonitor) beginTSNs() { w.marks, w.inDoubt = assoc.Marks{}, false }

func tagsOf(a *assoc.Assoc) [2]uint32 { return [2]uint32{a.LocalTag(), a.PeerTag()} }

// checkAssoc checks an association that something has happened to.
func (r *run) checkAssoc(h *host, c simulation.Conn) {
	a := c.Assoc()
	w := r.watches[a]
	if w == nil {
		w = &assocMonitor{h: h, peer: r.peerOf(h, a), tags: tagsOf(a), moved: r.g.Now()}
		r.watches[a] = w
		r.tally.Assocs++
	}
	w.events++
	if t := tagsOf(a); w.tags != t { // the peer is known only now, or has restarted
		w.tags, w.moved = t, r.g.Now()
		w.beginTSNs()
	}
	w.checkTimers(r, a)
	w.checkTSNs(r, a)
	if c.Gone() {
		delete(r.watches, a)
	} else if w.events%auditEvery == 0 {
		w.auditState(r, c)
	}
	if n := len(h.node.Conns()) - b2i(c.Gone()); h.node.EP.Len() != n {
		r.recordViolation(Memory, h.node.Name, "the endpoint knows %d associations, there are %d", h.node.EP.Len(), n)
	}
}

// timers: none is set for a time before now, nor is one for now set again and again.
func (w *assocMonitor) checkTimers(r *run, a *assoc.Assoc) {
	now, t := w.h.node.Time(), a.NextTimeout()
	if w.due++; t > now || w.dueAt != t {
		w.due, w.dueAt = 0, t
	}
	if t < now && w.h.jumped != r.g.Now() || w.due > maxDue {
		r.recordViolation(PastTimer, w.h.node.Name, "a timer of %v, at %v for the %dth time", time.Duration(t),
			time.Duration(now), w.due)
	}
}

// sequence: TSNs never go back, and no TSN is acknowledged that was not sent.
func (w *assocMonitor) checkTSNs(r *run, a *assoc.Assoc) {
	m, old := a.Marks(), w.marks
	if a.State() == assoc.Closed {
		return
	}
	if old != (assoc.Marks{}) && (m.Acked.Less(old.Acked) || m.Next.Less(old.Next) || old.Receiving &&
		m.Received.Less(old.Received)) || m.Next.LessEq(m.Acked) {
		r.recordViolation(Monotone, w.h.node.Name, "%+v after %+v", m, old)
	}
	if m.Acked != old.Acked || m.Received != old.Received || m.Acked+1 == m.Next {
		w.moved = r.g.Now()
	}
	w.marks = m
}

// bufferHolder is a Conn that may hold messages of the association.
type bufferHolder interface{ lent() int }

// auditState walks over all that an association holds.
func (w *assocMonitor) auditState(r *run, c simulation.Conn) {
	a, lent := c.Assoc(), 0
	if l, ok := c.(bufferHolder); ok {
		lent = l.lent()
	}
	if err := a.Audit(lent); err != nil {
		r.recordViolation(Accounting, w.h.node.Name, "%v", err)
	}
	w.checkBounds(r, a)
}

// bounds: the peer cannot make us hold more than it was told, and nothing is sent beyond what it
// takes.
func (w *assocMonitor) checkBounds(r *run, a *assoc.Assoc) {
	s := a.Stats()
	if s.Buffered+s.RecvWindow > w.bufferLimit(r, a)+1<<16 {
		r.recordViolation(Memory, w.h.node.Name, "%d octets held, window %d", s.Buffered, s.RecvWindow)
	}
	p := r.peerAssoc(w, a)
	if p == nil {
		return
	}
	q := p.Stats()
	if own, its := a.Marks(), p.Marks(); its.Receiving &&
		(its.Received.Less(own.Acked) || own.Next-1 != its.Received && (own.Next-1).Less(its.Received)) {
		r.recordViolation(Lost, w.h.node.Name,
			"TSN %d counts as acknowledged of %d sent, and the peer has received those to %d",
			own.Acked, own.Next-1, its.Received)
	}
	if most := w.bufferLimit(r, p) + 1<<16; !w.isInDoubt(a, &s) && s.Outstanding > most {
		r.recordViolation(Accounting, w.h.node.Name, "%d octets outstanding, and the peer takes %d, of which it has %d",
			s.Outstanding, most, q.RecvWindow)
	}
}

// isInDoubt says whether chunks count as outstanding that the peer may have taken, and given to its
// program: it has named them, and no SACK names them any more. With an equal cumulative TSN nobody
// sees that a SACK is an old one, from a longer road (RFC 9260 section 6.2.1, D iii).
func (w *assocMonitor) isInDoubt(a *assoc.Assoc, s *assoc.Stats) bool {
	own := a.Marks()
	if s.Reneged != w.reneged {
		w.reneged, w.doubtTo, w.inDoubt = s.Reneged, own.Next, true
	}
	w.inDoubt = w.inDoubt && (own.Acked + 1).Less(w.doubtTo)
	return w.inDoubt
}

// bufferLimit is the receive buffer of an association, the most that it grows to where that was
// left to it.
func (w *assocMonitor) bufferLimit(r *run, a *assoc.Assoc) int {
	if n, ok := r.buffers[a]; ok {
		return n
	}
	return 16 << 20
}

// peerAssoc is the peer's side of an association, nil if there is none any more.
func (r *run) peerAssoc(w *assocMonitor, a *assoc.Assoc) *assoc.Assoc {
	if w.peer == nil {
		return nil
	}
	for _, c := range w.peer.node.Conns() {
		if b := c.Assoc(); b.LocalTag() == a.PeerTag() && b.PeerTag() == a.LocalTag() && b.State() != assoc.Closed {
			return b
		}
	}
	return nil
}

// checkIdle looks from time to time at associations to which nothing happens, and at the memory of
// RDMA.
func (r *run) checkIdle() {
	for _, h := range r.hosts {
		for _, c := range h.node.Conns() {
			if w := r.watches[c.Assoc()]; w != nil {
				w.auditState(r, c)
				w.checkProgress(r, c)
			}
		}
	}
	for _, u := range r.users {
		u.checkMemory()
	}
	if !r.over {
		r.g.After(tick, r.checkIdle)
	}
}

// progress: what is to be sent is sent, acknowledged and at last done, once nothing has gone wrong
// for a while.
func (w *assocMonitor) checkProgress(r *run, c simulation.Conn) {
	a := c.Assoc()
	s := a.Stats()
	if s.Unacked == 0 && s.Queued == 0 && s.State == assoc.Established {
		return
	}
	p := r.peerAssoc(w, a)
	if p == nil && s.State != assoc.CookieWait && s.State != assoc.CookieEchoed || w.peer == nil {
		return
	}
	since := max(w.moved, r.quietSince(w.h.id, w.peer.id), r.mutedUntil(p))
	if idle := r.g.Now().Sub(since); idle > r.patienceFor(a) {
		r.recordViolation(Progress, w.h.node.Name, "nothing has moved for %v: %+v; peer %+v", idle, s, p.Stats())
	}
}

// patienceFor is how long an association may be without progress. What a peer has not forgotten yet
// keeps one out that has no keys for a restart. The set-up is then given up.
func (r *run) patienceFor(a *assoc.Assoc) time.Duration {
	if r.s.Assocs[int(a.LocalPort())%1000].Keys != 0 {
		return blame
	}
	return patience
}

// checkPacket looks at a packet that an endpoint has found in order.
func (r *run) checkPacket(h *host, p *rawio.Packet) {
	if p.Kind != rawio.KindSCTP {
		return
	}
	if !checksumOK(p.Data) {
		r.recordViolation(Checksum, h.node.Name, "a packet of %d octets from %v", len(p.Data), p.Remote)
	}
}

// judgeEnd judges the end of an association.
func (r *run) judgeEnd(h *host, a *assoc.Assoc, end error, u assocUser) {
	w := &assocMonitor{h: h, peer: r.peerOf(h, a)}
	if why := r.excuseFor(w, a, end, u); why != "" {
		r.recordViolation(CleanEnd, h.node.Name, "association with %s ended by %v: %s", w.peer.node.Name, end, why)
	}
}

// excuseFor says what is wrong with the end of an association, or "".
func (r *run) excuseFor(w *assocMonitor, a *assoc.Assoc, end error, u assocUser) string {
	troubled := r.g.Now().Sub(r.quietSince(w.h.id, w.peer.id)) < blame
	alone := r.peerAssoc(w, a) == nil
	abort, _ := end.(*assoc.AbortError)
	cause := wire.CauseCode(0)
	if abort != nil && len(abort.Causes) > 0 {
		cause = abort.Causes[0].Code
	}
	switch {
	case end == assoc.ErrShutdownTimeout && (r.hasDataMoving(r.peerAssoc(w, a)) || r.mutedUntil(a) > r.g.Now()):
		// T5-shutdown-guard runs whatever the peer has yet to send: much, over a small window, or
		// over none while the own user takes nothing.
	case end == assoc.ErrShutdown:
		if !u.endWasAsked(a) && !r.closing {
			return "nobody has asked for it"
		}
	case abort != nil && cause == wire.CauseUserAbort && string(abort.Causes[0].Info) == noKeys:
		if !troubled && !alone {
			return "nothing keeps it from having keys"
		}
	case abort != nil && cause == wire.CauseUserAbort:
		if !u.endWasAsked(a) && !r.closing {
			return "nobody has asked for it"
		}
	case abort != nil && abort.ByPeer && cause == 0: // the peer knows nothing of it
		if !alone {
			return "the peer has it"
		}
	case abort != nil && abort.ByPeer && slices.Contains([]string{"shutdown takes too long",
		"a reset of TSNs is not answered"}, string(abort.Causes[0].Info)), abort == nil:
		if !troubled && !alone {
			return fmt.Sprintf("nothing has gone wrong for %v", r.g.Now().Sub(r.quietSince(w.h.id, w.peer.id)))
		}
	default:
		return "nobody breaks the rules"
	}
	return ""
}

// noKeys is the reason of an ABORT of a side that has got no keys in time.
const noKeys = "no keys: key management has failed"

// hasDataMoving reports whether an association still has data that gets through.
func (r *run) hasDataMoving(a *assoc.Assoc) bool {
	if a == nil || r.watches[a] == nil {
		return false
	}
	s := a.Stats()
	return s.Queued+s.Outstanding > 0 && r.g.Now().Sub(r.watches[a].moved) < 5*time.Second
}
