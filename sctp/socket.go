package sctp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Socket is the one-to-many style of RFC 6458 section 3: one SCTP port, and messages to and from
// any number of peers. The first message to a peer, or the peer, sets an association up. It ends
// when the peer ends it or the Socket is closed. Its methods may be called from several goroutines.
type Socket struct {
	t        *Transport
	listener *Listener
	cfg      Config

	mu         sync.Mutex               // a leaf lock
	queue      socketQueue              // guarded by mu: unread messages of all associations, oldest first
	readOffset int                      // guarded by mu: octets of the first one already read
	conns      map[netip.AddrPort]*Conn // guarded by mu: established associations by peer

	readable                    signal
	readDeadline, writeDeadline deadline
	closedCh                    chan struct{}
	closeOnce                   sync.Once
}

// socketMessage is a message and the association it came on.
type socketMessage struct {
	c      *Conn
	r      *assoc.Received
	cumTSN wire.TSN
}

// socketQueue is messages from head on.
type socketQueue struct {
	list []socketMessage
	head int
}

func (q *socketQueue) len() int { return len(q.list) - q.head }

func (q *socketQueue) push(m socketMessage) {
	if len(q.list) == cap(q.list) && q.head > len(q.list)/2 { // it may never be empty
		q.list, q.head = slices.Delete(q.list, 0, q.head), 0
	}
	q.list = append(q.list, m)
}

func (q *socketQueue) pop() {
	q.list[q.head] = socketMessage{}
	if q.head++; q.len() == 0 {
		q.reuseSlice()
	}
}

// reuseSlice restarts an empty slice at its beginning, unless it is so long that others may need
// the memory.
func (q *socketQueue) reuseSlice() {
	if q.list, q.head = q.list[:0], 0; cap(q.list) > maxSparePackets {
		q.list = nil
	}
}

// OpenSocket opens a Socket on an SCTP port; 0 picks a free one. It fails with rawio.ErrPortInUse
// when the port is taken. cfg, which may be nil, is for its associations. Upper, LocalPort,
// RemoteAddrs and Backlog have no meaning there.
func (t *Transport) OpenSocket(port uint16, cfg *Config) (*Socket, error) {
	s := &Socket{t: t, conns: make(map[netip.AddrPort]*Conn), closedCh: make(chan struct{})}
	s.readable.init(t)
	s.writeDeadline.t, s.readDeadline.signal = t, &s.readable
	if cfg != nil {
		s.cfg = *cfg
	}
	s.cfg.NewUpper, s.cfg.RemoteAddrs, s.cfg.socket = nil, nil, s
	l, err := t.Listen(port, &s.cfg)
	if err != nil {
		return nil, err
	}
	s.listener = l
	return s, nil
}

// Port returns the SCTP port.
func (s *Socket) Port() uint16 { return s.listener.port }

// ReadMsg reads one message of any peer, or the next piece of one that is longer than p. It returns
// the association that the message came on. It blocks until there is one. Between the pieces of a
// message that is longer than Config.RecvBuffer may come messages of other associations. ErrCutOff
// is as for Conn.ReadMsg.
func (s *Socket) ReadMsg(p []byte) (n int, from *Conn, info RecvInfo, err error) {
	for late := false; ; late = s.readDeadline.wait(&s.readable) {
		s.mu.Lock()
		if s.queue.len() > 0 {
			m := s.queue.list[s.queue.head]
			n = m.r.CopyTo(p, s.readOffset)
			s.readOffset += n
			info.setFrom(m.r, s.readOffset)
			info.CumTSN = uint32(m.cumTSN)
			if m.r.Cut {
				err = ErrCutOff
			}
			finished := s.readOffset == m.r.Size
			if finished {
				s.queue.pop()
				s.readOffset = 0
			}
			left := s.queue.len() > 0
			s.mu.Unlock()
			if left || late || isClosed(s.closedCh) {
				s.readable.Set() // for others that wait
			}
			if finished {
				m.c.releaseMessage(m.r)
			}
			return n, m.c, info, err
		}
		s.mu.Unlock()
		switch {
		case isClosed(s.closedCh):
			err = net.ErrClosed
		case s.t.linkErr() != nil:
			err = s.t.linkErr()
		case late:
			err = os.ErrDeadlineExceeded
		default:
			continue
		}
		s.readable.Set() // for others that wait
		return 0, nil, RecvInfo{}, err
	}
}

// pushMessage queues a message. Called by the owner of the association.
func (s *Socket) pushMessage(c *Conn, r *assoc.Received) {
	c.recv.unreadInSocket++
	s.mu.Lock()
	s.queue.push(socketMessage{c, r, c.core.CumTSN()})
	s.mu.Unlock()
	s.readable.Brings()
}

// dropUnread forgets the unread messages of an association. Called by its owner.
func (s *Socket) dropUnread(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &s.queue
	if q.len() > 0 && q.list[q.head].c == c {
		s.readOffset = 0
	}
	left := slices.DeleteFunc(q.list[q.head:], func(m socketMessage) bool {
		if m.c != c {
			return false
		}
		c.core.Release(m.r)
		c.recv.unreadInSocket--
		return true
	})
	if q.list = q.list[:q.head+len(left)]; q.len() == 0 {
		q.reuseSlice()
	}
}

// releaseMessage releases a message that its Socket has read.
func (c *Conn) releaseMessage(r *assoc.Received) {
	a, now := c.lock()
	a.Release(r)
	c.recv.unreadInSocket--
	c.unlockAfterRead(now)
}

// WriteMsg sends p as one message to a peer, after setting an association up if there is none. It
// blocks for that, and while the association's send buffer is full.
func (s *Socket) WriteMsg(p []byte, to netip.AddrPort, info SendInfo) (int, error) {
	c, err := s.Conn(to)
	if err != nil {
		return 0, err
	}
	return c.writeMessage(p, info, &s.writeDeadline)
}

// Conn returns the association with a peer, after setting it up if there is none. It may be used
// beside the Socket for all but reading: Stats, Close, SetPrimary and so on.
func (s *Socket) Conn(peer netip.AddrPort) (*Conn, error) {
	if isClosed(s.closedCh) {
		return nil, net.ErrClosed
	}
	s.mu.Lock()
	c := s.conns[peer]
	s.mu.Unlock()
	if c != nil {
		return c, nil
	}
	if s.writeDeadline.hasExpired() {
		return nil, os.ErrDeadlineExceeded
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ends the setup when the deadline passes or the Socket is closed
		select {
		case <-s.writeDeadline.expiredChan():
		case <-s.closedCh:
		case <-ctx.Done():
		}
		cancel()
	}()
	c, err := s.t.Dial(ctx, peer, &s.cfg)
	if errors.Is(err, endpoint.ErrExists) {
		c, err = s.joinSetup(ctx, peer)
	}
	switch {
	case err == nil:
		return c, nil
	case isClosed(s.closedCh):
		return nil, net.ErrClosed
	case ctx.Err() != nil || s.writeDeadline.hasExpired(): // or the goroutine that sets it up has seen it pass before
		return nil, os.ErrDeadlineExceeded
	}
	return nil, err
}

// joinSetup waits for an association that the peer, or another goroutine, has begun to set up.
func (s *Socket) joinSetup(ctx context.Context, peer netip.AddrPort) (*Conn, error) {
	for _, c := range s.t.liveConns() {
		if c.recv.socket != s || c.RemoteAddr().(Addr).AddrPort != peer {
			continue
		}
		select {
		case <-c.lifecycle.begunChan():
			if c.lifecycle.wasUp() {
				return c, nil
			}
			return nil, &DialError{peer, c.end.err}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, &DialError{peer, endpoint.ErrExists} // by another of its addresses, or just gone
}

// addConn enters an established association. removeConn takes it out, and may come first. No
// association lock is held.
func (s *Socket) addConn(c *Conn) {
	peer := c.RemoteAddr().(Addr).AddrPort
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.origin.removedFromSocket {
		c.origin.peerAddr = peer.Addr()
		s.conns[peer] = c
	}
}

func (s *Socket) removeConn(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.origin.removedFromSocket = true
	if peer := netip.AddrPortFrom(c.origin.peerAddr, c.core.PeerPort()); s.conns[peer] == c {
		delete(s.conns, peer)
	}
}

// SetReadDeadline makes reads that block past t fail with os.ErrDeadlineExceeded; the zero time
// means no deadline. SetWriteDeadline does so for writes and the setups they wait for.
func (s *Socket) SetReadDeadline(t time.Time) error { s.readDeadline.set(t); return nil }

// SetWriteDeadline sets the write deadline.
func (s *Socket) SetWriteDeadline(t time.Time) error { s.writeDeadline.set(t); return nil }

// Close stops taking associations and ends all of the Socket's gracefully, as Conn.Close does.
// Unread messages are dropped. Closing again returns nil.
func (s *Socket) Close() error {
	s.closeOnce.Do(func() {
		s.listener.Close()
		close(s.closedCh)
		s.readable.Set()
		s.mu.Lock()
		var conns []*Conn
		for _, c := range s.conns {
			conns = append(conns, c)
		}
		s.mu.Unlock()
		var wg sync.WaitGroup
		for _, c := range conns {
			wg.Go(func() { c.Close() })
		}
		wg.Wait()
		s.mu.Lock()
		left := s.queue.list[s.queue.head:]
		s.queue = socketQueue{}
		s.mu.Unlock()
		for _, m := range left {
			m.c.releaseMessage(m.r)
		}
	})
	return nil
}
