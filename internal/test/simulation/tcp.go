package simulation

import (
	"fmt"
	"time"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/mpa"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// tcpWorld is what a world has whose sessions go over TCP, each over a connection of its own (RFC
// 5044). It plays the part of the files tcp_*.go of package rdma, and that of the systems.
type tcpWorld struct {
	w       *World
	rand    *simnet.Rand  // what the systems do
	delay   time.Duration // of octets, at most
	buffer  int           // octets that the system takes of a sender ahead of their arrival
	cfg     [2]mpa.Config // of the ends of A and B
	conns   []*tcpConn    // both ends of each that has not ended
	resetAt rawio.Time    // when a connection is lost
	roads   *tcpRoads     // on a ground that is shared
}

// NewOverTCP makes a world from a seed whose sessions go over TCP.
func NewOverTCP(seed uint64) *World {
	w := New(seed)
	w.mtuChanges, w.hash = mtuChanges{next: rawio.Never}, firstHash+1
	r := simnet.NewRand(seed ^ 0x746370)
	w.tcp = newTCPWorld(w, r)
	if r.IntN(3) == 0 {
		w.tcp.resetAt = rawio.Time(r.IntN(3000)) * rawio.Time(time.Millisecond)
	}
	return w
}

func newTCPWorld(w *World, r *simnet.Rand) *tcpWorld {
	t := &tcpWorld{w: w, rand: r, delay: time.Duration(1+r.IntN(1<<r.IntN(17))) * time.Microsecond,
		buffer: 1 + r.IntN(1<<(4+r.IntN(16))), resetAt: rawio.Never}
	for i := range t.cfg {
		t.cfg[i] = mpa.Config{NoCRC: r.IntN(2) == 0, Markers: r.IntN(4) == 0,
			EMSS: []int{536, 1448, 1448, 8960, 65483}[r.IntN(5)]}
	}
	return t
}

// tcpConn is one end of a connection, with MPA and the QP that it is for.
type tcpConn struct {
	t          *tcpWorld
	h          *Host
	q          *qp // nil: a responder that has not been asked
	core       *mpa.Conn
	peer       *tcpConn
	in         []byte    // octets that have arrived and were not taken
	out        tcpStream // to the peer
	over       bool      // the socket is closed
	hasCrashed bool      // the machine has forgotten it
	closing    bool      // the peer has ended its half
	flush      bool      // requests end once what is being written is written

	pieces      [][]byte // what a writer waits with for room
	isWriting   bool
	interrupted bool
}

// dial sets a connection up and asks the other host for a session.
func (t *tcpWorld) dial(h *Host, q *qp, private []byte) error {
	to, side := t.w.b, 0
	if h == t.w.b {
		to, side = t.w.a, 1
	}
	x, y := &tcpConn{t: t, h: h}, &tcpConn{t: t, h: to}
	x.peer, y.peer = y, x
	x.out, y.out = tcpStream{t: t, from: x, to: y}, tcpStream{t: t, from: y, to: x}
	var setup *llp.Setup
	if q.setup.enhanced {
		setup = &q.setup.asked
	}
	var err error
	if x.core, err = mpa.NewInitiator(t.w.now, t.cfg[side], q.core.Stream(), setup, private); err != nil {
		return err
	}
	y.core = mpa.NewResponder(t.w.now, t.cfg[1-side])
	q.conn, q.session, x.q = x, x, q
	t.conns = append(t.conns, x, y)
	x.Pump()
	return nil
}

// serve returns the QP that a request is for, nil to reject it: on purpose, or as nobody waits for
// an answer any more.
func (t *tcpWorld) serve(c *tcpConn, private []byte) *qp {
	n := t.w.slots[private[0]]
	q := n.active.q
	switch {
	case n.number != uint16(private[1])<<8|uint16(private[2]), q.conn != connection(c.peer), q.over,
		n.active.peer.q.over:
		return nil
	case n.refuse:
		n.end.begun = true
		return nil
	}
	return n.active.peer.q
}

// Pump implements connection.
func (c *tcpConn) Pump() {
	for more := !c.hasCrashed; more; {
		c.runQPWork()
		c.handleEvents()
		more = c.write()
	}
}

func (c *tcpConn) runQPWork() {
	if c.isWriting && (c.interrupted || c.core.State() == mpa.Ended) {
		c.endWrite(0)
	}
	if c.flush {
		c.flush = false
		c.q.core.Flush()
	}
	if c.closing {
		c.closing = false
		c.q.core.Close()
	}
}

func (c *tcpConn) closeLater(*qp) { c.closing = true }
func (c *tcpConn) flushLater(*qp) { c.flush = true }

// Detach implements session.
func (c *tcpConn) Detach(within []byte) (more bool) {
	more = c.core.Detach(within)
	c.interrupted = c.interrupted || more
	return more
}

// interruptWrite has the writer leave its system call.
func (c *tcpConn) interruptWrite() {
	if c.isWriting {
		c.endWrite(c.t.rand.IntN(2) * c.out.room())
	}
}

// write gives the system what there is. It reports whether there may be more to do.
func (c *tcpConn) write() bool {
	if c.isWriting || c.over {
		return c.flush || c.closing
	}
	c.followMTU()
	act, pieces := mpa.ActNone, [][]byte(nil)
	// A writer that has to wait does so with memory of the user, or has not taken any yet.
	waits := c.out.room() == 0
	if !waits || c.t.rand.IntN(2) == 0 || !c.core.HasOutput() {
		act, pieces = c.core.Next(c.t.w.now, 1+c.t.rand.IntN(1<<c.t.rand.IntN(18)))
	}
	switch act {
	case mpa.ActFinish:
		c.out.finish()
		c.core.Finished(c.t.w.now)
		return true
	case mpa.ActWrite:
		if c.pieces, c.isWriting = pieces, true; !waits {
			c.endWrite(c.out.room())
		}
		return !waits
	}
	return c.flush || c.closing
}

// endWrite has the system take at most octets of what the writer waits with.
func (c *tcpConn) endWrite(most int) {
	n := 0
	for _, p := range c.pieces {
		n += c.out.take(p[:min(len(p), most-n)])
	}
	c.pieces, c.isWriting, c.interrupted = nil, false, false
	c.core.Written(c.t.w.now, n)
}

// arrive takes octets from the network: all that has arrived, or less where more will come.
func (c *tcpConn) arrive(b []byte) {
	if c.over {
		c.out.reset() // what comes to a socket that is closed is answered so
		return
	}
	c.in = append(c.in, b...)
	buf := append([]byte(nil), c.in...)
	used := c.core.Receive(c.t.w.now, buf)
	for i := range buf {
		buf[i] = 0x5a // it is used again
	}
	c.in = c.in[used:]
	c.Pump()
}

func (c *tcpConn) arriveEnd(isReset bool) {
	switch {
	case c.over:
		return
	case isReset:
		c.core.Lost(errReset)
	default:
		c.core.PeerFinished(c.t.w.now, len(c.in))
	}
	c.Pump()
}

func (c *tcpConn) handleEvents() {
	for ev, ok := c.core.PollEvent(); ok; ev, ok = c.core.PollEvent() {
		switch ev.Kind {
		case mpa.EventRequest:
			c.handleRequest(ev)
		case mpa.EventAccepted:
			c.q.sessionAccepted(ev.Setup)
		case mpa.EventRejected:
			c.t.w.sessionRejected(c.q, ev.Err)
			c.finish(false)
		case mpa.EventLeft:
			c.finish(false)
		case mpa.EventEnded:
			c.finish(ev.Err != nil)
		}
	}
}

func (c *tcpConn) handleRequest(ev mpa.Event) {
	q := c.t.serve(c, ev.Private)
	if q == nil {
		if err := c.core.Reject(nil, nil); err != nil {
			c.t.w.failf("%s: reject: %v", c.h.name, err)
		}
		return
	}
	c.q, q.conn, q.session = q, c, c
	q.answerRequest(ev.Setup, func(reply *llp.Setup) error {
		return c.core.Accept(q.core.Stream(), reply, ev.Private)
	})
}

// finish closes the socket. Without an error TCP still delivers what it has taken.
func (c *tcpConn) finish(failed bool) {
	if c.q != nil {
		c.q.over = true
		c.q.core.Ended()
	}
	c.over = true
	if failed {
		c.out.reset()
	} else {
		c.out.finish()
	}
}

// nextAt is when a connection has something to do by itself.
func (t *tcpWorld) nextAt() rawio.Time {
	if t == nil {
		return rawio.Never
	}
	next := t.resetAt
	for _, c := range t.conns {
		if !c.over {
			next = min(next, c.core.Deadline())
		}
	}
	return next
}

// actDue does what is due, and forgets connections that have ended on both sides.
func (t *tcpWorld) actDue() {
	if t == nil {
		return
	}
	if t.resetAt <= t.w.now {
		t.resetAt = rawio.Never
		t.loseOne()
	}
	list := t.conns[:0]
	for _, c := range t.conns {
		if !c.over && c.core.Deadline() <= t.w.now {
			t.handleTimeout(c)
		}
		if !c.over || !c.peer.over {
			list = append(list, c)
		}
	}
	t.conns = list
}

// pending says what is left of connections.
func (t *tcpWorld) pending() (s string) {
	if t != nil {
		for _, c := range t.conns {
			s += fmt.Sprintf("[%s: %v, closed %v, %v, %d octets in, %d out] ", c.h.name, c.core.State(), c.over,
				c.core.Stats(), len(c.in), len(c.out.queue))
		}
	}
	return s
}

// loseOne loses a connection in the middle of everything: each end hears of it at a time of its
// own.
func (t *tcpWorld) loseOne() {
	if len(t.w.slots) == 0 || t.w.finishing {
		return
	}
	n := t.w.slots[t.rand.IntN(len(t.w.slots))]
	if n.workloads[0] == nil {
		return
	}
	c, ok := n.active.q.conn.(*tcpConn)
	if !ok || c.over || c.peer.over {
		return
	}
	n.end.begun, n.end.gracious = true, nil
	t.w.coverage.Losses++
	t.w.sessions++ // another takes its place
	t.w.ops += 10
	c.out.reset()
	c.peer.out.reset()
}

// speaksFirst has the initiator of a session that was set up plainly send something: the responder
// may not before (RFC 5044 section 7.1.2 rule 4).
func (n *sessionSlot) speaksFirst(l *workload) {
	if n.w.tcp != nil && l == n.active && !(l.q.setup.enhanced && l.q.setup.asked.PeerToPeer) &&
		l.q.core.State() == rdmap.StateRTS && !l.closing {
		l.postSend(false)
		l.q.conn.Pump()
	}
}
