package rdma

import (
	"errors"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// What others use is not destroyed, and says by whom; what nobody uses any more is, once, and
// refuses all that it is asked from then on.
func TestWhatIsInUseIsNotDestroyed(t *testing.T) {
	d := newLab(t, nil).a
	pd, other := d.AllocPD(), must.Get(d.CreateCQ(256))(t)
	srq := must.Get(pd.CreateSRQ(4, 1))(t)
	s := newSide(t, d, pd, func(c *QPConfig) { c.SRQ, c.RecvCQ = srq, other })
	mw := must.Get(s.mr.Bind(s.qp, 0, 8, RemoteRead))(t)
	busy := func(what string, err error, want InUseError) {
		t.Helper()
		e := new(InUseError)
		check.That(t, errors.As(err, &e) && *e == want && errors.Is(err, syscall.EBUSY), "%s: %v", what, err)
	}
	busy("CQ of sends", s.cq.Destroy(ctx(t)), InUseError{"CQ", "QPs", 1})
	busy("CQ of receives", other.Destroy(ctx(t)), InUseError{"CQ", "QPs", 1})
	busy("SRQ", srq.Destroy(), InUseError{"SRQ", "QPs", 1})
	busy("PD with a QP", pd.Destroy(), InUseError{"PD", "QPs", 1})
	must.OK(t, srq.PostRecv(&RecvWR{}))
	s.qp.Close()
	busy("PD with an SRQ", pd.Destroy(), InUseError{"PD", "SRQs", 1})
	for range 2 {
		must.OK(t, errors.Join(s.cq.Destroy(ctx(t)), other.Destroy(ctx(t)), srq.Destroy()))
	}
	busy("PD with a region", pd.Destroy(), InUseError{"PD", "regions and windows", 1})
	must.OK(t, s.mr.Deregister())
	must.OK(t, pd.Destroy())
	must.OK(t, pd.Destroy())
	check.Equal(t, "window of what has gone", mw.Valid(), false)

	fresh, cq := d.AllocPD(), must.Get(d.CreateCQ(256))(t)
	create := func(c QPConfig) error { _, err := d.CreateQP(&c); return err }
	_, polled := s.cq.Poll(make([]WC, 1))
	_, region := pd.Register(make([]byte, 8), 0, nil)
	_, queue := pd.CreateSRQ(1, 1)
	dead := SRQ{pd: fresh, destroyed: true}
	for what, err := range map[string]error{"poll": polled, "resize": s.cq.Resize(9),
		"receive": srq.PostRecv(&RecvWR{}), "register": region, "queue": queue,
		"QP with the CQ":  create(QPConfig{PD: fresh, SendCQ: cq, RecvCQ: s.cq}),
		"QP in the PD":    create(QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq}),
		"QP with the SRQ": create(QPConfig{PD: fresh, SRQ: &dead, SendCQ: cq, RecvCQ: cq})} {
		check.Equal(t, what, err, ErrDestroyed)
	}
	check.That(t, !s.cq.pushWC(WC{}) && s.cq.Wait(must.Ended()) == nil && d.Stats().LimitsRefused == 0,
		"a CQ that was destroyed takes completions, has somebody wait, or counts as a limit")
	must.OK(t, errors.Join(cq.Destroy(ctx(t)), fresh.Destroy()))
}

// A CQ takes another depth with all that is in it, in its order, and never one that is too small
// for what it has or may get.
func TestResizeLosesNothing(t *testing.T) {
	d := newLab(t, nil).a
	cq := must.Get(d.CreateCQ(4))(t)
	next, want := uint64(0), uint64(0)
	push := func(n int) {
		for range n {
			cq.pushWC(WC{ID: next})
			next++
		}
	}
	poll := func(n int) {
		t.Helper()
		wcs := make([]WC, n)
		must.Equal(t, "completions", must.Get(cq.Poll(wcs))(t), n)
		for _, wc := range wcs {
			must.Equal(t, "the next one", wc.ID, want)
			want++
		}
	}
	tooSmall := func(depth, need int) {
		t.Helper()
		e := new(CQSizeError)
		check.That(t, errors.As(cq.Resize(depth), &e) && *e == (CQSizeError{depth, need}), "%d: %+v", depth, e)
	}
	push(4)
	poll(3)
	push(2) // around the end of the ring
	tooSmall(2, 3)
	must.OK(t, cq.Resize(3))
	must.OK(t, cq.Resize(6))
	push(3)
	poll(2)
	push(2)
	must.OK(t, cq.Resize(6))
	poll(6)

	cfg := &QPConfig{PD: d.AllocPD(), SendCQ: cq, RecvCQ: cq, MaxSend: 4, MaxRecv: 4}
	_, err := d.CreateQP(cfg)
	check.That(t, err != nil, "6 completions are enough for 8 requests")
	must.OK(t, cq.Resize(8))
	must.Get(d.CreateQP(cfg))(t)
	push(1) // of a QP that has left, whose place is nobody else's
	tooSmall(8, 9)
	e := new(LimitError)
	check.That(t, errors.As(cq.Resize(0), &e) && errors.As(cq.Resize(1<<21), &e), "any depth will do")
	check.Equal(t, "refused", d.Stats().LimitsRefused, 5)
	push(9)
	check.Equal(t, "after an overflow", cq.Resize(16), ErrCQOverflow)
}
