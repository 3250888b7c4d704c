package rdma

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
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
