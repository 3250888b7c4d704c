package rdma

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
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

// Sessions live over an SRQ and end in every way there is. When nothing is left every buffer of the
// SRQ has come back once, its shares are those of nobody, and so are the memory of the devices,
// what their sessions have counted, and their protection domains.
func TestEveryAccountIsZeroHoweverSessionsEnd(t *testing.T) {
	const size, posted, slots, rounds = 16 << 10, 24, 192, 12
	// what is sent, and two places for each QP where its reads or its peer's writes go
	const memory = (2 + 2*2*rounds) * size
	seeds := uint64(16)
	if testing.Short() {
		seeds = 4
	}
	ends, failed, taken, good := 0, uint64(0), 0, 0
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 5))
				out := new(mempair.LossyLink)
				cfg := &Config{SCTP: sctp.Config{RTOInitial: 200 * time.Millisecond, RTOMin: 100 * time.Millisecond,
					RTOMax: time.Second, AssocMaxRetrans: 3, PathMaxRetrans: 2, MaxInitRetrans: 2,
					HeartbeatInterval: 5 * time.Second}}
				x := newLabOver(t, cfg, func(a, _ *mem.Link) rawio.Link { out.Link = a; return out })
				pa, pb := x.a.AllocPD(), x.b.AllocPD()
				srq := must.Get(pb.CreateSRQ(posted, 1))(t)
				shared := must.Get(pb.Register(make([]byte, slots*size), LocalWrite, nil))(t)
				ma := must.Get(pa.Register(make([]byte, memory), LocalWrite|RemoteRead|RemoteWrite, nil))(t)
				mb := must.Get(pb.Register(make([]byte, memory), LocalWrite|RemoteRead|RemoteWrite, nil))(t)
				var free []int // slots of shared that no receive has
				for i := range slots {
					free = append(free, i)
				}
				posts := 0
				fill := func() {
					for srq.Len() < posted && len(free) > 0 &&
						srq.PostRecv(&RecvWR{ID: uint64(free[0]), SGL: []SGE{shared.SGE(free[0]*size, size)}}) == nil {
						free = free[1:]
						posts++
					}
				}
				var cqs []*CQ
				var qps []*QP
				var peers []*sctpConn
				received := 0
				poll := func() {
					var wcs [64]WC
					for _, cq := range cqs {
						for n, err := cq.Poll(wcs[:]); n > 0 && err == nil; n, err = cq.Poll(wcs[:]) {
							for _, wc := range wcs[:n] {
								if wc.Opcode == WCRecv {
									received++
									free = append(free, int(wc.ID))
									if wc.Status == 0 {
										good++
									}
								}
							}
						}
					}
				}
				qp := func(d *Device, pd *PD, srq *SRQ) *QP {
					cq := must.Get(d.CreateCQ(1024))(t)
					q := must.Get(
						d.CreateQP(&QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, SRQ: srq,
							OwnAssociation: rnd.IntN(3) == 0}))(t)
					cqs, qps = append(cqs, cq), append(qps, q)
					return q
				}
				for range rounds {
					out.Lose.Store(false)
					for range 2 {
						fill()
						a, b := qp(x.a, pa, nil), qp(x.b, pb, srq)
						ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
						answered := make(chan struct{})
						go func() {
							defer close(answered)
							if r, err := x.l.Accept(ctx); err == nil {
								_ = r.Accept(b, nil)
							}
						}()
						_, err := a.Connect(ctx, x.addr, nil)
						cancel()
						<-answered
						if err == nil {
							peers = append(peers, a.peer.Load().sctp(), b.peer.Load().sctp())
						}
					}
					for range 20 {
						k := len(qps) - 1 - rnd.IntN(min(len(qps), 8))
						q, place := qps[k], (2+k)*size
						local, remote := ma, mb
						if q.dev == x.b {
							local, remote = mb, ma
						}
						n := 1 + rnd.IntN(size)
						switch rnd.IntN(9) {
						case 0, 1, 2, 3:
							if q.dev == x.b && rnd.IntN(8) > 0 {
								continue // there is no receive at the other end
							}
							for range 1 + rnd.IntN(6) {
								_ = q.PostSend(&SendWR{Op: OpSend, SGL: []SGE{local.SGE(0, n)}})
							}
						case 4:
							_ = q.PostSend(&SendWR{Op: OpWrite, SGL: []SGE{local.SGE(0, n)},
								RemoteSTag: remote.STag(), RemoteTO: remote.Base() + uint64(place)})
						case 5:
							_ = q.PostSend(&SendWR{Op: OpRead, SGL: []SGE{local.SGE(place, n)},
								RemoteSTag: remote.STag(), RemoteTO: remote.Base()})
						case 6:
							out.Chunk.Store(int32(rnd.IntN(2)) * 64) // I-DATA or nothing
							out.Lose.Store(rnd.IntN(3) == 0)
							time.Sleep(time.Duration(rnd.IntN(40)) * time.Millisecond)
							out.Lose.Store(false)
						case 7:
							if rnd.IntN(4) == 0 { // longer than any buffer there
								_ = q.PostSend(&SendWR{Op: OpSend, SGL: []SGE{local.SGE(0, 2*size)}})
							}
						case 8:
							poll()
							fill()
						}
						time.Sleep(time.Duration(rnd.IntN(3)) * time.Millisecond)
						taken = max(taken, posted-srq.Len())
					}
					out.Chunk.Store(0)
					for _, q := range qps[max(len(qps)-3, 0):] {
						ends++
						switch rnd.IntN(6) {
						case 0:
							_ = q.Close()
						case 1:
							_ = q.Disconnect(must.Ended()) // the close is sent, and nobody waits for the answer
						case 2:
							if p := q.peer.Load(); p != nil {
								p.sctp().c.Abort("over")
							}
						case 3: // nobody answers
							out.Lose.Store(true)
							time.Sleep(time.Minute)
							out.Lose.Store(false)
						case 4:
							if p := q.peer.Load(); p != nil {
								go p.sctp().c.Close()
							}
						}
					}
				}
				for _, q := range qps {
					_ = q.Close()
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				poll()
				failed += x.b.Transport().Stats().EndTimeout
				srq.mu.Lock()
				room := srq.heldShares.RoomFor(x.addr.Addr(), 1000)
				srq.mu.Unlock()
				check.Equal(t, "the room of a peer of the SRQ", room, 500)
				check.Equal(t, "buffers that have come back, and that wait", received+srq.Len(), posts)
				for i, p := range slices.Compact(peers) {
					p.c.Upper().Lock()
					check.That(t, p.Sessions() == 0 && p.chargedOctets == 0 && p.streamClaims == 0 &&
						len(p.closingQPs) == 0 && len(p.flushingQPs) == 0,
						"association %d has %d sessions, %d octets of queues, %d claims, %d that close",
						i, p.Sessions(), p.chargedOctets, p.streamClaims, len(p.closingQPs))
					p.c.Upper().Unlock()
				}
				must.OK(t, srq.Destroy())
				for _, r := range []*MR{shared, ma, mb} {
					must.OK(t, r.Deregister())
				}
				for _, cq := range cqs {
					must.OK(t, cq.Destroy(t.Context()))
				}
				must.OK(t, errors.Join(pa.Destroy(), pb.Destroy()))
				for name, d := range map[string]*Device{"the first": x.a, "the second": x.b} {
					check.That(t, len(d.QPs()) == 0 && len(d.qps) == 0, "%s device has %d QPs", name, len(d.qps))
					must.OK(t, d.Close())
					check.Equal(t, name+" device, octets that are counted when it is closed",
						d.Transport().Memory().Used, 0)
				}
			})
		})
	}
	check.That(t, failed > 0 && taken > posted/4 && good > 100,
		"%d sessions ended, %d associations were not answered, %d messages came, %d buffers were taken at most: too few", ends, failed, good, taken)
}
