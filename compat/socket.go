package compat

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/internal/grace"
	"github.com/rddp-go/rddp/internal/hostaddr"
	"github.com/rddp-go/rddp/sctp"
)

// Socket is an SCTP socket. Its methods may be called from several goroutines. They fail with a
// syscall.Errno, or with os.ErrDeadlineExceeded after a deadline.
type Socket struct {
	// The fields that each message needs come first: a program may have thousands of sockets.
	mu                    sync.Mutex
	conn                  *sctp.Conn    // guarded by mu: nil before it is connected
	assocID               int32         // guarded by mu: of the association
	connecting            bool          // guarded by mu: it is being connected
	sendingShut           bool          // guarded by mu: no more messages are taken
	closed                bool          // guarded by mu
	opts                  socketOptions // guarded by mu
	notifications         notificationQueue
	readWaits, writeWaits callWaits
	leftover              partialMessage

	v6, v6only      bool
	boundAddrs      []netip.Addr   // guarded by mu: the bound addresses; empty for all
	boundPort       uint16         // guarded by mu: the bound port
	bound           bool           // guarded by mu
	listener        *sctp.Listener // guarded by mu
	pendingErr      syscall.Errno  // guarded by mu: the next call returns it, as sk_err
	endErr          error          // guarded by mu: how the association has ended, once a call has returned it
	openDescriptors int            // guarded by mu: its open descriptors
	placeholderFD   int            // guarded by mu: the placeholder, -1 if it has none

	closedCtx       context.Context // done when the socket is closed
	cancelClosedCtx context.CancelFunc
	connectDone     chan struct{} // closed when the attempt to connect has ended
}

// lastAssocID numbers associations.
var lastAssocID atomic.Int32

// NewSocket is socket(AF_INET or AF_INET6, SOCK_STREAM, IPPROTO_SCTP).
func NewSocket(v6, v6only bool) *Socket {
	s := &Socket{v6: v6, v6only: v6only, placeholderFD: -1, openDescriptors: 1, connectDone: make(chan struct{})}
	s.closedCtx, s.cancelClosedCtx = context.WithCancel(context.Background())
	s.opts.setDefaults()
	return s
}

// SocketFor is NewSocket for the network "sctp", "sctp4" or "sctp6" and the addresses to bind or
// connect. A listener on all addresses has both families, as has a socket with addresses of both.
func SocketFor(network string, listen bool, local, remote []net.IPAddr) (*Socket, error) {
	v6 := func(list []net.IPAddr) bool {
		for _, a := range list {
			if len(a.IP) > 0 && a.IP.To4() == nil {
				return true
			}
		}
		return false
	}
	switch network {
	case "sctp4":
		return NewSocket(false, false), nil
	case "sctp6":
		return NewSocket(true, true), nil
	case "", "sctp":
		return NewSocket(v6(local) || v6(remote) || listen && (len(local) == 0 || local[0].IP.IsUnspecified()),
			false), nil
	}
	return nil, net.UnknownNetworkError(network)
}

// hasIPv4 reports whether the socket may have IPv4 addresses.
func (s *Socket) hasIPv4() bool { return !s.v6only }

// Bind is sctp_bindx for sockaddrs as RawAddrs writes them. It adds addresses, or with rem takes
// them away again, before the socket is listening or connected.
func (s *Socket) Bind(raw []byte, rem bool) error {
	list, port, err := parseSockaddrs(raw)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return syscall.EBADF
	case s.listener != nil || s.conn != nil || s.connecting: // there is no ASCONF
		return syscall.EOPNOTSUPP
	case rem && !s.bound:
		return syscall.EBUSY
	case s.bound && port != s.boundPort && port != 0:
		return syscall.EINVAL
	}
	next := s.boundAddrs
	for _, a := range list {
		switch {
		case a.Is6() && !s.v6, a.Is4() && s.v6only:
			return syscall.EINVAL
		case a.IsMulticast():
			return syscall.EADDRNOTAVAIL
		case a.IsUnspecified():
			if rem {
				return syscall.EINVAL
			}
			continue // it stands for all
		}
		if next, err = bindOne(next, a, rem); err != nil {
			return err
		}
	}
	s.boundAddrs, s.bound = next, true
	if port != 0 {
		s.boundPort = port
	}
	return nil
}

func bindOne(list []netip.Addr, a netip.Addr, rem bool) ([]netip.Addr, error) {
	var next []netip.Addr
	found := false
	for _, b := range list {
		if found = found || a == b; a != b {
			next = append(next, b)
		}
	}
	switch {
	case rem && len(list) < 2: // the last address stays
		return nil, syscall.EBUSY
	case rem != found: // it would be there twice, or is not there
		return nil, syscall.EINVAL
	case rem:
		return next, nil
	}
	switch has, err := hasAddr(a); {
	case err != nil:
		return nil, errnoOf(err)
	case !has:
		return nil, syscall.EADDRNOTAVAIL
	}
	return append(next, a), nil
}

// hasAddr reports whether an address is one of this host or of the stack. The host has all
// addresses of its loopback network.
func hasAddr(a netip.Addr) (bool, error) {
	if os.Getenv("RDDP_LINK") == "tun" {
		own, err := hostaddr.TunAddrs()
		if err != nil {
			slog.Warn(err.Error()) // an errno cannot say it
		}
		return slices.Contains(own, a), nil
	}
	if a.IsLinkLocalUnicast() {
		return true, nil
	}
	return hostaddr.IsLocal(a)
}

// connConfig returns the configuration of associations. They keep events of all kinds:
// subscriptions choose among the notifications that are made of them, and may change at any time.
// Called with mu held.
func (s *Socket) connConfig() sctp.Config {
	c := s.opts.cfg
	c.LocalPort, c.LocalAddrs = s.boundPort, s.boundAddrs
	c.Events, c.EventKinds = maxNotifications, sctp.AllEvents()
	return c
}

// Listen is listen.
func (s *Socket) Listen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return syscall.EBADF
	case s.listener != nil:
		return nil
	case s.conn != nil || s.connecting:
		return syscall.EINVAL
	}
	c := s.connConfig()
	l, err := (&sctp.ListenConfig{Config: c}).Listen(s.closedCtx, "sctp", ":"+strconv.Itoa(int(s.boundPort)))
	if err != nil {
		return errnoOf(err)
	}
	s.listener, s.boundPort, s.bound = l, l.Port(), true
	return nil
}

// Accept is accept. It fails with EINVAL when the socket is not listening, or no longer.
func (s *Socket) Accept() (*Socket, error) {
	s.mu.Lock()
	l, closed := s.listener, s.closed
	s.mu.Unlock()
	if closed {
		return nil, syscall.EBADF
	}
	if l == nil {
		return nil, syscall.EINVAL
	}
	c, err := s.acceptFrom(l)
	if err != nil {
		return nil, err
	}
	n := NewSocket(s.v6, s.v6only)
	s.mu.Lock()
	n.opts, n.boundAddrs, n.boundPort, n.bound = s.opts, s.boundAddrs, s.boundPort, true
	s.mu.Unlock()
	n.readWaits.inheritTimeout(&s.readWaits)
	n.writeWaits.inheritTimeout(&s.writeWaits)
	_ = n.opts.applyToConn(c) // what was changed since Listen
	n.setConn(c)
	return n, nil
}

func (s *Socket) acceptFrom(l *sctp.Listener) (*sctp.Conn, error) {
	ctx := s.closedCtx
	s.readWaits.mu.Lock()
	timeout, nonblock := s.readWaits.timeout, s.readWaits.nonblock
	s.readWaits.mu.Unlock()
	if nonblock {
		timeout = -1
	}
	if timeout != 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	c, err := l.Accept(ctx)
	switch {
	case err == nil:
		return c, nil
	case s.closedCtx.Err() != nil:
		return nil, syscall.EINVAL // as after shutdown
	}
	return nil, syscall.EAGAIN
}

// Connect is sctp_connectx for sockaddrs as RawAddrs writes them. It returns the id of the
// association. It returns EINPROGRESS if SO_SNDTIMEO or O_NONBLOCK do not let it wait, and goes on
// in the background.
func (s *Socket) Connect(raw []byte) (int32, error) {
	list, port, err := parseSockaddrs(raw)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	switch {
	case s.closed:
		err = syscall.EBADF
	case s.listener != nil:
		err = syscall.EISCONN
	case s.conn != nil:
		err = syscall.EISCONN
	case s.connecting:
		err = syscall.EALREADY
	case port == 0:
		err = syscall.ECONNREFUSED // nobody can listen there
	}
	for i, a := range list {
		if a.Is6() && !s.v6 || a.Is4() && s.v6only || a.IsMulticast() {
			err = syscall.EINVAL
		}
		if a.IsUnspecified() { // this host
			list[i] = netip.AddrFrom4([4]byte{127, 0, 0, 1})
			if a.Is6() {
				list[i] = netip.IPv6Loopback()
			}
		}
	}
	if err != nil {
		s.mu.Unlock()
		return 0, err
	}
	s.connecting, s.assocID = true, lastAssocID.Add(1)
	id := s.assocID
	d := sctp.Dialer{Config: s.connConfig()}
	s.mu.Unlock()
	d.Config.RemoteAddrs = list[1:]
	result := make(chan error, 1)
	go func() { result <- s.dialConn(&d, netip.AddrPortFrom(list[0], port)) }()

	s.writeWaits.mu.Lock()
	timeout, nonblock := s.writeWaits.timeout, s.writeWaits.nonblock
	s.writeWaits.mu.Unlock()
	var late <-chan time.Time
	if timeout > 0 {
		t := time.NewTimer(timeout)
		defer t.Stop()
		late = t.C
	}
	ended := result
	if nonblock {
		ended, late = nil, firedTimer // however soon the association is up, the next call tells
	}
	select {
	case err = <-ended:
		if err != nil {
			return 0, err
		}
		return id, nil
	case <-late:
	}
	go func() {
		if e, ok := (<-result).(syscall.Errno); ok {
			s.mu.Lock()
			s.pendingErr = e // for the next call
			s.mu.Unlock()
		}
	}()
	return id, syscall.EINPROGRESS
}

// firedTimer is a timer that has expired.
var firedTimer = func() chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

// dialConn sets up the association.
func (s *Socket) dialConn(d *sctp.Dialer, to netip.AddrPort) error {
	c, err := d.Dial(s.closedCtx, "sctp", to.String())
	if err == nil {
		s.setConn(c)
	}
	s.mu.Lock()
	s.connecting = false
	closed := s.closed
	switch {
	case closed:
		err = syscall.EBADF
	case err != nil:
		err = errnoOf(err)
	}
	close(s.connectDone)
	s.connectDone = make(chan struct{}) // for another try
	s.mu.Unlock()
	if closed && c != nil {
		c.Abort("socket closed")
	}
	return err
}

// setConn gives the socket its association.
func (s *Socket) setConn(c *sctp.Conn) {
	s.mu.Lock()
	s.conn = c
	if s.assocID == 0 {
		s.assocID = lastAssocID.Add(1)
	}
	s.boundPort = c.LocalAddr().(sctp.Addr).Port()
	s.mu.Unlock()
	s.readWaits.updateWaits(func(w *callWaits) { w.setConnDeadline = c.SetReadDeadline })
	s.writeWaits.updateWaits(func(w *callWaits) { w.setConnDeadline = c.SetWriteDeadline })
	s.startWatcher()
}

// waitConn returns the association, and waits while it is being set up. Without an association it
// fails with the pending error, or else with none.
func (s *Socket) waitConn(none syscall.Errno) (*sctp.Conn, error) {
	s.mu.Lock()
	for s.connecting && !s.closed {
		up := s.connectDone
		s.mu.Unlock()
		if s.readWaits.checkExpired(nil) != nil {
			return nil, syscall.EAGAIN
		}
		select {
		case <-up:
		case <-s.closedCtx.Done():
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, syscall.EBADF
	case s.conn == nil:
		return nil, s.takePendingErr(none)
	}
	return s.conn, nil
}

// takePendingErr takes the pending error and returns it, or else e. Called with mu held.
func (s *Socket) takePendingErr(e syscall.Errno) error {
	if s.pendingErr != 0 {
		e, s.pendingErr = s.pendingErr, 0
	}
	return e
}

// Dup adds a user of the socket, as a dup of its descriptor does.
func (s *Socket) Dup() *Socket {
	s.mu.Lock()
	s.openDescriptors++
	s.mu.Unlock()
	return s
}

// Shutdown begins the end of the association. It takes no more messages; those of the peer are read
// until it agrees (RFC 6458 section 4.1.7).
func (s *Socket) Shutdown() error {
	c, err := s.waitConn(syscall.ENOTCONN)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.sendingShut = true
	s.mu.Unlock()
	a, now := c.Upper().Lock()
	err = a.Shutdown(now)
	c.Upper().Unlock()
	return errnoOf(err)
}

// defaultCloseWait is how long Close waits if SO_LINGER does not say. Sockets that are closed
// together, or one after the other, share it.
const defaultCloseWait = time.Second

var closeGrace grace.Period

// Close closes the last descriptor. It ends the association, or all those that were not accepted.
// It aborts the association if SO_LINGER has the time 0, or messages were not read. Calls under way
// in other goroutines end; Recv ends as at the end of the association.
func (s *Socket) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return syscall.EBADF
	}
	if s.openDescriptors--; s.openDescriptors > 0 {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	c, l, wait, abort := s.conn, s.listener, defaultCloseWait, false
	lingers := s.opts.linger
	if lingers {
		wait, abort = s.opts.lingerTime, s.opts.lingerTime == 0
	}
	s.dropDescriptor()
	s.mu.Unlock()
	s.cancelClosedCtx()
	if l != nil {
		l.Close()
	}
	if c == nil {
		return nil
	}
	s.readWaits.setLookAgain(true)
	var trip time.Duration
	if st := c.Paths(); len(st) > 0 {
		trip = st[0].SRTT
	}
	if abort || c.Err() == nil && c.Stats().Buffered > 0 {
		c.Abort("closed with messages unread")
		return nil
	}
	ended := make(chan struct{})
	go func() {
		c.Close() // in the background
		close(ended)
	}()
	if !lingers {
		wait = closeGrace.WaitLeft(defaultCloseWait, trip)
	}
	select {
	case <-ended:
	case <-time.After(wait):
		if !lingers {
			closeGrace.RecordVainWait()
		}
	}
	return nil
}

// Closed reports whether the socket is closed.
func (s *Socket) Closed() bool { return s.closedCtx.Err() != nil }

// SetReadDeadline makes Recv fail with os.ErrDeadlineExceeded when it waits past t. Zero is no
// deadline.
func (s *Socket) SetReadDeadline(t time.Time) error { return s.setDeadline(&s.readWaits, t) }

// SetWriteDeadline makes Send fail with os.ErrDeadlineExceeded when it waits past t.
func (s *Socket) SetWriteDeadline(t time.Time) error { return s.setDeadline(&s.writeWaits, t) }

func (s *Socket) setDeadline(w *callWaits, t time.Time) error {
	if s.Closed() {
		return syscall.EBADF
	}
	w.updateWaits(func(w *callWaits) { w.deadline = t })
	return nil
}

// LocalAddrs returns the sockaddrs of this side. They are those that it is bound to, or else all
// that the peer may know. It fails with EINVAL if there are none.
func (s *Socket) LocalAddrs() ([]byte, int, error) {
	s.mu.Lock()
	c, list, port, closed, bound := s.conn, s.boundAddrs, s.boundPort, s.closed, s.bound
	s.mu.Unlock()
	switch {
	case closed:
		return nil, 0, syscall.EBADF
	case !bound && c == nil:
		return nil, 0, nil
	}
	if len(list) == 0 && c != nil {
		list = []netip.Addr{c.LocalAddr().(sctp.Addr).Addr()}
	}
	if len(list) == 0 {
		list = unboundAddrs(s.hasIPv4(), s.v6)
	}
	b, n := s.sockaddrList(list, port)
	return b, n, nil
}

// RemoteAddrs returns the sockaddrs of the peer, the primary one first.
func (s *Socket) RemoteAddrs() ([]byte, int, error) {
	c, err := s.waitConn(syscall.ENOTCONN)
	if err != nil {
		return nil, 0, err
	}
	r := c.RemoteAddr().(sctp.Addr)
	list := []netip.Addr{r.Addr()}
	for _, p := range c.Paths() {
		if a := p.Remote.Addr(); a != r.Addr() {
			list = append(list, a)
		}
	}
	b, n := s.sockaddrList(list, r.Port())
	return b, n, nil
}

func (s *Socket) sockaddrList(list []netip.Addr, port uint16) (b []byte, n int) {
	for _, a := range list {
		b = appendSockaddr(b, s.presentedAddr(netip.AddrPortFrom(a, port)))
	}
	return b, len(list)
}

// PeelOff is sctp_peeloff, which sockets of the one-to-one style refuse.
func (s *Socket) PeelOff(int32) (*Socket, error) {
	if s.Closed() {
		return nil, syscall.EBADF
	}
	return nil, syscall.EINVAL
}
