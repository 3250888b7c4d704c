package sctp

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/certs"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/keystore"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio/udp"
)

// files returns how many records a store of files has.
func files(t testing.TB, dir string) (n int) {
	for _, e := range must.Get(os.ReadDir(dir))(t) {
		if !strings.HasPrefix(e.Name(), partPrefix) {
			n++
		}
	}
	return n
}

// copyFolder is the disk as a crash leaves it.
func copyFolder(t testing.TB, from string) (to string) {
	to = filepath.Join(t.TempDir(), "copy")
	must.OK(t, os.Mkdir(to, 0o700))
	for _, e := range must.Get(os.ReadDir(from))(t) {
		b := must.Get(os.ReadFile(filepath.Join(from, e.Name())))(t)
		must.OK(t, os.WriteFile(filepath.Join(to, e.Name()), b, 0o600))
	}
	return to
}

// A program crashes and dials again. The association of its peer goes on, and the peer's program
// hears of a restart; both know who the other is.
func TestSealedRestartOfAConn(t *testing.T) {
	clients, b, server := newReborn(t)
	ca, ctx := certs.New(t), deadlineCtx(t)
	dirs := [2]string{filepath.Join(t.TempDir(), "client"), filepath.Join(t.TempDir(), "server")}
	l := must.Get(b.Listen(7, &Config{TLS: ca.Listener(t), Events: 16,
		RestartStore: must.Get(NewFileRestartStore(dirs[1]))(t)}))(t)
	to := netip.AddrPortFrom(server.LocalAddrs()[0].Addr(), 7)
	dial := func(i int, dir string) (*Conn, error) {
		return clients[i].Dial(ctx, to, &Config{TLS: ca.Dialer(t, "client.test"), LocalPort: 5555,
			RestartStore: must.Get(NewFileRestartStore(dir))(t)})
	}
	c := must.Get(dial(0, dirs[0]))(t)
	s := must.Get(l.Accept(ctx))(t)
	until(t, "the records", func() bool { return files(t, dirs[0]) == 1 && files(t, dirs[1]) == 1 })
	must.Get(c.WriteMsg([]byte("before"), SendInfo{}))(t)
	readOne(t, s)

	server.Life.Store(mempair.Dead)
	crashed := copyFolder(t, dirs[0])
	server.Life.Store(1)
	again := must.Get(dial(1, crashed))(t)
	state, ok := again.ConnectionState()
	must.That(t, ok && state.HandshakeComplete && state.PeerCertificates[0].DNSNames[0] == "server.test", "%v %+v", ok, state)
	for {
		ev := must.Get(s.NextEvent(ctx))(t)
		if ev.Kind == EventRestart {
			break
		}
	}
	must.Get(again.WriteMsg([]byte("after"), SendInfo{}))(t)
	buf := make([]byte, 100)
	n, _, err := s.ReadMsg(buf)
	must.That(t, err == nil && string(buf[:n]) == "after", "%q, %v", buf[:n], err)
	must.Get(s.WriteMsg([]byte("answer"), SendInfo{}))(t)
	readOne(t, again)
	until(t, "new keys at the server", func() bool { return s.Stats().Keys.Epoch == 3 && s.Stats().Keys.Handshakes == 1 })
	state, ok = s.ConnectionState()
	check.That(t, ok && state.PeerCertificates[0].DNSNames[0] == "client.test", "%v %+v", ok, state)
	check.That(t, s.Stats().Restarts == 1 && again.Stats().Keys.Epoch == 3, "%+v", again.Stats().Keys)
	check.That(t, files(t, crashed) == 0 && files(t, dirs[1]) == 0, "keys are stored that were used")
	must.OK(t, again.Close())
	<-s.Done()
}

// Both ends over UDP on this host, the store of which has nothing left when all has ended.
func TestSealedRestartOverUDP(t *testing.T) {
	ca, ctx := certs.New(t), deadlineCtx(t)
	open := func() *Transport {
		link := must.Get(udp.Open(udp.Config{Local: netip.MustParseAddr("127.0.0.1"), Port: udp.AnyPort}))(t)
		tr := must.Get(NewTransport(link, nil))(t)
		t.Cleanup(func() { tr.Close() })
		return tr
	}
	a, b := open(), open()
	var store, peers keystore.Memory
	l := must.Get(b.Listen(7, &Config{TLS: ca.Listener(t), Events: 16, RestartStore: &peers}))(t)
	cfg := &Config{TLS: ca.Dialer(t, "client.test"), LocalPort: 5555, EncapPort: l.EncapPort(), RestartStore: &store}
	to := netip.MustParseAddrPort("127.0.0.1:7")
	must.Get(a.Dial(ctx, to, cfg))(t)
	s := must.Get(l.Accept(ctx))(t)
	until(t, "the records", func() bool { return store.Len() == 1 && peers.Len() == 1 })
	cfg.RestartStore = store.Clone()
	c := must.Get(open().Dial(ctx, to, cfg))(t) // from another UDP port
	must.Get(c.WriteMsg([]byte("x"), SendInfo{}))(t)
	readOne(t, s)
	check.Equal(t, "restarts", s.Stats().Restarts, 1)
	must.OK(t, c.Close())
	<-s.Done()
	until(t, "nothing is left of the server's", func() bool { return peers.Len() == 0 })
}

// A store that fails keeps no association from coming up; it is not restarted then.
func TestRestartStoreThatFails(t *testing.T) {
	p, ca := newPair(t), certs.New(t)
	broken := &keystore.Memory{Err: errors.New("no space left")}
	c, s := p.connect(t, &Config{TLS: ca.Dialer(t, "client.test"), RestartStore: broken},
		&Config{TLS: ca.Listener(t), RestartStore: broken})
	must.Get(c.WriteMsg([]byte("x"), SendInfo{}))(t)
	readOne(t, s)
	check.Equal(t, "records", broken.Len(), 0)
}

// Records go with their association. Those of before a Dial that fails stay for the next.
func TestRestartRecordsGoWithTheirAssociation(t *testing.T) {
	p, ca := newPair(t), certs.New(t)
	var ours, theirs keystore.Memory
	c, s := p.connect(t, &Config{TLS: ca.Dialer(t, "client.test"), RestartStore: &ours},
		&Config{TLS: ca.Listener(t), RestartStore: &theirs})
	until(t, "the records", func() bool { return ours.Len() == 1 && theirs.Len() == 1 })
	must.OK(t, c.Close())
	<-s.Done()
	until(t, "no records", func() bool { return ours.Len() == 0 && theirs.Len() == 0 })

	name := restartName(5555, 9, p.bAddr)
	must.OK(t, ours.Put(name, []byte("record")))
	_, err := p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, 9), &Config{TLS: ca.Dialer(t, "client.test"),
		LocalPort: 5555, RestartStore: &ours})
	check.That(t, err != nil, "nobody listens there")
	must.OK(t, p.a.Close())
	check.Equal(t, "records after a Dial without an answer", ours.Len(), 1)
}

func TestRestartStoreNeedsTLS(t *testing.T) {
	p := newPair(t)
	cfg := &Config{RestartStore: new(keystore.Memory)}
	_, err := p.b.Listen(7, cfg)
	var e *ConfigError
	check.That(t, errors.As(err, &e) && e.Field == "RestartStore", "%v", err)
	_, err = p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, 7), cfg)
	check.That(t, errors.As(err, &e) && e.Field == "RestartStore", "%v", err)
}

func TestRestartNames(t *testing.T) {
	for _, c := range []struct{ addr, want string }{
		{"192.0.2.1", "5-7-192.0.2.1"}, {"::ffff:192.0.2.1", "5-7-192.0.2.1"}, {"2001:db8::1", "5-7-2001_db8__1"},
		{"fe80::1%eth0", "5-7-fe80__1-eth0"},
	} {
		name := restartName(5, 7, netip.MustParseAddr(c.addr))
		check.Equal(t, c.addr, name, c.want)
		check.OK(t, checkRestartName(name))
	}
}

// What is asked of a store is done in order, and Close waits for it.
func TestRestartJobs(t *testing.T) {
	var j restartJobs
	<-j.idle()
	var got []int
	hold := make(chan struct{})
	for i := range 100 {
		j.add(func() {
			<-hold
			got = append(got, i)
		})
	}
	select {
	case <-j.idle():
		t.Error("idle with jobs to do")
	default:
	}
	close(hold)
	<-j.idle()
	check.That(t, len(got) == 100 && got[0] == 0 && got[99] == 99, "%v", got)
}
