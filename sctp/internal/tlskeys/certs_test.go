package tlskeys

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

// authority issues the certificates of a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
	next int64
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{key: must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t), pool: x509.NewCertPool()}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.cert = must.Get(x509.ParseCertificate(must.Get(x509.CreateCertificate(rand.Reader, template, template,
		&a.key.PublicKey, a.key))(t)))(t)
	a.pool.AddCert(a.cert)
	return a
}

// issue returns a certificate of that name, for that use alone.
func (a *authority) issue(t testing.TB, name string, use x509.ExtKeyUsage, life time.Duration) tls.Certificate {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	a.next++
	template := &x509.Certificate{SerialNumber: big.NewInt(a.next + 1), Subject: pkix.Name{CommonName: name},
		DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use}}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key))(t)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: crypto.PrivateKey(key)}
}

// dialer and listener are the tls.Configs of two programs, as for TLS over TCP.
func (a *authority) dialer(t testing.TB, name string) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.issue(t, name, x509.ExtKeyUsageClientAuth, 500*time.Hour)},
		RootCAs: a.pool, ServerName: "server.test"}
}

func (a *authority) listener(t testing.TB) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.issue(t, "server.test", x509.ExtKeyUsageServerAuth, 500*time.Hour)},
		ClientCAs: a.pool}
}
