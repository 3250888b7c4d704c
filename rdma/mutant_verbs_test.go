package rdma

import (
	"context"
	"errors"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// woken reports whether a CQ has given a token.
func woken(c *CQ) bool {
	select {
	case <-c.Ready():
		return true
	default:
		return false
	}
}

// Which completions wake who has armed a CQ: any, or the solicited and the failed ones. Who waits for any
// goes on waiting for any.
func TestWhatWakesAnArmedCQ(t *testing.T) {
	// req 5040-5.3-5
	const no, solicited, every = 0, 1, 2
	plain, asked, failed := WC{}, WC{Solicited: true}, WC{Status: rdmap.StatusWRFlushErr}
	for _, row := range []struct {
		name string
		arm  []int
		wc   WC
		want bool
	}{
		{"not armed", nil, asked, false},
		{"for any: a plain one", []int{every}, plain, true},
		{"for solicited: a plain one", []int{solicited}, plain, false},
		{"for solicited: a solicited one", []int{solicited}, asked, true},
		{"for solicited: a failed one", []int{solicited}, failed, true},
		{"for any, then for solicited: a plain one", []int{every, solicited}, plain, true},
		{"for solicited, then for any: a plain one", []int{solicited, every}, plain, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			cq, err := newLab(t, nil).a.CreateCQ(4)
			if err != nil {
				t.Fatal(err)
			}
			for _, how := range row.arm {
				cq.Arm(how == solicited)
			}
			for i := range 2 { // it is armed for one
				wake := cq.push(row.wc)
				if wake {
					cq.notify()
				}
				if want := row.want && i == 0; wake != want || woken(cq) != want {
					t.Errorf("completion %d wakes: %v", i+1, wake)
				}
			}
		})
	}
}

// An STag that was registered for one QP is nothing to another one of the same protection domain.
func TestSTagOfOneQPIsForeignToOthers(t *testing.T) {
	// req 5041-8.2-2, 5040-8.1.1-2
	x := newLab(t, nil)
	pd := x.b.AllocPD()
	a1, b1 := x.joinIn(nil, pd, nil)
	a2, _ := x.joinIn(nil, pd, nil)
	mr, err := pd.Register(make([]byte, 100), RemoteWrite, &RegionOptions{QP: b1.qp})
	if err != nil {
		t.Fatal(err)
	}
	write := SendWR{Op: OpWrite, SGL: []SGE{a1.mr.SGE(0, 10)}, RemoteSTag: mr.STag()}
	a1.post(write)
	a1.post(SendWR{Op: OpRead, SGL: []SGE{a1.mr.SGE(0, 1)}, RemoteSTag: b1.mr.STag()})
	a1.good()
	a1.good() // the Read behind it: the Write was taken
	write.SGL = []SGE{a2.mr.SGE(0, 10)}
	a2.post(write)
	<-a2.qp.Done()
	var e *rdmap.StreamError
	if err := a2.qp.Err(); !errors.As(err, &e) || e.Terminate == nil || e.Terminate.Layer != rdmap.LayerDDP || e.Terminate.Code != ddp.CodeNotAssociated {
		t.Errorf("%v", err)
	}
}

// A region that a second QP could use, of whichever peer, is not the peer's to invalidate.
func TestSharedRegionIsNotInvalidatedByAPeer(t *testing.T) {
	// req 5040-8.1.1-7
	for _, qps := range []int{1, 2, 3} {
		x := newLab(t, nil)
		pd := x.b.AllocPD()
		a, b := x.joinIn(nil, pd, nil)
		for range qps - 1 {
			newSide(t, x.b, pd, nil)
		}
		b.recv(1, 0, 100)
		a.post(SendWR{Op: OpSendInv, SGL: []SGE{a.mr.SGE(0, 10)}, InvalidateSTag: b.mr.STag()})
		wc := b.wc()
		if ok := wc.Status == rdmap.StatusSuccess && wc.Invalidated; ok != (qps == 1) {
			t.Errorf("with %d QPs: %v, invalidated %v", qps, wc.Status, wc.Invalidated)
		}
	}
}

// A QP that was closed shares nothing any more.
func TestClosedQPSharesNoRegion(t *testing.T) {
	x := newLab(t, nil)
	pd := x.b.AllocPD()
	a, b := x.joinIn(nil, pd, nil)
	other := newSide(t, x.b, pd, nil)
	if err := other.qp.Close(); err != nil {
		t.Fatal(err)
	}
	b.recv(1, 0, 100)
	a.post(SendWR{Op: OpSendInv, SGL: []SGE{a.mr.SGE(0, 10)}, InvalidateSTag: b.mr.STag()})
	if wc := b.good(); !wc.Invalidated {
		t.Errorf("%+v", wc)
	}
}

// A QP whose Connect has failed before there was a session can try again.
func TestQPCanConnectAgainAfterAFailure(t *testing.T) {
	x := newLab(t, nil)
	a, b := newSide(t, x.a, nil, nil), newSide(t, x.b, nil, nil)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := a.qp.Connect(gone, x.addr, nil); err == nil {
		t.Fatal("connected without time to")
	}
	accepted := make(chan error, 1)
	go func() {
		req, err := x.l.Accept(ctx(t))
		if err == nil {
			err = req.Accept(b.qp, nil)
		}
		accepted <- err
	}()
	if _, err := a.qp.Connect(ctx(t), x.addr, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
}

// When the streams of an association are taken, the next session gets another association.
func TestFullAssociationIsNotShared(t *testing.T) {
	x := newLab(t, &Config{Limits: Limits{MaxStreams: 2}})
	for i := range 5 {
		a, b := x.join(nil)
		b.recv(1, 0, 100)
		a.post(SendWR{Op: OpSend, SGL: []SGE{a.mr.SGE(0, 10)}})
		a.good()
		b.good()
		if n := len(x.a.slots); n != 1 {
			t.Errorf("session %d: %d peers known", i, n)
		}
	}
}

// Who has not asked for requests gets none: a peer's Initiate on an association that this end has set up
// is refused.
func TestInitiateWithoutAListenerIsRefused(t *testing.T) {
	// req 5043-6.4-2
	x := newLab(t, nil)
	_, b := x.join(nil)
	second := newSide(t, x.b, nil, nil)
	p := b.qp.peer.Load()
	_, now := p.conn.Lock()
	session, err := p.Open(now, -1, second.qp.core.Stream(), nil)
	if err == nil {
		second.qp.bind(p, session)
	}
	p.conn.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-second.qp.up:
		if err := second.qp.upErr; !errors.As(err, new(*ddpadapt.TerminatedError)) {
			t.Errorf("%v", err)
		}
	case <-ctx(t).Done():
		t.Error("no answer")
	}
}

// A QP takes receives from an SRQ of its own protection domain only.
func TestSRQOfAnotherProtectionDomain(t *testing.T) {
	x := newLab(t, nil)
	cq, err := x.a.CreateCQ(256)
	if err != nil {
		t.Fatal(err)
	}
	srq, err := x.a.AllocPD().CreateSRQ(16, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.a.CreateQP(&QPConfig{PD: x.a.AllocPD(), SendCQ: cq, RecvCQ: cq, SRQ: srq}); !errors.Is(err, rdmap.ErrPD) {
		t.Errorf("%v", err)
	}
}
