package sctp

import (
	"net"
	"os"
	"syscall"

	"github.com/rddp-go/rddp/compat"
)

// SocketConfig says how sockets are made.
type SocketConfig struct {
	// Control is called before the socket is bound or connected.
	Control func(network, address string, c syscall.RawConn) error
	// NotificationHandler is called by SCTPRead with each notification.
	NotificationHandler NotificationHandler
	// InitMsg says how associations are set up.
	InitMsg InitMsg
}

// Listen listens on the addresses of laddr.
func (cfg *SocketConfig) Listen(net string, laddr *SCTPAddr) (*SCTPListener, error) {
	return listenSCTPExtConfig(net, laddr, cfg.InitMsg, cfg.Control, cfg.NotificationHandler)
}

// Dial connects to the addresses of raddr, from those of laddr if it is not nil.
func (cfg *SocketConfig) Dial(net string, laddr, raddr *SCTPAddr) (*SCTPConn, error) {
	return dialSCTPExtConfig(net, laddr, raddr, cfg.InitMsg, cfg.Control, cfg.NotificationHandler)
}

// DialSCTP connects to raddr.
func DialSCTP(net string, laddr, raddr *SCTPAddr) (*SCTPConn, error) {
	return DialSCTPExt(net, laddr, raddr, InitMsg{NumOstreams: SCTP_MAX_STREAM})
}

// DialSCTPExt is DialSCTP with options.
func DialSCTPExt(network string, laddr, raddr *SCTPAddr, options InitMsg) (*SCTPConn, error) {
	return dialSCTPExtConfig(network, laddr, raddr, options, nil, nil)
}

// ListenSCTP listens on laddr. If laddr is nil, it listens on all addresses and some port.
func ListenSCTP(net string, laddr *SCTPAddr) (*SCTPListener, error) {
	return ListenSCTPExt(net, laddr, InitMsg{NumOstreams: SCTP_MAX_STREAM})
}

// ListenSCTPExt is ListenSCTP with options.
func ListenSCTPExt(network string, laddr *SCTPAddr, options InitMsg) (*SCTPListener, error) {
	return listenSCTPExtConfig(network, laddr, options, nil, nil)
}

type controlFunc = func(network, address string, c syscall.RawConn) error

func dialSCTPExtConfig(network string, laddr, raddr *SCTPAddr, options InitMsg, control controlFunc,
	handler NotificationHandler) (*SCTPConn, error) {
	if raddr == nil {
		return nil, noAddr("DialSCTP")
	}
	s, err := newSocket(network, laddr, raddr, options, control)
	if err != nil {
		return nil, err
	}
	if _, err = s.Connect(raddr.ToRawSockAddrBuf()); err != nil {
		s.Close()
		return nil, err
	}
	return newConn(s, handler), nil
}

func listenSCTPExtConfig(network string, laddr *SCTPAddr, options InitMsg, control controlFunc,
	handler NotificationHandler) (*SCTPListener, error) {
	s, err := newSocket(network, laddr, nil, options, control)
	if err != nil {
		return nil, err
	}
	if err = s.Listen(); err != nil {
		s.Close()
		return nil, err
	}
	return &SCTPListener{s, handler}, nil
}

// newSocket returns a socket that is bound to laddr. Without raddr it is to listen.
func newSocket(network string, laddr, raddr *SCTPAddr, options InitMsg, control controlFunc) (*compat.Socket, error) {
	s, err := compat.SocketFor(network, raddr == nil, laddr.addrs(), raddr.addrs())
	if err != nil {
		return nil, err
	}
	c := newConn(s, nil)
	if control != nil {
		address := ""
		if laddr != nil {
			address = laddr.String()
		}
		err = control(network, address, rawConn{s})
	}
	if err == nil {
		err = c.SetInitMsg(int(options.NumOstreams), int(options.MaxInstreams), int(options.MaxAttempts),
			int(options.MaxInitTimeout))
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

// SCTPListener is a socket that accepts associations.
type SCTPListener struct {
	socket              *compat.Socket
	notificationHandler NotificationHandler
}

// FileListener returns the listener that a descriptor of SyscallConn, or a dup of it, belongs to.
// Closing one of them leaves the other open.
func FileListener(file *os.File) (*SCTPListener, error) {
	s := compat.Find(int(file.Fd()))
	if s == nil {
		return nil, os.NewSyscallError("fcntl", syscall.EBADF)
	}
	return &SCTPListener{socket: s.Dup()}, nil
}

// Accept is AcceptSCTP.
func (ln *SCTPListener) Accept() (net.Conn, error) { return ln.AcceptSCTP() }

// AcceptSCTP returns the next association. With an error it returns a connection that has none.
func (ln *SCTPListener) AcceptSCTP() (*SCTPConn, error) {
	s, err := ln.socket.Accept()
	return newConn(s, ln.notificationHandler), err
}

// Addr returns the addresses that the listener is bound to.
func (ln *SCTPListener) Addr() net.Addr { return orNil(parseAddrs(ln.socket.LocalAddrs())) }

// Close ends the listener, and the associations that were not accepted.
func (ln *SCTPListener) Close() error { return ln.socket.Close() }

// SyscallConn returns the placeholder of the socket: see package compat.
func (ln *SCTPListener) SyscallConn() (syscall.RawConn, error) { return rawConn{ln.socket}, nil }
