package compat

import (
	"sync"
	"syscall"
	"time"
)

// A socket of this stack has no descriptor. Programs that ask for one get that of a placeholder. It
// is a UDP socket of the same family that is never bound. It takes the options of level SOL_SOCKET.
// They are read back each time after the program has had the descriptor.

// placeholders are the sockets that have a placeholder, by its placeholderKey, which a dup shares.
var placeholders = struct {
	sync.Mutex
	list map[uint64]*Socket
}{list: make(map[uint64]*Socket)}

// Find returns the socket whose placeholder a descriptor is, or a dup of it. It returns nil if
// there is none.
func Find(fd int) *Socket {
	key, err := placeholderKey(fd)
	if err != nil {
		return nil
	}
	placeholders.Lock()
	defer placeholders.Unlock()
	return placeholders.list[key]
}

// Descriptor returns the descriptor of the placeholder. It is closed with the socket.
func (s *Socket) Descriptor() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return -1, syscall.EBADF
	}
	if s.placeholderFD >= 0 {
		return s.placeholderFD, nil
	}
	fd, err := newPlaceholder(s.v6, s.v6only)
	if err != nil {
		return -1, err
	}
	key, err := placeholderKey(fd)
	if err != nil {
		closePlaceholder(fd)
		return -1, err
	}
	placeholders.Lock()
	placeholders.list[key] = s
	placeholders.Unlock()
	s.placeholderFD = fd
	setPlaceholder(fd, s.initialPlaceholderOptions())
	return fd, nil
}

// dropDescriptor closes the placeholder. Called with mu held.
func (s *Socket) dropDescriptor() {
	if s.placeholderFD < 0 {
		return
	}
	if key, err := placeholderKey(s.placeholderFD); err == nil {
		placeholders.Lock()
		delete(placeholders.list, key)
		placeholders.Unlock()
	}
	closePlaceholder(s.placeholderFD)
	s.placeholderFD = -1
}

// placeholderOptions are the options of a placeholder.
type placeholderOptions struct {
	rcvTimeout, sndTimeout time.Duration
	rcvBuf, sndBuf         int // as they are set, 0 for the default
	linger                 bool
	lingerTime             time.Duration
	nonblock               bool
	class                  int // IP_TOS, or IPV6_TCLASS
}

// initialPlaceholderOptions returns the options that a placeholder begins with. Called with mu
// held.
func (s *Socket) initialPlaceholderOptions() (w placeholderOptions) {
	w.rcvTimeout, w.sndTimeout = s.readWaits.ownTimeout(), s.writeWaits.ownTimeout()
	w.linger, w.lingerTime = s.opts.linger, s.opts.lingerTime
	w.rcvBuf, w.sndBuf, w.class = s.opts.rcvBuf, s.opts.sndBuf, s.opts.class
	return w
}

// ReadBack copies the options of the placeholder to the socket. A caller that hands the descriptor
// to a program calls it afterwards.
func (s *Socket) ReadBack() {
	s.mu.Lock()
	fd := s.placeholderFD
	s.mu.Unlock()
	if fd < 0 {
		return
	}
	w := readPlaceholder(fd)
	s.mu.Lock()
	s.opts.linger, s.opts.lingerTime = w.linger, w.lingerTime
	if w.rcvBuf != 0 {
		s.opts.rcvBuf, s.opts.cfg.RecvBuffer = w.rcvBuf, max(w.rcvBuf, 1500)
		s.opts.cfg.PartialDelivery = min(s.opts.cfg.PartialDelivery, s.opts.cfg.RecvBuffer)
	}
	if w.sndBuf != 0 {
		s.opts.sndBuf, s.opts.cfg.SendBuffer = w.sndBuf, w.sndBuf
	}
	if w.class != s.opts.class { // otherwise SCTP_PEER_ADDR_PARAMS may have set another
		s.opts.class, s.opts.cfg.DSCP = w.class, uint8(w.class)>>2
	}
	c, l, opts := s.conn, s.listener, s.opts
	s.mu.Unlock()
	_ = opts.applyToBoth(c, l)
	s.readWaits.updateWaits(func(r *callWaits) { r.timeout, r.nonblock = w.rcvTimeout, w.nonblock })
	s.writeWaits.updateWaits(func(r *callWaits) { r.timeout, r.nonblock = w.sndTimeout, w.nonblock })
}

// Control is the Control of a syscall.RawConn: f gets the descriptor. What f sets is valid when
// Control returns.
func (s *Socket) Control(f func(fd uintptr)) error {
	fd, err := s.Descriptor()
	if err != nil {
		return err
	}
	f(uintptr(fd))
	s.ReadBack()
	return nil
}

// withPlaceholder sets an option of the placeholder and copies it to the socket.
func (s *Socket) withPlaceholder(f func(fd int) error) (err error) {
	e := s.Control(func(fd uintptr) { err = f(int(fd)) })
	if e != nil {
		return e
	}
	return err
}

// SetBuffer sets SO_RCVBUF or SO_SNDBUF.
func (s *Socket) SetBuffer(send bool, octets int) error {
	return s.withPlaceholder(func(fd int) error { return setBuffer(fd, send, octets) })
}

// Buffer returns SO_RCVBUF or SO_SNDBUF.
func (s *Socket) Buffer(send bool) (n int, err error) {
	err = s.withPlaceholder(func(fd int) (err error) {
		n, err = getBuffer(fd, send)
		return err
	})
	return n, err
}

// SetTimeout sets SO_RCVTIMEO or SO_SNDTIMEO; 0 is none.
func (s *Socket) SetTimeout(send bool, d time.Duration) error {
	return s.withPlaceholder(func(fd int) error { return setTimeout(fd, send, d) })
}

// SetNonblock sets O_NONBLOCK.
func (s *Socket) SetNonblock(on bool) error {
	return s.withPlaceholder(func(fd int) error { return setNonblock(fd, on) })
}
