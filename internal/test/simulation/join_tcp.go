package simulation

import (
	"syscall"
	"time"

	"github.com/rddp-go/rddp/mpa"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
)

// Road is what a network makes of a TCP connection, in one direction.
type Road struct {
	Delay  time.Duration // of octets, at most
	Loss   float64       // the part of what is sent that has to be sent again
	Rate   int64         // octets a second; 0: any
	MTU    int           // IP-level octets
	Closed bool          // nothing arrives
}

// JoinTCPConfig is what JoinOverTCP is told.
type JoinTCPConfig struct {
	Seed uint64
	// Road says what the network is like now from one machine to another.
	Road func(from, to *Node) Road
	// Lost hears of each connection that has ended because nothing came through.
	Lost func(end error)
}

// tcpRoads is what a world over TCP has on somebody else's ground.
type tcpRoads struct {
	road func(from, to *Node) Road
	lost func(end error)
}

const (
	// firstRTO and lastRTO are how long a system waits before it sends again, at first and at last.
	firstRTO, lastRTO = 200 * time.Millisecond, 2 * time.Minute
	// tcpPatience is how long it goes on without an answer.
	tcpPatience = 15 * time.Minute
	// keepalive is how long it takes a system to find out that its peer has crashed.
	keepalive = 150 * time.Second
)

// JoinOverTCP is Join with sessions that go over TCP. The machines need no SCTP. A connection may
// be lost at any moment (LoseAssoc): by a reset of both directions or of one, or by a FIN in the
// middle of what one end has sent.
func JoinOverTCP(a, b *Node, g *JoinTCPConfig) *World {
	w := &World{Env: a.g, rand: simnet.NewRand(g.Seed), hash: firstHash, mtuChanges: mtuChanges{next: rawio.Never},
		joined: &joinedState{retry: rawio.Never, off: [2]bool{true, true}}}
	w.assocKiller.at = rawio.Never
	w.a, w.b = newHost(w, a), newHost(w, b)
	r := simnet.NewRand(g.Seed ^ 0x746370)
	w.tcp = newTCPWorld(w, r)
	w.tcp.buffer += 1 << 10 // what is slow is not to be taken for what is lost
	w.tcp.roads = &tcpRoads{g.Road, g.Lost}
	w.makeSlots()
	return w
}

// takesTime returns how long it takes what is sent now to arrive, and whether it can.
func (s *tcpStream) takesTime() (d time.Duration, ok bool) {
	t := s.t
	d = time.Duration(1 + t.rand.IntN(int(t.delay)))
	if t.roads == nil {
		return d, true
	}
	r := t.roads.road(s.from.h.node, s.to.h.node)
	if r.Closed || r.Loss >= 1 {
		return 0, false
	}
	d += time.Duration(t.rand.Float64() * float64(r.Delay))
	for rto := firstRTO; t.rand.Float64() < r.Loss && rto < lastRTO; rto *= 2 {
		d += rto
	}
	if r.Rate > 0 {
		d += time.Duration(int64(len(s.queue)) * int64(time.Second) / r.Rate)
	}
	return d, true
}

// sendAgain waits for the way to be open again, and gives up in the end.
func (s *tcpStream) sendAgain() {
	now := s.t.w.now
	if s.rto == 0 {
		s.rto, s.closedSince = firstRTO, now
	}
	if now.Sub(s.closedSince) > tcpPatience {
		for _, c := range []*tcpConn{s.from, s.to} {
			if !c.over {
				s.t.cutOffSession(c)
				s.t.roads.lost(syscall.ETIMEDOUT)
				c.core.Lost(syscall.ETIMEDOUT)
				c.Pump()
			}
		}
		s.isDead = true
		return
	}
	s.isDue = true
	s.t.w.later.pushEvent(now.Add(s.rto), s.deliver)
	s.rto = min(2*s.rto, lastRTO)
}

// followMTU has MPA follow the MTU of its way.
func (c *tcpConn) followMTU() {
	if c.t.roads == nil || c.t.rand.IntN(8) > 0 {
		return
	}
	if r := c.t.roads.road(c.h.node, c.peer.h.node); r.MTU > 0 {
		c.core.SetEMSS(r.MTU - 52)
	}
}

// cutOffSession says that requests of the session on a connection may end.
func (t *tcpWorld) cutOffSession(c *tcpConn) {
	for _, l := range t.w.workloads {
		if l.q.conn == connection(c) || l.q.conn == connection(c.peer) {
			l.end.begun, l.end.gracious = true, nil
		}
	}
}

// crash has a machine forget its connections. The other ends hear of it when they send something,
// or later.
func (t *tcpWorld) crash(h *Host) {
	for _, c := range t.conns {
		if c.h != h || c.over {
			continue
		}
		c.core.Abort() // its requests have an end, though nobody is there any more
		if c.isWriting {
			c.endWrite(0)
		}
		c.over, c.hasCrashed = true, true
		if t.rand.IntN(2) == 0 {
			c.out.queue = nil
		}
		t.w.After(time.Duration(t.rand.Float64()*float64(keepalive)), c.out.reset)
	}
}

// kill loses connections of a host in the middle of everything.
func (t *tcpWorld) kill(h *Host) {
	for _, c := range t.conns {
		if c.h != h || c.over || c.peer.over {
			continue
		}
		t.cutOffSession(c)
		t.w.coverage.Losses++
		switch t.rand.IntN(4) {
		case 0:
			c.out.reset()
			c.peer.out.reset()
		case 1: // one end hears of it, and the other when that is answered
			c.out.reset()
		default: // who is in between ends what one end sends
			if !c.out.isEnded {
				c.out.queue = c.out.queue[:t.rand.IntN(len(c.out.queue)+1)]
				c.out.finish()
			}
		}
	}
}

// handleTimeout has a connection do what is due. Its start-up may be too late for a peer that is
// not reached.
func (t *tcpWorld) handleTimeout(c *tcpConn) {
	if s := c.core.State(); t.roads != nil && (s == mpa.Requesting || s == mpa.Awaiting) {
		t.cutOffSession(c)
		t.roads.lost(mpa.ErrStartupTimeout)
	}
	c.core.HandleTimeout(t.w.now)
	c.Pump()
}
