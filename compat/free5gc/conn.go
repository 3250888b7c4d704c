package sctp

import (
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/compat"
)

// SCTPConn is a socket with one association.
type SCTPConn struct {
	socket  atomic.Pointer[compat.Socket] // nil once it is closed
	handler NotificationHandler           // never called: SCTPRead returns notifications
}

// NewSCTPConn returns a connection for the descriptor of a socket of this package.
func NewSCTPConn(fd int, handler NotificationHandler) *SCTPConn {
	c := newConn(compat.Find(fd))
	c.handler = handler
	return c
}

func newConn(s *compat.Socket) *SCTPConn {
	c := new(SCTPConn)
	c.socket.Store(s)
	return c
}

// sock returns the socket, or EBADF when it is closed.
func (c *SCTPConn) sock() (*compat.Socket, error) {
	if c == nil {
		return nil, syscall.EBADF
	}
	if s := c.socket.Load(); s != nil {
		return s, nil
	}
	return nil, syscall.EBADF
}

// Write sends b as one message, as SetDefaultSentParam says.
func (c *SCTPConn) Write(b []byte) (int, error) { return c.SCTPWrite(b, nil) }

// Read reads a message, or the next part of one that is longer than b.
func (c *SCTPConn) Read(b []byte) (int, error) {
	n, _, _, err := c.SCTPRead(b)
	return max(n, 0), err
}

// SCTPWrite sends b as one message.
func (c *SCTPConn) SCTPWrite(b []byte, info *SndRcvInfo) (int, error) {
	s, err := c.sock()
	if err != nil {
		return 0, err
	}
	if info == nil {
		return s.Send(b, nil)
	}
	out := plain(info)
	return s.Send(b, &out)
}

// plain and named convert an info to the structure of package compat and back. They copy each
// field: Go cannot convert structures of different packages that have a blank field.
func plain(info *SndRcvInfo) compat.SndRcvInfo {
	return compat.SndRcvInfo{Stream: info.Stream, SSN: info.SSN, Flags: info.Flags, PPID: info.PPID,
		Context: info.Context, TTL: info.TTL,
		TSN: info.TSN, CumTSN: info.CumTSN, AssocID: info.AssocID}
}

func named(in *compat.SndRcvInfo) *SndRcvInfo {
	return &SndRcvInfo{Stream: in.Stream, SSN: in.SSN, Flags: in.Flags, PPID: in.PPID, Context: in.Context, TTL: in.TTL,
		TSN: in.TSN, CumTSN: in.CumTSN, AssocID: in.AssocID}
}

// SCTPRead reads a message, or the next part of one that is longer than b. It returns an info if
// SCTP_EVENT_DATA_IO is subscribed to. It may read a notification instead; its octets are in b too.
// The Notification is nil for types other than the two of this package. On an error it returns -1
// octets with an errno, and at the end of the association io.EOF.
func (c *SCTPConn) SCTPRead(b []byte) (int, *SndRcvInfo, Notification, error) {
	s, err := c.sock()
	if err != nil {
		return -1, nil, nil, err
	}
	var in compat.SndRcvInfo
	n, told, flags, err := s.Recv(b, &in)
	switch {
	case err == io.EOF:
		return 0, nil, nil, err
	case err != nil:
		return -1, nil, nil, err
	case flags&MSG_NOTIFICATION != 0:
		return n, nil, parseNotification(b[:n]), nil
	case !told:
		return n, nil, nil, nil
	}
	return n, named(&in), nil, nil
}

// Close ends the association. What was sent is still delivered.
func (c *SCTPConn) Close() error {
	if c == nil {
		return syscall.EBADF
	}
	s := c.socket.Swap(nil)
	if s == nil {
		return syscall.EBADF
	}
	return s.Close()
}

// rawConn is a socket as a syscall.RawConn. Its descriptor carries options and no data.
type rawConn struct{ *compat.Socket }

func (rawConn) Read(func(fd uintptr) bool) error  { return syscall.EOPNOTSUPP }
func (rawConn) Write(func(fd uintptr) bool) error { return syscall.EOPNOTSUPP }

// Getsockopt is getsockopt at level SOL_SCTP: optval and optlen are addresses.
//
//go:uintptrescapes
func (c *SCTPConn) Getsockopt(optname, optval, optlen uintptr) (uintptr, uintptr, error) {
	s, err := c.sock()
	if err == nil {
		err = s.GetsockoptAt(optname, optval, optlen)
	}
	return result(err)
}

// Setsockopt is setsockopt at level SOL_SCTP: optval is an address, optlen a length.
//
//go:uintptrescapes
func (c *SCTPConn) Setsockopt(optname, optval, optlen uintptr) (uintptr, uintptr, error) {
	s, err := c.sock()
	if err == nil {
		err = s.SetsockoptAt(optname, optval, optlen)
	}
	return result(err)
}

// result returns what a system call returns.
func result(err error) (uintptr, uintptr, error) {
	if err != nil {
		return ^uintptr(0), 0, err
	}
	return 0, 0, nil
}

// get and set are Getsockopt and Setsockopt for a structure.
func (c *SCTPConn) get(name int, p unsafe.Pointer, size uintptr) error {
	s, err := c.sock()
	if err != nil {
		return err
	}
	_, err = s.Getsockopt(name, unsafe.Slice((*byte)(p), size))
	return err
}

func (c *SCTPConn) set(name int, p unsafe.Pointer, size uintptr) error {
	s, err := c.sock()
	if err != nil {
		return err
	}
	return s.Setsockopt(name, unsafe.Slice((*byte)(p), size))
}

// SetInitMsg sets how associations are set up.
func (c *SCTPConn) SetInitMsg(numOstreams, maxInstreams, maxAttempts, maxInitTimeout int) error {
	m := InitMsg{uint16(numOstreams), uint16(maxInstreams), uint16(maxAttempts), uint16(maxInitTimeout)}
	return c.set(SCTP_INITMSG, unsafe.Pointer(&m), unsafe.Sizeof(m))
}

// SubscribeEvents sets which of SCTP_EVENT_DATA_IO and the other events are wanted.
func (c *SCTPConn) SubscribeEvents(flags int) error {
	var events [10]byte
	for i := range events {
		events[i] = byte(flags >> i & 1)
	}
	return c.set(SCTP_EVENTS, unsafe.Pointer(&events), unsafe.Sizeof(events))
}

// SubscribedEvents is the reverse of SubscribeEvents.
func (c *SCTPConn) SubscribedEvents() (flags int, err error) {
	var events [10]byte
	err = c.get(SCTP_EVENTS, unsafe.Pointer(&events), unsafe.Sizeof(events))
	for i, on := range events {
		flags |= int(on) << i
	}
	return flags, err
}

// SetDefaultSentParam sets how Write sends. Its PPID is as it lies in memory, for programs of any
// age.
func (c *SCTPConn) SetDefaultSentParam(info *SndRcvInfo) error {
	return c.set(SCTP_DEFAULT_SENT_PARAM, unsafe.Pointer(info), unsafe.Sizeof(*info))
}

// GetDefaultSentParam is the reverse of SetDefaultSentParam.
func (c *SCTPConn) GetDefaultSentParam() (*SndRcvInfo, error) {
	info := new(SndRcvInfo)
	return info, c.get(SCTP_DEFAULT_SENT_PARAM, unsafe.Pointer(info), unsafe.Sizeof(*info))
}

// SetNoDelay sets whether messages go out at once: 1 or 0.
func (c *SCTPConn) SetNoDelay(optval int) error {
	v := int32(optval)
	return c.set(SCTP_NODELAY, unsafe.Pointer(&v), unsafe.Sizeof(v))
}

// GetNoDelay is the reverse of SetNoDelay.
func (c *SCTPConn) GetNoDelay() (int, error) {
	var v int32
	err := c.get(SCTP_NODELAY, unsafe.Pointer(&v), unsafe.Sizeof(v))
	return int(v), err
}

// SetRtoInfo sets the bounds of the retransmission timeout.
func (c *SCTPConn) SetRtoInfo(rtoInfo RtoInfo) error {
	return c.set(SCTP_RTOINFO, unsafe.Pointer(&rtoInfo), unsafe.Sizeof(rtoInfo))
}

// GetRtoInfo is the reverse of SetRtoInfo.
func (c *SCTPConn) GetRtoInfo() (*RtoInfo, error) { return getRtoInfo(c) }

// getRtoInfo does the work of GetRtoInfo.
func getRtoInfo(c *SCTPConn) (*RtoInfo, error) {
	info := new(RtoInfo)
	if err := c.get(SCTP_RTOINFO, unsafe.Pointer(info), unsafe.Sizeof(*info)); err != nil {
		return nil, err
	}
	return info, nil
}

// SetAssocInfo sets the retransmissions of the association and the lifetime of its cookies.
func (c *SCTPConn) SetAssocInfo(info AssocInfo) error {
	return c.set(SCTP_ASSOCINFO, unsafe.Pointer(&info), unsafe.Sizeof(info))
}

// GetAssocInfo returns what SetAssocInfo sets, and what is known of the peer.
func (c *SCTPConn) GetAssocInfo() (*AssocInfo, error) { return getAssocInfo(c) }

func getAssocInfo(c *SCTPConn) (*AssocInfo, error) {
	info := new(AssocInfo)
	if err := c.get(SCTP_ASSOCINFO, unsafe.Pointer(info), unsafe.Sizeof(*info)); err != nil {
		return nil, err
	}
	return info, nil
}

// SetMaxSegSize bounds the user data of a DATA chunk in octets.
func (c *SCTPConn) SetMaxSegSize(size int) error {
	v := AssocVal{AssocVal: uint32(size)}
	return c.set(SCTP_MAXSEG, unsafe.Pointer(&v), unsafe.Sizeof(v))
}

// GetMaxSegSize is the reverse of SetMaxSegSize.
func (c *SCTPConn) GetMaxSegSize() (*int, error) {
	var v AssocVal
	if err := c.get(SCTP_MAXSEG, unsafe.Pointer(&v), unsafe.Sizeof(v)); err != nil {
		return nil, err
	}
	size := int(v.AssocVal)
	return &size, nil
}

// SetNonBlock makes reads and writes fail with EAGAIN instead of waiting.
func (c *SCTPConn) SetNonBlock(nonBlock bool) error {
	s, err := c.sock()
	if err != nil {
		return err
	}
	return s.SetNonblock(nonBlock)
}

// SetReadTimeout sets SO_RCVTIMEO. A read that waits for so long fails with EAGAIN.
func (c *SCTPConn) SetReadTimeout(tv syscall.Timeval) error { return c.setTimeout(false, tv) }

// SetWriteTimeout sets SO_SNDTIMEO.
func (c *SCTPConn) SetWriteTimeout(tv syscall.Timeval) error { return c.setTimeout(true, tv) }

func (c *SCTPConn) setTimeout(send bool, tv syscall.Timeval) error {
	s, err := c.sock()
	if err != nil {
		return err
	}
	return s.SetTimeout(send, time.Duration(tv.Sec)*time.Second+time.Duration(tv.Usec)*time.Microsecond)
}

// SCTPGetPrimaryPeerAddr returns the address of the primary path.
func (c *SCTPConn) SCTPGetPrimaryPeerAddr() (*SCTPAddr, error) {
	var prim struct {
		id   int32
		addr [128]byte
	}
	if err := c.get(SCTP_PRIMARY_ADDR, unsafe.Pointer(&prim), unsafe.Sizeof(prim)); err != nil {
		return nil, err
	}
	return parseAddrs(compat.FirstAddr(prim.addr[:]), 1, nil)
}

// SCTPLocalAddr returns the addresses of this end.
func (c *SCTPConn) SCTPLocalAddr(id int) (*SCTPAddr, error) {
	s, err := c.sock()
	if err != nil {
		return nil, err
	}
	return parseAddrs(s.LocalAddrs())
}

// SCTPRemoteAddr returns the addresses of the peer.
func (c *SCTPConn) SCTPRemoteAddr(id int) (*SCTPAddr, error) {
	s, err := c.sock()
	if err != nil {
		return nil, err
	}
	return parseAddrs(s.RemoteAddrs())
}

// LocalAddr is SCTPLocalAddr. It returns nil if there is none.
func (c *SCTPConn) LocalAddr() net.Addr { return orNil(c.SCTPLocalAddr(0)) }

// RemoteAddr is SCTPRemoteAddr. It returns nil if there is none.
func (c *SCTPConn) RemoteAddr() net.Addr { return orNil(c.SCTPRemoteAddr(0)) }

func orNil(a *SCTPAddr, err error) net.Addr {
	if err != nil {
		return nil
	}
	return a
}

// PeelOff fails with EINVAL, as for every socket with one association.
func (c *SCTPConn) PeelOff(id int) (*SCTPConn, error) {
	s, err := c.sock()
	if err != nil {
		return nil, err
	}
	_, err = s.PeelOff(int32(id))
	return nil, err
}

// SetDeadline sets both deadlines. A call that waits past one fails with os.ErrDeadlineExceeded.
func (c *SCTPConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// SetReadDeadline sets the deadline of reads.
func (c *SCTPConn) SetReadDeadline(t time.Time) error {
	s, err := c.sock()
	if err != nil {
		return err
	}
	return s.SetReadDeadline(t)
}

// SetWriteDeadline sets the deadline of writes.
func (c *SCTPConn) SetWriteDeadline(t time.Time) error {
	s, err := c.sock()
	if err != nil {
		return err
	}
	return s.SetWriteDeadline(t)
}

// SetWriteBuffer sets SO_SNDBUF.
func (c *SCTPConn) SetWriteBuffer(bytes int) error { return c.setBuffer(true, bytes) }

// SetReadBuffer sets SO_RCVBUF.
func (c *SCTPConn) SetReadBuffer(bytes int) error { return c.setBuffer(false, bytes) }

func (c *SCTPConn) setBuffer(send bool, bytes int) error {
	s, err := c.sock()
	if err != nil {
		return err
	}
	return s.SetBuffer(send, bytes)
}

// GetWriteBuffer returns SO_SNDBUF.
func (c *SCTPConn) GetWriteBuffer() (int, error) { return c.getBuffer(true) }

// GetReadBuffer returns SO_RCVBUF.
func (c *SCTPConn) GetReadBuffer() (int, error) { return c.getBuffer(false) }

func (c *SCTPConn) getBuffer(send bool) (int, error) {
	s, err := c.sock()
	if err != nil {
		return 0, err
	}
	return s.Buffer(send)
}
