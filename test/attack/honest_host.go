package attack

import (
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/internal/test/simulation"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// honestHost is an honest host with one association to the victim. It sends the victim a HEARTBEAT
// a few times a second. The answer needs everything that an attacker may get in the way of.
type honestHost struct {
	s     *Simulation
	node  *simulation.Node
	conn  *honestConn
	asked rawio.Time
	beats uint64 // answers
}

// honestConn is the friend's end of its association.
type honestConn struct {
	f    *honestHost
	a    *assoc.Assoc
	up   bool
	gone bool
}

const interval = 100 * time.Millisecond

func newFriend(s *Simulation) *honestHost {
	f := &honestHost{s: s}
	carries := func(_, _ netip.Addr) int { return mtu }
	f.node = s.ground.NewNode("friend", simnet.NewRand(5), carries, friendAddr)
	s.ground.Net().Connect(victimAddr, friendAddr, simnet.Params{Delay: time.Millisecond})
	cfg := s.friendCfg
	cfg.InStreams = 64
	f.node.Out = func(p *rawio.Packet) {
		s.path.see(0, p)
		s.ground.Net().Send(s.ground.Now(), p)
	}
	a, err := f.node.EP.Connect(f.node.Time(), &cfg, friendPort, netip.AddrPort{},
		[]netip.AddrPort{netip.AddrPortFrom(victimAddr, 0)}, s.friendTo)
	if err != nil {
		s.recordFailure("connect: %v", err)
		return f
	}
	f.conn = &honestConn{f: f, a: a}
	a.Owner = f.conn
	if s.path != nil {
		s.path.keys.Attach(f.node, f.conn)
	}
	f.node.Add(f.conn)
	f.conn.Pump()
	for end := s.ground.Now().Add(time.Second); !f.conn.up && s.ground.Now() < end && s.ground.Step(end); {
	}
	if !f.conn.up {
		s.recordFailure("the friend's association is not set up")
	}
	f.sendHeartbeat()
	return f
}

// sendHeartbeat sends a HEARTBEAT, and sees to it that the next follows.
func (f *honestHost) sendHeartbeat() {
	if f.conn.gone {
		return
	}
	f.asked, f.beats = f.s.ground.Now(), f.conn.a.Stats().HeartbeatAcksIn
	if err := f.conn.a.RequestHeartbeat(f.node.Time(), victimAddr); err != nil {
		f.s.recordFailure("the friend asks: %v", err)
	}
	f.conn.Pump()
}

// checkAnswers sees to it that the friend gets its answers.
func (f *honestHost) checkAnswers() {
	switch now := f.s.ground.Now(); {
	case f.conn.gone:
		f.s.recordFailure("the friend's association has ended")
	case f.conn.a.Stats().HeartbeatAcksIn > f.beats:
		if now.Sub(f.asked) >= interval {
			f.s.stats.Friend++
			f.sendHeartbeat()
		}
	case now.Sub(f.asked) > patience:
		f.s.recordFailure("the friend has waited for %v", patience)
	}
}

// Assoc implements simulation.Conn.
func (p *honestConn) Assoc() *assoc.Assoc { return p.a }

// Gone implements simulation.Conn.
func (p *honestConn) Gone() bool { return p.gone }

// Pump implements simulation.Conn.
func (p *honestConn) Pump() {
	for more := true; more; {
		for {
			ev, ok := p.a.PollEvent()
			if !ok {
				break
			}
			switch ev.Kind {
			case assoc.EventUp:
				p.up = true
				p.f.node.EP.Refresh(p.a)
			case assoc.EventRestart:
				p.f.s.recordFailure("the friend hears of a restart of the victim")
			case assoc.EventDown:
				p.gone = true
			}
		}
		if m, ok := p.a.Receive(); ok && p.f.s.path != nil {
			p.f.s.recordFailure("the friend hears what nobody has said: %d octets", m.Size)
		}
		more = p.f.node.Transmit(p.a)
	}
	p.f.node.Settled(p)
}
