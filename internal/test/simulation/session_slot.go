package simulation

import (
	"errors"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// sessionSlot is a succession of sessions, each with memory of its own while it lasts.
type sessionSlot struct {
	w       *World
	id      byte
	buffers [2]*sessionBuffers

	workloads [2]*workload // of hosts A and B; nil while there is no session
	active    *workload    // who asked for the session
	number    uint16       // of the session
	refuse    bool         // the passive side will reject it
	started   bool
	ends      bool // it does not last to the end of the world
	end       *sessionEnd
	endAt     rawio.Time // when somebody ends the session; Never: it lasts
}

// errAbort is the reason of a QP that its user ends at once.
var errAbort = errors.New("world: enough of this session")

// openLanes makes the lanes, each with its first session.
func (w *World) openLanes() {
	w.makeSlots()
	for _, n := range w.slots {
		n.openSession()
	}
}

func (w *World) makeSlots() {
	slot := []int{256, 2000, 8192, 10000}[w.rand.IntN(4)]
	w.a.sharedCounter, w.b.sharedCounter = newTally(w.a), newTally(w.b)
	for i := range 1 + w.rand.IntN(3) {
		w.slots = append(w.slots, &sessionSlot{w: w, id: byte(i), endAt: rawio.Never,
			buffers: [2]*sessionBuffers{newRoom(w.a.mem, slot), newRoom(w.b.mem, slot)}})
	}
}

// serveSession returns the QP that a session coming in by c is for. It is nil if the session is to
// be rejected: at times, and on a shared ground where packets of long ago have brought it about.
func (w *World) serveSession(c *conn, private []byte) *qp {
	if w.chooseQP != nil {
		return w.chooseQP(private)
	}
	n := w.slots[private[0]]
	q := n.active.q
	asking := q.conn.(*conn)
	current := n.number == uint16(private[1])<<8|uint16(private[2]) && asking.a.LocalTag() == c.a.PeerTag() &&
		n.active.peer.q.conn == nil
	switch {
	case !current && w.joined == nil:
		w.failf("%s: a session that nobody has asked for", c.h.name)
		return nil
	case !current, w.joined != nil && (q.over || n.active.peer.q.over):
		return nil
	}
	if n.refuse {
		n.end.begun = true
		return nil
	}
	return n.active.peer.q
}

// openSession starts a session, from either side.
func (n *sessionSlot) openSession() {
	w := n.w
	n.end, n.endAt, n.started, n.refuse = new(sessionEnd), rawio.Never, false, false
	if n.ends = w.sessions > 0; n.ends { // others follow, so this one ends at any moment, at times before it has begun
		w.sessions--
		n.refuse = w.rand.IntN(16) == 0
		if w.rand.IntN(4) == 0 {
			n.endAt = w.now.Add(time.Duration(w.rand.IntN(200)) * time.Millisecond)
		}
	}
	s := w.newSetup()
	hosts := [2]*Host{w.a, w.b}
	active := w.rand.IntN(3) / 2
	depths := [2][2]int{{int(s.asked.IRD), int(s.asked.ORD)}, {int(s.own.IRD), int(s.own.ORD)}}
	for i, h := range hosts {
		d := depths[i^active]
		q := h.newQP(sendDepth, recvs, d[0], d[1])
		q.setup = s
		n.workloads[i] = newLoad(w, q, n.buffers[i], n.end)
	}
	n.workloads[0].peer, n.workloads[1].peer = n.workloads[1], n.workloads[0]
	n.active = n.workloads[active]
	w.gatherWorkloads()
	w.opened++
	n.number = w.opened
	private := []byte{n.id, byte(n.number >> 8), byte(n.number)}
	if w.tcp != nil {
		if err := w.tcp.dial(hosts[active], n.active.q, private); err != nil {
			w.failf("dial: %v", err)
		}
		return
	}
	c := hosts[active].currentConn()
	if _, err := c.openSession(n.active.q, private); err != nil {
		w.failf("open: %v", err)
		return
	}
	c.Pump()
}

// gatherWorkloads lists the loads of all lanes.
func (w *World) gatherWorkloads() {
	w.workloads = w.workloads[:0]
	for _, n := range w.slots {
		if n.workloads[0] != nil {
			w.workloads = append(w.workloads, n.workloads[:]...)
		}
	}
}

// isOver reports whether nothing of the session is left on either side. A passive side that was
// never asked has nothing once the active side is over, as all of its messages have arrived.
func (n *sessionSlot) isOver() bool {
	passive := n.active.peer.q
	if n.active.q.over && passive.conn == nil && !passive.over {
		n.end.begun = true
		passive.over = true
		passive.core.Ended()
	}
	return n.active.q.over && passive.over
}

// advanceState moves the lane on.
func (n *sessionSlot) advanceState() {
	w := n.w
	n.beginWork()
	switch {
	case w.err != nil || w.finishing:
	case n.workloads[0] == nil:
		if w.bothConnected() && (w.sessions > 0 || w.ops > 0) {
			n.openSession()
		}
	case n.isOver():
		n.retireSession()
		n.advanceState()
	case n.endAt <= w.now:
		n.bringAbout()
	case !n.started && n.workloads[0].isReady() && n.workloads[1].isReady():
		n.started = true
		for _, l := range n.workloads {
			l.checkDepths()
		}
		if n.ends && n.endAt == rawio.Never {
			n.endAt = w.now.Add(time.Duration(w.rand.IntN(1<<w.rand.IntN(11))) * time.Millisecond)
		}
	}
}

// retireSession takes leave of a session that is over.
func (n *sessionSlot) retireSession() {
	seen := &n.w.coverage
	seen.Sessions++
	a, b := n.workloads[0], n.workloads[1]
	for _, c := range []struct {
		is bool
		n  *int
	}{
		{n.refuse, &seen.Rejected}, {n.end.gracious != nil, &seen.Gracious}, {n.end.violation != nil, &seen.Violated},
		{n.end.revoked && a.fault != nil && a.fault.Terminate != nil, &seen.Revoked}, {a.flushed || b.flushed, &seen.CutOff},
	} {
		if c.is {
			*c.n++
		}
	}
	for _, l := range n.workloads {
		l.checkAllDone()
		l.q.h.mem.checkMemory("after a session")
	}
	n.workloads, n.endAt = [2]*workload{}, rawio.Never
	n.w.gatherWorkloads()
}

// beginWork has each side work as soon as it may, be the other ready or not.
func (n *sessionSlot) beginWork() {
	for _, l := range n.workloads {
		if l != nil && !l.working && l.isReady() {
			l.working, l.next = true, n.w.now
			n.speaksFirst(l)
		}
	}
}

// bringAbout ends the session, whatever it is in the middle of.
func (n *sessionSlot) bringAbout() {
	w := n.w
	n.endAt = rawio.Never
	l := n.workloads[w.rand.IntN(2)]
	if l.q.conn == nil {
		l = l.peer
	}
	if l.q.over || l.peer.q.over {
		return
	}
	switch k := w.rand.IntN(8); {
	case k < 3:
		if !n.end.begun {
			n.end.gracious = l
		}
		n.end.begun = true
		l.closeSession()
	case k < 4 && l.peer.q.conn != nil: // both at once
		n.end.begun, n.end.gracious = true, nil
		l.closeSession()
		l.peer.closeSession()
	case k < 6 && n.started && l.isReady() && l.hasRoomFor(1) && !n.end.begun:
		if w.rand.IntN(3) > 0 || !l.exhaustReceives() {
			all := l.possibleViolations()
			l.breakRules(&all[w.rand.IntN(len(all))])
		}
	default:
		n.end.begun, n.end.gracious = true, nil
		l.q.core.Abort(errAbort)
		l.q.conn.Pump()
	}
}

// closeSession asks for a graceful end.
func (l *workload) closeSession() {
	l.closing = true
	l.q.core.Close()
	l.q.conn.Pump()
}

// isIdle reports whether there is nothing left to do on the lane.
func (n *sessionSlot) isIdle() bool {
	if n.workloads[0] == nil {
		return true
	}
	a, b := n.workloads[0], n.workloads[1]
	return n.started && !n.ends && a.isReady() && b.isReady() && a.isIdle() && b.isIdle()
}
