package cli

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/certs"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// writeCerts writes a certificate, its key and its authority, as files of PEM.
func writeCerts(t *testing.T, a *certs.Authority, c tls.Certificate) (cert, key, ca string) {
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		must.OK(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return file
	}
	return write("cert.pem", "CERTIFICATE", c.Certificate[0]),
		write("key.pem", "PRIVATE KEY", must.Get(x509.MarshalPKCS8PrivateKey(c.PrivateKey))(t)),
		write("ca.pem", "CERTIFICATE", a.Cert.Raw)
}

// Flags of encryption that do not go together are refused by a sentence, and none is forgotten.
func TestFlagsOfEncryption(t *testing.T) {
	a := certs.New(t)
	cert, key, ca := writeCerts(t, a, a.Issue(t, "client.test", x509.ExtKeyUsageClientAuth, time.Hour))
	sum := strings.Repeat("0a", 32)
	for _, row := range []struct {
		name  string
		flags TLSFlags
		self  bool
		want  string // of the refusal; empty: none
	}{
		{"nothing", TLSFlags{}, false, ""},
		{"a certificate and an authority", TLSFlags{certFile: cert, keyFile: key, caFile: ca}, false, ""},
		{"a certificate and a fingerprint", TLSFlags{certFile: cert, keyFile: key, fingerprints: sum}, false, ""},
		{"a fingerprint", TLSFlags{fingerprints: sum}, false, ""},
		{"two, as openssl prints them", TLSFlags{fingerprints: sum + "," + strings.Repeat("AB:", 31) + "CD"}, false, ""},
		{"self-signed", TLSFlags{selfSigned: true}, false, ""},
		{"self-signed, with a fingerprint", TLSFlags{selfSigned: true, fingerprints: sum}, false, ""},
		{"self-signed, both ends", TLSFlags{selfSigned: true}, true, ""},
		{"both ends with files", TLSFlags{certFile: cert, keyFile: key, caFile: ca}, true, "--self"},
		{"self-signed, with a certificate", TLSFlags{selfSigned: true, certFile: cert, keyFile: key}, false, "takes no --cert"},
		{"no key", TLSFlags{certFile: cert, caFile: ca}, false, "belong together"},
		{"no certificate", TLSFlags{keyFile: key}, false, "belong together"},
		{"an authority alone", TLSFlags{caFile: ca}, false, "--ca needs"},
		{"a certificate alone", TLSFlags{certFile: cert, keyFile: key}, false, "who is let in"},
		{"both ways to know a peer", TLSFlags{certFile: cert, keyFile: key, caFile: ca, fingerprints: sum}, false, "--ca and"},
		{"a short fingerprint", TLSFlags{fingerprints: "0a0b"}, false, "64 digits"},
		{"no fingerprint", TLSFlags{fingerprints: sum + ","}, false, "64 digits"},
		{"no file", TLSFlags{certFile: "none.pem", keyFile: key, caFile: ca}, false, "none.pem"},
		{"the key of another", TLSFlags{certFile: ca, keyFile: key, caFile: ca}, false, "does not match"},
		{"no authority in the file", TLSFlags{certFile: cert, keyFile: key, caFile: key}, false, "no certificate in it"},
	} {
		var usage *UsageError
		var said bytes.Buffer
		err := row.flags.Open("tool", row.self, &said)
		check.That(t, (err == nil) == (row.want == "") && (err == nil || errors.As(err, &usage) &&
			strings.Contains(err.Error(), row.want)), "%s: %v, want %q", row.name, err, row.want)
		if err == nil {
			check.Equal(t, row.name+": encrypted", row.flags.Config("host") != nil, row.name != "nothing")
		}
		check.That(t, !strings.Contains(said.String(), "PRIVATE"), "%s: prints a secret", row.name)
	}
}

// A fingerprint lets in one certificate, and none that is out of date.
func TestFingerprints(t *testing.T) {
	var said bytes.Buffer
	f, now := &TLSFlags{selfSigned: true}, time.Now()
	must.OK(t, f.Open("tool", false, &said))
	own := must.Get(x509.ParseCertificate(f.own.Certificate[0]))(t)
	sum := fingerprintOf(own.Raw).String()
	check.That(t, strings.Contains(said.String(), sum), "%q is said, and not %s", said.String(), sum)
	g := &TLSFlags{fingerprints: sum}
	must.OK(t, g.Open("tool", false, &said))
	must.OK(t, g.judge(own, now))
	other := must.Get(x509.ParseCertificate(g.own.Certificate[0]))(t)
	var wrong *FingerprintError
	err := g.judge(other, now)
	check.That(t, errors.As(err, &wrong) && strings.Contains(Explain(err), fingerprintOf(other.Raw).String()), "%v", err)
	err = g.judge(own, now.Add(selfSignedFor+time.Hour))
	check.That(t, strings.Contains(Explain(err), "check the clocks"), "%v", err)
}

// The secrets of handshakes are written where SSLKEYLOGFILE says, and that is said.
func TestKeyLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	t.Setenv("SSLKEYLOGFILE", file)
	var said bytes.Buffer
	f := &TLSFlags{selfSigned: true}
	must.OK(t, f.Open("tool", false, &said))
	check.That(t, strings.Contains(said.String(), "warning: SSLKEYLOGFILE") && strings.Contains(said.String(), file), "%q", said.String())
	info := must.Get(os.Stat(file))(t)
	check.Equal(t, "mode", info.Mode().Perm(), 0o600)
	must.Do(f.Config("").KeyLogWriter.Write([]byte("x")))(t)
	t.Setenv("SSLKEYLOGFILE", filepath.Join(file, "none"))
	check.That(t, f.Open("tool", false, &said) != nil, "a file that cannot be written")
}
