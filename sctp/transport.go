package sctp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/internal/grace"
	"github.com/rddp-go/rddp/internal/pollpolicy"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/internal/account"
)

// minPacketOctets is the smallest SCTP packet that a link must carry. It holds a session control
// message of RFC 5043 with 512 octets of private data.
const minPacketOctets = 12 + 16 + 4 + 512

// Transport runs SCTP associations over one Link. It has a receive goroutine for each of its
// queues, one timer, and the callers' own goroutines. These receive too while they wait
// (readerRole). It is the shell around the sans-IO packages endpoint and assoc.
//
// Locks, in the order they may be taken: setupMu, mu, then an association lock, then the leaf
// locks.
type Transport struct {
	link      rawio.Link
	cfg       TransportConfig
	startedAt time.Time

	endMu        sync.Mutex // a leaf lock
	linkClosing  bool       // guarded by endMu: the link is closed by Close
	failure      atomic.Pointer[LinkError]
	failingGroup sync.WaitGroup

	setupMu               sync.Mutex     // guards the part of ep that sets up
	reportedStats         endpoint.Stats // guarded by setupMu: as the event log knows them
	reportedAcceptRefused uint64         // acceptRefused, likewise

	mu             sync.RWMutex
	ep             *endpoint.Endpoint        // guarded by mu, but for the set-up part, and Lookup, which needs no lock
	adoptAssoc     func(*assoc.Assoc)        // guarded by mu: makes a Conn of an association that is about to enter ep
	slotAddr       netip.Addr                // guarded by mu: the host of the last reserveAcceptSlot
	conns          map[*Conn]struct{}        // guarded by mu
	listeners      map[uint16][]*Listener    // guarded by mu; several on one port have different addresses
	portUsers      map[uint16]int            // guarded by mu: users of each bound port
	dialUsers      map[uint16]int            // guarded by mu: those of them that are associations of Dial
	boundAddrs     map[uint16][]netip.Addr   // guarded by mu: the addresses of each user of a port; none for all
	linkBoundAddrs map[uint16][]netip.Addr   // guarded by mu: the addresses of each port of the link; none for all
	lingeringPorts map[uint16]*lingeringPort // guarded by mu: ports without a user any more, see releasePort
	closed         bool                      // guarded by mu
	endStats       TransportStats            // guarded by mu: of associations that have ended
	endedCounters  assoc.Counters            // guarded by mu: sums over them
	endedRTTs      assoc.Histogram           // guarded by mu

	timers         *timers
	batchPool      sync.Pool     // *assoc.TxBatch
	signalWakes    atomic.Uint64 // times that a signal was set
	signalRequests atomic.Uint64 // things to answer, see signal.Brings
	coalescer      coalescer
	boundedWriter  *boundedWriter // nil: the link is prompt
	readerRole     readerRole
	shardReaders   sync.WaitGroup // goroutines that read further queues of the link

	memoryAccount *account.Total  // what peers make it hold
	ownAccount    account.Account // guarded by mu: what it holds for no peer in particular
	// guarded by mu: of ended associations with something unread
	orphanAccounts   map[*account.Account]weak.Pointer[Conn]
	assocsCreated    uint64       // guarded by mu
	numUnderPressure atomic.Int32 // associations that are
	reclaimer        reclaimer
	arenaPool        *rawio.Pool // for what waits for owners

	closeGrace  grace.Period // of Conn.Close
	longestHold longestHold  // see LongestHold
	stats       transportCounters
	eventLog    *eventLog

	yieldCPU      func()      // pollpolicy.Cede
	manyAssocs    atomic.Bool // there are many associations, see manyAssocsMin
	readsInKernel bool        // the link has a buffer in the kernel, and is read by long system calls
}

// NewTransport runs SCTP over link, which it owns from now on.
func NewTransport(link rawio.Link, cfg *TransportConfig) (*Transport, error) {
	t := &Transport{
		link: link, startedAt: time.Now(), yieldCPU: pollpolicy.YieldCPU,
		conns: make(map[*Conn]struct{}), listeners: make(map[uint16][]*Listener),
		boundAddrs: make(map[uint16][]netip.Addr), linkBoundAddrs: make(map[uint16][]netip.Addr),
		portUsers: make(map[uint16]int), dialUsers: make(map[uint16]int),
		lingeringPorts: make(map[uint16]*lingeringPort),
	}
	if cfg != nil {
		t.cfg = *cfg
	}
	if m := link.MTU(netip.Addr{}, netip.Addr{}); m < minPacketOctets {
		return nil, &rawio.MTUError{MTU: m}
	}
	t.eventLog = newEventLog(t.cfg.Logger)
	t.memoryAccount, t.orphanAccounts = account.NewTotal(t.cfg.maxMemory()),
		make(map[*account.Account]weak.Pointer[Conn])
	t.memoryAccount.OpenOwn(&t.ownAccount)
	t.reclaimer.init(t)
	t.arenaPool = rawio.NewPool(arenaOctets, maxIdleArenas)
	t.ep = endpoint.New(endpoint.Config{Rand: t.cfg.randReader(), MTU: link.MTU, CutFrom: rawio.CutFromOf(link),
		Features: rawio.FeaturesOf(link), New: newAssoc,
		Own:       func(a netip.Addr) bool { return rawio.Owns(link, a) },
		MaxAssocs: t.cfg.MaxAssocs, MaxPerSource: t.cfg.maxPerSource(), MaxAnswers: t.cfg.maxAnswers(),
		AnswerKey: rand.Uint64(),
		MaxSetups: t.cfg.maxSetups(), Chance: rand.Uint64, Admits: t.admitsAddr, Accepts: t.reserveAcceptSlot,
		Adopt: func(a *assoc.Assoc) { t.adoptAssoc(a) }})
	t.timers = newTimers(t.now, (*Conn).handleTimeout, t.sendCoalesced)
	t.coalescer.writeLink = t.writeCoalesced
	t.batchPool.New = func() any { return assoc.NewTxBatch(txBatchPackets) }
	t.readsInKernel = rawio.ReceiveBufferOf(link) > 0
	if !rawio.PromptOf(link) {
		t.boundedWriter = newBoundedWriter(link.WriteBatch, t.handleLinkFailure)
	}
	t.readerRole.init(t)
	openTransports.add(t)
	go t.receiveLoop()
	if w, ok := link.(rawio.Watcher); ok {
		t.shardReaders.Go(func() { w.Watch(t.updateUsableAddrs) })
	}
	for _, s := range rawio.ShardsOf(link) {
		t.shardReaders.Go(func() { t.serveQueue(s) })
	}
	return t, nil
}

const txBatchPackets = 176 // packets: of 1500 octets, four trains of UDP_SEGMENT

// now is the one clock: monotonic nanoseconds since the Transport was made.
func (t *Transport) now() rawio.Time { return rawio.Time(time.Since(t.startedAt)) }

// addConn enters a new association with a host. Called with mu held.
func (t *Transport) addConn(c *Conn, peer netip.Addr) {
	t.assocsCreated++
	c.assocNumber = t.assocsCreated
	t.openAccount(c, peer)
	t.conns[c] = struct{}{}
	t.updateManyAssocs()
}

// refreshIndex makes the endpoint index the tag and the addresses that an association has now.
func (t *Transport) refreshIndex(c *Conn) {
	t.mu.Lock()
	c.lock()
	t.ep.Refresh(&c.a) // does nothing for an association that was removed
	t.mu.Unlock()
	c.unlock()
}

// forgetConn removes an association that has ended, and returns the packet that sets up the next
// one, if there is any.
func (t *Transport) forgetConn(c *Conn) (next *rawio.Packet) {
	t.timers.remove(c)
	a, _ := c.lock()
	total, linger, freed, next := a.Stats(), c.lingerTime(), c.memoryFreed, a.Successor()
	c.unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.conns[c]; !ok {
		return nil
	}
	delete(t.conns, c)
	t.updateManyAssocs()
	if !freed {
		t.keepAccount(c)
	}
	counters.Add(&t.endedCounters, &total.Counters)
	t.endedRTTs.Add(&total.Trips)
	t.countEnd(c.err)
	t.ep.Remove(&c.a)
	t.chargeTransport()
	if c.isDialled() {
		t.releaseDialPort(c.a.LocalPort())
	}
	var at []netip.Addr
	if c.boundAddrs != nil {
		at = *c.boundAddrs
	}
	t.releasePort(c.a.LocalPort(), linger, at...)
	return next
}

// transmitBatch sends a batch of what an association has ready. It says whether that was anything,
// and whether there is more. Called by its owner.
func (t *Transport) transmitBatch(now rawio.Time, a *assoc.Assoc) (sent, more bool) {
	b := t.batchPool.Get().(*assoc.TxBatch)
	more = a.PollTransmit(now, b)
	if sent = len(b.Pkts) > 0; sent && !t.tryCoalesce(b, a) {
		t.awaitCoalesced(a.Owner.(*Conn))
		if t.writeTxBatch(now, b, a) {
			more = true // what was refused goes again at once
		}
	}
	t.batchPool.Put(b)
	return sent, more
}

// transmitReplies sends the endpoint's own packets. Called with setupMu held.
func (t *Transport) transmitReplies(now rawio.Time) {
	b := t.batchPool.Get().(*assoc.TxBatch)
	for more := true; more; {
		more = t.ep.PollTransmit(now, b)
		t.writeTxBatch(now, b, nil)
	}
	t.batchPool.Put(b)
}

// writeTxBatch hands a batch of an association's, or of the endpoint's, to the link and empties it.
func (t *Transport) writeTxBatch(now rawio.Time, b *assoc.TxBatch, a *assoc.Assoc) (refused bool) {
	refused = t.writePackets(now, b.Pkts, a)
	b.Reset()
	return refused
}

// writePackets hands packets to the link. The association hears of a packet that is longer than the
// link takes, or that has no route. refused says that such a packet goes again. Any other packet
// that the link refuses counts as lost: the protocol above recovers from that as from any loss.
func (t *Transport) writePackets(now rawio.Time, pkts []rawio.Packet, a *assoc.Assoc) (refused bool) {
	for len(pkts) > 0 {
		n, err := t.writeBatch(pkts)
		t.stats.txPackets.Add(uint64(n))
		t.stats.txBatches.Add(1)
		pkts = pkts[n:]
		if err == nil {
			continue
		}
		if linkEnded(err) {
			t.handleLinkFailure(err)
			break
		}
		if len(pkts) > 0 {
			t.stats.txDiscards.Add(1)
			local := assoc.IsLocalRefusal(err) || errors.As(err, new(*net.AddrError))
			if local {
				t.eventLog.logRefusal(&pkts[0], err)
			}
			if a != nil && (errors.Is(err, rawio.ErrTooLong) && a.HandleTooLong(now, &pkts[0]) ||
				local && a.HandleUnroutable(now, &pkts[0], err)) {
				refused = true
			}
			pkts = pkts[1:]
		}
	}
	return refused
}

// writeBatch is WriteBatch of the link, in bounded time.
func (t *Transport) writeBatch(pkts []rawio.Packet) (int, error) {
	if t.boundedWriter != nil {
		return t.boundedWriter.WriteBatch(pkts)
	}
	return t.link.WriteBatch(pkts)
}

// Listen accepts associations on an SCTP port; 0 picks a free one. It fails with rawio.ErrPortInUse
// when the port is taken, with *ConfigError, and with *LocalAddrError. Others look for the SCTP
// ports of this host over UDP port 9899. There a port that another program of this host has counts
// as taken too.
func (t *Transport) Listen(port uint16, cfg *Config) (*Listener, error) {
	cfg = cmp.Or(cfg, defaultConfig)
	for try := 1; ; try++ {
		l, err := t.listenWithQueue(port, cfg, newAcceptQueue(cfg))
		if err != nil {
			return nil, err
		}
		if l.EncapPort() != udp.DefaultPort {
			return l, nil
		}
		if err = l.registerLocally(); err == nil {
			return l, nil
		}
		l.Close()
		if port != 0 || try == maxListenTries || !errors.Is(err, rawio.ErrPortInUse) {
			return nil, err
		}
	}
}

// listenWithQueue is Listen with an accept queue that several Transports may share.
func (t *Transport) listenWithQueue(port uint16, cfg *Config, q *acceptQueue) (*Listener, error) {
	if err := t.checkLocalAddrs(cfg.LocalAddrs); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.linkErr(); err != nil {
		return nil, err
	}
	port, err := t.bindListenPort(port, cfg.LocalAddrs...)
	if err != nil {
		return nil, err
	}
	if err := t.ep.Listen(port, cfg.assocConfig()); err != nil {
		t.dropPortUser(port, cfg.LocalAddrs...)
		return nil, err
	}
	l := &Listener{t: t, port: port, cfg: cfg, acceptQueue: q}
	t.listeners[port] = append(t.listeners[port], l)
	q.openLinks.Add(1)
	return l, nil
}

func (t *Transport) removeListener(l *Listener) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.DeleteFunc(t.listeners[l.port], func(m *Listener) bool { return m == l })
	if t.listeners[l.port] = list; len(list) == 0 {
		delete(t.listeners, l.port)
	}
	t.ep.Unlisten(l.port, l.cfg.LocalAddrs...)
	t.dropPortUser(l.port, l.cfg.LocalAddrs...)
}

// listenerOf returns the listener that an association to an own port and address comes by. Called
// with mu held.
func (t *Transport) listenerOf(port uint16, at netip.Addr) *Listener {
	list := t.listeners[port]
	i := slices.IndexFunc(list, func(l *Listener) bool { return hasAddr(l.cfg.LocalAddrs, at) })
	return list[max(i, 0)]
}

func hasAddr(list []netip.Addr, a netip.Addr) bool { return indexAddr(list, a) >= 0 }

func indexAddr(list []netip.Addr, a netip.Addr) int {
	return slices.IndexFunc(list, func(b netip.Addr) bool { return b.Unmap() == a.Unmap() })
}

// defaultConfig is used if the caller gives none.
var defaultConfig = new(Config)

// Dial sets up an association with the SCTP port of remote and waits until it is established. When
// ctx ends first, the attempt is aborted. Config.RemoteAddrs may name more addresses of the peer.
// Every error is a *DialError.
func (t *Transport) Dial(ctx context.Context, remote netip.AddrPort, cfg *Config) (*Conn, error) {
	cfg = cmp.Or(cfg, defaultConfig)
	if err := ctx.Err(); err != nil { // nothing is sent for a caller that has given up before
		return nil, &DialError{remote, err}
	}
	c, err := t.startAssoc(remote, cfg)
	if err != nil {
		return nil, &DialError{remote, err}
	}
	select {
	case <-c.lifecycle.begunChan():
	case <-ctx.Done():
		a, _ := c.lock()
		err := ctx.Err()
		if why := a.Refusal(); why != nil {
			err = fmt.Errorf("%w; %w", why, err)
		}
		c.unlock()
		c.Abort("setup given up")
		return nil, &DialError{remote, err}
	}
	if c.lifecycle.wasUp() { // the peer may have ended it since
		return c, nil
	}
	return nil, &DialError{remote, cmp.Or(ctx.Err(), c.err)} // of two reasons, the one that the caller knows
}

func (t *Transport) startAssoc(remote netip.AddrPort, cfg *Config) (*Conn, error) {
	if err := t.checkLocalAddrs(cfg.LocalAddrs); err != nil {
		return nil, err
	}
	remotes := t.remoteAddrs(cfg, remote.Addr())
	t.mu.Lock()
	err := t.linkErr()
	var port uint16
	if err == nil {
		port, err = t.bindDialPort(cfg, remotes, remote.Port())
	}
	if err != nil {
		t.mu.Unlock()
		return nil, err
	}
	var c *Conn
	if t.admitsAddr(remote.Addr()) {
		t.adoptAssoc = func(a *assoc.Assoc) {
			if cfg.mayProceed != nil {
				a.OnAnswer(cfg.mayProceed)
			}
			c = newConn(t, a, cfg)
			c.boundAddrs = &cfg.LocalAddrs
			t.addConn(c, remote.Addr())
		}
		_, err = t.ep.Connect(t.now(), cfg.assocConfig(), port, netip.AddrPort{}, remotes, remote.Port())
		t.adoptAssoc = nil
	} else {
		err = &assoc.MemoryError{}
	}
	if err != nil {
		if cfg.socket == nil {
			t.releaseDialPort(port)
		}
		t.dropPortUser(port, cfg.LocalAddrs...)
		t.mu.Unlock()
		return nil, err
	}
	t.mu.Unlock()
	c.lock()
	c.unlock() // sends the INIT
	return c, nil
}

// localAddr returns the link's first address, invalid if it does not know one.
func (t *Transport) localAddr() netip.Addr {
	if a, ok := t.link.(rawio.Addresser); ok {
		if addrs := a.LocalAddrs(); len(addrs) > 0 {
			return addrs[0].Addr()
		}
	}
	return netip.Addr{}
}

// handleLinkFailure notes that the link has failed, unless the Transport has closed it, and ends
// all that depends on it. The caller may be the owner of an association.
func (t *Transport) handleLinkFailure(err error) {
	t.endMu.Lock()
	defer t.endMu.Unlock()
	if t.linkClosing || t.failure.Load() != nil {
		return
	}
	t.failure.Store(&LinkError{err})
	t.failingGroup.Go(t.failAll)
}

// linkErr returns why the link is good for nothing any more, or nil.
func (t *Transport) linkErr() error {
	if e := t.failure.Load(); e != nil {
		return e
	}
	return nil
}

// failAll ends every association, and what waits for one, because the link is gone.
func (t *Transport) failAll() {
	err := t.failure.Load()
	t.logLine(slog.LevelError, netip.AddrPort{}, "link failed", slog.String("reason", err.Err.Error()))
	t.mu.RLock()
	var listeners []*Listener
	for _, list := range t.listeners {
		listeners = append(listeners, list...)
	}
	t.mu.RUnlock()
	for _, c := range t.liveConns() {
		a, _ := c.lock()
		a.Fail(err)
		c.unlock()
	}
	for _, l := range listeners {
		if l.openLinks.Add(-1) == 0 { // no other link is left for it
			l.failAccept(err)
		}
		if s := l.cfg.socket; s != nil {
			s.readable.Set()
		}
	}
}

func (t *Transport) liveConns() []*Conn {
	t.mu.RLock()
	defer t.mu.RUnlock()
	list := make([]*Conn, 0, len(t.conns))
	for c := range t.conns {
		list = append(list, c)
	}
	return list
}

// Wait returns when no association is left, or with the context's error. Before Close, it lets
// graceful shutdowns come to their end.
func (t *Transport) Wait(ctx context.Context) error {
	for {
		left := t.liveConns()
		if len(left) == 0 {
			return nil
		}
		select {
		case <-left[0].Done():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// abortTimeout is how long Close waits for the ABORTs to leave before it closes the link.
const abortTimeout = time.Second

// Close aborts every association, stops listening and closes the link. It waits at most a second
// for the link to take the ABORTs. Close connections first for a graceful end. Closing again
// returns nil.
func (t *Transport) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil
	}
	t.closed = true
	openTransports.remove(t)
	t.endMu.Lock()
	t.linkClosing = true
	t.endMu.Unlock()
	t.stopAllLingering()
	listeners := make([]*Listener, 0, len(t.listeners))
	for _, list := range t.listeners {
		listeners = append(listeners, list...)
	}
	t.mu.Unlock()
	for _, l := range listeners {
		l.Close()
	}
	aborted := make(chan struct{})
	go func() {
		defer close(aborted)
		for _, c := range t.liveConns() {
			c.Abort("transport closed")
		}
		t.failingGroup.Wait()
		if t.boundedWriter != nil {
			t.boundedWriter.awaitCalls()
		}
	}()
	patience := time.NewTimer(abortTimeout)
	select {
	case <-aborted:
	case <-patience.C: // WriteBatch blocks: it returns when the link is closed
	}
	patience.Stop()
	t.timers.close()
	t.reclaimer.timer.Stop()
	err := t.link.Close()
	select {
	case <-aborted:
	case <-time.After(abortTimeout): // it does not even then: a goroutine in that call stays there
		return err
	}
	t.readerRole.closeRole()
	t.shardReaders.Wait()
	t.mu.Lock()
	t.chargeTransport()
	t.mu.Unlock()
	return err
}
