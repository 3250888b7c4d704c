package rdma

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/test/certs"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/keystore"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp"
)

// A peer that is gone while its association ends, and comes back from the same port, gets sessions
// again: what was ended stays so, and the listener has the new ones.
func TestAnAssociationThatEndsIsNotRevivedByARestart(t *testing.T) {
	for name, end := range map[string]func(q *QP){
		"closed":         func(q *QP) { _ = q.Close() },
		"disconnected":   func(q *QP) { _ = q.Disconnect(must.Ended()) },
		"its shutdown":   func(q *QP) { p := q.lockCore(); now := p.now; _ = p.sctp().a.Shutdown(now); q.unlockCore(p) },
		"not ended here": func(*QP) {},
	} {
		for _, unsent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, a message unsent: %v", name, unsent), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg := &Config{SCTP: sctp.Config{LocalPort: 5555}}
					link := &mempair.RestartLink{In: make(chan rawio.Packet), Intr: make(chan struct{}, 1)}
					var lives [2]*Device
					for i := range lives {
						la, lb := mempair.New(t, mem.Options{MTU: 1500})
						lives[i] = must.Get(NewDevice(la, cfg))(t)
						link.Link, link.Lives[i] = lb, lb
						t.Cleanup(func() { lives[i].Close() })
					}
					go link.Run()
					b := must.Get(NewDevice(link, nil))(t)
					t.Cleanup(func() { b.Close() })
					x := &lab{t: t, a: lives[0], b: b, l: must.Get(b.Listen(DefaultPort))(t),
						addr: netip.AddrPortFrom(link.LocalAddrs()[0].Addr(), DefaultPort)}
					_, old := x.join(nil)
					link.Life.Store(mempair.Dead)
					if unsent {
						old.post(SendWR{Op: OpSend, SGL: []SGE{old.mr.SGE(0, 8)}})
					}
					end(old.qp)
					time.Sleep(10 * time.Millisecond)
					link.Life.Store(1)
					x.a = lives[1]
					c, d := x.join(nil)
					must.That(t, d.qp.peer.Load() != nil && d.qp != old.qp, "there is no new session")
					d.recv(1, 0, 8)
					c.post(SendWR{Op: OpSend, SGL: []SGE{c.mr.SGE(0, 8)}})
					check.Equal(t, "a message of the new session", d.wc().Status, StatusSuccess)
					<-old.qp.Done()
					check.That(t, old.qp.Err() != nil || name == "closed" || name == "disconnected" && !unsent,
						"the session of before ends without a reason")
				})
			})
		}
	}
}

// tellingStore tells of each record.
type tellingStore struct {
	*keystore.Memory
	put chan struct{}
}

func newTellingStore(m *keystore.Memory) *tellingStore {
	return &tellingStore{m, make(chan struct{}, 16)}
}

func (s *tellingStore) Put(name string, record []byte) error {
	err := s.Memory.Put(name, record)
	s.put <- struct{}{}
	return err
}

// A program whose QPs are encrypted crashes and connects again: its peer's association goes on,
// with new sessions, and those of before end. Without its keys it is not let in.
func TestEncryptedRestart(t *testing.T) {
	for _, hasKeys := range []bool{true, false} {
		t.Run(fmt.Sprintf("keys: %v", hasKeys), func(t *testing.T) {
			ca := certs.New(t)
			link := &mempair.RestartLink{In: make(chan rawio.Packet), Intr: make(chan struct{}, 1)}
			var own [2]rawio.Link
			for i := range own {
				la, lb := mempair.New(t, mem.Options{MTU: 1500})
				own[i], link.Link, link.Lives[i] = la, lb, lb
			}
			go link.Run()
			open := func(i int, store *tellingStore) *Device {
				d := must.Get(NewDevice(own[i], &Config{TLS: ca.Dialer(t, "client.test"),
					SCTP: sctp.Config{LocalPort: 5555, RestartStore: store}}))(t)
				t.Cleanup(func() { d.Close() })
				return d
			}
			ours, theirs := newTellingStore(new(keystore.Memory)), newTellingStore(new(keystore.Memory))
			b := must.Get(NewDevice(link, &Config{TLS: ca.Listener(t), SCTP: sctp.Config{RestartStore: theirs}}))(t)
			t.Cleanup(func() { b.Close() })
			x := &lab{t: t, a: open(0, ours), b: b, l: must.Get(b.Listen(DefaultPort))(t),
				addr: netip.AddrPortFrom(link.LocalAddrs()[0].Addr(), DefaultPort)}
			_, old := x.join(nil)
			peer := old.qp.peer.Load()
			<-ours.put
			<-theirs.put

			link.Life.Store(mempair.Dead)
			kept := newTellingStore(ours.Clone())
			if !hasKeys {
				kept = newTellingStore(new(keystore.Memory))
			}
			link.Life.Store(1)
			x.a = open(1, kept)
			if !hasKeys {
				late, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer stop()
				_, err := newSide(t, x.a, nil, nil).qp.Connect(late, x.addr, nil)
				check.Error(t, "Connect", err, context.DeadlineExceeded)
				check.That(t, old.qp.Err() == nil, "the QP of before has ended: %v", old.qp.Err())
				return
			}
			c, d := x.join(nil)
			<-old.qp.Done()
			check.Error(t, "the QP of before", old.qp.Err(), ddpadapt.ErrRestarted)
			check.That(t, d.qp.peer.Load() == peer, "the peer has another association")
			for q, name := range map[*QP]string{c.qp: "server.test", d.qp: "client.test"} {
				check.Equal(t, "peer", q.PeerIdentity().DNSNames[0], name)
			}
			exchangeAll(t, c, d)
			<-kept.put // for the next crash
		})
	}
}

// A RestartStore that would keep nothing is refused.
func TestRestartStoresThatAreRefused(t *testing.T) {
	ca := certs.New(t)
	cfg := &Config{TLS: ca.Listener(t), SCTP: sctp.Config{RestartStore: new(keystore.Memory)}}
	check.Fails(NewDevice(nil, cfg))(t, "over TCP", ErrRestartOverTCP)
	cfg.TLS = nil
	link, _ := mempair.New(t, mem.Options{MTU: 1500})
	_, err := NewDevice(link, cfg)
	var e *sctp.ConfigError
	check.That(t, errors.As(err, &e) && e.Field == "RestartStore", "without TLS: %v", err)
}
