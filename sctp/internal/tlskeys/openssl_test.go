package tlskeys

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/certs"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
	"github.com/rddp-go/rddp/sctp/internal/seal"
)

// python is Debian's, which has the packages of Debian.
const python = "/usr/bin/python3"

// openSSL is testdata/peer.py: OpenSSL's TLS, and records by the package cryptography.
type openSSL struct {
	t   testing.TB
	in  io.WriteCloser
	out *bufio.Reader
}

func startOpenSSL(t testing.TB, role string, suite seal.Suite, a *certs.Authority) *openSSL {
	t.Helper()
	if err := exec.Command(python, "-c", "import OpenSSL, cryptography").Run(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("the gate needs python3-openssl: ", err)
		}
		t.Skip("needs python3-openssl: ", err)
	}
	name, use := "server.test", x509.ExtKeyUsageServerAuth
	if role == "client" {
		name, use = "client.test", x509.ExtKeyUsageClientAuth
	}
	cert := a.Issue(t, name, use, time.Hour)
	dir := t.TempDir()
	for file, block := range map[string]pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: cert.Certificate[0]},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: must.Get(x509.MarshalPKCS8PrivateKey(cert.PrivateKey))(t)},
		"ca.pem":   {Type: "CERTIFICATE", Bytes: a.Cert.Raw},
	} {
		must.OK(t, os.WriteFile(filepath.Join(dir, file), pem.EncodeToMemory(&block), 0o600))
	}
	c := exec.Command(python, "testdata/peer.py", role, suite.String(), dir,
		hex.EncodeToString(testParams.Client), hex.EncodeToString(testParams.Server))
	c.Stderr = os.Stderr
	p := &openSSL{t: t, in: must.Get(c.StdinPipe())(t), out: bufio.NewReader(must.Get(c.StdoutPipe())(t))}
	must.OK(t, c.Start())
	t.Cleanup(func() {
		p.in.Close()
		_ = c.Wait()
	})
	return p
}

func (p *openSSL) put(kind byte, b []byte) {
	p.t.Helper()
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(b)))
	must.Do(p.in.Write(append(head, b...)))(p.t)
}

func (p *openSSL) get() (kind byte, b []byte) {
	p.t.Helper()
	head := make([]byte, 5)
	must.Do(io.ReadFull(p.out, head))(p.t)
	b = make([]byte, binary.BigEndian.Uint32(head[1:]))
	must.Do(io.ReadFull(p.out, b))(p.t)
	return head[0], b
}

// materials lists keys as peer.py does: client before server, primary before restart.
func materials(s *keymgmt.Secrets) string {
	var list []string
	for by := range 2 {
		for _, m := range []seal.Material{s.Primary[by], s.Restart[by]} {
			n := m.Suite.KeyLen()
			list = append(list, hex.EncodeToString(m.Key[:n]), hex.EncodeToString(m.SNKey[:n]), hex.EncodeToString(m.IV[:]))
		}
	}
	return strings.Join(list, " ")
}

// Handshake, exported keys and records agree with OpenSSL's, for each suite and in both roles.
func TestOpenSSL(t *testing.T) {
	// req dtlskeys-5.2-1, dtlskeys-5.2-2
	// req dtlskeys-5.3-1
	// req dtlskeys-3.2-4
	a := certs.New(t)
	for _, suite := range seal.Suites() {
		for i, theirs := range []string{"client", "server"} {
			t.Run(suite.String()+", OpenSSL is the "+theirs, func(t *testing.T) {
				p := startOpenSSL(t, theirs, suite, a)
				w := newWorld(t, a.Dialer(t, "client.test"), a.Listener(t))
				h := w.hosts[1-i]
				var keys string
				for kind := byte(0); kind != 'R'; {
					for h.work() {
					}
					for _, m := range h.sent {
						p.put('M', m)
					}
					h.sent = nil
					if keys != "" && i == 0 && h.m.IsProtected() || keys == "" || i == 1 {
						var b []byte
						switch kind, b = p.get(); kind {
						case 'M':
							h.m.HandleMessage(w.now, b)
						case 'K':
							keys = string(b)
						case 'R':
							n := int(binary.BigEndian.Uint16(b[2:]))
							content, epoch, err := h.keys.Open(w.now, b[:n], nil)
							check.That(t, err == nil && epoch == 3 && string(content) == "from OpenSSL", "%q, %v", content, err)
						default:
							t.Fatalf("%c: %s", kind, b)
						}
					}
				}
				check.Equal(t, "suite", h.state.CipherSuite, uint16(suite))
				check.Equal(t, "version", h.state.Version, tls.VersionTLS13)
				check.Equal(t, "keys", keys, materials(h.secrets))
				p.put('R', must.Get(h.keys.Append(nil, []byte("to OpenSSL")))(t))
				_, b := p.get()
				check.Equal(t, "content", string(b), "to OpenSSL\x17")
			})
		}
	}
}

// OpenSSL hears why it is not accepted, and so do we.
func TestOpenSSLIsNotAccepted(t *testing.T) {
	a, other := certs.New(t), certs.New(t)
	p := startOpenSSL(t, "client", seal.AES128GCM, other)
	w := newWorld(t, a.Dialer(t, "client.test"), a.Listener(t))
	h := w.hosts[1]
	for {
		for h.work() {
		}
		for _, m := range h.sent {
			p.put('M', m)
		}
		h.sent = nil
		kind, b := p.get()
		if kind == 'E' {
			check.That(t, strings.Contains(string(b), "certificate verify failed"), "%s", b)
			return
		}
		h.m.HandleMessage(w.now, b)
	}
}
