package sctp

import (
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/certs"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp/wire"
)

// tap is a link that keeps what is written.
type tap struct {
	*mem.Link
	mu   sync.Mutex
	sent []wire.Packet
}

func (l *tap) WriteBatch(pkts []rawio.Packet) (int, error) {
	l.mu.Lock()
	for i := range pkts {
		l.sent = append(l.sent, bytes.Join(pkts[i].Vec, nil))
	}
	l.mu.Unlock()
	return l.Link.WriteBatch(pkts)
}

// firstType returns the type of a packet's first chunk.
func firstType(p wire.Packet) wire.ChunkType { return wire.ChunkType(p[wire.CommonHeaderLen]) }

func TestEncryptedAssociation(t *testing.T) {
	// req dtlschunk-3.1-1
	// req dtlskeys-5.1-1
	for _, fam := range mempair.Families() {
		t.Run(fam.Name, func(t *testing.T) {
			la, lb := mempair.New(t, mem.Options{MTU: 1500, A: fam.A, B: fam.B})
			ta, tb := &tap{Link: la}, &tap{Link: lb}
			p := joinPair(t, la, lb, ta, tb)
			p.lists = fam.Listed
			ca := certs.New(t)
			c, s := p.connect(t, &Config{TLS: ca.Dialer(t, "client.test")}, &Config{TLS: ca.Listener(t)})
			for _, x := range []struct {
				c    *Conn
				peer string
			}{{c, "server.test"}, {s, "client.test"}} {
				state, ok := x.c.ConnectionState()
				must.That(t, ok && state.HandshakeComplete && state.Version == tls.VersionTLS13, "%v %+v", ok, state)
				check.Equal(t, "peer", state.PeerCertificates[0].DNSNames[0], x.peer)
			}
			want := bytes.Repeat([]byte("secret"), 20_000)
			done := make(chan error, 1)
			go func() {
				_, err := c.WriteMsg(want, SendInfo{})
				done <- err
			}()
			got := make([]byte, 0, len(want))
			b := make([]byte, 65536)
			for len(got) < len(want) {
				n, _, err := s.ReadMsg(b)
				must.OK(t, err)
				got = append(got, b[:n]...)
			}
			must.OK(t, <-done)
			check.That(t, bytes.Equal(got, want), "other octets arrive")
			must.Get(s.WriteMsg([]byte("answer"), SendInfo{}))(t)
			n, _, err := c.ReadMsg(b)
			check.That(t, err == nil && string(b[:n]) == "answer", "%q, %v", b[:n], err)
			for _, x := range []*Conn{c, s} {
				k := x.Stats()
				check.That(t, k.Keys.Epoch == 3 && k.Keys.Handshakes == 1 && k.Keys.Failed == 0 && k.NotOpened == 0 &&
					k.Keys.Sealed > 0 && k.Keys.Opened > 0, "%+v", k.Keys)
			}
			must.OK(t, c.Close())
			sealed := 0
			for _, l := range []*tap{ta, tb} {
				for _, pkt := range l.sent {
					check.That(t, !bytes.Contains(pkt, []byte("secretsecret")), "user data in the clear")
					if firstType(pkt) == wire.ChunkDTLS {
						sealed++
					}
				}
			}
			check.That(t, sealed > 50, "%d packets are sealed", sealed)
		})
	}
}

// Under LooseTLS the program can tell a peer that encrypts from one that does not.
func TestLooseTLS(t *testing.T) {
	// req dtlschunk-5.1-5
	ca := certs.New(t)
	dialer, listener := &Config{TLS: ca.Dialer(t, "client.test"), LooseTLS: true}, &Config{TLS: ca.Listener(t), LooseTLS: true}
	for _, row := range []struct {
		name           string
		client, server *Config
		isProtected    bool
	}{
		{"both encrypt", dialer, listener, true},
		{"the server does not", dialer, nil, false},
		{"the client does not", nil, listener, false},
		{"the server insists", dialer, &Config{TLS: ca.Listener(t)}, true},
	} {
		p := newPair(t)
		c, s := p.connect(t, row.client, row.server)
		for _, x := range []*Conn{c, s} {
			state, ok := x.ConnectionState()
			check.That(t, ok == row.isProtected && state.HandshakeComplete == ok, "%s: %v, %+v", row.name, ok, state)
		}
		must.Get(c.WriteMsg([]byte("x"), SendInfo{}))(t)
		readOne(t, s)
	}
	p := newPair(t)
	_, err := p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, 7), &Config{LooseTLS: true})
	var ce *ConfigError
	check.That(t, errors.As(err, &ce) && ce.Field == "LooseTLS", "without TLS: %v", err)
}

// A rekey changes the keys while data flows, whichever side asks for it.
func TestRekeyOfAConn(t *testing.T) {
	p, ca := newPair(t), certs.New(t)
	c, s := p.connect(t, &Config{TLS: ca.Dialer(t, "client.test")}, &Config{TLS: ca.Listener(t)})
	s.Rekey()
	until(t, "epoch 4", func() bool {
		must.Get(c.WriteMsg([]byte("x"), SendInfo{}))(t)
		readOne(t, s)
		return c.Stats().Keys.Epoch == 4 && s.Stats().Keys.Epoch == 4
	})
	check.That(t, c.Stats().Keys.Handshakes == 2 && c.Stats().Keys.HandshakesLost == 0, "%+v", c.Stats().Keys)
}

// Whoever is not let in hears why, and so does the other side.
func TestAssociationsWithoutTrust(t *testing.T) {
	// req dtlskeys-3.3-4
	ca, other := certs.New(t), certs.New(t)
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	for _, c := range []struct {
		name           string
		client, server *tls.Config
		as             any
		text           string
	}{
		{"a server of another authority", ca.Dialer(t, "client.test"), other.Listener(t), &unknown, "unknown authority"},
		{"a client of another authority", other.Dialer(t, "client.test"), ca.Listener(t), nil, "authority"},
		{"another server", func() *tls.Config {
			c := ca.Dialer(t, "client.test")
			c.ServerName = "another.test"
			return c
		}(), ca.Listener(t), &name, "another.test"},
		{"an address that is not in the certificate", func() *tls.Config {
			c := ca.Dialer(t, "client.test")
			c.ServerName = ""
			return c
		}(), ca.Listener(t), &name, "doesn't contain any IP SANs"},
		{"a client without TLS", nil, ca.Listener(t), nil, "Config.TLS"},
		{"a server without TLS", ca.Dialer(t, "client.test"), nil, nil, "Config.TLS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPair(t)
			l := must.Get(p.b.Listen(0, &Config{TLS: c.server}))(t)
			defer l.Close()
			conn, err := p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, l.Port()), &Config{TLS: c.client})
			if !check.That(t, conn == nil && err != nil, "the association came up") {
				return
			}
			check.That(t, strings.Contains(err.Error(), c.text), "%v, want %q", err, c.text)
			if c.as != nil {
				check.That(t, errors.As(err, c.as), "%v is no %T", err, c.as)
			}
			if c.client != nil && c.server != nil {
				var k *KeyError
				check.That(t, errors.As(err, &k), "%v is no KeyError", err)
			} else {
				check.That(t, errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNABORTED), "%v", err)
			}
			check.Equal(t, "associations that wait", l.readyCount(), 0)
			until(t, "the end at the server", func() bool {
				p.b.mu.Lock()
				defer p.b.mu.Unlock()
				return len(p.b.conns) == 0
			})
		})
	}
}

// What a tls.Config lacks is said at once.
func TestTLSConfigs(t *testing.T) {
	p := newPair(t)
	var e *TLSConfigError
	_, err := p.b.Listen(0, &Config{TLS: &tls.Config{}})
	check.That(t, errors.As(err, &e) && strings.Contains(err.Error(), "certificate"), "%v", err)
	_, err = p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, 5), &Config{TLS: &tls.Config{}})
	check.That(t, errors.As(err, &e) && strings.Contains(err.Error(), "certificate"), "%v", err)
	ca := certs.New(t)
	l := must.Get(p.b.Listen(0, &Config{TLS: ca.Listener(t)}))(t)
	must.OK(t, l.Reconfigure(func(c *Config) { c.TLS, c.NoDelay = nil, true }))
	c := must.Get(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, l.Port()), &Config{TLS: ca.Dialer(t, "client.test")}))(t)
	_, ok := c.ConnectionState()
	check.That(t, ok, "Reconfigure has turned encryption off")
	c.Abort("")
	plain, _ := p.connect(t, nil, nil)
	_, ok = plain.ConnectionState()
	check.That(t, !ok, "a state without TLS")
}

// A Socket has one identity for all its peers.
func TestEncryptedSocket(t *testing.T) {
	p, ca := newPair(t), certs.New(t)
	sock := must.Get(p.b.OpenSocket(0, &Config{TLS: ca.Listener(t)}))(t)
	defer sock.Close()
	for i := range 3 {
		c := must.Get(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, sock.Port()),
			&Config{TLS: ca.Dialer(t, fmt.Sprintf("client%d.test", i))}))(t)
		must.Get(c.WriteMsg([]byte{byte(i)}, SendInfo{}))(t)
		_, from, _, err := sock.ReadMsg(make([]byte, 100))
		must.OK(t, err)
		state, ok := from.ConnectionState()
		check.That(t, ok && state.PeerCertificates[0].DNSNames[0] == fmt.Sprintf("client%d.test", i), "%v %+v", ok, state.PeerCertificates)
		c.Abort("")
	}
}

// A handshake that does not go on frees its goroutine and its place in the end, and one that is
// given up at once.
func TestHandshakeGivenUp(t *testing.T) {
	p, ca := newPair(t), certs.New(t)
	l := must.Get(p.b.Listen(0, &Config{TLS: ca.Listener(t)}))(t)
	wait := make(chan struct{})
	cfg := ca.Dialer(t, "client.test")
	cfg.VerifyConnection = func(tls.ConnectionState) error {
		<-wait
		return errors.New("too late")
	}
	ctx := deadlineCtx(t)
	failed := make(chan error, 1)
	go func() {
		_, err := p.a.Dial(ctx, netip.AddrPortFrom(p.bAddr, l.Port()), &Config{TLS: cfg})
		failed <- err
	}()
	until(t, "the handshake", func() bool {
		p.a.mu.Lock()
		defer p.a.mu.Unlock()
		return len(p.a.conns) == 1
	})
	time.AfterFunc(0, func() { close(wait) })
	check.That(t, <-failed != nil, "it came up")
	l.Close()
	p.a.Close()
	p.b.Close()
}

// equalTies gives both sides the same tie breakers at first. Nothing else asks for four octets.
type equalTies struct{ left atomic.Int32 }

func (r *equalTies) Read(b []byte) (int, error) {
	if len(b) == 4 && r.left.Add(-1) >= 0 {
		return copy(b, "same"), nil
	}
	return rand.Read(b)
}

// Both sides dial, and draw the same tie breakers. Another try draws others; a peer whose are
// always the same is refused in the end.
func TestEqualTieBreakers(t *testing.T) {
	for _, row := range []struct {
		name  string
		same  int32 // of both sides
		inits int   // of each
	}{{"once", 2, 2}, {"twice", 4, 3}, {"always", 1000, 4}} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// req dtlschunk-5.1-12
				ties := new(equalTies)
				ties.left.Store(row.same)
				c := newCarriedWith(t, &TransportConfig{Rand: ties})
				var inits [2]int
				for end := range inits {
					c.losePackets(end, func(p []byte) bool {
						if firstType(p) == wire.ChunkInit {
							inits[end]++
						}
						return false
					})
				}
				cfg := *peerToPeer
				cfg.TLS = certs.New(t).Dialer(t, "client.test")
				cfg.TLS.InsecureSkipVerify, cfg.TLS.VerifyConnection = true, func(tls.ConnectionState) error { return nil }
				var all sync.WaitGroup
				var conns [2]*Conn
				var errs [2]error
				for i := range conns {
					all.Go(func() { conns[i], errs[i] = c.openEnd(i, &cfg) })
				}
				all.Wait()
				synctest.Wait()
				check.Equal(t, "INITs", inits, [2]int{row.inits, row.inits})
				for i, err := range errs {
					if row.name == "always" {
						check.That(t, errors.Is(err, syscall.ECONNREFUSED) && strings.Contains(err.Error(), "Tie Breaker"), "%v", err)
						continue
					}
					must.OK(t, err)
					must.Do(conns[i].WriteMsg([]byte("hello"), SendInfo{}))(t)
					check.OK(t, readFull(conns[1-i], 5))
				}
			})
		})
	}
}
