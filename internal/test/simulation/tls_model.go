package simulation

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"net/netip"
	"reflect"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// Keys is TLS for the encrypted associations of an Env, and what hosts keep for restarts. Its TLS
// has no secrets, and takes time as the real one does. A ledger has each number that a key has
// sealed.
type Keys struct {
	g      *Env
	rand   *simnet.Rand // what TLS does
	hellos uint32
	ledger numberLedger
	kept   map[keptName]*keptKeys // crashes do not touch them
}

// NewKeys returns TLS whose luck is drawn from rand.
func NewKeys(g *Env, rand *simnet.Rand) *Keys {
	return &Keys{g: g, rand: rand, kept: make(map[keptName]*keptKeys)}
}

// Attach gives an association of a node TLS, and a place for its restart keys.
func (k *Keys) Attach(n *Node, c Conn) {
	a := c.Assoc()
	a.SetKeySessions(&keySessions{k, n, c, make(map[uint64]*keySession)})
	a.SetRestartKeeper(keyKeeper{k, n, c, keptName{n, a.LocalPort(), a.PeerPort(), a.PeerAddr().Addr()}})
}

// IsTLS reports whether a type belongs to the TLS of an association, and not to the association.
func IsTLS(t reflect.Type) bool {
	return t == reflect.TypeFor[keySessions]() || t == reflect.TypeFor[Keys]()
}

// Note takes a packet that is about to leave. It returns what is wrong with its number, "" for
// nothing.
func (k *Keys) Note(p *rawio.Packet) string { return k.ledger.note(p) }

// Records returns how many records were sealed.
func (k *Keys) Records() int { return k.ledger.records }

// keptName is an association by its ports, and the address of the peer that it was set up with.
type keptName struct {
	n           *Node
	local, peer uint16
	addr        netip.Addr
}

// keptKeys are what a host keeps for a restart of an association.
type keptKeys struct {
	keys assoc.RestartKeys
	c    Conn
}

// keyKeeper keeps the restart keys of an association. It takes time as a disk does.
type keyKeeper struct {
	k    *Keys
	n    *Node
	c    Conn
	name keptName
}

// StoreRestart implements assoc.RestartKeeper.
func (x keyKeeper) StoreRestart(keys assoc.RestartKeys) { x.k.kept[x.name] = &keptKeys{keys, x.c} }

// TakeRestart implements assoc.RestartKeeper.
func (x keyKeeper) TakeRestart() {
	x.k.g.After(time.Duration(x.k.rand.IntN(20))*time.Millisecond, func() {
		if x.c.Gone() {
			return
		}
		var keys *assoc.RestartKeys
		if kept := x.k.kept[x.name]; kept != nil {
			keys = &kept.keys
		}
		delete(x.k.kept, x.name)
		x.c.Assoc().RestartTaken(x.n.Time(), keys)
		x.c.Pump()
	})
}

// keeps reports whether there are restart keys that an association has stored.
func (k *Keys) keeps(c Conn) bool {
	for _, kept := range k.kept {
		if kept.c == c {
			return true
		}
	}
	return false
}

// Forget forgets the restart keys of an association that has ended.
func (k *Keys) Forget(c Conn) {
	maps.DeleteFunc(k.kept, func(_ keptName, kept *keptKeys) bool { return kept.c == c })
}

// keySessions are the TLS sessions of one association.
type keySessions struct {
	k    *Keys
	n    *Node
	c    Conn
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
	s.k.g.After(time.Duration(s.k.rand.IntN(2000))*time.Microsecond, func() {
		if !s.c.Gone() {
			f(s.n.Time())
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
		s.later(func(now rawio.Time) { s.c.Assoc().KeySessionWrote(now, id, hello(x.number)) })
	}
	return nil
}

// CloseSession implements assoc.KeySessions.
func (s *keySessions) CloseSession(id uint64) {
	if x := s.open[id]; x != nil && x.flight > 0 { // it ends well
		s.later(func(now rawio.Time) { s.c.Assoc().KeySessionWrote(now, id, tlsRecord(recordEncrypted, []byte{0})) })
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
		s.later(func(now rawio.Time) { s.c.Assoc().KeySessionWrote(now, id, flight) })
	case records[0] == recordAlert:
		s.later(func(now rawio.Time) { s.c.Assoc().KeySessionFailed(now, id, errors.New("alert of the peer"), nil) })
	case x.flight == 0:
		x.flight = len(records)
		o := assoc.KeyOutcome{Unread: x.fed - len(hello(0)) - len(finished)}
		if x.isClient {
			o.Unread, o.Output = 0, finished
		}
		s.k.fillSecrets(x, &o)
		s.later(func(now rawio.Time) { s.c.Assoc().KeySessionDone(now, id, o) })
	}
}

var finished = tlsRecord(recordEncrypted, []byte{1})

// fillSecrets makes the keys of a session: both ends have the same if both saw the same parameters.
func (k *Keys) fillSecrets(x *keySession, o *assoc.KeyOutcome) {
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
