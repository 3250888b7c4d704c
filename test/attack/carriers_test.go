package attack

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/connpipe"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/rawio/netconn"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/test/attack/attacker"
)

// carrierVictim is a Transport with a connection of its own, at whose other end is an attacker.
type carrierVictim struct {
	conn      *connpipe.Conn
	transport *sctp.Transport
	peer      *attacker.Peer
	isBlocked bool // Write does not return

	mu  sync.Mutex
	box [][]byte // guarded by mu: what the victim has sent
}

// carriers is a process that has a connection with each of its peers, one budget of memory for all,
// and one peer that is honest.
type carriers struct {
	t          *testing.T
	c          *attacker.Choices
	budget     *sctp.MemoryBudget
	victims    []*carrierVictim
	friends    [2]*sctp.Transport
	honest     *sctp.Conn // of the honest peer
	maxAllowed int64

	mu       sync.Mutex
	accepted []*sctp.Conn // guarded by mu
}

func newCarriers(t *testing.T, seed uint64) *carriers {
	const numVictims = 4
	s := &carriers{t: t, c: attacker.Seeded(seed), budget: sctp.NewMemoryBudget(4 << 20)}
	s.maxAllowed = s.budget.Memory().Max + numVictims*128<<10 // what is charged in steps
	for range numVictims {
		v := new(carrierVictim)
		v.conn, _ = connpipe.New()
		v.conn.Filter(func(p []byte) bool {
			v.mu.Lock()
			defer v.mu.Unlock()
			if len(v.box) < 64 {
				v.box = append(v.box, slices.Clone(p))
			}
			return false
		})
		v.transport = s.newTransport(v.conn)
		s.serve(v.transport)
		v.replaceAttacker(s.c)
		s.victims = append(s.victims, v)
	}
	var ends [2]*connpipe.Conn
	ends[0], ends[1] = connpipe.New()
	for i, c := range ends {
		s.friends[i] = s.newTransport(c)
	}
	s.serve(s.friends[0])
	s.honest = must.Get(s.friends[1].Dial(t.Context(), netip.AddrPortFrom(netconn.PeerAddr, 5000), s.config(1<<16)))(t)
	return s
}

func (s *carriers) newTransport(c *connpipe.Conn) *sctp.Transport {
	link := must.Get(netconn.New(c, nil))(s.t)
	return must.Get(sctp.NewTransport(link, &sctp.TransportConfig{MemoryBudget: s.budget}))(s.t)
}

// config has every extension.
func (s *carriers) config(recvBuffer int) *sctp.Config {
	return &sctp.Config{RecvBuffer: recvBuffer, PartialReliability: true, Interleaving: true,
		StreamReset: sctp.AllowStreamReset | sctp.AllowTSNReset | sctp.AllowAddStreams}
}

// serve has a program send back what it reads. It reads nothing of every third association.
func (s *carriers) serve(tr *sctp.Transport) {
	l := must.Get(tr.Listen(5000, s.config(1<<(12+s.c.Below(9)))))(s.t)
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			s.mu.Lock()
			s.accepted = append(s.accepted, c)
			s.mu.Unlock()
			if n%3 != 2 {
				go echoAll(c)
			}
		}
	}()
}

func echoAll(c *sctp.Conn) {
	defer c.Close()
	for buf := make([]byte, 64<<10); ; {
		n, info, err := c.ReadMsg(buf)
		if err != nil {
			return
		}
		c.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := c.WriteMsg(buf[:n], sctp.SendInfo{Stream: info.Stream}); err != nil {
			return
		}
	}
}

func (v *carrierVictim) replaceAttacker(c *attacker.Choices) {
	v.peer = attacker.New(c, attacker.Config{LocalPort: uint16(1024 + c.Below(1000)), RemotePort: 5000, MTU: 1191,
		Careful: c.Below(2) == 0})
}

// step is one packet of an attacker, or something that happens to its connection.
func (s *carriers) step() {
	v := s.victims[s.c.Below(len(s.victims))]
	switch {
	case s.c.One(400):
		v.replaceAttacker(s.c)
	case s.c.One(100):
		v.isBlocked = !v.isBlocked
		v.conn.Block(v.isBlocked)
	}
	v.mu.Lock()
	for _, p := range v.box {
		v.peer.Take(p)
	}
	v.box = v.box[:0]
	v.mu.Unlock()
	if p := v.peer.Packet(); p != nil {
		v.conn.Inject(p)
	}
	wait := time.Duration(s.c.Below(1000)) * time.Microsecond
	if s.c.One(64) {
		wait = time.Duration(s.c.Below(5)) * time.Second
	}
	time.Sleep(wait)
	synctest.Wait()
	used := s.budget.Memory().Used
	must.That(s.t, used <= s.maxAllowed, "%d octets are held", used)
}

// askFriend has the honest peer ask something, and hear the answer.
func (s *carriers) askFriend() {
	deadline := time.Now().Add(time.Second)
	s.honest.SetDeadline(deadline)
	must.Get(s.honest.WriteMsg([]byte("well?"), sctp.SendInfo{}))(s.t)
	buf := make([]byte, 16)
	n := must.Get(readMessage(s.honest, buf))(s.t)
	must.That(s.t, string(buf[:n]) == "well?", "the answer is %q", buf[:n])
}

func readMessage(c *sctp.Conn, buf []byte) (int, error) {
	n, _, err := c.ReadMsg(buf)
	return n, err
}

// Peers at the other ends of connections send whatever they like, and some do not take what is sent
// to them. That hurts no other connection, and none keeps Close waiting.
func TestHostilePeersOverConnections(t *testing.T) {
	seeds, accepted := map[bool]uint64{false: 12, true: 3}[race.Enabled || testing.Short()], 0
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			s := newCarriers(t, seed)
			for i := range 2000 {
				s.step()
				if i%50 == 0 {
					s.askFriend()
				}
			}
			accepted += len(s.accepted)
			began := time.Now()
			for _, v := range s.victims {
				v.transport.Close()
			}
			for _, f := range s.friends {
				f.Close()
			}
			took := time.Since(began)
			for _, c := range s.accepted {
				c.Close() // what nobody has read is dropped
			}
			synctest.Wait()
			check.That(t, took < 10*time.Second && s.budget.Memory().Used == 0,
				"seed %d: closing took %v, and %d octets are still counted", seed, took, s.budget.Memory().Used)
		})
		must.That(t, !t.Failed(), "seed %d", seed)
	}
	check.That(t, accepted > 10*int(seeds), "the attackers have set up %d associations", accepted)
}
