package sctp

import (
	"net"
	"sync/atomic"
	"syscall"

	"github.com/rddp-go/rddp/compat"
)

// SocketConfig says how sockets are made.
type SocketConfig struct {
	// Control is called before the socket is bound or connected.
	Control func(network, address string, c syscall.RawConn) error
	// InitMsg says how associations are set up.
	InitMsg InitMsg
	// RtoInfo has the bounds of the retransmission timeout, if not nil.
	RtoInfo *RtoInfo
	// AssocInfo has the retransmissions of the association, if not nil.
	AssocInfo *AssocInfo
	// MaxSeg bounds the user data of a DATA chunk in octets; 0 does not.
	MaxSeg int
}

// set sets the options of a socket.
func (cfg *SocketConfig) set(c *SCTPConn) error {
	m := cfg.InitMsg
	err := c.SetInitMsg(int(m.NumOstreams), int(m.MaxInstreams), int(m.MaxAttempts), int(m.MaxInitTimeout))
	if err == nil && cfg.RtoInfo != nil {
		err = c.SetRtoInfo(*cfg.RtoInfo)
	}
	if err == nil && cfg.AssocInfo != nil {
		err = c.SetAssocInfo(*cfg.AssocInfo)
	}
	if err == nil && cfg.MaxSeg > 0 {
		err = c.SetMaxSegSize(cfg.MaxSeg)
	}
	return err
}

// Listen listens on the addresses of laddr.
func (cfg *SocketConfig) Listen(net string, laddr *SCTPAddr) (*SCTPListener, error) {
	s, err := cfg.socket(net, laddr, nil)
	if err != nil {
		return nil, err
	}
	if err = s.Listen(); err != nil {
		s.Close()
		return nil, err
	}
	return &SCTPListener{fd: newConn(s)}, nil
}

// Dial connects to the addresses of raddr, from those of laddr if it is not nil.
func (cfg *SocketConfig) Dial(net string, laddr, raddr *SCTPAddr) (*SCTPConn, error) {
	if raddr == nil {
		return nil, noAddr("DialSCTP")
	}
	s, err := cfg.socket(net, laddr, raddr)
	if err != nil {
		return nil, err
	}
	switch _, err = s.Connect(raddr.ToRawSockAddrBuf()); err {
	case nil, syscall.EISCONN, syscall.EALREADY, syscall.EINPROGRESS: // the caller judges the socket
		return newConn(s), err
	}
	s.Close()
	return nil, err
}

// socket returns a socket that is bound to laddr. Without raddr it is to listen.
func (cfg *SocketConfig) socket(network string, laddr, raddr *SCTPAddr) (*compat.Socket, error) {
	s, err := compat.SocketFor(network, raddr == nil, laddr.addrs(), raddr.addrs())
	if err != nil {
		return nil, err
	}
	if cfg.Control != nil {
		err = cfg.Control(network, laddr.String(), rawConn{s})
	}
	if err == nil {
		err = cfg.set(newConn(s))
	}
	if err == nil && laddr != nil {
		err = s.Bind(laddr.ToRawSockAddrBuf(), false)
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// DialSCTP connects to raddr.
func DialSCTP(net string, laddr, raddr *SCTPAddr) (*SCTPConn, error) {
	return DialSCTPExt(net, laddr, raddr, InitMsg{NumOstreams: SCTP_MAX_STREAM}, nil, nil, SCTP_DEFAULT_MAXSEG)
}

// DialSCTPExt is DialSCTP with options.
func DialSCTPExt(network string, laddr, raddr *SCTPAddr, options InitMsg, rtoInfo *RtoInfo, assocInfo *AssocInfo,
	maxSeg int) (*SCTPConn, error) {
	return (&SocketConfig{InitMsg: options, RtoInfo: rtoInfo, AssocInfo: assocInfo, MaxSeg: maxSeg}).Dial(network,
		laddr, raddr)
}

// ListenSCTP listens on laddr. If laddr is nil, it listens on all addresses and some port.
func ListenSCTP(net string, laddr *SCTPAddr) (*SCTPListener, error) {
	return ListenSCTPExt(net, laddr, InitMsg{NumOstreams: SCTP_MAX_STREAM}, nil, nil, SCTP_DEFAULT_MAXSEG)
}

// ListenSCTPExt is ListenSCTP with options.
func ListenSCTPExt(network string, laddr *SCTPAddr, options InitMsg, rtoInfo *RtoInfo, assocInfo *AssocInfo,
	maxSeg int) (*SCTPListener, error) {
	return (&SocketConfig{InitMsg: options, RtoInfo: rtoInfo, AssocInfo: assocInfo, MaxSeg: maxSeg}).Listen(network,
		laddr)
}

// SCTPListener is a socket that accepts associations.
type SCTPListener struct {
	fd        *SCTPConn // for its options
	isStopped atomic.Bool
}

// Accept is AcceptSCTP.
func (ln *SCTPListener) Accept(timeout int) (net.Conn, error) { return ln.AcceptSCTP(timeout) }

// AcceptSCTP returns the next association. The timeout does not end it. Close ends it, and then it
// returns nil and no error.
func (ln *SCTPListener) AcceptSCTP(timeout int) (*SCTPConn, error) {
	l, err := ln.fd.sock()
	if err == nil {
		var s *compat.Socket
		if s, err = l.Accept(); err == nil {
			return newConn(s), nil
		}
		if !l.Closed() {
			return nil, err
		}
	}
	ln.isStopped.Store(true)
	return nil, nil
}

// IsStopped says whether AcceptSCTP has found the listener closed.
func (ln *SCTPListener) IsStopped() bool { return ln.isStopped.Load() }

// Addr returns the addresses that the listener is bound to.
func (ln *SCTPListener) Addr() net.Addr { return orNil(ln.fd.SCTPLocalAddr(0)) }

// MaxSeg returns the limit for the user data of a DATA chunk.
func (ln *SCTPListener) MaxSeg() (int, error) {
	v, err := ln.fd.GetMaxSegSize()
	if err != nil {
		return -1, err
	}
	return *v, nil
}

// Close ends the listener, and the associations that were not accepted.
func (ln *SCTPListener) Close() error {
	_ = ln.fd.Close() // it returns nil also if it was closed before, as the original does
	return nil
}
