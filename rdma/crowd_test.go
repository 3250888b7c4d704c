package rdma

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/concurrent"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// Goroutines of different associations make QPs, and take from one shared receive queue, which
// fails under the race detector only.
func TestWhatAssociationsShareMayBeUsedAtOnce(t *testing.T) {
	x := newLab(t, nil)
	d, pd := x.a, x.a.AllocPD()
	srq := must.Get(pd.CreateSRQ(64, 1))(t)
	cq := must.Get(d.CreateCQ(1024))(t)
	take := func(i int) {
		r := srqRef{srq, &QP{peerHost: netip.AddrFrom4([4]byte{10, 0, 0, byte(i)})}}
		if b, ok := r.TakeBuffer(); ok {
			r.ReleaseBuffer(b.Token)
		}
	}
	create := func(i int) {
		cfg := &QPConfig{PD: d.AllocPD(), SendCQ: cq, RecvCQ: cq}
		if i%2 == 0 {
			cfg.PD, cfg.SRQ = pd, srq
		}
		if qp, err := d.CreateQP(cfg); err != nil {
			t.Error(err)
		} else {
			qp.Close()
		}
	}
	qp := must.Get(d.CreateQP(&QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, SRQ: srq}))(t)
	all := must.Get(pd.Register(make([]byte, 8), LocalWrite, nil))(t)
	window := func(int) {
		if w, err := all.Bind(qp, 0, 8, RemoteRead); check.OK(t,
			errors.Join(err, all.SetAccess(LocalWrite), all.Reregister(make([]byte, 8), LocalWrite, all.Base()))) {
			w.Invalidate()
		}
		_ = qp.reserveSession() // perhaps another one has
		qp.cancelReservation()
		check.That(t, errors.Is(srq.Destroy(), syscall.EBUSY) && errors.Is(cq.Destroy(t.Context()), syscall.EBUSY) &&
			qp.State() == rdmap.StateInit, "what others use is destroyed")
	}
	region := func(int) {
		mr, err := pd.Register(make([]byte, 8), LocalWrite, nil)
		if err == nil {
			err = errors.Join(mr.SetAccess(RemoteRead),
				mr.Reregister(make([]byte, 9), LocalWrite, mr.Base()+mr.Len()), mr.Deregister())
		}
		check.OK(t, err)
	}
	table := func(i int) {
		d.sctp.slotFor(peerName{addr: netip.AddrPortFrom(netip.Addr{}, uint16(i))})
		d.countStat(&d.stats.IdleEnded)
		r := new(Request)
		x.l.offerRequest(r)
		x.l.withdrawRequest(r)
		d.Stats()
	}
	queue := func(int) {
		cq.pushWC(WC{})
		cq.Arm(true)
		_, _ = cq.Poll(make([]WC, 1))
	}
	concurrent.RunTogether(200, take, take, create, create, window, window, region, region, table, table, queue,
		queue, func(int) { _ = srq.PostRecv(&RecvWR{}) }, func(int) { d.events.push(Event{}) },
		func(int) { d.Snapshot() })
}
