// Package certs issues certificates for tests of TLS.
package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/must"
)

// Authority issues the certificates of a test.
type Authority struct {
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
	Pool *x509.CertPool
	next int64
}

// New returns an authority of its own.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{key: must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t), Pool: x509.NewCertPool()}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.Cert = must.Get(x509.ParseCertificate(must.Get(x509.CreateCertificate(rand.Reader, template, template,
		&a.key.PublicKey, a.key))(t)))(t)
	a.Pool.AddCert(a.Cert)
	return a
}

// Issue returns a certificate of that name, for that use alone.
func (a *Authority) Issue(t testing.TB, name string, use x509.ExtKeyUsage, life time.Duration) tls.Certificate {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	a.next++
	template := &x509.Certificate{SerialNumber: big.NewInt(a.next + 1), Subject: pkix.Name{CommonName: name},
		DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use}}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, a.Cert, &key.PublicKey, a.key))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: crypto.PrivateKey(key)}
}

// Dialer is the tls.Config of a program that dials "server.test", as for TLS over TCP.
func (a *Authority) Dialer(t testing.TB, name string) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.Issue(t, name, x509.ExtKeyUsageClientAuth, 500*time.Hour)},
		RootCAs: a.Pool, ServerName: "server.test"}
}

// Listener is the other.
func (a *Authority) Listener(t testing.TB) *tls.Config {
	own := a.Issue(t, "server.test", x509.ExtKeyUsageServerAuth, 500*time.Hour)
	return &tls.Config{Certificates: []tls.Certificate{own}, ClientCAs: a.Pool}
}
