package rdma

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/readrole"
	"github.com/rddp-go/rddp/mpa"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// tcpConn is one TCP connection of a Device, with MPA on it and the session of one QP. One
// goroutine reads it, or one of the program that waits for a completion. Whatever goroutine gives
// the lock up writes what is to be written, as long as it is little and TCP has room. Otherwise a
// second goroutine does. So neither waits for the other, and two ends that answer each other's
// Reads never block.
type tcpConn struct {
	peer
	nc     net.Conn
	socket *tcpSocket // nil: nc is no TCP connection of the system, or nothing can be asked of it
	keeps  bool       // nc is the program's again when MPA is exited (ConnectOver)

	role    readrole.Role // to read nc
	in      input         // of the holder of the role
	lends   atomic.Bool   // goroutines that wait for a completion may have it
	waiters atomic.Int32  // of them, wait without

	mu          sync.Mutex  // the connection lock
	core        *mpa.Conn   // guarded by mu, as all that follows
	writesLater bool        // the writing goroutine is awake
	isWriting   bool        // it is in a system call
	interrupted bool        // and was told to leave it
	vec         [][]byte    // of the writing goroutine
	left        net.Buffers // the part of vec that TCP has not taken
	joined      []byte      // the same, where nc is no TCP connection
	readCharge  int64       // octets of a large read buffer, in the account of the transport
	emssAsked   rawio.Time  // when TCP was asked for its EMSS
	shrinkAt    rawio.Time  // when a large read buffer is to be given up
	armed       rawio.Time  // of the read deadline
	// the reader was told to leave its system call, and has not yet
	readInterrupted bool
	isOver          bool  // nc is closed, or is about to be
	err             error // why it has ended, set before ended is closed

	wasWritten sync.Cond     // on mu: the writing goroutine has left its system call
	writeWake  chan struct{} // one token: the writing goroutine has something to do
	ended      chan struct{} // closed when nothing of the connection is left
	readerDone chan struct{} // closed when the reading goroutine has ended
	release    func()        // gives back the place of a connection that has not asked yet; nil: none
}

var (
	_ connection = (*tcpConn)(nil)
	_ session    = tcpSession{}
)

func newTCPConn(d *Device, nc net.Conn, l *Listener) *tcpConn {
	t := &tcpConn{nc: nc, peer: peer{dev: d, listener: l}, socket: newTCPSocket(nc), shrinkAt: rawio.Never,
		armed: rawio.Never, writeWake: make(chan struct{}, 1), ended: make(chan struct{}),
		readerDone: make(chan struct{})}
	t.peer.conn = t
	t.wasWritten.L = &t.mu
	t.role.Init(t.interruptRead, readClock)
	t.in.buf.b = make([]byte, smallReadBuffer)
	t.lends.Store(t.socket != nil)
	if tc, ok := nc.(*net.TCPConn); ok {
		tc.SetNoDelay(true) // the default of package net, but the program may have changed it
	}
	return t
}

// clockStart is when the clock of the connections began.
var clockStart = time.Now()

func readClock() rawio.Time { return rawio.Time(time.Since(clockStart)) }

func (t *tcpConn) lock() rawio.Time {
	t.mu.Lock()
	return readClock()
}

func (t *tcpConn) unlock() { t.unlockAt(readClock()) }

func (t *tcpConn) peek(look func()) {
	t.mu.Lock()
	look()
	t.mu.Unlock()
}

func (t *tcpConn) remoteAddr() netip.AddrPort { return addrPortOf(t.nc.RemoteAddr()) }

func (t *tcpConn) remoteAddrLocked() netip.AddrPort { return t.remoteAddr() }

// addrPortOf is not valid for an address that is not of IP.
func addrPortOf(a net.Addr) netip.AddrPort {
	if a, ok := a.(*net.TCPAddr); ok {
		return netip.AddrPortFrom(a.AddrPort().Addr().Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// flushLater needs nothing: the lock is held, and the goroutine that gives it up does it.
func (t *tcpConn) flushLater() {}

func (t *tcpConn) breakOff(err *rdmap.InternalError) { t.core.Break(err) }

func (t *tcpConn) peerStats() PeerStats { return PeerStats{Sessions: 1} }

func (t *tcpConn) abortFor(string) {
	t.mu.Lock()
	t.core.Abort()
	t.unlock()
}

// sweepIdle has nothing to do: the QP is the connection, and is swept itself.
func (t *tcpConn) sweepIdle() {}

// detach waits for no peer: a goroutine that writes is told to leave, and copies what is left.
func (t *tcpConn) detach(_ session, within []byte) {
	t.mu.Lock()
	for t.core.Detach(within) {
		t.interruptWrite()
		t.wasWritten.Wait()
	}
	t.unlock()
}

// handleEvents does what has happened to the session means to its QP or Request. Under the
// connection lock.
func (t *tcpConn) handleEvents() {
	for ev, ok := t.core.PollEvent(); ok; ev, ok = t.core.PollEvent() {
		q, _ := t.core.Owner.(*QP)
		if r, ok := t.core.Owner.(*Request); ok {
			t.withdrawRequest(r) // nobody has answered it
		}
		switch ev.Kind {
		case mpa.EventRequest:
			t.dropPlace()
			t.offerRequest(tcpSession{t}, ev.Private, ev.Setup)
		case mpa.EventAccepted:
			t.reportConn(true, nil, nil)
			q.handleAccepted(ev.Private, ev.Setup)
		case mpa.EventRejected, mpa.EventLeft, mpa.EventEnded:
			if q != nil {
				q.finishSetup(cmp.Or(ev.Err, net.ErrClosed))
				q.finishSession(ev.Err)
			}
			t.finish(ev.Err)
		}
	}
}

// finish ends what there is of the connection, once. Under the connection lock.
func (t *tcpConn) finish(err error) {
	t.dropPlace()
	t.dropReadCharge()
	t.countEnd(err)
	t.reportConn(false, err, func(*Stats) {})
	t.closeSocket()
	t.err = err
	t.deferCall(func() {
		t.dev.tcp.forget(t)
		close(t.ended)
	})
}

// countEnd counts the end of the connection.
func (t *tcpConn) countEnd(err error) {
	st := &t.dev.stats.TCP
	t.dev.countStat(&st.Connections)
	var e *mpa.Error
	switch {
	case err == mpa.ErrStartupTimeout:
		t.dev.countStat(&st.StartupTimeouts)
	case errors.As(err, &e) && e.Code == mpa.CodeFrame:
		t.dev.countStat(&st.StartupFaults)
	}
}

// waitLeft waits, for a time, until the connection is the program's again.
func (t *tcpConn) waitLeft() {
	if !t.keeps {
		return
	}
	late := time.NewTimer(shrinkAfter)
	defer late.Stop()
	select {
	case <-t.readerDone:
	case <-late.C: // the peer does not even take the Reply
	}
}

// dropPlace gives back the place of a connection that has not asked yet.
func (t *tcpConn) dropPlace() {
	if t.release != nil {
		t.release()
		t.release = nil
	}
}

// closeSocket closes the TCP connection, once, so that goroutines in its system calls come back. It
// is left to the program where MPA was exited and the connection is the program's. An end that
// nobody asked for is a reset: it takes no memory of the system any more.
func (t *tcpConn) closeSocket() {
	if t.isOver {
		return
	}
	t.isOver = true
	t.role.Summon()
	if t.keeps && t.core.State() == mpa.Left {
		t.deferCall(func() { t.nc.SetReadDeadline(longAgo) })
		return
	}
	nc := t.nc
	if t.core.State() == mpa.Ended && t.core.Err() != nil {
		if c, ok := nc.(*tls.Conn); ok {
			nc = c.NetConn() // it would wait until its goodbye is written
		}
		if tc, ok := nc.(*net.TCPConn); ok {
			tc.SetLinger(0)
		}
	}
	t.deferCall(func() { nc.Close() })
}

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// tcpSession is the session of a connection.
type tcpSession struct{ t *tcpConn }

func (s tcpSession) Active() bool { return s.t.core.IsInitiator() }

func (s tcpSession) Err() error { return s.t.core.Err() }

func (s tcpSession) MULPDU() int { return s.t.core.MULPDU() }

func (s tcpSession) Stats() StreamStats {
	n := s.t.core.Stats()
	return StreamStats{In: n.FPDUsIn, Out: n.FPDUsOut}
}

func (s tcpSession) Abort() { s.t.core.Abort() }

// Detach has what is being written come back; more says that it has not yet.
func (s tcpSession) Detach(within []byte) (more bool) {
	if more = s.t.core.Detach(within); more {
		s.t.interruptWrite()
	}
	return more
}

func (s tcpSession) streamNumber() int { return -1 }

func (s tcpSession) setOwner(owner any) { s.t.core.Owner = owner }

func (s tcpSession) awaitsAnswer() bool { return s.t.core.State() == mpa.Pending }

func (s tcpSession) accept(_ rawio.Time, stream *ddp.Stream, setup *Setup, private []byte) error {
	err := s.t.core.Accept(stream, setup, private)
	if err == nil {
		s.t.reportConn(true, nil, nil)
	}
	return err
}

func (s tcpSession) reject(_ rawio.Time, setup *Setup, private []byte) error {
	return s.t.core.Reject(setup, private)
}

// deadline is when the reading goroutine has something to do even if nothing comes.
func (t *tcpConn) deadline() rawio.Time { return min(t.core.Deadline(), t.shrinkAt) }

// passed is an armed deadline that has passed.
const passed rawio.Time = -1

// armDeadline has the reading goroutine come back at the deadline. Under the connection lock.
func (t *tcpConn) armDeadline() {
	at := t.deadline()
	if at == t.armed || t.isOver || t.readInterrupted {
		return
	}
	t.armed = at
	when := time.Time{}
	if at != rawio.Never {
		when = clockStart.Add(time.Duration(at))
	}
	t.nc.SetReadDeadline(when)
}
