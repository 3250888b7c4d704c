package rdma

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/rddp-go/rddp/internal/quota"
	"github.com/rddp-go/rddp/mpa"
)

// maxReadMemory bounds the large read buffers of all connections, in octets. One host has half of
// them at most.
const maxReadMemory = 256 << 20

// tcpTransport is what a Device has of TCP connections. A QP over TCP has one of its own.
type tcpTransport struct {
	dev        *Device
	readMemory quota.Semaphore

	mu         sync.Mutex // a leaf lock
	conns      map[*tcpConn]struct{}
	listeners  map[*tcpListener]struct{}
	handshakes sync.WaitGroup // of accepted connections; none begins once isClosed is set
	isClosed   bool
	idle       chan struct{} // closed when there is no connection; nil while nobody waits
}

func newTCPTransport(d *Device) *tcpTransport {
	return &tcpTransport{dev: d, readMemory: quota.Semaphore{Max: maxReadMemory},
		conns: make(map[*tcpConn]struct{}), listeners: make(map[*tcpListener]struct{})}
}

// connect dials the peer and asks it for a session, and binds q to it.
func (t *tcpTransport) connect(ctx context.Context, q *QP, network, address string, private []byte) error {
	nc, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	over := nc
	if t.dev.cfg.TLS != nil {
		over, err = t.encrypt(ctx, nc, hostOf(address))
	}
	if err == nil {
		_, err = t.connectOver(q, over, false, private)
	}
	if err != nil {
		nc.Close()
	}
	return err
}

// connectOver asks the peer at the other end of nc for a session, and binds q to it. If keeps, nc
// is the program's again when the peer rejects.
func (t *tcpTransport) connectOver(q *QP, nc net.Conn, keeps bool, private []byte) (*tcpConn, error) {
	c := newTCPConn(t.dev, nc, nil)
	c.keeps = keeps
	if !t.dev.cfg.TCP.Plain {
		q.negotiate, q.peerToPeer = true, true
	}
	var setup *Setup
	if q.wantsNegotiation() {
		s := q.setupOffer()
		setup = &s
	}
	now := c.lock()
	core, err := mpa.NewInitiator(now, t.dev.cfg.TCP.mpaConfig(c.firstEMSS()), q.core.Stream(), setup, private)
	if err == nil && !t.add(c) {
		err = net.ErrClosed
	}
	if err != nil {
		c.mu.Unlock()
		return nil, err
	}
	c.core = core
	q.bindSession(&c.peer, tcpSession{c})
	c.start()
	c.unlockAt(now)
	return c, nil
}

// serve waits on nc for the request of a peer, which l gets. release is called when it has come, or
// will not.
func (t *tcpTransport) serve(l *Listener, nc net.Conn, keeps bool, release func()) (*tcpConn, error) {
	c := newTCPConn(t.dev, nc, l)
	c.keeps, c.release = keeps, release
	now := c.lock()
	c.core = mpa.NewResponder(now, t.dev.cfg.TCP.mpaConfig(c.firstEMSS()))
	if !t.add(c) {
		c.mu.Unlock()
		return nil, net.ErrClosed
	}
	c.start()
	c.unlockAt(now)
	return c, nil
}

// start starts the goroutines of a connection.
func (t *tcpConn) start() {
	go t.read()
	go t.writeLater()
}

// add notes a connection; it returns false after Close.
func (t *tcpTransport) add(c *tcpConn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isClosed {
		t.conns[c] = struct{}{}
	}
	return !t.isClosed
}

// forget notes that a connection has ended.
func (t *tcpTransport) forget(c *tcpConn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, c)
	if len(t.conns) == 0 && t.idle != nil {
		close(t.idle)
		t.idle = nil
	}
}

// wait returns when no connection is left, or with the context's error.
func (t *tcpTransport) wait(ctx context.Context) error {
	t.mu.Lock()
	if len(t.conns) == 0 {
		t.mu.Unlock()
		return nil
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	idle := t.idle
	t.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close ends all listeners and connections, abruptly, and waits until they have ended. Handshakes
// end with Device.closing.
func (t *tcpTransport) close() {
	t.mu.Lock()
	t.isClosed = true
	var conns []*tcpConn
	for c := range t.conns {
		conns = append(conns, c)
	}
	var listeners []*tcpListener
	for l := range t.listeners {
		listeners = append(listeners, l)
	}
	t.mu.Unlock()
	for _, l := range listeners {
		l.Close()
	}
	for _, c := range conns {
		c.abortFor("")
	}
	t.handshakes.Wait()
	for _, c := range conns {
		<-c.ended
		<-c.readerDone
	}
}

// tcpListener accepts TCP connections for a Listener.
type tcpListener struct {
	net.Listener
	t      *tcpTransport
	l      *Listener
	places quota.Semaphore // of connections that have not asked yet
	closed chan struct{}
	once   sync.Once
}

// listen takes requests on an address of TCP for l.
func (t *tcpTransport) listen(l *Listener, network, address string) (lowerListener, error) {
	nl, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	tl := &tcpListener{Listener: nl, t: t, l: l, closed: make(chan struct{}),
		places: quota.Semaphore{Max: int64(t.dev.limits.MaxRequests)}}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isClosed {
		nl.Close()
		return nil, net.ErrClosed
	}
	t.listeners[tl] = struct{}{}
	go tl.accept()
	return tl, nil
}

// Port returns the TCP port.
func (l *tcpListener) Port() uint16 { return addrPortOf(l.Addr()).Port() }

// Close stops accepting. Connections that were accepted live on.
func (l *tcpListener) Close() (err error) {
	l.once.Do(func() {
		close(l.closed)
		err = l.Listener.Close()
		l.t.mu.Lock()
		delete(l.t.listeners, l)
		l.t.mu.Unlock()
	})
	return err
}

// acceptPause is how long to wait when the system is out of something, at most.
const acceptPause = time.Second

// accept takes connections until Close.
func (l *tcpListener) accept() {
	pause := 5 * time.Millisecond
	for {
		nc, err := l.Listener.Accept()
		switch {
		case err == nil:
			pause = 5 * time.Millisecond
			l.serve(nc)
			continue
		case errors.Is(err, net.ErrClosed):
			return
		}
		select {
		case <-l.closed:
			return
		case <-time.After(pause):
			pause = min(2*pause, acceptPause)
		}
	}
}

// serve waits for what the peer asks for, if there is a place for it.
func (l *tcpListener) serve(nc net.Conn) {
	from := addrPortOf(nc.RemoteAddr()).Addr()
	if !l.places.TryAcquire(from, 1) {
		l.t.dev.countStat(&l.t.dev.stats.TCP.Dropped)
		nc.Close()
		return
	}
	release := func() { l.places.Release(from, 1) }
	if l.t.dev.cfg.TLS == nil {
		l.serveMPA(nc, nc, release)
	} else if !l.t.startHandshake(func() { l.serveTLS(nc, release) }) {
		release()
		nc.Close()
	}
}

// serveMPA waits for a request on nc, which is below over.
func (l *tcpListener) serveMPA(nc, over net.Conn, release func()) {
	if _, err := l.t.serve(l.l, over, false, release); err != nil {
		release()
		nc.Close()
	}
}

// serveTLS is serveMPA behind a TLS handshake. It keeps the place of the connection meanwhile.
func (l *tcpListener) serveTLS(nc net.Conn, release func()) {
	d := l.t.dev
	over, err := l.t.encrypt(d.closing, nc, "")
	if err == nil {
		l.serveMPA(nc, over, release)
		return
	}
	d.countStat(&d.stats.TCP.TLSFaults)
	d.journal(slog.LevelWarn, addrPortOf(nc.RemoteAddr()), "TLS handshake failed", slog.Any("reason", err))
	closeRefused(nc)
	release()
}

// startHandshake runs f in a goroutine that close waits for. It returns false after close.
func (t *tcpTransport) startHandshake(f func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isClosed {
		t.handshakes.Go(f)
	}
	return !t.isClosed
}
