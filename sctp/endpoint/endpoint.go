package endpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/rddp-go/rddp/internal/quota"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/internal/index"
)

// Config is what an endpoint needs from its surroundings.
type Config struct {
	// Rand is the source of tags, TSNs, nonces and cookie keys. It must be unpredictable to others.
	// It must be safe for concurrent use if associations are used concurrently.
	Rand io.Reader
	// MTU returns the largest SCTP packet in octets on the path from local to remote.
	MTU func(local, remote netip.Addr) int
	// CutFrom is that of a link that is a rawio.Fragmenter, nil for others.
	CutFrom func(local, remote netip.Addr) int
	// BaseMTU is that of a link that is a rawio.BaseSizer, nil for others.
	BaseMTU func(local, remote netip.Addr) int
	// Features are those of the link, and New says where an association is to lie: see assoc.Env.
	Features rawio.Features
	New      func() *assoc.Assoc
	// ErrorDetection is how the link detects errors, if it does: see assoc.Env.
	ErrorDetection rawio.ErrorDetection
	// Own says whether an address is one of this host's: see assoc.Env.
	Own func(netip.Addr) bool
	// MaxAssocs bounds the associations; further peers are refused by ABORT. 0 means 1,048,576.
	MaxAssocs int
	// MaxPerSource bounds the associations that were set up from one IPv4 address, or IPv6 /64. A
	// /56 may have twice as many together, a /48 three times, a /32 four times. An ABORT refuses
	// more. 0: no bound.
	MaxPerSource int
	// MaxAnswers bounds, for a second and one address, the answers to INITs and to packets out of
	// the blue. So nobody is flooded from here because somebody else forges its address. Of more
	// packets some get an answer, by chance. 0: no bound. AnswerKey, which others must not know,
	// decides which addresses share a place in the table of rates.
	MaxAnswers int
	AnswerKey  uint64
	// MaxSetups bounds how many packets are looked at in a second that set up associations or
	// belong to none. A long one counts as several. It also bounds the octets of answers: 300 for
	// each. Of more packets some are looked at, by chance. 0: no bound.
	MaxSetups int
	// Chance is a source of random numbers, which others must not know. Nil: Rand.
	Chance func() uint64
	// Admits says whether there is memory for another association with the host at an address. Nil:
	// always. An ABORT refuses the others.
	Admits func(netip.Addr) bool
	// Accepts says whether the listener on a local address and port takes another association with
	// the host at peer. Nil: always. An ABORT refuses the others, as section 5.1 requires for lack
	// of resources. Accepts is asked last: Adopt follows a true.
	Accepts func(local netip.AddrPort, peer netip.Addr) bool
	// Adopt is called with each new association before Lookup can find it, unless it is nil. It may
	// set its Owner and its upper layer.
	Adopt func(*assoc.Assoc)
}

const defaultMaxAssocs = 1 << 20

// Errors of Listen and Connect.
var (
	// ErrPortInUse: the port is already listened on, or no ephemeral port is free.
	// It matches syscall.EADDRINUSE.
	ErrPortInUse = rawio.ErrPortInUse
	// ErrExists: there is an association between these ports and one of these addresses (section
	// 1.3).
	ErrExists = fmt.Errorf("sctp: an association between these endpoints exists: %w", rawio.ErrPortInUse)
	// ErrNoAddress: Connect was given no usable peer address, or more than assoc.MaxPaths.
	ErrNoAddress = errors.New("sctp: connect needs one to 8 unicast peer addresses")
	// ErrPort: port 0 is not a port that a peer can have (section 3.1).
	ErrPort = errors.New("sctp: port 0 is not valid here")
	// ErrTooMany: Config.MaxAssocs is reached.
	ErrTooMany = errors.New("sctp: too many associations")
)

// tableEntry is what the tables hold of an association, so that it can be removed.
type tableEntry struct {
	tag    tagKey
	peers  []peerKey  // in byPeer
	claims []peerKey  // in byClaim
	source netip.Addr // that it was set up from, if the peer did
}

// Endpoint holds the associations and listeners of one or more local addresses. Lookup may run
// concurrently with everything, so data never waits for set-ups. It may miss, or still find, an
// association that is being entered, taken out or refreshed. Find then gives the right answer.
//
// Endpoint has two parts, for an owner that runs it concurrently and keeps floods of set-ups from
// each other. Screen, Answer, PollTransmit and Stats need only the part that sets up. MakeAssoc
// needs both parts, every other method the tables alone.
type Endpoint struct {
	cfg Config
	env assoc.Env
	tables
	setups
	malformedPackets, badChecksums, zeroChecksums, strayReports atomic.Uint64 // by Lookup
}

// tables is the part that finds what there is.
type tables struct {
	listeners  map[uint16][]*assoc.Config // several on one port have different addresses
	byPeer     index.Map[peerKey, *assoc.Assoc]
	byClaim    index.Map[peerKey, *assoc.Assoc] // by addresses that the peer has named and most likely lacks
	byTag      index.Map[tagKey, *assoc.Assoc]
	entries    map[*assoc.Assoc]*tableEntry
	dialConfig *assoc.Config      // of the last association of Connect, and of earlier ones with the same
	portUses   map[uint16]int     // associations on each local port
	perSource  quota.ClientShares // associations that hosts have set up
	usedTags   usedTags
	remains    remainsTable
}

// setups is the part that sets up.
type setups struct {
	answerRates answerRates
	setupBudget setupBudget
	answers     assoc.Outbox
	stats       Stats // without Lookup's counts
}

// New returns an endpoint without listeners and associations.
func New(cfg Config) *Endpoint {
	if cfg.MaxAssocs <= 0 {
		cfg.MaxAssocs = defaultMaxAssocs
	}
	return &Endpoint{
		cfg: cfg,
		env: assoc.Env{Rand: cfg.Rand, MTU: cfg.MTU, CutFrom: cfg.CutFrom, BaseMTU: cfg.BaseMTU,
			Cookies: assoc.NewJar(cfg.Rand), Features: cfg.Features, ErrorDetection: cfg.ErrorDetection,
			Own: cfg.Own, New: cfg.New},
		tables: tables{listeners: make(map[uint16][]*assoc.Config), entries: make(map[*assoc.Assoc]*tableEntry),
			portUses: make(map[uint16]int)},
		setups: setups{answerRates: newAnswerRates(&cfg),
			setupBudget: newSetupBudget(cfg.MaxSetups)},
	}
}

// Listen accepts associations on port as cfg says (nil: defaults). It fails with ErrPort,
// ErrPortInUse or a *assoc.ConfigError.
func (e *Endpoint) Listen(port uint16, cfg *assoc.Config) error {
	if port == 0 {
		return ErrPort
	}
	c, err := e.completeConfig(cfg)
	if err != nil {
		return err
	}
	for _, other := range e.listeners[port] {
		if len(c.LocalAddrs) == 0 || len(other.LocalAddrs) == 0 ||
			slices.ContainsFunc(c.LocalAddrs, func(a netip.Addr) bool { return slices.Contains(other.LocalAddrs, a) }) {
			return ErrPortInUse
		}
	}
	e.listeners[port] = append(e.listeners[port], c)
	return nil
}

// Relisten changes the configuration of the listener on port that has the LocalAddrs of cfg. From
// now on it accepts associations as cfg says. Relisten fails with a *assoc.ConfigError.
func (e *Endpoint) Relisten(port uint16, cfg *assoc.Config) error {
	c, err := e.completeConfig(cfg)
	if err != nil {
		return err
	}
	for i, old := range e.listeners[port] {
		if slices.Equal(old.LocalAddrs, c.LocalAddrs) {
			e.listeners[port][i] = c
		}
	}
	return nil
}

// completeConfig returns the configuration of a listener with its defaults.
func (e *Endpoint) completeConfig(cfg *assoc.Config) (*assoc.Config, error) {
	c, err := cfg.CompleteFor(&e.env)
	if err == nil {
		err = c.CanMark(&e.env)
	}
	return &c, err
}

// Unlisten stops accepting on port at those local addresses, or at all if none are given.
// Associations stay.
func (e *Endpoint) Unlisten(port uint16, at ...netip.Addr) {
	e.listeners[port] = slices.DeleteFunc(e.listeners[port], func(c *assoc.Config) bool {
		return len(at) == 0 || slices.Contains(c.LocalAddrs, at[0].Unmap())
	})
	if len(e.listeners[port]) == 0 {
		delete(e.listeners, port)
	}
}

// findListener returns the configuration for what comes to a port at a local address, nil if nobody
// listens. Another address is another SCTP endpoint of this host (section 1.3).
func (e *Endpoint) findListener(port uint16, local netip.Addr) *assoc.Config {
	for _, c := range e.listeners[port] {
		if len(c.LocalAddrs) == 0 || slices.Contains(c.LocalAddrs, local.Unmap()) {
			return c
		}
	}
	return nil
}

// Connect starts an association to remotePort at the remote addresses, the first of which is tried
// first. The port of each netip.AddrPort is the UDP encapsulation port. localPort 0 picks a free
// one, an invalid local lets the link choose the address. With Config.LocalAddrs, local gives only
// the own UDP port. The INIT leaves with the association's first PollTransmit.
func (e *Endpoint) Connect(now rawio.Time, cfg *assoc.Config, localPort uint16, local netip.AddrPort,
	remote []netip.AddrPort, remotePort uint16) (*assoc.Assoc, error) {
	return e.Join(now, cfg, localPort, local, remote, remotePort, nil)
}

// NewInit makes an INIT chunk for Join.
func (e *Endpoint) NewInit(cfg *assoc.Config) ([]byte, error) {
	c, err := cfg.CompleteFor(&e.env)
	if err != nil {
		return nil, err
	}
	return assoc.NewInit(&c, &e.env)
}

// Join is Connect without a handshake, where both sides have the INIT chunks.
func (e *Endpoint) Join(now rawio.Time, cfg *assoc.Config, localPort uint16, local netip.AddrPort,
	remote []netip.AddrPort, remotePort uint16, inits *assoc.Inits) (*assoc.Assoc, error) {
	c, err := cfg.CompleteFor(&e.env)
	switch {
	case err != nil:
		return nil, err
	case remotePort == 0:
		return nil, ErrPort
	case len(remote) == 0 || len(remote) > assoc.MaxPaths:
		return nil, ErrNoAddress
	case len(e.entries) >= e.cfg.MaxAssocs:
		return nil, ErrTooMany
	}
	for _, r := range remote {
		if !assoc.Unicast(r.Addr().Unmap()) {
			return nil, ErrNoAddress
		}
	}
	if localPort == 0 {
		if localPort, err = e.freePort(); err != nil {
			return nil, err
		}
	}
	if e.Between(localPort, remote, remotePort) {
		return nil, ErrExists
	}
	e.remains.expire(now)
	if e.dialConfig == nil || !reflect.DeepEqual(c, *e.dialConfig) {
		e.dialConfig = &c
	}
	a, err := assoc.Connect(now, e.dialConfig, &e.env,
		assoc.Peer{LocalPort: localPort, PeerPort: remotePort, Local: local, Remotes: remote,
			Inits: inits})
	if err != nil {
		return nil, err
	}
	e.addAssoc(a)
	return a, nil
}

// Between says whether there is an association between a port and one of the peer's, at one of
// these addresses.
func (e *Endpoint) Between(localPort uint16, remote []netip.AddrPort, remotePort uint16) bool {
	return slices.ContainsFunc(remote, func(r netip.AddrPort) bool {
		return getAssoc(&e.byPeer, peerKey{r.Addr().Unmap(), localPort, remotePort}) != nil
	})
}

// The dynamic ports (RFC 6335 section 6).
const (
	FirstDynamic = 49152
	NumDynamic   = 65536 - FirstDynamic
)

// freePort picks a dynamic port that neither a listener nor an association uses.
func (e *Endpoint) freePort() (port uint16, err error) {
	var b [2]byte
	_, _ = io.ReadFull(e.cfg.Rand, b[:]) // without randomness there is no association either
	start := int(binary.BigEndian.Uint16(b[:]))
	for i := range NumDynamic {
		port = uint16(FirstDynamic + (start+i)%NumDynamic)
		if e.portUses[port] == 0 && e.listeners[port] == nil {
			return port, nil
		}
	}
	return port, ErrPortInUse
}

// getAssoc returns the association with a key, nil if there is none.
func getAssoc[K index.Key](table *index.Map[K, *assoc.Assoc], k K) *assoc.Assoc {
	a, _ := table.Get(k)
	return a
}

// addAssoc puts an association into the tables, once its owner knows of it.
func (e *Endpoint) addAssoc(a *assoc.Assoc) *tableEntry {
	if e.cfg.Adopt != nil {
		e.cfg.Adopt(a)
	}
	en := e.addToTables(a)
	e.entries[a] = en
	e.portUses[a.LocalPort()]++
	return en
}

// addToTables makes an association findable by what it has now. A peer address that another
// association holds stays with that one. Addresses that could not be verified hold nothing: an
// association set up from such an address gets it. So nobody keeps a host out for longer by listing
// its addresses (RFC 5062 section 2).
func (e *Endpoint) addToTables(a *assoc.Assoc) *tableEntry {
	en := &tableEntry{tag: tagKey{a.LocalTag(), a.LocalPort(), a.PeerPort()}}
	e.byTag.Put(en.tag, a)
	for i := range a.NumPaths() {
		table, list := &e.byPeer, &en.peers
		if a.Unverified(i) {
			table, list = &e.byClaim, &en.claims
		}
		k := peerKey{a.PathStats(i).Remote.Addr(), a.LocalPort(), a.PeerPort()}
		switch getAssoc(table, k) {
		case nil:
			table.Put(k, a)
			*list = append(*list, k)
		case a: // as before, see Refresh
			*list = append(*list, k)
		}
	}
	return en
}

// Remove forgets an association, after its EventDown, but for what is to answer its peer.
func (e *Endpoint) Remove(now rawio.Time, a *assoc.Assoc) {
	en := e.entries[a]
	if en == nil {
		return
	}
	e.remains.expire(now)
	if r := a.Remains(); r != nil {
		e.remains.add(en.tag, r, now.Add(r.Lasts()))
	}
	e.removeFromTables(a, en, &tableEntry{})
	e.usedTags.add(en.tag, a.CookieMade(), a.CookieUntil())
	delete(e.entries, a)
	if e.portUses[en.tag.local]--; e.portUses[en.tag.local] == 0 {
		delete(e.portUses, en.tag.local)
	}
	if en.source.IsValid() {
		e.perSource.AddHeld(en.source, -1)
	}
}

// removeFromTables removes an association's old keys, except those that it still has.
func (e *Endpoint) removeFromTables(a *assoc.Assoc, had, has *tableEntry) {
	if had.tag != has.tag && getAssoc(&e.byTag, had.tag) == a {
		e.byTag.Delete(had.tag)
	}
	for _, k := range had.peers {
		if !slices.Contains(has.peers, k) {
			e.byPeer.Delete(k)
		}
	}
	for _, k := range had.claims {
		if !slices.Contains(has.claims, k) {
			e.byClaim.Delete(k)
		}
	}
}

// addAccepted enters an association that a peer has set up from an address.
func (e *Endpoint) addAccepted(a *assoc.Assoc, source netip.Addr) {
	e.addAssoc(a).source = source
	e.perSource.AddHeld(source, 1)
}

// Refresh takes up a change of an association's own tag and peer addresses, and of their
// verification. Call it on EventUp, EventRestart, EventPathUp and EventPathDown. What the
// association keeps finds it all the while.
func (e *Endpoint) Refresh(a *assoc.Assoc) {
	had := e.entries[a]
	if had == nil {
		return
	}
	has := e.addToTables(a)
	has.source = had.source
	e.entries[a] = has
	e.removeFromTables(a, had, has)
	if had.tag != has.tag { // a restart
		e.usedTags.add(had.tag, a.CookieMade(), a.CookieUntil())
	}
}

// Held returns the octets of memory that the endpoint keeps for no association.
func (e *Endpoint) Held() int { return e.usedTags.memorySize() + e.remains.memorySize() }

// Len returns the number of associations.
func (e *Endpoint) Len() int { return len(e.entries) }

// PollTransmit adds the endpoint's own answers to out. more says that out was full: write it, reset
// it and call again.
func (e *Endpoint) PollTransmit(now rawio.Time, out *assoc.TxBatch) (more bool) {
	return e.answers.PollTransmit(out)
}
