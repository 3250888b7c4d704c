package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"

	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// explainTLS explains an error of encryption: which certificate, which name, which alert, and of
// which side. It returns nothing for other errors.
func explainTLS(err error) string {
	var (
		pin       *FingerprintError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		alert     *net.OpError
		aborted   *assoc.AbortError
		noTLS     tls.RecordHeaderError
		of        *rdma.TLSError
	)
	switch {
	case errors.As(err, &pin):
		return pin.Error()
	case errors.As(err, &authority):
		return "the certificate of the other side (" + describeCert(authority.Cert) + ") is of no authority in --ca"
	case errors.As(err, &name):
		return "the certificate of the other side (" + describeCert(name.Certificate) + ") is not for " + name.Host
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		return fmt.Sprintf("the certificate of the other side (%s) is good from %s to %s, and not now: "+
			"check the clocks", describeCert(invalid.Cert), invalid.Cert.NotBefore.UTC().Format("2006-01-02 15:04"),
			invalid.Cert.NotAfter.UTC().Format("2006-01-02 15:04 MST"))
	case errors.As(err, &invalid):
		return "the certificate of the other side (" + describeCert(invalid.Cert) + ") does not do: " + invalid.Error()
	case errors.As(err, &alert) && alert.Op == "remote error":
		return "the other side refuses the certificate of this side, by the alert \"" +
			strings.TrimPrefix(alert.Err.Error(), "tls: ") + "\": look at its --ca or --fingerprint, and its messages"
	case errors.As(err, &aborted) && len(aborted.Causes) > 0 && aborted.Causes[0].Code == wire.CauseNoDTLSSupport:
		if aborted.ByPeer {
			return onlyEncrypted
		}
		return notEncrypted
	case errors.As(err, &of) &&
		(errors.As(err, &noTLS) || errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		return notEncrypted
	}
	return ""
}

// IsOfTLS reports whether an error is about encryption: that one side asks for it and the other has
// none, or that a certificate was refused. Trying again does not help.
func IsOfTLS(err error) bool { return explainTLS(err) != "" }

const (
	onlyEncrypted = "the other side takes encrypted sessions only: give --fingerprint with what it has printed, or " +
		"--cert, --key and --ca"
	notEncrypted = "the other side does not encrypt: start it with --insecure-self-signed, or with --cert, " +
		"--key and --ca"
)

// describeCert names a certificate for people. What is in it comes from the peer.
func describeCert(c *x509.Certificate) string {
	if c == nil {
		return "none"
	}
	names := append([]string{}, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	if len(names) == 0 && c.Subject.CommonName != "" {
		names = []string{c.Subject.CommonName}
	}
	const most = 4
	if len(names) > most {
		names = append(names[:most], "...")
	}
	return fmt.Sprintf("for %s, SHA-256 fingerprint %v", strings.Join(names, ", "), fingerprintOf(c.Raw))
}

// refusalLog writes why peers were not let in: the lines of the library that are about encryption.
// The library bounds how many there are.
type refusalLog struct{ f *TLSFlags }

func (l refusalLog) Enabled(context.Context, slog.Level) bool { return true }
func (l refusalLog) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l refusalLog) WithGroup(string) slog.Handler            { return l }

func (l refusalLog) Handle(_ context.Context, r slog.Record) error {
	var remote, why string
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "remote" {
			remote = a.Value.String()
		}
		if err, ok := a.Value.Any().(error); ok && isHandshake(err) {
			why = Explain(err)
		}
		return true
	})
	if why != "" {
		l.f.say("%s was not let in: %s", remote, why)
	}
	return nil
}

// isHandshake reports whether an error is one of a handshake.
func isHandshake(err error) bool {
	return errors.As(err, new(*sctp.KeyError)) || errors.As(err, new(*rdma.TLSError))
}
