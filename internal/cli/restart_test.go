package cli

import (
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/certs"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
)

// Flags that would keep keys that nobody can use are refused by a sentence, at the end that they
// are wrong at.
func TestRestartFlags(t *testing.T) {
	a := certs.New(t)
	cert, key, _ := writeCerts(t, a, a.Issue(t, "client.test", x509.ExtKeyUsageClientAuth, time.Hour))
	files := TLSFlags{certFile: cert, keyFile: key, fingerprints: strings.Repeat("0a", 32)}
	keys := RestartFlags{"keys"}
	for _, row := range []struct {
		name           string
		flags          LinkFlags
		client, server string // the refusals; empty: none
	}{
		{"nothing", LinkFlags{}, "", ""},
		{"a port", LinkFlags{LocalPort: 5999}, "", "--port says"},
		{"keys and a port", LinkFlags{Restart: keys, Encryption: files, LocalPort: 5999}, "", "--port says"},
		{"keys without a port", LinkFlags{Restart: keys, Encryption: files}, "needs --local-port", ""},
		{"keys of what is in the clear", LinkFlags{Restart: keys}, "give --cert", "give --cert"},
		{"a certificate for one run", LinkFlags{Restart: keys, Encryption: TLSFlags{selfSigned: true}}, "another after a crash",
			"another after a crash"},
		{"a fingerprint alone", LinkFlags{Restart: keys, Encryption: TLSFlags{fingerprints: "0a"}}, "another after a crash",
			"another after a crash"},
	} {
		for server, want := range map[bool]string{false: row.client, true: row.server} {
			var usage *UsageError
			err := row.flags.checkRestart(server)
			check.That(t, (err == nil) == (want == "") && (err == nil || errors.As(err, &usage) &&
				strings.Contains(err.Error(), want)), "%s, server %v: %v, want %q", row.name, server, err, want)
		}
		if row.client == "" && row.server == "" {
			continue
		}
		row.flags.Kind = kindTCP
		for _, server := range []bool{false, true} {
			var usage *UsageError
			_, err := row.flags.Device(server, nil, nil)
			check.That(t, errors.As(err, &usage) && strings.Contains(err.Error(), "goes with SCTP"), "%s over TCP: %v", row.name, err)
		}
	}
}

// Each end that opens a device has its keys kept, and a folder that others read is no place for
// them.
func TestRestartFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "keys")
	var c rdma.Config
	must.OK(t, (&RestartFlags{}).applyTo(&c))
	check.That(t, c.SCTP.RestartStore == nil, "keys are kept that nobody has asked for")
	must.OK(t, (&RestartFlags{dir}).applyTo(&c))
	check.That(t, c.SCTP.RestartStore != nil, "no keys are kept")
	must.OK(t, os.Chmod(dir, 0o755))
	var e *sctp.RestartStoreError
	err := (&RestartFlags{dir}).applyTo(&c)
	check.That(t, errors.As(err, &e) && strings.HasPrefix(err.Error(), "--restart-keys "+dir), "%v", err)
}
