package mutualtls

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/certs"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestSameIdentity(t *testing.T) {
	a := certs.New(t)
	parse := func(c tls.Certificate) *x509.Certificate { return must.Get(x509.ParseCertificate(c.Certificate[0]))(t) }
	one := parse(a.Issue(t, "one.test", x509.ExtKeyUsageClientAuth, time.Hour))
	again := parse(a.Issue(t, "one.test", x509.ExtKeyUsageClientAuth, time.Hour))
	two := parse(a.Issue(t, "two.test", x509.ExtKeyUsageClientAuth, time.Hour))
	nameless, other := &x509.Certificate{RawSubjectPublicKeyInfo: []byte{1}}, &x509.Certificate{RawSubjectPublicKeyInfo: []byte{2}}
	check.That(t, isSameIdentity(one, again) && !isSameIdentity(one, two), "by names")
	check.That(t, isSameIdentity(nameless, nameless) && !isSameIdentity(nameless, other), "by keys")
	alike := *again
	alike.RawSubject = []byte("another subject")
	check.That(t, !isSameIdentity(one, &alike), "by the subject")
}

func TestConfigsThatDoNotSuffice(t *testing.T) {
	// req dtlskeys-3.3-1
	a := certs.New(t)
	for _, c := range []struct {
		name   string
		change func(c *tls.Config)
		want   string
	}{
		{"no certificate", func(c *tls.Config) { c.Certificates = nil }, "no certificate"},
		{"at most TLS 1.2", func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, "TLS 1.3"},
		{"more than TLS 1.3", func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 + 1 }, "TLS 1.3"},
		{"any server", func(c *tls.Config) { c.InsecureSkipVerify = true }, "any certificate"},
		{"any client", func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert }, "any certificate"},
		{"a config for each client", func(c *tls.Config) {
			c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, nil }
		}, "GetConfigForClient"},
		{"as it should be", func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS13 }, ""},
		{"the program verifies", func(c *tls.Config) {
			c.InsecureSkipVerify = true
			c.VerifyPeerCertificate = func([][]byte, [][]*x509.Certificate) error { return nil }
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := a.Dialer(t, "client.test")
			c.change(cfg)
			_, err := NewIdentity(cfg)
			var wrong *ConfigError
			check.That(t, (err == nil) == (c.want == "") && (err == nil || errors.As(err, &wrong) &&
				strings.Contains(err.Error(), c.want)), "%v, want %q", err, c.want)
		})
	}
	check.That(t, check.Do(NewIdentity(a.Listener(t)))(t), "a listener's config")
	_, err := NewIdentity(nil)
	check.That(t, err != nil, "no config")
}
