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

	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/internal/grace"
	"github.com/rddp-go/rddp/internal/pollpolicy"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/internal/tlskeys"
	"github.com/rddp-go/rddp/sctp/wire"
)

// minPacketOctets is the smallest SCTP packet that a link must carry. It holds a session control
// message of RFC 5043 with 512 octets of private data.
const minPacketOctets = 12 + 16 + 4 + 512

// Transport runs SCTP associations over one Link. It has a receive goroutine for each of its
// queues, one timer, and the callers' own goroutines. These receive too while they wait
// (readerRole). It is the shell around the sans-IO packages endpoint and assoc.
//
// Locks, in the order they may be taken: setup.mu, mu, then an association lock, then the leaf
// locks.
type Transport struct {
	link      rawio.Link
	cfg       TransportConfig
	startedAt time.Time

	setup setupState // of associations that are being set up; its lock comes first

	// mu guards the tables: which associations and listeners there are, and what is counted of
	// those that have ended.
	mu            sync.RWMutex
	ep            *endpoint.Endpoint // but for its set-up part, and Lookup, which needs no lock
	conns         map[*Conn]struct{}
	assocsCreated uint64
	closed        bool
	ports         portTable
	ended         *endedAssocs // noneEnded until the first: many Transports have one association each

	manyAssocs    atomic.Bool // there are many associations, see manyAssocsMin
	readerRole    readerRole  // who reads the link
	shardReaders  sync.WaitGroup
	readsSimply   bool   // by simplePolicy
	readsInKernel bool   // the link has a buffer in the kernel, and is read by long system calls
	yieldCPU      func() // pollpolicy.YieldCPU

	coalescer coalescer // packets of several associations that go out together
	writer    linkWriter
	timers    *timers
	signals   signalCounts
	memory    transportMemory
	linkEnd   linkEnd // whether the link has failed

	streamRequests sync.Map // *streamRequests by *Conn, of those whose calls wait for one

	keyPool     *tlskeys.Pool // of TLS handshakes
	restartJobs restartJobs   // of Config.RestartStore
	closeGrace  grace.Period  // of Conn.Close
	longestHold longestHold   // see LongestHold
	stats       transportCounters
	eventLog    *eventLog
}

// setupState is what a Transport needs to set associations up.
type setupState struct {
	mu              sync.Mutex     // guards the part of ep that sets up, and the two fields that follow
	reportedStats   endpoint.Stats // as the event log knows them
	reportedRefused uint64         // acceptRefused, likewise

	adopt    func(*assoc.Assoc) // guarded by Transport.mu: makes a Conn of an association that is about to enter ep
	slotAddr netip.Addr         // guarded by Transport.mu: the host of the last reserveAcceptSlot
}

// endedAssocs is what is counted of associations that have ended. Transport.mu guards it.
type endedAssocs struct {
	stats    TransportStats
	counters assoc.Counters // sums over them
	rtts     assoc.Histogram
}

// noneEnded is that of a Transport of which no association has ended. Nothing changes it.
var noneEnded = new(endedAssocs)

// linkWriter is how a Transport writes to its link.
type linkWriter struct {
	bounded *boundedWriter // nil: the link is prompt
}

// linkEnd is whether the link has failed.
type linkEnd struct {
	mu      sync.Mutex // a leaf lock
	closing bool       // guarded by mu: the link is closed by Close
	failure atomic.Pointer[LinkError]
	failing sync.WaitGroup // calls of failAll
}

// NewTransport runs SCTP over link, which it owns from now on.
func NewTransport(link rawio.Link, cfg *TransportConfig) (*Transport, error) {
	return newTransport(link, cfg, forceSimple)
}

// newTransport is NewTransport. readsSimply selects the read policy.
func newTransport(link rawio.Link, cfg *TransportConfig, readsSimply bool) (*Transport, error) {
	t := &Transport{
		link: link, readsSimply: readsSimply, startedAt: time.Now(), yieldCPU: pollpolicy.YieldCPU,
		conns: make(map[*Conn]struct{}), ports: newPortTable(), ended: noneEnded,
		keyPool: tlskeys.NewPool(maxKeySessions),
	}
	if cfg != nil {
		t.cfg = *cfg
	}
	if m := link.MTU(netip.Addr{}, netip.Addr{}); m < minPacketOctets {
		return nil, &rawio.MTUError{MTU: m}
	}
	features := rawio.FeaturesOf(link)
	hasOnePeer := features&rawio.PointToPoint != 0
	t.eventLog = newEventLog(t.cfg.Logger, hasOnePeer)
	t.memory.init(t, hasOnePeer)
	t.ep = endpoint.New(endpoint.Config{Rand: t.cfg.randReader(), MTU: link.MTU, CutFrom: rawio.CutFromOf(link),
		BaseMTU:  rawio.BaseMTUOf(link),
		Features: features, ErrorDetection: rawio.ErrorDetectionOf(link), New: newAssoc,
		Own:       func(a netip.Addr) bool { return rawio.Owns(link, a) },
		MaxAssocs: t.cfg.MaxAssocs, MaxPerSource: t.cfg.maxPerSource(), MaxAnswers: t.cfg.maxAnswers(),
		AnswerKey: rand.Uint64(),
		MaxSetups: t.cfg.maxSetups(), Chance: rand.Uint64, Admits: t.admitsAddr, Accepts: t.reserveAcceptSlot,
		Adopt: func(a *assoc.Assoc) { t.setup.adopt(a) }})
	t.timers = newTimers(t.now, (*Conn).handleTimeout, t.sendCoalesced)
	t.coalescer.writeLink = t.writeCoalesced
	t.readsInKernel = rawio.ReceiveBufferOf(link) > 0
	if !rawio.PromptOf(link) {
		t.writer.bounded = newBoundedWriter(link.WriteBatch, t.handleLinkFailure)
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

// txBatchPool has batches of all Transports: one takes more memory than a Transport.
var txBatchPool = sync.Pool{New: func() any { return assoc.NewTxBatch(txBatchPackets) }}

// now is the one clock: monotonic nanoseconds since the Transport was made.
func (t *Transport) now() rawio.Time { return rawio.Time(time.Since(t.startedAt)) }

// addConn enters a new association with a host. Called with mu held.
func (t *Transport) addConn(c *Conn, peer netip.Addr) {
	t.assocsCreated++
	c.origin.assocNumber = t.assocsCreated
	t.openAccount(c, peer)
	t.conns[c] = struct{}{}
	t.updateManyAssocs()
}

// refreshIndex makes the endpoint index the tag and the addresses that an association has now.
func (t *Transport) refreshIndex(c *Conn) {
	t.mu.Lock()
	c.lock()
	t.ep.Refresh(&c.core) // does nothing for an association that was removed
	t.mu.Unlock()
	c.unlock()
}

// forgetConn removes an association that has ended, and returns the packet that sets up the next
// one, if there is any.
func (t *Transport) forgetConn(c *Conn) (next *rawio.Packet) {
	t.timers.remove(c)
	a, _ := c.lock()
	total, linger, freed, next := a.Stats(), c.lingerTime(), c.end.memoryFreed, a.Successor()
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
	if t.ended == noneEnded {
		t.ended = new(endedAssocs)
	}
	counters.Add(&t.ended.counters, &total.Counters)
	t.ended.rtts.Add(&total.Trips)
	t.countEnd(c.end.err)
	t.ep.Remove(t.now(), &c.core)
	t.chargeTransport()
	t.leaveBudgetAtEnd()
	if c.isDialled() {
		t.releaseDialPort(c.core.LocalPort())
	}
	var at []netip.Addr
	if c.origin.boundAddrs != nil {
		at = *c.origin.boundAddrs
	}
	t.releasePort(c.core.LocalPort(), linger, at...)
	return next
}

// transmitBatch sends a batch of what an association has ready. It says whether that was anything,
// and whether there is more. Called by its owner.
func (t *Transport) transmitBatch(now rawio.Time, a *assoc.Assoc) (sent, more bool) {
	b := txBatchPool.Get().(*assoc.TxBatch)
	more = a.PollTransmit(now, b)
	if sent = len(b.Pkts) > 0; sent && !t.tryCoalesce(b, a) {
		t.awaitCoalesced(connOf(a))
		if t.writeTxBatch(now, b, a) {
			more = true // what was refused goes again at once
		}
	}
	txBatchPool.Put(b)
	return sent, more
}

// transmitReplies sends the endpoint's own packets. Called with setup.mu held.
func (t *Transport) transmitReplies(now rawio.Time) {
	b := txBatchPool.Get().(*assoc.TxBatch)
	for more := true; more; {
		more = t.ep.PollTransmit(now, b)
		t.writeTxBatch(now, b, nil)
	}
	txBatchPool.Put(b)
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
	if t.writer.bounded != nil {
		return t.writer.bounded.WriteBatch(pkts)
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
	if err := cmp.Or(t.checkLocalAddrs(cfg.LocalAddrs), t.checkFollow(cfg)); err != nil {
		return nil, err
	}
	cfg, err := cfg.withIdentity("")
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.linkErr(); err != nil {
		return nil, err
	}
	port, err = t.bindListenPort(port, cfg.bindAddrs()...)
	if err != nil {
		return nil, err
	}
	if err := t.ep.Listen(port, cfg.assocConfig()); err != nil {
		t.dropPortUser(port, cfg.bindAddrs()...)
		return nil, err
	}
	l := &Listener{t: t, port: port, cfg: cfg, acceptQueue: q}
	t.ports.listeners[port] = append(t.ports.listeners[port], l)
	q.openLinks.Add(1)
	return l, nil
}

func (t *Transport) removeListener(l *Listener) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.DeleteFunc(t.ports.listeners[l.port], func(m *Listener) bool { return m == l })
	if t.ports.listeners[l.port] = list; len(list) == 0 {
		delete(t.ports.listeners, l.port)
	}
	t.ep.Unlisten(l.port, l.cfg.LocalAddrs...)
	t.dropPortUser(l.port, l.cfg.bindAddrs()...)
}

// listenerOf returns the listener that an association to an own port and address comes by. Called
// with mu held.
func (t *Transport) listenerOf(port uint16, at netip.Addr) *Listener {
	list := t.ports.listeners[port]
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
func (t *Transport) Dial(ctx context.Context, remote netip.AddrPort, cfg *Config) (c *Conn, err error) {
	for range maxEqualTies {
		if c, err = t.dialOnce(ctx, remote, cmp.Or(cfg, defaultConfig)); !isEqualTie(err) {
			break
		}
	}
	return c, err
}

// maxEqualTies is how often both sides draw the same tie breaker before Dial says so.
const maxEqualTies = 4

// isEqualTie says whether a set-up has ended as both sides dial, and have drawn the same tie
// breaker. Another one draws another (draft-ietf-tsvwg-sctp-dtls-chunk section 5.1).
func isEqualTie(err error) bool {
	var ended *assoc.AbortError
	return errors.As(err, &ended) && len(ended.Causes) > 0 && ended.Causes[0].Code == wire.CauseTieBreaker
}

// dialOnce is one attempt of Dial.
func (t *Transport) dialOnce(ctx context.Context, remote netip.AddrPort, cfg *Config) (*Conn, error) {
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
	return nil, &DialError{remote, cmp.Or(ctx.Err(), c.end.err)} // of two reasons, the one that the caller knows
}

func (t *Transport) startAssoc(remote netip.AddrPort, cfg *Config) (*Conn, error) {
	if err := cmp.Or(t.checkLocalAddrs(cfg.LocalAddrs), t.checkFollow(cfg)); err != nil {
		return nil, err
	}
	cfg, err := cfg.withIdentity(cfg.dialledHost(remote.Addr()))
	if err != nil {
		return nil, err
	}
	remotes := t.remoteAddrs(cfg, remote.Addr())
	t.mu.Lock()
	err = t.linkErr()
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
		t.setup.adopt = func(a *assoc.Assoc) {
			if cfg.mayProceed != nil {
				a.OnAnswer(cfg.mayProceed)
			}
			c = newConn(t, a, cfg)
			c.origin.boundAddrs = cfg.boundAt()
			t.addConn(c, remote.Addr())
		}
		_, err = t.ep.Join(t.now(), cfg.assocConfig(), port, netip.AddrPort{}, remotes, remote.Port(), cfg.Inits)
		t.setup.adopt = nil
	} else {
		err = &assoc.MemoryError{}
	}
	if err != nil {
		if cfg.socket == nil {
			t.releaseDialPort(port)
		}
		t.dropPortUser(port, cfg.bindAddrs()...)
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
	t.linkEnd.mu.Lock()
	defer t.linkEnd.mu.Unlock()
	if t.linkEnd.closing || t.linkEnd.failure.Load() != nil {
		return
	}
	t.linkEnd.failure.Store(&LinkError{err})
	t.linkEnd.failing.Go(t.failAll)
}

// linkErr returns why the link is good for nothing any more, or nil.
func (t *Transport) linkErr() error {
	if e := t.linkEnd.failure.Load(); e != nil {
		return e
	}
	return nil
}

// failAll ends every association, and what waits for one, because the link is gone.
func (t *Transport) failAll() {
	err := t.linkEnd.failure.Load()
	t.logLine(slog.LevelError, netip.AddrPort{}, "link failed", slog.String("reason", err.Err.Error()))
	t.mu.RLock()
	var listeners []*Listener
	for _, list := range t.ports.listeners {
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
	t.linkEnd.mu.Lock()
	t.linkEnd.closing = true
	t.linkEnd.mu.Unlock()
	t.stopAllLingering()
	listeners := make([]*Listener, 0, len(t.ports.listeners))
	for _, list := range t.ports.listeners {
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
		t.linkEnd.failing.Wait()
		if t.writer.bounded != nil {
			t.writer.bounded.awaitCalls()
		}
	}()
	patience := time.NewTimer(abortTimeout)
	select {
	case <-aborted:
	case <-patience.C: // WriteBatch blocks: it returns when the link is closed
	}
	patience.Stop()
	select {
	case <-t.restartJobs.idle():
	case <-time.After(abortTimeout):
	}
	t.timers.close()
	err := t.link.Close()
	select {
	case <-aborted:
	case <-time.After(abortTimeout): // it does not even then: a goroutine in that call stays there
		return err
	}
	if !t.readerRole.closeRole() { // a goroutine in ReadBatch stays there, as above
		return err
	}
	t.shardReaders.Wait()
	t.mu.Lock()
	t.chargeTransport()
	t.leaveBudgetAtEnd()
	t.mu.Unlock()
	t.memory.budget.stopUnused()
	return err
}
