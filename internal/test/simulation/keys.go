package simulation

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// keyWorld is what a world has whose associations are encrypted by DTLS chunks. Its TLS has no
// secrets, and takes time as the real one does.
type keyWorld struct {
	w      *World
	rand   *simnet.Rand // what TLS does
	hellos uint32
	ledger numberLedger
	kept   map[*Host]*keptKeys // for a restart; crashes do not touch them
	last   *rawio.Packet       // a copy of the last packet that was sealed
}

// keptKeys are what a host keeps for a restart of an association.
type keptKeys struct {
	keys assoc.RestartKeys
	c    *conn
}

// NewEncrypted makes a world from a seed whose associations are encrypted.
func NewEncrypted(seed uint64) *World {
	w := New(seed)
	w.hash = firstHash + 2
	w.keys = &keyWorld{w: w, rand: simnet.NewRand(seed ^ 0x746c73), kept: make(map[*Host]*keptKeys)}
	for _, h := range []*Host{w.a, w.b} {
		h.cfg.Protected, h.cfg.Restartable = true, true
		h.node.Out = w.keys.send
	}
	w.keys.rekeyLater()
	if w.keys.rand.IntN(3) == 0 {
		w.keys.crashLater(1 + w.keys.rand.IntN(3))
	}
	return w
}

// crashLater has A crash so many times, now and then.
func (k *keyWorld) crashLater(times int) {
	k.w.After(time.Duration(k.rand.IntN(2000))*time.Millisecond, func() {
		switch {
		case k.w.finishing || times == 0:
		case k.crash():
			k.crashLater(times - 1)
		default:
			k.crashLater(times)
		}
	})
}

// send gives a packet to the network, once the ledger has it.
func (k *keyWorld) send(p *rawio.Packet) {
	if wrong := k.ledger.note(p); wrong != "" {
		k.w.failf("%v -> %v: %s", p.Local, p.Remote, wrong)
	}
	k.last = &rawio.Packet{Vec: [][]byte{bytes.Join(p.Vec, nil)}}
	k.w.net.Send(k.w.now, p)
}

// keyKeeper keeps the restart keys of an association. It takes time as a disk does.
type keyKeeper struct {
	k *keyWorld
	c *conn
}

// StoreRestart implements assoc.RestartKeeper.
func (x keyKeeper) StoreRestart(keys assoc.RestartKeys) { x.k.kept[x.c.h] = &keptKeys{keys, x.c} }

// TakeRestart implements assoc.RestartKeeper.
func (x keyKeeper) TakeRestart() {
	x.k.w.After(time.Duration(x.k.rand.IntN(20))*time.Millisecond, func() {
		if x.c.down != nil {
			return
		}
		var keys *assoc.RestartKeys
		if kept := x.k.kept[x.c.h]; kept != nil {
			keys = &kept.keys
		}
		delete(x.k.kept, x.c.h)
		x.c.a.RestartTaken(x.c.h.node.Time(), keys)
		x.c.Pump()
	})
}

// forget forgets the restart keys of an association that has ended.
func (k *keyWorld) forget(c *conn) {
	if kept := k.kept[c.h]; kept != nil && kept.c == c {
		delete(k.kept, c.h)
	}
}

// crash has A lose all but its restart keys, in the middle of everything, and set the association up
// again with them. It returns false where either side has none at the moment.
func (k *keyWorld) crash() bool {
	w := k.w
	if w.conn == nil || len(w.b.conns) == 0 || w.assocKiller.on {
		return false
	}
	c, peer := w.conn, w.b.currentConn()
	if k.kept[w.a] == nil || k.kept[w.b] == nil || k.kept[w.a].c != c || k.kept[w.b].c != peer || !w.bothConnected() {
		return false
	}
	w.cutOff()
	c.down, c.closing, c.flushing = errCrash, nil, nil
	for _, l := range w.workloads {
		if l.q.h == w.a && !l.q.over {
			l.q.over = true
			l.q.core.Ended()
		}
	}
	w.a.node.Crash()
	w.coverage.Restarts++
	w.sessions += len(w.slots)
	w.ops += 10
	w.connectHosts()
	return true
}

// rekeyLater has either side ask for new keys now and then.
func (k *keyWorld) rekeyLater() {
	k.w.After(time.Duration(k.rand.IntN(3000))*time.Millisecond, func() {
		if c := []*Host{k.w.a, k.w.b}[k.rand.IntN(2)]; len(c.conns) > 0 && c.currentConn().down == nil {
			c.currentConn().a.Rekey(c.node.Time())
			c.currentConn().Pump()
		}
		if !k.w.finishing {
			k.rekeyLater()
		}
	})
}

// setupLost takes the end of an association that has got no keys in time. Another one is set up,
// from another port: what the peer has of the old one is encrypted already, or will end by itself.
func (k *keyWorld) setupLost(c *conn) (excused bool) {
	if k == nil || !c.peerless && c.up {
		return false
	}
	if c.h == k.w.a && c == k.w.conn {
		for _, peer := range k.w.b.conns {
			peer.peerless = true
		}
		k.w.local++
		k.w.coverage.Retried++
		k.w.scheduleAfter(time.Millisecond, k.w.connectHosts)
	}
	return true
}

// keySessions are the TLS sessions of one association.
type keySessions struct {
	k    *keyWorld
	c    *conn
	open map[uint64]*keySession
}

type keySession struct {
	isClient bool
	params   assoc.KeyParams
	number   uint32
	flight   int // octets of the peer's last flight, once it has come
	fed      int // octets in all
}

// Types of TLS records.
const (
	recordAlert     = 21
	recordHandshake = 22
	recordEncrypted = 23
)

func tlsRecord(kind byte, body []byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{kind, 3, 3}, uint16(len(body))), body...)
}

// hello is a ClientHello with the number of a session.
func hello(number uint32) []byte {
	return tlsRecord(recordHandshake, binary.BigEndian.AppendUint32([]byte{1, 0}, number))
}

// later has f called when TLS has computed.
func (s *keySessions) later(f func(now rawio.Time)) {
	s.k.w.After(time.Duration(s.k.rand.IntN(2000))*time.Microsecond, func() {
		if s.c.down == nil {
			f(s.c.h.node.Time())
			s.c.Pump()
		}
	})
}

// StartSession implements assoc.KeySessions.
func (s *keySessions) StartSession(id uint64, isClient bool, p assoc.KeyParams) error {
	x := &keySession{isClient: isClient, params: p}
	s.open[id] = x
	if isClient {
		s.k.hellos++
		x.number = s.k.hellos
		s.later(func(now rawio.Time) { s.c.a.KeySessionWrote(now, id, hello(x.number)) })
	}
	return nil
}

// CloseSession implements assoc.KeySessions.
func (s *keySessions) CloseSession(id uint64) {
	if x := s.open[id]; x != nil && x.flight > 0 { // it ends well
		s.later(func(now rawio.Time) { s.c.a.KeySessionWrote(now, id, tlsRecord(recordEncrypted, []byte{0})) })
	}
	delete(s.open, id)
}

// FeedSession implements assoc.KeySessions.
func (s *keySessions) FeedSession(id uint64, records []byte) {
	x := s.open[id]
	if x == nil {
		return
	}
	x.fed += len(records)
	switch {
	case !x.isClient && records[0] == recordHandshake:
		x.number = binary.BigEndian.Uint32(records[7:])
		flight := tlsRecord(recordHandshake, []byte{2, 0})
		for range 1 + s.k.rand.IntN(5) {
			flight = append(flight, tlsRecord(recordEncrypted, make([]byte, 1+s.k.rand.IntN(1000)))...)
		}
		s.later(func(now rawio.Time) { s.c.a.KeySessionWrote(now, id, flight) })
	case records[0] == recordAlert:
		s.later(func(now rawio.Time) { s.c.a.KeySessionFailed(now, id, errors.New("alert of the peer"), nil) })
	case x.flight == 0:
		x.flight = len(records)
		o := assoc.KeyOutcome{Unread: x.fed - len(hello(0)) - len(finished)}
		if x.isClient {
			o.Unread, o.Output = 0, finished
		}
		s.k.fillSecrets(x, &o)
		s.later(func(now rawio.Time) { s.c.a.KeySessionDone(now, id, o) })
	}
}

var finished = tlsRecord(recordEncrypted, []byte{1})

// fillSecrets makes the keys of a session: both ends have the same if both saw the same parameters.
func (k *keyWorld) fillSecrets(x *keySession, o *assoc.KeyOutcome) {
	secrets := newOf(&o.Secrets)
	for by := range secrets.Primary {
		for role, m := range listOf(&secrets.Primary[by], &secrets.Restart[by]) {
			m.Suite = 0x1301
			parts := [][]byte{m.Key[:16], m.SNKey[:16], m.IV[:]}
			for i, part := range parts {
				context := append([]byte{byte(by), byte(role), byte(i)}, x.params.Client...)
				context = append(binary.BigEndian.AppendUint32(context, x.number), x.params.Server...)
				sum := sha256.Sum256(context)
				copy(part, sum[:])
			}
			k.ledger.add(parts[0], parts[1], parts[2])
		}
	}
	secrets.HasRestart = x.params.HasRestart()
}

// listOf lists what has a type that cannot be named here.
func listOf[T any](list ...T) []T { return list }

// newOf makes what p points to: the type cannot be named here.
func newOf[T any](p **T) *T {
	*p = new(T)
	return *p
}

// countRekeys counts the handshakes of an association that has ended.
func (w *World) countRekeys(c *conn) {
	if w.keys != nil {
		w.keys.forget(c)
		w.coverage.Rekeys += int(max(c.a.Stats().Keys.Handshakes, 1)) - 1
	}
}
