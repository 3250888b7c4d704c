package simulation

import (
	"errors"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// joinedState is what a world has that lives on somebody else's ground, where its association may
// be lost at any moment and its machines may lose their memory of it.
type joinedState struct {
	lost  func(n *Node, a *assoc.Assoc, end error)
	retry rawio.Time // when A sets up the association again
	off   [2]bool    // hosts that have crashed and are not back
	keys  *Keys      // of encrypted associations
	phase phase
}

// phase says how far the end of a tenancy has come.
type phase uint8

const (
	atWork      phase = iota
	endSessions       // they are to end
	endAssocs         // and then the associations
	allOver
)

// errCrash is why the associations of a machine that has crashed are no more.
var errCrash = errors.New("world: the machine has crashed")

// JoinConfig is what Join is told.
type JoinConfig struct {
	Seed        uint64
	Port, Local uint16 // SCTP ports of B, which listens, and of A
	UDP         uint16 // the UDP port that packets go through; 0: none
	ConfigA     assoc.Config
	ConfigB     assoc.Config
	Keys        *Keys // if associations are encrypted, as both Configs say
	// Lost hears of each association that has ended, and how.
	Lost func(n *Node, a *assoc.Assoc, end error)
}

// Join makes a world of two nodes that stand on one ground. It begins with Boot of both; whoever
// plays the ground calls Act when Next has come, and after whatever has happened on it.
func Join(a, b *Node, g *JoinConfig) *World {
	w := &World{Env: a.g, rand: simnet.NewRand(g.Seed), hash: firstHash, port: g.Port, local: g.Local, udp: g.UDP,
		mtuChanges: mtuChanges{next: rawio.Never}, joined: &joinedState{lost: g.Lost, keys: g.Keys, retry: rawio.Never,
			off: [2]bool{true, true}}}
	w.assocKiller.at = rawio.Never
	w.a, w.b = newHost(w, a), newHost(w, b)
	for _, c := range []struct {
		h   *Host
		cfg assoc.Config
	}{{w.a, g.ConfigA}, {w.b, g.ConfigB}} {
		adapt := c.h.cfg // what Configure has set
		c.h.cfg = c.cfg
		c.h.cfg.Adaptation, c.h.cfg.RequireAdaptation, c.h.cfg.MaxMessage = adapt.Adaptation, true, adapt.MaxMessage
		c.h.cfg.OutStreams, c.h.cfg.InStreams = 16, 16
		if c.h.cfg.RecvBuffer > 0 {
			c.h.cfg.MaxMessage = min(c.h.cfg.MaxMessage, c.h.cfg.RecvBuffer)
		}
	}
	if w.rand.IntN(3) == 0 {
		w.a.outOfOrder, w.b.outOfOrder = 1+w.rand.IntN(64), 1+w.rand.IntN(64)
	}
	w.makeSlots()
	return w
}

// Accept makes the Conn of an incoming association on B's port.
func (w *World) Accept(a *assoc.Assoc) Conn { return w.acceptAssoc(a, nil) }

// Boot has a node take part, for the first time or after a Crash.
func (w *World) Boot(n *Node) {
	if w.joined.phase == allOver {
		return
	}
	if n == w.b.node {
		w.joined.off[1] = false
		if w.tcp != nil {
			return
		}
		if err := n.EP.Listen(w.port, &w.b.cfg); err != nil {
			w.failf("%s: listen: %v", n.Name, err)
		}
		return
	}
	w.joined.off[0] = false
	if w.joined.phase == atWork && w.tcp == nil {
		w.joined.retry = w.now
	}
}

// Crash has a node of the world forget everything. Its memory is that of a new program afterwards,
// so that nothing may change it any more.
func (w *World) Crash(n *Node) {
	for i, h := range []*Host{w.a, w.b} {
		if h.node != n {
			continue
		}
		w.joined.off[i] = true
		w.cutOff()
		if w.tcp != nil {
			w.tcp.crash(h)
		}
		for _, c := range h.conns {
			if c.down == nil {
				c.down, c.closing, c.flushing = errCrash, nil, nil
			}
		}
		h.conns = h.conns[:0]
		for _, l := range w.workloads {
			if l.q.h == h && !l.q.over {
				l.q.over = true
				l.q.core.Ended()
			}
		}
	}
	if n == w.a.node {
		w.joined.retry = rawio.Never
	}
}

// AddWork has so many operations posted and sessions opened, besides those that are still to come.
func (w *World) AddWork(ops, sessions int) {
	if w.finishing {
		return
	}
	w.ops += ops
	w.sessions += sessions
	for _, n := range w.slots { // what was to last makes room
		if w.sessions > 0 && n.workloads[0] != nil && !n.ends {
			if n.ends = true; n.started {
				n.endAt = w.now.Add(time.Duration(w.rand.IntN(1000)) * time.Millisecond)
			}
		}
	}
	for _, l := range w.workloads {
		if l.working {
			l.next = w.now
		}
	}
}

// LoseAssoc ends the association as a user does that has no patience, on either side, or loses the
// connections.
func (w *World) LoseAssoc(n *Node) {
	for _, h := range []*Host{w.a, w.b} {
		if h.node == n && w.tcp != nil {
			w.tcp.kill(h)
		} else if h.node == n {
			for _, c := range h.liveConns() {
				w.cutOff()
				c.a.Abort(n.Time(), []byte("enough"))
				c.Pump()
			}
		}
	}
}

// Next is when Act has something to do.
func (w *World) Next() rawio.Time { return min(w.nextEventAt(), w.joined.retry) }

// ActDue does what is due.
func (w *World) ActDue() {
	g := w.joined
	if w.err != nil || g.phase == allOver {
		return
	}
	if g.retry <= w.now {
		g.retry = rawio.Never
		if w.conn != nil {
			w.sessions += min(len(w.slots), w.ops)
		}
		w.connectHosts()
	}
	if w.conn == nil && w.tcp == nil || w.err != nil {
		return
	}
	w.actDue()
	switch g.phase {
	case endSessions:
		w.shutDownAssocs()
	case endAssocs:
		w.checkLeftovers()
	}
}

// assocParted takes the end of an association. Requests of all its sessions may end with it.
func (g *joinedState) assocParted(w *World, c *conn) {
	if c == w.conn || c.a.PeerTag() == w.conn.a.LocalTag() {
		w.cutOff()
	}
	g.lost(c.h.node, c.a, c.down)
	if c.h == w.b {
		w.b.conns = w.b.liveConns()
	}
	if c == w.conn && g.phase == atWork && !g.off[0] {
		w.coverage.Losses++
		g.retry = w.now.Add(time.Duration(w.rand.IntN(20_000)) * time.Millisecond)
	}
}

// cutOff says that requests of all sessions may end.
func (w *World) cutOff() {
	for _, l := range w.workloads {
		l.end.begun, l.end.gracious = true, nil
	}
}

// liveConns lists the associations of a host that have not ended.
func (h *Host) liveConns() (list []*conn) {
	for _, c := range h.conns {
		if c.down == nil {
			list = append(list, c)
		}
	}
	return list
}

// peerConn is B's side of the association, nil while it has none. Beside it B may have one that old
// packets have brought about, or that A has forgotten.
func (w *World) peerConn() *conn {
	for _, c := range w.b.conns {
		if c.down == nil && c.a.PeerTag() == w.conn.a.LocalTag() {
			return c
		}
	}
	return nil
}

// Idle reports whether all that there was to do is done.
func (w *World) Idle() bool {
	return w.joined.phase == allOver || (w.conn != nil || w.tcp != nil) && !w.hasWork()
}

// Pending says what is still waited for.
func (w *World) Pending() string { return w.pendingWork() }

// Close asks for a graceful end.
func (w *World) Close() {
	if w.err != nil || w.joined.phase != atWork {
		return
	}
	w.finishing, w.joined.phase, w.joined.retry = true, endSessions, rawio.Never
	w.closeSessions()
	w.shutDownAssocs()
}

// shutDownAssocs shuts the associations down when the sessions are over.
func (w *World) shutDownAssocs() {
	for _, l := range w.workloads {
		if !l.q.over {
			return
		}
	}
	for _, l := range w.workloads {
		l.checkAllDone()
	}
	w.workloads, w.joined.phase = nil, endAssocs
	for _, h := range []*Host{w.a, w.b} {
		for _, c := range h.liveConns() {
			if c.a.Shutdown(h.node.Time()) != nil {
				c.a.Abort(h.node.Time(), nil) // it is not up yet
			}
			c.Pump()
		}
	}
	w.checkLeftovers()
}

// checkLeftovers looks for what is left over when no association is left.
func (w *World) checkLeftovers() {
	if len(w.a.liveConns()) == 0 && len(w.b.liveConns()) == 0 && w.err == nil &&
		(w.tcp == nil || len(w.tcp.conns) == 0) {
		w.joined.phase = allOver
		w.checkEnd()
	}
}

// Over reports that everything has ended.
func (w *World) Over() bool { return w.joined.phase == allOver }

// Check looks for octets that have changed outside of every operation.
func (w *World) Check() {
	w.a.mem.checkMemory("meanwhile")
	w.b.mem.checkMemory("meanwhile")
}

// Coverage tells what has come to pass.
func (w *World) Coverage() *Coverage { return &w.coverage }

// BothConnected reports whether there is an association with both sides established, or over TCP
// whether both machines are there.
func (w *World) BothConnected() bool { return (w.conn != nil || w.tcp != nil) && w.bothConnected() }
