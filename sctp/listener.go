package sctp

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rddp-go/rddp/internal/quota"
	"github.com/rddp-go/rddp/rawio/udp"
)

// Listener accepts associations on one SCTP port.
type Listener struct {
	t         *Transport
	port      uint16
	cfg       *Config
	newConfig *Config // guarded by t.mu: what Reconfigure has made of it; nil: nothing

	*acceptQueue
	siblings        []*Listener // on the same port of other links, for the same Accept
	unregisterFuncs []func()    // to undo registerLocally; set before others have the Listener
}

// acceptQueue is what waits for Accept. An association has its place from before the COOKIE ACK on,
// until it is accepted or has failed with nothing unread.
type acceptQueue struct {
	slots     quota.Semaphore // places
	mu        sync.Mutex
	ready     []*Conn // guarded by mu: established, the oldest first
	readyCh   chan struct{}
	closedCh  chan struct{}
	closeOnce sync.Once
	failOnce  sync.Once
	closeErr  error        // that Accept returns once it is closed, nil after Close
	openLinks atomic.Int32 // that it may still come by
}

// failAccept makes Accept fail.
func (q *acceptQueue) failAccept(err error) {
	q.failOnce.Do(func() {
		q.closeErr = err
		close(q.closedCh)
	})
}

func newAcceptQueue(c *Config) *acceptQueue {
	return &acceptQueue{slots: quota.Semaphore{Max: 2 * int64(c.backlogLimit())}, readyCh: make(chan struct{}, 1),
		closedCh: make(chan struct{})}
}

// Accept returns the next established association. One that has ended since is returned as well if
// it ended gracefully, or has messages to read. Accept fails with net.ErrClosed after Close, and
// with a *LinkError when the link has failed. When the context ends first, it fails with its error.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	for {
		if c := l.takeReady(); c != nil { // what is there goes before a context that has ended
			return c, nil
		}
		select {
		case <-l.readyCh:
		case <-l.closedCh:
			return nil, cmp.Or(l.closeErr, net.ErrClosed)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// takeReady returns the oldest association that waits, nil if there is none, and gives its place
// back.
func (q *acceptQueue) takeReady() *Conn {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.ready) == 0 {
		return nil
	}
	c := q.ready[0]
	if q.ready = slices.Delete(q.ready, 0, 1); len(q.ready) > 0 {
		sendToken(q.readyCh) // for others that wait
	}
	q.releaseSlot(c)
	return c
}

// releaseSlot gives the place of an association back, if it has one. Called with mu held.
func (q *acceptQueue) releaseSlot(c *Conn) {
	if c.origin.hasAcceptSlot {
		c.origin.hasAcceptSlot = false
		q.slots.Release(c.origin.peerAddr, 1)
	}
}

// dropFailed removes an association that has failed and has nothing for Accept's caller.
func (q *acceptQueue) dropFailed(c *Conn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ready = slices.DeleteFunc(q.ready, func(other *Conn) bool { return other == c })
	q.releaseSlot(c)
}

// queuesForAccept says whether the associations of the listener wait for Accept.
func (l *Listener) queuesForAccept() bool {
	return l.cfg.NewUpper == nil && l.cfg.socket == nil // an upper protocol accepts its own sessions
}

// offerConn queues an established association for Accept, if it still has its place.
func (l *Listener) offerConn(c *Conn) {
	if !l.queuesForAccept() {
		return
	}
	l.mu.Lock()
	if c.origin.hasAcceptSlot {
		l.ready = append(l.ready, c)
		sendToken(l.readyCh)
	}
	l.mu.Unlock()
	if isClosed(l.closedCh) { // perhaps Close has looked before
		l.abortWaiting()
	}
}

// withSiblings is the listener, with those on the same port of other links.
func (l *Listener) withSiblings() []*Listener { return append([]*Listener{l}, l.siblings...) }

// Reconfigure changes the options of associations that are set up from now on, also those that the
// peer hears of. change gets the options that hold now, and is called at once. LocalAddrs,
// FollowInterfaces, RestartStore, TLS, Backlog, Upper and Events stay. A *ConfigError or ErrNoMarks
// leaves everything as it was.
func (l *Listener) Reconfigure(change func(*Config)) error {
	for _, m := range l.withSiblings() {
		if err := m.reconfigureOne(change); err != nil {
			return err
		}
	}
	return nil
}

func (l *Listener) reconfigureOne(change func(*Config)) error {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	cfg := *cmp.Or(l.newConfig, l.cfg)
	change(&cfg)
	cfg.LocalAddrs, cfg.RestartStore = l.cfg.LocalAddrs, l.cfg.RestartStore
	cfg.FollowInterfaces = l.cfg.FollowInterfaces
	cfg.TLS, cfg.identity = l.cfg.TLS, l.cfg.identity
	if err := l.t.ep.Relisten(l.port, cfg.assocConfig()); err != nil {
		return err
	}
	l.newConfig = &cfg
	return nil
}

// Port returns the SCTP port.
func (l *Listener) Port() uint16 { return l.port }

// EncapPort returns the UDP port by which the listener is reached (RFC 6951). It is 9899, unless
// another program of this host has that. Then hosts elsewhere need it as Config.EncapPort. It is 0
// if no link of the listener is one of UDP.
func (l *Listener) EncapPort() uint16 {
	for _, m := range l.withSiblings() {
		if own, ok := m.t.link.(*udp.Link); ok {
			return own.Port()
		}
	}
	return 0
}

// Addr returns the first of Config.LocalAddrs, or the link's address, if it has one, and the SCTP
// port.
func (l *Listener) Addr() net.Addr {
	if own := l.cfg.LocalAddrs; len(own) > 0 {
		return Addr{netip.AddrPortFrom(own[0], l.port)}
	}
	return Addr{netip.AddrPortFrom(l.t.localAddr(), l.port)}
}

// Close stops accepting. It aborts associations that were not accepted yet. Accepted ones live on,
// and the port may be listened on again at once.
func (l *Listener) Close() error {
	l.closeOnce.Do(func() {
		for _, m := range l.withSiblings() {
			m.unregisterLocally()
			m.t.removeListener(m)
		}
		l.failAccept(nil)
		l.abortWaiting()
	})
	return nil
}

// abortWaiting aborts the associations that wait for Accept.
func (l *Listener) abortWaiting() {
	for c := l.takeReady(); c != nil; c = l.takeReady() {
		c.Abort("listener closed")
	}
}
