package rdma

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/mutualtls"
	"github.com/rddp-go/rddp/internal/test/certs"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/mpa"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// mangledLink hands over each packet that is written, for a test to look at or to change.
type mangledLink struct {
	*mem.Link
	mangle func(pkt []byte)
}

func (l *mangledLink) WriteBatch(pkts []rawio.Packet) (int, error) {
	for i := range pkts {
		pkt := bytes.Join(pkts[i].Vec, nil)
		l.mangle(pkt)
		pkts[i].Vec = [][]byte{pkt}
	}
	return l.Link.WriteBatch(pkts)
}

// errorLog keeps the errors that a Device logs.
type errorLog struct {
	slog.Handler
	mu   sync.Mutex
	errs []error
}

func (l *errorLog) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			l.errs = append(l.errs, err)
		}
		return true
	})
	return nil
}

func (l *errorLog) Enabled(context.Context, slog.Level) bool { return true }

// has reports whether an error was logged that is one of a kind.
func (l *errorLog) has(is func(error) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, err := range l.errs {
		if is(err) {
			return true
		}
	}
	return false
}

// newTLSLab joins two devices over SCTP or TCP, whose second one logs to log.
func newTLSLab(t testing.TB, network string, client, server *tls.Config, log *errorLog,
	mangle func(pkt []byte)) *lab {
	x := &lab{t: t}
	var la, lb rawio.Link
	at := "127.0.0.1:0"
	if network == networkSCTP {
		ma, mb := mempair.New(t, mem.Options{MTU: 1500})
		la, lb, at = ma, mb, ":0"
		x.addr = netip.AddrPortFrom(mb.LocalAddrs()[0].Addr(), 0)
		if mangle != nil {
			la, lb = &mangledLink{ma, mangle}, &mangledLink{mb, mangle}
		}
	} else {
		x.addr = netip.MustParseAddrPort("127.0.0.1:0")
	}
	x.a = must.Get(NewDevice(la, &Config{TLS: client}))(t)
	cfg := &Config{TLS: server}
	if log != nil {
		cfg.Transport.Logger = slog.New(log)
	}
	x.b = must.Get(NewDevice(lb, cfg))(t)
	x.l = must.Get(x.b.ListenOn(network, at))(t)
	x.addr = netip.AddrPortFrom(x.addr.Addr(), x.l.Port())
	t.Cleanup(func() {
		x.a.Close()
		x.b.Close()
	})
	return x
}

var bothNetworks = []string{networkSCTP, networkTCP}

// One tls.Config encrypts QPs over either transport, and says who the peer is.
func TestEncryptedQPs(t *testing.T) {
	for _, network := range bothNetworks {
		t.Run(network, func(t *testing.T) {
			ca, secret := certs.New(t), bytes.Repeat([]byte("secret"), 20)
			var mu sync.Mutex
			sealed, leaked := 0, 0
			x := newTLSLab(t, network, ca.Dialer(t, "client.test"), ca.Listener(t), nil, func(pkt []byte) {
				mu.Lock()
				defer mu.Unlock()
				if wire.ChunkType(pkt[wire.CommonHeaderLen]) == wire.ChunkDTLS {
					sealed++
				}
				if bytes.Contains(pkt, []byte("secretsecret")) {
					leaked++
				}
			})
			a, b := newSide(t, x.a, nil, nil), newSide(t, x.b, nil, nil)
			check.That(t, a.qp.PeerIdentity() == nil, "an identity without a peer")
			must.Do(x.connect(a.qp, secret, func(r *Request) error {
				id := r.PeerIdentity()
				check.That(t, id != nil && id.DNSNames[0] == "client.test", "request of %v", id)
				return r.Accept(b.qp, secret)
			}))(t)
			for q, peer := range map[*QP]string{a.qp: "server.test", b.qp: "client.test"} {
				state, ok := q.ConnectionState()
				must.That(t, ok && state.Version == tls.VersionTLS13 && state.CipherSuite != 0, "%v, %+v", ok, state)
				check.Equal(t, "peer", q.PeerIdentity().DNSNames[0], peer)
			}
			exchangeAll(t, a, b)
			copy(a.buf, secret)
			a.post(SendWR{Op: OpWrite, SGL: []SGE{a.mr.SGE(0, len(secret))}, RemoteSTag: b.mr.STag()})
			a.good()
			must.OK(t, a.qp.Disconnect(ctx(t)))
			must.OK(t, b.qp.Disconnect(ctx(t)))
			if network == networkSCTP {
				mu.Lock()
				check.That(t, sealed > 100 && leaked == 0, "%d packets are sealed, %d leak", sealed, leaked)
				mu.Unlock()
			}
		})
	}
}

// Sessions of peers that show certificates, each with a handshake of its own.
func BenchmarkEncryptedSetups(b *testing.B) {
	for _, network := range bothNetworks {
		b.Run(network, func(b *testing.B) {
			ca := certs.New(b)
			x := newTLSLab(b, network, ca.Dialer(b, "client.test"), ca.Listener(b), nil, nil)
			cq := [2]*CQ{must.Get(x.a.CreateCQ(64))(b), must.Get(x.b.CreateCQ(64))(b)}
			qp := func(d *Device, cq *CQ) *QP {
				return must.Get(d.CreateQP(&QPConfig{PD: d.AllocPD(), SendCQ: cq, RecvCQ: cq, MaxSend: 1, MaxRecv: 1,
					OwnAssociation: true}))(b)
			}
			for b.Loop() {
				p, q := qp(x.a, cq[0]), qp(x.b, cq[1])
				must.Do(x.connect(p, nil, func(r *Request) error { return r.Accept(q, nil) }))(b)
				p.Close()
				q.Close()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "handshakes/s")
		})
	}
}

// isKeyFailure reports whether an error is the end of a handshake, over either transport.
func isKeyFailure(err error) bool {
	return errors.As(err, new(*sctp.KeyError)) || errors.As(err, new(*TLSError))
}

// Whoever is not let in gets nothing: both ends have a typed error, no request comes, and memory
// stays what it was.
func TestPeersThatAreNotLetIn(t *testing.T) {
	ca, other := certs.New(t), certs.New(t)
	changed := func(c *tls.Config, change func(*tls.Config)) *tls.Config {
		change(c)
		return c
	}
	isRefusal := func(err error) bool {
		return errors.As(err, new(*assoc.AbortError)) || errors.As(err, new(*mpa.Error)) || isKeyFailure(err)
	}
	for _, c := range []struct {
		name               string
		client, server     *tls.Config
		atClient, atServer func(error) bool
		text               string // of the client's error
	}{
		{"another authority's server", ca.Dialer(t, "client.test"),
			changed(other.Listener(t), func(c *tls.Config) { c.ClientCAs = ca.Pool }), isKeyFailure, isKeyFailure,
			"unknown authority"},
		{"another authority's client", changed(other.Dialer(t, "client.test"), func(c *tls.Config) { c.RootCAs = ca.Pool }),
			ca.Listener(t), isKeyFailure, isKeyFailure, "bad certificate"},
		{"another name", changed(ca.Dialer(t, "client.test"), func(c *tls.Config) { c.ServerName = "other.test" }),
			ca.Listener(t), isKeyFailure, isKeyFailure, "other.test"},
		{"an expired server", ca.Dialer(t, "client.test"), changed(ca.Listener(t), func(c *tls.Config) {
			c.Certificates[0] = ca.Issue(t, "server.test", x509.ExtKeyUsageServerAuth, -time.Minute)
		}), isKeyFailure, isKeyFailure, "expired"},
		{"an expired client", changed(ca.Dialer(t, "client.test"), func(c *tls.Config) {
			c.Certificates[0] = ca.Issue(t, "client.test", x509.ExtKeyUsageClientAuth, -time.Minute)
		}), ca.Listener(t), isKeyFailure, isKeyFailure, "certificate"},
		{"a client whom the program refuses", ca.Dialer(t, "client.test"), changed(ca.Listener(t), func(c *tls.Config) {
			c.VerifyConnection = func(s tls.ConnectionState) error { return errors.New("not " + s.PeerCertificates[0].DNSNames[0]) }
		}), isKeyFailure, isKeyFailure, "bad certificate"},
		{"a client in the clear", nil, ca.Listener(t), isRefusal, isRefusal, ""},
		{"a server in the clear", ca.Dialer(t, "client.test"), nil, isRefusal, isRefusal, ""},
	} {
		for _, network := range bothNetworks {
			t.Run(c.name+", "+network, func(t *testing.T) {
				log := new(errorLog)
				x := newTLSLab(t, network, c.client, c.server, log, nil)
				b := newSide(t, x.b, nil, nil)
				asked := make(chan struct{})
				waiting, stop := context.WithCancel(context.Background())
				go func() {
					defer close(asked)
					r, err := x.l.Accept(waiting)
					check.That(t, r == nil && err != nil, "a request has come")
				}()
				q := newSide(t, x.a, nil, nil).qp
				_, err := q.Connect(ctx(t), x.addr, nil)
				check.That(t, err != nil && c.atClient(err) && strings.Contains(err.Error(), c.text), "%T %v, want %q", err, err, c.text)
				must.OK(t, x.a.Wait(ctx(t)))
				must.OK(t, x.b.Wait(ctx(t)))
				stop()
				<-asked
				if network == networkSCTP && (c.client == nil || c.server == nil) { // an INIT leaves nothing behind
					check.Equal(t, "peers", len(x.b.Peers()), 0)
				} else if network == networkTCP && c.server == nil {
					check.Equal(t, "start-ups of another kind", x.b.Stats().TCP.StartupFaults, 1)
				} else {
					until(t, "the error at the server", func() bool { return log.has(c.atServer) })
				}
				check.That(t, x.b.Stats().Accepted == 0 && bytes.Count(b.buf, []byte{0}) == len(b.buf), "%+v", x.b.Stats())
			})
		}
	}
}

// until waits for something that another goroutine does.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for late := ctx(t); !done(); runtime.Gosched() {
		must.That(t, late.Err() == nil, "no %s", what)
	}
}

// While the program judges a peer, nothing of it comes to a QP, and no memory is in its reach.
func TestAuthorisationComesFirst(t *testing.T) {
	for _, network := range bothNetworks {
		t.Run(network, func(t *testing.T) {
			ca, judging, verdict := certs.New(t), make(chan string, 1), make(chan error)
			server := ca.Listener(t)
			server.VerifyConnection = func(s tls.ConnectionState) error {
				judging <- s.PeerCertificates[0].DNSNames[0]
				return <-verdict
			}
			x := newTLSLab(t, network, ca.Dialer(t, "client.test"), server, nil, nil)
			a, b := newSide(t, x.a, nil, nil), newSide(t, x.b, nil, nil)
			connected := make(chan error, 1)
			go func() {
				_, err := a.qp.Connect(ctx(t), x.addr, nil)
				connected <- err
			}()
			check.Equal(t, "who is judged", <-judging, "client.test")
			check.That(t, x.l.nextRequest() == nil && len(x.b.Peers()) == 0, "a request before the verdict")
			select {
			case err := <-connected:
				t.Errorf("Connect returns before the verdict: %v", err)
			default:
			}
			verdict <- nil
			r := must.Get(x.l.Accept(ctx(t)))(t)
			must.OK(t, r.Accept(b.qp, nil))
			must.OK(t, <-connected)
			exchangeAll(t, a, b)
		})
	}
}

// RDMA is refused where the adaptation indication is missing, although both sides are encrypted:
// what INIT and INIT ACK say is not protected.
func TestEncryptedPeerWithoutAdaptation(t *testing.T) {
	// req 5043-11.1-3
	for _, row := range []struct {
		name string
		of   wire.ChunkType
	}{{"in INIT", wire.ChunkInit}, {"in INIT ACK", wire.ChunkInitAck}} {
		t.Run(row.name, func(t *testing.T) {
			ca, stripped := certs.New(t), 0
			x := newTLSLab(t, networkSCTP, ca.Dialer(t, "client.test"), ca.Listener(t), nil, func(pkt []byte) {
				at := bytes.Index(pkt, []byte{0xc0, 0x06, 0, 8})
				if wire.ChunkType(pkt[wire.CommonHeaderLen]) == row.of && at > 0 {
					stripped++
					binary.BigEndian.PutUint16(pkt[at:], 0x8fff) // is skipped
					binary.LittleEndian.PutUint32(pkt[8:], wire.ChecksumBytes(pkt))
				}
			})
			_, err := newSide(t, x.a, nil, nil).qp.Connect(ctx(t), x.addr, nil)
			check.That(t, stripped > 0 && errors.Is(err, net.ErrClosed) == false && err != nil, "%d stripped: %v", stripped, err)
			if row.of == wire.ChunkInitAck {
				check.That(t, errors.As(err, new(*assoc.AdaptationError)), "%v", err)
			} else {
				check.That(t, errors.As(err, new(*assoc.AbortError)), "%v", err)
			}
			check.That(t, x.l.nextRequest() == nil, "a request")
		})
	}
}

// Key management shares stream 0 with a session. Its messages are none of DDP: they break nothing
// and take no DDP-SSN.
func TestRekeysBesideASession(t *testing.T) {
	// req dtlschunk-6-3
	ca := certs.New(t)
	x := newTLSLab(t, networkSCTP, ca.Dialer(t, "client.test"), ca.Listener(t), nil, nil)
	a, b := newSide(t, x.a, nil, nil), newSide(t, x.b, nil, nil)
	must.Do(x.connect(a.qp, nil, func(r *Request) error { return r.Accept(b.qp, nil) }))(t)
	check.Equal(t, "stream", a.qp.peer.Load() != nil && a.qp.session.streamNumber() == 0, true)
	exchangeAll(t, a, b)
	b.qp.assoc().c.Rekey()
	epoch := func(q *QP) uint64 {
		s, _ := q.Stats()
		return s.Keys.Epoch
	}
	until(t, "epoch 4", func() bool {
		exchangeAll(t, a, b)
		return epoch(a.qp) == 4 && epoch(b.qp) == 4
	})
	exchangeAll(t, a, b)
	for _, d := range []*Device{x.a, x.b} {
		s := d.Stats().Sessions
		check.That(t, s.Violations == 0 && s.Refused == 0 && s.Ignored == 0 && s.AfterEnd == 0, "%+v", s)
	}
}

// An association that was set up with one name is not used for another at the same address.
func TestNamesAreNotMixed(t *testing.T) {
	ca := certs.New(t)
	client := ca.Dialer(t, "client.test")
	client.ServerName = ""
	x := newTLSLab(t, networkSCTP, client, ca.Listener(t), nil, nil)
	accepting, stop := context.WithCancel(ctx(t))
	accepted := make(chan struct{})
	go func() {
		defer close(accepted)
		for {
			r, err := x.l.Accept(accepting)
			if err != nil {
				return
			}
			_ = r.Accept(newSide(t, x.b, nil, nil).qp, nil)
		}
	}()
	defer func() { stop(); <-accepted }()
	dial := func(host string) error {
		q := newSide(t, x.a, nil, nil).qp
		_, err := q.dial(ctx(t), networkSCTP, nil, func(context.Context, bool) error {
			return x.a.sctp.connect(ctx(t), q, x.addr, host, nil)
		})
		return err
	}
	must.OK(t, dial("server.test"))
	must.OK(t, dial("server.test"))
	var name x509.HostnameError
	err := dial("other.test")
	check.That(t, errors.As(err, &name) && name.Host == "other.test", "%v", err)
	check.Equal(t, "associations", len(x.a.Peers()), 1)
	err = func() error { _, err := newSide(t, x.a, nil, nil).qp.Connect(ctx(t), x.addr, nil); return err }()
	check.That(t, errors.As(err, &name) && name.Host == x.addr.Addr().String(), "by the address: %v", err)
}

// Under Config.TLS a program gives connections of TLS only.
func TestGivenConnectionsAreEncrypted(t *testing.T) {
	ca := certs.New(t)
	x := newTLSLab(t, networkTCP, ca.Dialer(t, "client.test"), ca.Listener(t), nil, nil)
	ca0, cb0 := connPair(t)
	_, err := newSide(t, x.a, nil, nil).qp.ConnectOver(ctx(t), ca0, nil)
	check.That(t, err == ErrClearConn, "%v", err)
	_, err = x.b.RequestOver(ctx(t), cb0)
	check.That(t, err == ErrClearConn, "%v", err)
	a, b := x.joinOver(t, tls.Client(ca0, ca.Dialer(t, "own.test")), tls.Server(cb0, ca.Listener(t)))
	exchangeAll(t, a, b)
	check.Equal(t, "peer", a.qp.PeerIdentity().DNSNames[0], "server.test")
}

// A TCP server that does not ask who calls is no peer: both sides show a certificate.
func TestServerThatDoesNotAsk(t *testing.T) {
	ca := certs.New(t)
	l := must.Get(tls.Listen("tcp", "127.0.0.1:0", ca.Listener(t)))(t)
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_ = c.(*tls.Conn).Handshake()
			c.Close()
		}
	}()
	d := must.Get(NewDevice(nil, &Config{TLS: ca.Dialer(t, "client.test")}))(t)
	defer d.Close()
	_, err := newSide(t, d, nil, nil).qp.Dial(ctx(t), "tcp", l.Addr().String(), nil)
	check.That(t, errors.Is(err, mutualtls.ErrNotAsked) && errors.As(err, new(*TLSError)), "%v", err)
}

// Configurations that would leave something in the clear, or let anybody in, are refused.
func TestTLSConfigsOfADevice(t *testing.T) {
	ca := certs.New(t)
	_, err := NewDevice(nil, &Config{SCTP: sctp.Config{TLS: ca.Listener(t)}})
	check.That(t, err == ErrTLSOfSCTP, "%v", err)
	_, err = NewDevice(nil, &Config{TLS: &tls.Config{}})
	check.That(t, errors.As(err, new(*sctp.TLSConfigError)), "%v", err)
	_, err = NewDevice(nil, &Config{TLS: ca.Listener(t), SCTP: sctp.Config{LooseTLS: true}})
	var ce *sctp.ConfigError
	check.That(t, errors.As(err, &ce) && ce.Field == "LooseTLS", "%v", err)
}

// A TCP peer that is silent in its handshake keeps its place for a time only, and does not keep
// Close waiting.
func TestSilentHandshakes(t *testing.T) {
	ca := certs.New(t)
	cfg := Config{TLS: ca.Listener(t), TCP: TCPConfig{StartupTimeout: 20 * time.Millisecond}, Limits: Limits{MaxRequests: 2}}
	d := must.Get(NewDevice(nil, &cfg))(t)
	l := must.Get(d.ListenOn("tcp", "127.0.0.1:0"))(t)
	addr := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), l.Port()).String()
	for range 3 {
		c := must.Get(net.Dial("tcp", addr))(t)
		n, err := c.Read(make([]byte, 1))
		check.That(t, n == 0 && err != nil, "%d, %v", n, err)
		c.Close()
	}
	must.OK(t, d.Close()) // which waits for the handshakes to be counted
	check.That(t, d.Stats().TCP.TLSFaults >= 1, "%+v", d.Stats().TCP)

	cfg.TCP.StartupTimeout = time.Hour
	d = must.Get(NewDevice(nil, &cfg))(t)
	l = must.Get(d.ListenOn("tcp", "127.0.0.1:0"))(t)
	c := must.Get(net.Dial("tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), l.Port()).String()))(t)
	defer c.Close()
	must.OK(t, d.Close())
}
