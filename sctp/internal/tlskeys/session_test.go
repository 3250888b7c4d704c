package tlskeys

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/mutualtls"
	"github.com/rddp-go/rddp/internal/test/certs"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
	"github.com/rddp-go/rddp/sctp/internal/seal"
)

// Both sides have keys and know each other, whoever has the client's role.
func TestHandshake(t *testing.T) {
	// req dtlskeys-3.3-1, dtlskeys-3.3-2
	// req dtlskeys-3.1-1
	// req dtlskeys-4-3
	// req dtlskeys-6.1-7
	// req dtlskeys-3.2-2, dtlskeys-3.2-3
	a := certs.New(t)
	for _, c := range []struct {
		name           string
		client, server *tls.Config
	}{
		{"as it is called", a.Dialer(t, "client.test"), a.Listener(t)},
		{"the one that listens is the client", a.Listener(t), a.Dialer(t, "client.test")},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, c.client, c.server)
			w.run()
			for _, h := range w.hosts {
				must.That(t, h.failure == nil && h.m.IsProtected(), "%v", h.failure)
				check.Equal(t, "version", h.state.Version, tls.VersionTLS13)
				check.That(t, slices.Contains(seal.Suites(), seal.Suite(h.state.CipherSuite)) && h.state.CurveID != 0, "%x, %v", h.state.CipherSuite, h.state.CurveID)
			}
			w.checkKeys(3)
			w.checkMessages()
			var names []string
			for _, h := range w.hosts {
				names = append(names, h.state.PeerCertificates[0].DNSNames[0])
				check.Equal(t, "messages, close_notify the last", h.all[len(h.all)-1][1], 23)
			}
			if c.client.ServerName == "" {
				names[0], names[1] = names[1], names[0]
			}
			check.Slice(t, "names", names, []string{"server.test", "client.test"})
		})
	}
}

// The client's last flight is one message, and waits for its keys.
func TestFinishedWaitsForTheKeys(t *testing.T) {
	a := certs.New(t)
	w := newWorld(t, a.Dialer(t, "client.test"), a.Listener(t))
	var order []string // of the client
	hasKeys := false
	w.onAction = func(h *host, act keymgmt.Action) {
		if h != w.hosts[0] {
			return
		}
		if !hasKeys && h.keys.RekeyDueAt() != rawio.Never {
			hasKeys, order = true, append(order, "keys")
		}
		if act.Kind == keymgmt.SendMessage {
			order = append(order, "message")
		}
	}
	w.run()
	check.Slice(t, "hello, keys, last flight, close_notify", order, []string{"message", "keys", "message", "message"})
}

func TestHelloRetry(t *testing.T) {
	a := certs.New(t)
	client, server := a.Dialer(t, "client.test"), a.Listener(t)
	client.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP256}
	server.CurvePreferences = []tls.CurveID{tls.CurveP256}
	w := newWorld(t, client, server)
	w.run()
	w.checkKeys(3)
	check.Equal(t, "messages of the client", len(w.hosts[0].all), 4)
	check.That(t, w.hosts[0].state.HelloRetryRequest, "there was no HelloRetryRequest")
}

// Rekeys by either side, both, and many; the identity stays.
func TestRekeys(t *testing.T) {
	// req dtlskeys-3.4-3: a full handshake, without tickets
	// req dtlskeys-3.4-4
	// req dtlskeys-6.2.2-7, dtlskeys-3.1-2
	a := certs.New(t)
	w := newWorld(t, a.Dialer(t, "client.test"), a.Listener(t))
	w.run()
	epoch := uint64(3)
	for range 3 {
		for _, who := range [][]int{{0}, {1}, {0, 1}} {
			for _, i := range who {
				w.hosts[i].m.Rekey()
			}
			w.wait(130 * time.Second)
			epoch++
			for _, h := range w.hosts {
				must.That(t, h.failure == nil && !h.state.DidResume && h.state.Version == tls.VersionTLS13 && h.state.CurveID != 0, "%v", h.failure)
			}
			w.checkKeys(epoch)
		}
	}
	w.checkMessages()
	for _, h := range w.hosts {
		check.Equal(t, "counts", h.m.Stats().Failed, 0)
	}
}

// noSessions is a cache of sessions that counts how often it is asked.
type noSessions struct{ asked atomic.Int64 }

func (c *noSessions) Get(string) (*tls.ClientSessionState, bool) {
	c.asked.Add(1)
	return nil, false
}

func (c *noSessions) Put(string, *tls.ClientSessionState) { c.asked.Add(1) }

// Each handshake is by certificates, also where the program would resume sessions.
func TestNoTickets(t *testing.T) {
	// req dtlskeys-8.2-1
	a := certs.New(t)
	client, server := a.Dialer(t, "client.test"), a.Listener(t)
	var cache noSessions
	client.ClientSessionCache, server.ClientSessionCache = &cache, &cache
	w := newWorld(t, client, server)
	w.run()
	for i := range w.hosts {
		w.hosts[i].state = tls.ConnectionState{}
		w.hosts[1-i].state = tls.ConnectionState{}
		w.hosts[i].m.Rekey()
		w.wait(130 * time.Second)
		for _, h := range w.hosts {
			check.That(t, h.state.HandshakeComplete && !h.state.DidResume && len(h.state.PeerCertificates) == 1, "%+v", h.state)
		}
	}
	check.Equal(t, "questions for tickets", cache.asked.Load(), 0)
}

// expectFailure runs the world until both sides have given up.
func (w *world) expectFailure(client, server string) {
	w.t.Helper()
	w.wait(40 * time.Second)
	for i, want := range []string{client, server} {
		h := w.hosts[i]
		must.That(w.t, h.failure != nil, "host %d has not failed", i)
		check.That(w.t, strings.Contains(h.failure.Error(), want), "host %d: %v, want %q", i, h.failure, want)
	}
}

// A peer that is not the one it should be hears so, and the other hears why.
func TestPeersThatAreNotAuthenticated(t *testing.T) {
	// req dtlskeys-3.3-4
	// req dtlskeys-7-1
	a, other := certs.New(t), certs.New(t)
	no := errors.New("the program says no")
	for _, c := range []struct {
		name                 string
		change               func(client, server *tls.Config)
		clientErr, serverErr string
	}{
		{"a server of another authority", func(client, server *tls.Config) { client.RootCAs = other.Pool },
			"unknown authority", "bad certificate"},
		{"a client of another authority", func(client, server *tls.Config) { server.ClientCAs = other.Pool },
			"bad certificate", "unknown authority"},
		{"another server", func(client, server *tls.Config) { client.ServerName = "another.test" },
			"not another.test", "bad certificate"},
		{"a client's certificate for a server", func(client, server *tls.Config) {
			server.Certificates[0] = a.Issue(t, "server.test", x509.ExtKeyUsageClientAuth, time.Hour)
		}, "incompatible key usage", "bad certificate"},
		{"a server's certificate for a client", func(client, server *tls.Config) {
			client.Certificates[0] = a.Issue(t, "client.test", x509.ExtKeyUsageServerAuth, time.Hour)
		}, "bad certificate", "incompatible key usage"},
		{"expired", func(client, server *tls.Config) {
			client.Certificates[0] = a.Issue(t, "client.test", x509.ExtKeyUsageClientAuth, -time.Minute)
		}, "bad certificate", "has expired"},
		{"by the program", func(client, server *tls.Config) {
			server.VerifyConnection = func(s tls.ConnectionState) error {
				check.Equal(t, "chains", len(s.VerifiedChains), 1)
				return no
			}
		}, "bad certificate", no.Error()},
		{"by the program, of certificates", func(client, server *tls.Config) {
			client.VerifyPeerCertificate = func(raw [][]byte, chains [][]*x509.Certificate) error {
				check.That(t, len(raw) == 1 && len(chains) == 1 && bytes.Equal(raw[0], chains[0][0].Raw), "%x", raw)
				return no
			}
		}, no.Error(), "bad certificate"},
		{"by a program that skips the rest", func(client, server *tls.Config) {
			client.InsecureSkipVerify, client.RootCAs = true, nil
			client.VerifyConnection = func(s tls.ConnectionState) error { return no }
		}, no.Error(), "bad certificate"},
		{"a client that shows none", func(client, server *tls.Config) {
			client.Certificates = nil
			client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return &tls.Certificate{}, nil
			}
		}, "gives no certificate", "bad record MAC"},
		{"a server that has none", func(client, server *tls.Config) {
			server.Certificates = nil
			server.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }
		}, "internal error", "gives no certificate"},
		{"a server whose program gives an empty one", func(client, server *tls.Config) {
			server.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return new(tls.Certificate), nil }
		}, "internal error", "gives no certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, server := a.Dialer(t, "client.test"), a.Listener(t)
			c.change(client, server)
			w := newWorld(t, client, server)
			w.expectFailure(c.clientErr, c.serverErr)
			for _, h := range w.hosts {
				check.Equal(t, "reason", h.failure.Why, keymgmt.HandshakeFailed)
			}
		})
	}
}

// A program may say alone who is accepted.
func TestProgramVerifies(t *testing.T) {
	a := certs.New(t)
	client, server := a.Dialer(t, "client.test"), a.Listener(t)
	seen := 0
	see := func(s tls.ConnectionState) error {
		seen++
		return nil
	}
	client.InsecureSkipVerify, client.RootCAs, client.VerifyConnection = true, nil, see
	server.ClientAuth, server.ClientCAs, server.VerifyConnection = tls.RequireAnyClientCert, nil, see
	w := newWorld(t, client, server)
	w.run()
	w.checkKeys(3)
	w.hosts[1].m.Rekey()
	w.wait(time.Second)
	w.checkKeys(4)
	check.Equal(t, "asked", seen, 4)
}

// The keys of a rekey belong to the peer of the first handshake.
func TestIdentityStays(t *testing.T) {
	// req dtlskeys-3.3-5
	a := certs.New(t)
	for _, c := range []struct {
		name string
		next tls.Certificate
		ok   bool
	}{
		{"another certificate of the same name", a.Issue(t, "client.test", x509.ExtKeyUsageClientAuth, time.Hour), true},
		{"another name", a.Issue(t, "another.test", x509.ExtKeyUsageClientAuth, time.Hour), false},
	} {
		for i, by := range []string{"client", "server"} {
			t.Run(c.name+", by the "+by, func(t *testing.T) {
				cert := a.Dialer(t, "client.test").Certificates[0]
				client := a.Dialer(t, "client.test")
				client.Certificates = nil
				client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
				w := newWorld(t, client, a.Listener(t))
				w.run()
				cert = c.next
				w.hosts[i].m.Rekey()
				w.wait(10 * time.Second)
				if c.ok {
					w.checkKeys(4)
					return
				}
				w.checkKeys(3) // they go on
				check.That(t, w.hosts[0].m.Stats().Failed > 0 && w.hosts[1].m.Stats().Failed > 0, "no handshake has failed")
			})
		}
	}
}

// With a parameter that somebody has changed on its way, there is no key that both have.
func TestChangedParameter(t *testing.T) {
	a := certs.New(t)
	w := newWorld(t, a.Dialer(t, "client.test"), a.Listener(t))
	w.hosts[1].cfg.Params.Client = []byte{0x80, 6, 0, 10, 1, 2, 3, 4, 3, 192}
	w.run()
	b := must.Get(w.hosts[1].keys.Append(nil, []byte("abcd")))(t)
	_, _, err := w.hosts[0].keys.Open(w.now, b[:len(b)-3], nil)
	check.Error(t, "a record of the server", err, seal.ErrNotAuthentic)
}

// A server that does not want to know its client is no server for us.
func TestServerHasToAsk(t *testing.T) {
	a := certs.New(t)
	w := newWorld(t, a.Dialer(t, "client.test"), a.Listener(t))
	h := w.hosts[0]
	h.work()
	h.work() // its ClientHello
	theirs := newPipe(NewPool(1), func(records []byte) { h.m.HandleMessage(w.now, append([]byte{3}, records...)) })
	theirs.pool.acquire()
	theirs.feed(h.sent[0][1:])
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tls.Server(theirs, a.Listener(t)).Handshake()
	}()
	theirs.waitIdle()
	for range 3 {
		h.work()
	}
	theirs.fail(errTooMuch)
	<-done
	h.m.HandleTimeout(w.now.Add(time.Second))
	h.work()
	must.That(t, h.failure != nil && errors.Is(h.failure, mutualtls.ErrNotAsked), "%v", h.failure)
	check.Slice(t, "last message", h.all[len(h.all)-1], append([]byte{3}, keymgmt.CanceledAlert()...))
}

// A handshake that has failed in TLS goes on with the next, and the keys in use all the time.
func TestAlertsOfARekey(t *testing.T) {
	a := certs.New(t)
	client := a.Dialer(t, "client.test")
	var no error
	client.VerifyConnection = func(tls.ConnectionState) error { return no }
	w := newWorld(t, client, a.Listener(t))
	w.run()
	for i := range w.hosts {
		no = errors.New("not now")
		w.hosts[i].m.Rekey()
		w.wait(3 * time.Second)
		w.checkKeys(3 + uint64(i))
		no = nil
		w.wait(130 * time.Second)
		w.checkKeys(4 + uint64(i))
	}
}

// What a peer may send ahead is bounded, and so is what it may do with the connection.
func TestPeerSendsTooMuch(t *testing.T) {
	a := certs.New(t)
	w := newWorld(t, a.Dialer(t, "client.test"), a.Listener(t))
	h := w.hosts[1]
	h.work()
	pool := h.cfg.Pool
	for range cap(pool.workers) { // nobody reads
		pool.acquire()
	}
	record := append([]byte{22, 3, 3, 0x40, 0}, make([]byte, 0x4000)...)
	session := h.sessions[1]
	for range 31 {
		session.Feed(record)
	}
	check.Equal(t, "octets that are kept", len(session.pipe.unread), 31*len(record))
	session.Feed(record)
	check.Equal(t, "octets that are kept", len(session.pipe.unread), 0)
	for range cap(pool.workers) {
		pool.release()
	}
	w.wait(2 * time.Second)
	check.That(t, h.failure != nil && errors.Is(h.failure, errTooMuch), "%v", h.failure)
}

func TestSessionsAreBounded(t *testing.T) {
	a := certs.New(t)
	w := newWorld(t, a.Dialer(t, "client.test"), a.Listener(t))
	h := w.hosts[0]
	h.cfg.Pool = NewPool(2)
	var list []*Session
	for id := range uint64(2) {
		list = append(list, must.Get(Start(100+id, true, nil, &h.cfg, h))(t))
	}
	check.Fails(Start(103, true, nil, &h.cfg, h))(t, "one more", ErrBusy)
	for _, s := range list {
		s.Close()
		s.WaitIdle()
		s.WaitIdle()
		s.Feed([]byte{1}) // after its end
		s.WaitIdle()
	}
	s := must.Get(Start(104, true, nil, &h.cfg, h))(t)
	s.Close()
	s.WaitIdle()
}

// The certificate that expires first says when the keys do.
func TestExpiry(t *testing.T) {
	a := certs.New(t)
	for _, c := range []struct{ client, server, want time.Duration }{
		{time.Hour, 5 * time.Hour, time.Hour}, {5 * time.Hour, time.Hour, time.Hour},
	} {
		client, server := a.Dialer(t, "client.test"), a.Listener(t)
		client.Certificates[0] = a.Issue(t, "client.test", x509.ExtKeyUsageClientAuth, c.client)
		server.Certificates[0] = a.Issue(t, "server.test", x509.ExtKeyUsageServerAuth, c.server)
		w := newWorld(t, client, server)
		w.run()
		for _, h := range w.hosts {
			left := h.m.Deadline(w.now).Sub(w.now)
			check.That(t, left > c.want-11*time.Minute && left <= c.want-10*time.Minute, "a rekey in %v", left)
		}
	}
}
