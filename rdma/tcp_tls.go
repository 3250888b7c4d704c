package rdma

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"time"

	"github.com/rddp-go/rddp/internal/mutualtls"
	"github.com/rddp-go/rddp/mpa"
)

// startupTimeout is how long a peer may take for a TLS handshake.
func (c *TCPConfig) startupTimeout() time.Duration {
	if c.StartupTimeout > 0 {
		return c.StartupTimeout
	}
	return mpa.DefaultStartupTimeout
}

// encrypt runs the TLS handshake of a TCP connection. host is whom this side dials, empty for one
// that it has accepted.
func (t *tcpTransport) encrypt(ctx context.Context, nc net.Conn, host string) (net.Conn, error) {
	identity, err := mutualtls.NewIdentity(mutualtls.Calling(t.dev.cfg.TLS, host))
	if err != nil {
		return nil, err
	}
	var shown mutualtls.Handshake
	cfg := identity.Config(&shown, nil)
	cfg.DynamicRecordSizingDisabled = true // a segment is of use only as a whole
	var c *tls.Conn
	if host != "" {
		c = tls.Client(nc, cfg)
	} else {
		c = tls.Server(nc, cfg)
	}
	// Not by ctx: that would close nc before it is known why.
	_ = nc.SetDeadline(time.Now().Add(t.dev.cfg.TCP.startupTimeout()))
	if err = c.HandshakeContext(ctx); err == nil && host != "" && !shown.WasAsked {
		err = mutualtls.ErrNotAsked
	}
	if err != nil {
		return nil, &TLSError{addrPortOf(nc.RemoteAddr()), err}
	}
	return c, nc.SetDeadline(time.Time{})
}

// encrypted runs the handshake of a connection that a program gives, if it has to.
func (t *tcpTransport) encrypted(ctx context.Context, nc net.Conn) error {
	if t.dev.cfg.TLS == nil {
		return nil
	}
	c, ok := nc.(*tls.Conn)
	if !ok {
		return ErrClearConn
	}
	if err := c.HandshakeContext(ctx); err != nil {
		return &TLSError{addrPortOf(nc.RemoteAddr()), err}
	}
	return nil
}

// Refused peers may take so long to read the alert, and may have sent so many octets behind their
// handshake. If any were left unread, TCP would reset the connection, and the alert would be lost.
const (
	alertTimeout = time.Second
	alertOctets  = 64 << 10
)

// closeRefused closes a connection whose handshake has failed.
func closeRefused(nc net.Conn) {
	if tc, ok := nc.(*net.TCPConn); ok && tc.CloseWrite() == nil {
		_ = tc.SetReadDeadline(time.Now().Add(alertTimeout))
		_, _ = io.Copy(io.Discard, io.LimitReader(tc, alertOctets))
	}
	_ = nc.Close()
}

// asTLSError makes an alert of the peer a TLSError: a server judges its client after the client's
// handshake has ended. Other errors stay what they are.
func (t *tcpConn) asTLSError(err error) error {
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "remote error" {
		return &TLSError{t.remoteAddr(), err}
	}
	return err
}

// connectionState returns what TLS knows of the peer, false without it.
func (t *tcpConn) connectionState() (state tls.ConnectionState, ok bool) {
	c, ok := t.nc.(*tls.Conn)
	if !ok {
		return state, false
	}
	state = c.ConnectionState()
	return state, state.HandshakeComplete
}
