package attack

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/test/simulation"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/test/attack/attacker"
)

const (
	victimPort = 5043
	friendPort = 7000
	mtu        = 1500
	patience   = 10 * time.Second // of the friend, for one request
	besiegers  = 2                // attackers at a time
)

var (
	victimAddr = netip.AddrFrom4([4]byte{10, 0, 0, 1})
	friendAddr = netip.AddrFrom4([4]byte{10, 0, 0, 2})
)

// Simulation is one run.
type Simulation struct {
	c         *attacker.Choices
	ground    *simulation.Env
	victim    *simulation.Node
	pool      *rawio.Pool
	table     *ddp.Table
	memory    *memory
	attackers []*attackerHost
	friend    *honestHost
	cfg       assoc.Config
	err       error

	path      *onPath      // nil: no attacker is on the friend's path
	friendCfg assoc.Config // of the friend's association
	friendTo  uint16       // the victim's port of it

	// Worst is the nearest that has come to the limits of cost.go.
	Worst struct {
		Steps         uint64
		ByOctet, Heap float64
	}

	takesMessages bool         // see NewWithMessages
	messagesCfg   assoc.Config // of its associations

	nextStream ddp.StreamID
	stats      Stats
}

// Stats is what has come to pass, so that a test can tell that it did.
type Stats struct {
	Packets, Associations, Ends, Restarts        uint64
	Sessions, Receives, Sends, Reads, Violations uint64
	Changes                                      uint64 // of streams, in associations with messages
	ZeroChecksums                                uint64 // packets that the victim has sent without a checksum
	Friend                                       uint64 // questions of the friend that were answered
	Weighed                                      uint64 // times that memory was measured
	OnPath                                       uint64 // packets that were added to what the friend says and hears
}

// attackerHost is an attacker at an address of its own.
type attackerHost struct {
	addr netip.Addr
	port uint16
	peer *attacker.Peer
	left int // packets until another takes its place
	box  [][]byte
}

// New returns a siege whose attackers act as c says.
func New(c *attacker.Choices) *Simulation { return newSimulation(c, func(*Simulation) {}) }

// newSimulation makes one that change may change before there is a friend.
func newSimulation(c *attacker.Choices, change func(s *Simulation)) *Simulation {
	s := &Simulation{c: c, ground: simulation.NewEnv(1), pool: rawio.NewPool(2048, 64)}
	s.table = ddp.NewTable(simnet.NewRand(3))
	s.memory = newMemory(s)
	s.cfg = assoc.Config{RecvBuffer: 1 << (12 + c.Below(6)), SendBuffer: 1 << 16, InStreams: uint16(1 + c.Below(64)),
		OutStreams: 64}
	ddpadapt.Configure(&s.cfg)
	carries := func(_, _ netip.Addr) int { return mtu }
	s.victim = s.ground.NewNode("victim", simnet.NewRand(4), carries, victimAddr)
	s.victim.Accept = func(a *assoc.Assoc, _ *rawio.Packet) simulation.Conn {
		if a.LocalPort() == messagesPort {
			return s.adoptMessages(a)
		}
		return s.adoptAssoc(a, false)
	}
	s.victim.Out = s.handleOutgoing
	if err := s.victim.EP.Listen(victimPort, &s.cfg); err != nil {
		s.recordFailure("listen: %v", err)
	}
	s.friendCfg, s.friendTo = s.cfg, victimPort
	change(s)
	for i := range besiegers {
		s.attackers = append(s.attackers, &attackerHost{addr: netip.AddrFrom4([4]byte{10, 0, 1, byte(1 + i)})})
		s.replaceAttacker(s.attackers[i])
	}
	s.friend = newFriend(s)
	return s
}

// Run plays up to so many packets of the attackers, and returns what was violated.
func (s *Simulation) Run(packets int) error {
	for range packets {
		if s.c.Done() || s.err != nil {
			break
		}
		s.stepPacket()
	}
	for end := s.ground.Now().Add(patience); s.err == nil && s.ground.Now() < end && s.ground.Step(end); {
		s.friend.checkAnswers()
	}
	s.memory.checkGuards()
	return s.err
}

// Stats returns what has come to pass.
func (s *Simulation) Stats() Stats { return s.stats }

func (s *Simulation) recordFailure(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("after %d packets, at %v: %s", s.stats.Packets, s.ground.Now(), fmt.Sprintf(format, args...))
	}
}

// stepPacket is one packet of an attacker, what follows from it, and the time until the next.
func (s *Simulation) stepPacket() {
	f := s.attackers[s.c.Below(len(s.attackers))]
	if f.left--; f.left < 0 {
		s.replaceAttacker(f)
	}
	for _, b := range f.box {
		f.peer.Take(b)
	}
	f.box = f.box[:0]
	s.stats.Packets++
	if b := f.peer.Packet(); b != nil {
		s.deliverPacket(f, b)
		s.path.attack(b)
		if s.c.One(8) {
			s.auditVictim()
		}
		if s.stats.Packets%weighEvery == 0 {
			s.checkHeld()
		}
	}
	wait := time.Duration(s.c.Below(100)) * time.Microsecond
	switch s.c.Below(64) {
	case 1:
		wait = time.Duration(s.c.Below(300)) * time.Millisecond
	case 2:
		wait = time.Duration(s.c.Below(5)) * time.Second
	}
	for end := s.ground.Now().Add(wait); s.err == nil && s.ground.Now() < end && s.ground.Step(end); {
	}
	s.friend.checkAnswers()
}

// replaceAttacker has another attacker begin at the address: one that connects, or one that the
// victim connects to.
func (s *Simulation) replaceAttacker(f *attackerHost) {
	f.left = 200 + s.c.Below(600)
	f.port = uint16(1024 + s.c.Below(1000))
	f.box = f.box[:0]
	attack := attacker.Config{LocalPort: f.port, RemotePort: victimPort, RDMA: true, MTU: mtu}
	cfg := &s.cfg
	if s.takesMessages {
		attack.RemotePort, attack.RDMA, attack.Extensions = messagesPort, false, true
		cfg = &s.messagesCfg
		attack.Interleaving = cfg.Interleaving
	}
	attack.Careful = s.c.Below(2) == 0
	f.peer = attacker.New(s.c, attack)
	if !s.c.One(3) {
		return
	}
	attack.RemotePort = uint16(30000 + s.c.Below(1000))
	attack.Careful = s.c.Below(2) == 0
	f.peer = attacker.New(s.c, attack)
	a, err := s.victim.EP.Connect(s.victim.Time(), cfg, attack.RemotePort, netip.AddrPort{},
		[]netip.AddrPort{netip.AddrPortFrom(f.addr, 0)}, f.port)
	if err != nil {
		return // there is one between these ports
	}
	h := simulation.Conn(nil)
	if s.takesMessages {
		h = s.adoptMessages(a)
	} else {
		h = s.adoptAssoc(a, true)
	}
	s.victim.Add(h)
	h.Pump()
}

// deliverPacket hands the victim a packet of an attacker's.
func (s *Simulation) deliverPacket(f *attackerHost, b []byte) {
	buf := s.pool.Get()
	p := rawio.Packet{Data: buf.B[:copy(buf.B, b)], Buf: buf, Remote: netip.AddrPortFrom(f.addr, 0),
		Local: netip.AddrPortFrom(victimAddr, 0)}
	s.victim.Receive(&p)
	p.Release()
}

// handleOutgoing takes what the victim sends.
func (s *Simulation) handleOutgoing(p *rawio.Packet) {
	to := p.Remote.Addr()
	if to == friendAddr {
		s.path.see(1, p)
		s.ground.Net().Send(s.ground.Now(), p)
		return
	}
	var b []byte
	for _, v := range p.Vec {
		b = append(b, v...)
	}
	s.memory.findSecrets(b)
	s.checkChecksum(b)
	for _, f := range s.attackers {
		if f.addr == to && len(f.box) < 64 {
			f.box = append(f.box, b)
		}
	}
}

// auditVictim recounts all associations of the victim.
func (s *Simulation) auditVictim() {
	for _, c := range s.victim.Conns() {
		if err := c.Assoc().Audit(0); err != nil {
			s.recordFailure("%v", err)
		}
	}
	s.memory.checkGuards()
}
