package sctp

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"sync"

	"github.com/rddp-go/rddp/internal/fair"
	"github.com/rddp-go/rddp/rawio/udp"
)

// Listener accepts associations on one SCTP port.
type Listener struct {
	t    *Transport
	port uint16
	cfg  *Config
	now  *Config // guarded by t.mu: what Reconfigure has made of it; nil: nothing

	*queue
	also      []*Listener // on the same port of other links, for the same Accept
	announced []func()    // to take back what announce has told; set before others have the Listener
}

// queue is what waits for Accept.
type queue struct {
	ready   chan *Conn
	waiting fair.Store // places in ready
	done    chan struct{}
	once    sync.Once
}

func newQueue(c *Config) *queue {
	return &queue{ready: make(chan *Conn, 2*c.backlog()), waiting: fair.Store{Max: 2 * int64(c.backlog())}, done: make(chan struct{})}
}

// Accept returns the next established association. It fails with net.ErrClosed after Close, and with
// the context's error when that ends first.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	select { // what is there goes before a context that has ended
	case c := <-l.ready:
		l.taken(c)
		return c, nil
	default:
	}
	select {
	case c := <-l.ready:
		l.taken(c)
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// taken gives back the place of what was in ready.
func (l *Listener) taken(c *Conn) { l.waiting.Give(c.from, 1) }

// offer queues an established association for Accept and aborts it when nobody takes them.
func (l *Listener) offer(c *Conn) {
	if l.cfg.Upper != nil {
		return // the upper protocol accepts its own sessions
	}
	if c.from = c.RemoteAddr().(Addr).Addr(); l.waiting.Take(c.from, 1) {
		if l.ready <- c; isClosed(l.done) { // perhaps Close has looked before
			l.refuse()
		}
		return
	}
	l.t.journal.reached(limitAccept, l.t.stats.acceptRefused.Add(1))
	c.Abort("listen backlog full")
}

// Reconfigure changes the options of associations that are set up from now on. Those of which the peer is told are among them.
// change gets the options that hold now, and is called at once. LocalAddrs, Backlog, Upper and Events stay. A *ConfigError or ErrNoMarks leaves everything as it was.
func (l *Listener) Reconfigure(change func(*Config)) error {
	for _, m := range append([]*Listener{l}, l.also...) {
		if err := m.reconfigure(change); err != nil {
			return err
		}
	}
	return nil
}

func (l *Listener) reconfigure(change func(*Config)) error {
	l.t.mu.Lock()
	defer l.t.mu.Unlock()
	cfg := *cmp.Or(l.now, l.cfg)
	change(&cfg)
	cfg.LocalAddrs = l.cfg.LocalAddrs
	if err := l.t.ep.Relisten(l.port, cfg.core()); err != nil {
		return err
	}
	l.now = &cfg
	return nil
}

// Port returns the SCTP port.
func (l *Listener) Port() uint16 { return l.port }

// EncapPort returns the UDP port by which the listener is reached (RFC 6951): 9899, unless another program of this host has that, and then hosts elsewhere need it as
// Config.EncapPort. It is 0 where no link of the listener is one of UDP.
func (l *Listener) EncapPort() uint16 {
	for _, m := range append([]*Listener{l}, l.also...) {
		if own, ok := m.t.link.(*udp.Link); ok {
			return own.Port()
		}
	}
	return 0
}

// Addr returns the first of Config.LocalAddrs, or the link's address, if it has one, and the SCTP port.
func (l *Listener) Addr() net.Addr {
	if own := l.cfg.LocalAddrs; len(own) > 0 {
		return Addr{netip.AddrPortFrom(own[0], l.port)}
	}
	return Addr{netip.AddrPortFrom(l.t.localAddr(), l.port)}
}

// Close stops accepting. Associations that nobody has accepted yet are aborted; accepted ones live on.
func (l *Listener) Close() error {
	l.once.Do(func() {
		for _, m := range append([]*Listener{l}, l.also...) {
			m.withdraw()
			m.t.unlisten(m)
		}
		close(l.done)
		l.refuse()
	})
	return nil
}

// refuse aborts the associations that wait for Accept.
func (l *Listener) refuse() {
	for {
		select {
		case c := <-l.ready:
			l.taken(c)
			c.Abort("listener closed")
		default:
			return
		}
	}
}
