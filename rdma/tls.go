package rdma

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/internal/mutualtls"
)

// Errors of encryption.
var (
	// ErrTLSOfSCTP: Config.SCTP.TLS would leave QPs over TCP in the clear.
	ErrTLSOfSCTP = errors.New("rdma: set Config.TLS, which is for SCTP and for TCP, in place of Config.SCTP.TLS")
	// ErrRestartOverTCP: Config.SCTP.RestartStore is for associations, and the Device has no link
	// for them. A connection of TCP ends with its program.
	ErrRestartOverTCP = errors.New("rdma: Config.SCTP.RestartStore keeps keys of associations: " +
		"the Device has no link for SCTP")
	// ErrClearConn: ConnectOver and RequestOver take no connection in the clear under Config.TLS.
	ErrClearConn = errors.New("rdma: Config.TLS is set, and the connection is no *tls.Conn")
)

// TLSError ends a TCP connection whose TLS handshake has failed, or whose peer refuses this side by
// an alert. Over SCTP that is a *sctp.KeyError. It unwraps to what crypto/tls says.
type TLSError struct {
	Remote netip.AddrPort
	Err    error
}

// Error says what TLS says.
func (e *TLSError) Error() string {
	return fmt.Sprintf("rdma: TLS with %v: the handshake has failed: %v", e.Remote, e.Err)
}

// Unwrap returns what TLS says.
func (e *TLSError) Unwrap() error { return e.Err }

// checkTLS looks at Config.TLS, and has associations encrypted. hasLink says whether there may be
// any.
func (c *Config) checkTLS(hasLink bool) (err error) {
	if c.SCTP.TLS != nil {
		return ErrTLSOfSCTP
	}
	if err = cmp.Or(c.checkLooseTLS(), c.checkRestartStore(hasLink)); err != nil {
		return err
	}
	if c.TLS != nil {
		_, err = mutualtls.NewIdentity(c.TLS)
	}
	c.SCTP.TLS = c.TLS
	return err
}

// ConnectionState returns what TLS knows of the peer: its certificates, the version and the cipher
// suite. It returns false for a QP that is not connected, or in the clear.
func (q *QP) ConnectionState() (state tls.ConnectionState, ok bool) {
	p := q.peer.Load()
	if p == nil {
		return state, false
	}
	return p.conn.connectionState()
}

// PeerIdentity returns the certificate of the peer, nil for a QP that is not connected, or in the
// clear. It was judged as Config.TLS says before the peer could reach any memory.
func (q *QP) PeerIdentity() *x509.Certificate { return leafOf(q.ConnectionState()) }

// ConnectionState returns what TLS knows of the peer, false in the clear.
func (r *Request) ConnectionState() (state tls.ConnectionState, ok bool) {
	return r.p.conn.connectionState()
}

// PeerIdentity returns the certificate of the peer, nil in the clear. By it a program chooses the
// protection domain of the QP that it accepts with.
func (r *Request) PeerIdentity() *x509.Certificate { return leafOf(r.ConnectionState()) }

func leafOf(state tls.ConnectionState, ok bool) *x509.Certificate {
	if !ok || len(state.PeerCertificates) == 0 {
		return nil
	}
	return state.PeerCertificates[0]
}
