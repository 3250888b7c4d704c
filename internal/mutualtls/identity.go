// Package mutualtls makes of a program's tls.Config what both sides of an RDMA or SCTP connection
// use: TLS 1.3, in which each shows a certificate, whatever its role in a handshake.
package mutualtls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"time"
)

// ConfigError says why a tls.Config does not do.
type ConfigError struct{ What string }

func (e *ConfigError) Error() string { return "TLS: " + e.What }

// Identity is a tls.Config for all handshakes of a host. Both sides are authenticated, and either
// may begin one. So how the peer is verified does not depend on the roles in it. With a ServerName
// the peer is verified as that server, by RootCAs, else as a client, by ClientCAs.
type Identity struct{ base *tls.Config }

// NewIdentity returns the Identity of a program's Config, or a ConfigError.
func NewIdentity(c *tls.Config) (*Identity, error) {
	switch {
	case c == nil:
		return nil, &ConfigError{"there is no tls.Config"}
	case c.GetConfigForClient != nil:
		return nil, &ConfigError{"GetConfigForClient is not supported: use GetCertificate"}
	case len(c.Certificates) == 0 && c.GetCertificate == nil && c.GetClientCertificate == nil:
		return nil, &ConfigError{"there is no certificate: both sides have to show one"}
	case c.MinVersion > tls.VersionTLS13 || c.MaxVersion != 0 && c.MaxVersion < tls.VersionTLS13:
		return nil, &ConfigError{"TLS 1.3 is not allowed"}
	case acceptsAnybody(c):
		return nil, &ConfigError{"any certificate of the peer would be accepted: set VerifyPeerCertificate or " +
			"VerifyConnection"}
	}
	return &Identity{c.Clone()}, nil
}

// acceptsAnybody reports whether neither this package nor the program verifies the peer.
func acceptsAnybody(c *tls.Config) bool {
	return (c.InsecureSkipVerify || c.ClientAuth == tls.RequireAnyClientCert) && c.VerifyPeerCertificate == nil &&
		c.VerifyConnection == nil
}

// Calling returns the Config of a side that calls host. It has to be in the certificate, unless c
// names another server, or leaves the judgement to the program. Without a host, as for a side that
// listens, c stays as it is.
func Calling(c *tls.Config, host string) *tls.Config {
	if c == nil || host == "" || c.ServerName != "" || c.InsecureSkipVerify {
		return c
	}
	c = c.Clone()
	c.ServerName = host
	return c
}

// Now is the time that certificates are judged by.
func (i *Identity) Now() time.Time {
	if i.base.Time != nil {
		return i.base.Time()
	}
	return time.Now()
}

// peerIsServer reports how the peer is verified, whatever its part in a session.
func (i *Identity) peerIsServer() bool { return i.base.ServerName != "" || i.base.InsecureSkipVerify }

// programVerifies reports whether only the program judges the certificate.
func (i *Identity) programVerifies() bool {
	return i.base.InsecureSkipVerify || !i.peerIsServer() && i.base.ClientAuth == tls.RequireAnyClientCert
}

// Handshake is what one handshake has shown of this side.
type Handshake struct {
	Shown    *x509.Certificate // to the peer
	WasAsked bool              // for it, by a server
}

// ErrNotAsked is for a server that does not authenticate its client.
var ErrNotAsked = errors.New("the server has not asked for a certificate: both sides have to be authenticated")

// Config returns the configuration of one handshake: TLS 1.3 only, both sides authenticated, no
// tickets. The peer has to be who has shown the certificate first, unless that is nil.
func (i *Identity) Config(h *Handshake, first *x509.Certificate) *tls.Config {
	c := i.base.Clone()
	c.MinVersion, c.MaxVersion = tls.VersionTLS13, tls.VersionTLS13
	c.SessionTicketsDisabled, c.ClientSessionCache = true, nil
	c.Renegotiation, c.NextProtos = tls.RenegotiateNever, nil
	c.EncryptedClientHelloConfigList, c.EncryptedClientHelloKeys = nil, nil
	c.Certificates = nil
	c.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return h.show(i.certificateFor(hello))
	}
	c.GetClientCertificate = func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		h.WasAsked = true
		return h.show(i.clientCertificateFor(r))
	}
	// The certificate is verified below, alike in both directions.
	c.InsecureSkipVerify, c.ClientAuth = true, tls.RequireAnyClientCert
	c.VerifyPeerCertificate = nil
	c.VerifyConnection = func(state tls.ConnectionState) error { return i.verify(state, first) }
	return c
}

// show notes which certificate the peer gets to see.
func (h *Handshake) show(c *tls.Certificate, err error) (*tls.Certificate, error) {
	if err == nil && (c == nil || len(c.Certificate) == 0) {
		err = errNoCertificate
	}
	if err != nil {
		return nil, err
	}
	if h.Shown = c.Leaf; h.Shown == nil {
		h.Shown, err = x509.ParseCertificate(c.Certificate[0])
	}
	return c, err
}

var errNoCertificate = errors.New("the program gives no certificate")

// certificateFor returns the certificate for a server, which may be nil or empty.
func (i *Identity) certificateFor(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if i.base.GetCertificate != nil {
		if c, err := i.base.GetCertificate(h); c != nil || err != nil {
			return c, err
		}
	}
	if c := i.listed(h.SupportsCertificate); c != nil || i.base.GetClientCertificate == nil {
		return c, nil
	}
	// The peer has begun a session with one that dials.
	return i.base.GetClientCertificate(&tls.CertificateRequestInfo{SignatureSchemes: h.SignatureSchemes,
		Version: tls.VersionTLS13})
}

// clientCertificateFor is certificateFor for a client.
func (i *Identity) clientCertificateFor(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if i.base.GetClientCertificate != nil {
		return i.base.GetClientCertificate(r)
	}
	if c := i.listed(r.SupportsCertificate); c != nil || i.base.GetCertificate == nil {
		return c, nil
	}
	// One that listens has begun a session.
	return i.base.GetCertificate(&tls.ClientHelloInfo{SignatureSchemes: r.SignatureSchemes,
		SupportedVersions: []uint16{tls.VersionTLS13}})
}

// listed returns the first certificate of the list that suits the peer, else the first one, nil for
// an empty list.
func (i *Identity) listed(check func(*tls.Certificate) error) *tls.Certificate {
	for n := range i.base.Certificates {
		if c := &i.base.Certificates[n]; check(c) == nil {
			return c
		}
	}
	if len(i.base.Certificates) > 0 {
		return &i.base.Certificates[0]
	}
	return nil
}
