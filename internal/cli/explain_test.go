package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/mpa"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// The end of a session that was up says who ended it, and does not send the user to look for the
// server's address.
func TestEndsOfSessionsAreExplained(t *testing.T) {
	pin := &FingerprintError{Got: "0a"}
	for _, row := range []struct {
		name string
		err  error
		want string
	}{
		{"nobody listens any more", assoc.ErrProtoUnreachable,
			"the other side's program is gone, its host says that nothing listens there any more"},
		{"an ABORT of the peer", &assoc.AbortError{ByPeer: true},
			"the other side has aborted it, or its program is gone (sctp: association aborted by the peer)"},
		{"an ABORT of this side", &assoc.AbortError{}, "sctp: association aborted"},
		{"a certificate", pin, pin.Error()},
		{"anything else", context.DeadlineExceeded, context.DeadlineExceeded.Error()},
	} {
		err := &SessionError{row.err}
		check.Equal(t, row.name, err.Error(), "the session has ended: "+row.want)
		check.Equal(t, row.name+", explained", Explain(fmt.Errorf("here: %w", err)),
			"here: the session has ended: "+row.want)
	}
}

// A sentence fits the protocol that an error is of.
func TestErrorsOfEachProtocolAreExplained(t *testing.T) {
	of := func(network string, err error) error { return &net.OpError{Op: "x", Net: network, Err: err} }
	const (
		tcpPort = "the TCP port is in use by another program on this host: stop it or choose another with --port"
		udpPort = "the UDP port is in use by another program on this host, perhaps another server: take --udp-port " +
			"9900 here, and --encap-port 9900 for its clients"
		nobody   = "the host is up but nothing listens there: is the server running with the same --link and --port?"
		noAnswer = "no answer: check the address, that the server runs with the same --link and --port, and " +
			"firewalls in between"
		another = ": is something else than this tool listening there, or does it take encrypted sessions only?"
	)
	perm := &rawio.PermissionError{Link: "raw", Capability: "CAP_NET_RAW", Err: syscall.EPERM}
	mtu, frame := &rawio.MTUError{MTU: 70}, &mpa.FrameError{Fault: mpa.FaultRevision, Revision: 3}
	udpRefused := of("udp4", syscall.ECONNREFUSED)
	for _, row := range []struct {
		name string
		err  error
		want string
	}{
		{"a port of TCP", of("tcp", syscall.EADDRINUSE), tcpPort}, {"a port of TCP over IPv6", of("tcp6", syscall.EADDRINUSE), tcpPort},
		{"a port of UDP", of("udp", syscall.EADDRINUSE), udpPort},
		{"a port of TCP that nobody has", of("tcp4", syscall.ECONNREFUSED), nobody},
		{"one of UDP", udpRefused, udpRefused.Error()},
		{"octets that are no MPA", frame, frame.Error() + another}, {"a TCP connection that ends at once", mpa.ErrClosedEarly, mpa.ErrClosedEarly.Error() + another},
		{"an MPA that says nothing", mpa.ErrStartupTimeout, noAnswer}, {"an INIT without an answer", assoc.ErrInitTimeout, noAnswer},
		{"a port of SCTP", rawio.ErrPortInUse, "the SCTP port is in use by another program on this host: stop it or choose another with --port"},
		{"an address of another", syscall.EADDRNOTAVAIL, "this host does not have the address that --local or -I names"},
		{"a host that is not there", syscall.EHOSTUNREACH, "no answer: check the address, at which this host or a router finds nobody"},
		{"no privilege", perm, perm.Error() + " (--link udp)"}, {"an MTU", mtu, mtu.Error()},
		{"a mistake", Usagef("odd"), "odd"}, {"a refusal", &llp.RejectedError{Private: []byte("full")}, "the server refused: full"},
		{"no SCTP there", assoc.ErrProtoUnreachable, "the host is up but nothing there speaks SCTP over this link: start the server, with the same --link"},
		{"an ABORT", &assoc.AbortError{ByPeer: true}, "the host is up but refused the association: is the server running on that --port? (" +
			(&assoc.AbortError{ByPeer: true}).Error() + ")"},
		{"what nobody knows", io.ErrNoProgress, io.ErrNoProgress.Error()},
	} {
		check.Equal(t, row.name, Explain(row.err), row.want)
		check.Equal(t, row.name+": of encryption", IsOfTLS(row.err), false)
	}
}

// An error of encryption names the certificate, and what the user can do.
func TestErrorsOfEncryptionAreExplained(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	cert := &x509.Certificate{Raw: []byte("a"), DNSNames: []string{"a.test"}, NotBefore: begin, NotAfter: begin.Add(time.Hour)}
	is := "for a.test, SHA-256 fingerprint " + fingerprintOf(cert.Raw).String()
	inTLS := func(err error) error { return &rdma.TLSError{Err: err} }
	noDTLS := func(byPeer bool, first wire.CauseCode) error {
		return &assoc.AbortError{ByPeer: byPeer, Causes: []assoc.Cause{{Code: first}, {Code: wire.CauseNoDTLSSupport}}}
	}
	for _, row := range []struct {
		name string
		err  error
		want string // empty: it is of something else
	}{
		{"an authority", x509.UnknownAuthorityError{Cert: cert}, "the certificate of the other side (" + is + ") is of no authority in --ca"},
		{"a name", x509.HostnameError{Certificate: cert, Host: "b.test"}, "the certificate of the other side (" + is + ") is not for b.test"},
		{"a time", x509.CertificateInvalidError{Cert: cert, Reason: x509.Expired}, "the certificate of the other side (" + is +
			") is good from 2026-01-02 02:04 to 2026-01-02 03:04 UTC, and not now: check the clocks"},
		{"a time, of no certificate", x509.CertificateInvalidError{Reason: x509.Expired}, "the certificate of the other side (none) does not do: " +
			x509.CertificateInvalidError{Reason: x509.Expired}.Error()},
		{"a use", x509.CertificateInvalidError{Cert: cert, Reason: x509.IncompatibleUsage}, "the certificate of the other side (" + is + ") does not do: " +
			x509.CertificateInvalidError{Cert: cert, Reason: x509.IncompatibleUsage}.Error()},
		{"an alert", &net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, "the other side refuses the certificate of this side, by the alert " +
			`"bad certificate": look at its --ca or --fingerprint, and its messages`},
		{"an error of a socket", &net.OpError{Op: "read", Err: errors.New("tls: bad certificate")}, ""},
		{"a peer that takes no other", noDTLS(true, wire.CauseNoDTLSSupport), onlyEncrypted},
		{"a peer that does not encrypt", noDTLS(false, wire.CauseNoDTLSSupport), notEncrypted},
		{"an ABORT for something else", noDTLS(true, wire.CauseUserAbort), ""},
		{"an ABORT without a cause", &assoc.AbortError{ByPeer: true}, ""},
		{"octets that are no TLS", inTLS(tls.RecordHeaderError{Msg: "first record"}), notEncrypted},
		{"a connection that ends", inTLS(io.EOF), notEncrypted}, {"one that is reset", inTLS(syscall.ECONNRESET), notEncrypted},
		{"a handshake that takes too long", inTLS(context.DeadlineExceeded), ""},
		{"a connection without TLS that ends", io.EOF, ""}, {"one that is reset, without TLS", syscall.ECONNRESET, ""},
		{"a fingerprint", &FingerprintError{Got: "0a"}, "the certificate of the other side has the SHA-256 fingerprint 0a, which --fingerprint does not name"},
	} {
		err := fmt.Errorf("here: %w", row.err)
		check.Equal(t, row.name+": of encryption", IsOfTLS(err), row.want != "")
		if row.want != "" {
			check.Equal(t, row.name, Explain(err), row.want)
		}
	}
}

// A certificate is described by what it is for, in a line that stays short.
func TestCertificatesAreDescribed(t *testing.T) {
	sum := ", SHA-256 fingerprint " + fingerprintOf(nil).String()
	one, two := net.IPv4(192, 0, 2, 1), net.ParseIP("2001:db8::1")
	subject := pkix.Name{CommonName: "c"}
	for name, row := range map[string]struct {
		cert *x509.Certificate
		want string
	}{
		"none":                {nil, "none"},
		"a common name":       {&x509.Certificate{Subject: subject}, "for c" + sum},
		"a name besides":      {&x509.Certificate{Subject: subject, DNSNames: []string{"a"}}, "for a" + sum},
		"names and addresses": {&x509.Certificate{DNSNames: []string{"a", "b"}, IPAddresses: []net.IP{one, two}}, "for a, b, 192.0.2.1, 2001:db8::1" + sum},
		"more than four":      {&x509.Certificate{DNSNames: []string{"a", "b", "c", "d"}, IPAddresses: []net.IP{one}}, "for a, b, c, d, ..." + sum},
	} {
		check.Equal(t, name, describeCert(row.cert), row.want)
	}
}

// A server says whom encryption kept out, and why; of the library's other lines it says nothing.
func TestRefusedPeersAreToldOf(t *testing.T) {
	pin := &FingerprintError{Got: "0a"}
	for _, row := range []struct {
		name string
		attr slog.Attr
		says bool
	}{
		{"over SCTP", slog.Any("error", &sctp.KeyError{Err: pin}), true},
		{"over TCP", slog.Any("error", &rdma.TLSError{Err: pin}), true},
		{"within another", slog.Any("why", fmt.Errorf("here: %w", &rdma.TLSError{Err: pin})), true},
		{"of no handshake", slog.Any("error", pin), false},
		{"no error", slog.String("error", "x"), false},
	} {
		var said strings.Builder
		log := slog.New(refusalLog{&TLSFlags{program: "tool", stderr: &said}}).With("a", 1).WithGroup("")
		log.Debug("a line", row.attr, slog.String("remote", "192.0.2.1:7"), slog.String("local", "192.0.2.2:7"))
		want := ""
		if row.says {
			want = "tool: 192.0.2.1:7 was not let in: " + pin.Error() + "\n"
		}
		check.Equal(t, row.name, said.String(), want)
	}
}
