package rdma

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"runtime"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

var invalidations = flag.Int("invalidations", 0,
	"how often to invalidate memory under a peer's writes (0: 5000, under the race detector 1000, with -short 300)")

// Memory is invalidated over and over while a peer writes to it as fast as it can: when Invalidate
// has returned, not one octet changes any more. The test writes to the memory then, so that the
// race detector is a judge as well. A peer whose memory goes has its stream terminated, so each
// time is a new session, on the same association.
func TestNothingChangesAfterInvalidate(t *testing.T) {
	// req 5042-6.2.2-2, 5040-8.1.1-6, 5041-8.3-2, 5041-8.3.1-2
	total := *invalidations
	switch {
	case total > 0:
	case testing.Short():
		total = 300
	case race.Enabled:
		total = 1000
	default:
		total = 5000
	}
	x := newLab(t, nil)
	v := newVictim(x)
	defer close(v.waiting)
	for n := 0; n < total && !t.Failed(); n++ {
		v.invalidate(n)
	}
}

const (
	victimLen   = 16 << 10
	victimDepth = 4 // Writes of victimLen octets that are under way
)

// victim is memory that a peer writes to.
type victim struct {
	x        *lab
	waiting  chan *QP // for the next request
	from, to *PD
	fcq, tcq *CQ
	src      *MR
	mem      []byte
}

func newVictim(x *lab) *victim {
	v := &victim{x: x, waiting: make(chan *QP), from: x.a.AllocPD(), to: x.b.AllocPD(), mem: make([]byte, victimLen)}
	v.fcq, v.tcq = must.Get(x.a.CreateCQ(256))(x.t), must.Get(x.b.CreateCQ(256))(x.t)
	v.src = must.Get(v.from.Register(bytes.Repeat([]byte{0xEE}, victimLen), 0, nil))(x.t)
	go func() {
		for qp := range v.waiting {
			req, err := x.l.Accept(context.Background())
			if err == nil {
				err = req.Accept(qp, nil)
			}
			check.OK(x.t, err)
		}
	}()
	v.connect() // one session more keeps the association
	return v
}

func (v *victim) must(err error) {
	must.OK(v.x.t, err)
}

func (v *victim) connect() (a, b *QP) {
	a = must.Get(v.x.a.CreateQP(&QPConfig{PD: v.from, SendCQ: v.fcq, RecvCQ: v.fcq, MaxSend: victimDepth, MaxRecv: 1,
		IRD: -1, ORD: -1}))(v.x.t)
	b = must.Get(v.x.b.CreateQP(&QPConfig{PD: v.to, SendCQ: v.tcq, RecvCQ: v.tcq, MaxSend: 1, MaxRecv: 1, IRD: -1,
		ORD: -1}))(v.x.t)
	v.waiting <- b
	must.Do(a.Connect(context.Background(), v.x.addr, nil))(v.x.t)
	return a, b
}

// invalidate opens the memory to a new session of the peer and shuts it while the peer writes.
func (v *victim) invalidate(n int) {
	a, b := v.connect()
	defer a.Close()
	defer b.Close()
	mr, err := v.to.Register(v.mem, LocalWrite|RemoteWrite, &RegionOptions{QP: b})
	v.must(err)
	defer mr.Deregister()
	tag, end := mr.STag(), mr.Invalidate
	switch n % 8 { // the other ways to shut it
	case 0:
		end = func() { v.must(mr.SetAccess(LocalWrite | RemoteRead)) }
	case 1:
		end = func() { v.must(mr.Reregister(nil, RemoteWrite, 0)) }
	case 2, 3:
		w, err := mr.Bind(b, 0, victimLen, RemoteWrite)
		v.must(err)
		if tag = w.STag(); n%8 == 2 {
			end = w.Invalidate // else with the region
		}
	}
	writing := make(chan struct{})
	go func() { // until the stream ends, as it does with the first octet for memory that is not open
		defer close(writing)
		write := SendWR{Op: OpWrite, Flags: Unsignaled, SGL: []SGE{v.src.SGE(0, victimLen)}, RemoteSTag: tag}
		for err := error(nil); err == nil; {
			if err = a.PostSend(&write); errors.Is(err, rdmap.ErrQueueFull) {
				runtime.Gosched()
				err = nil
			}
		}
	}()
	for s, _ := b.StreamStats(); s.In == 0; s, _ = b.StreamStats() {
		runtime.Gosched()
	}
	// Without a word to the scheduler or a look at a lock, which would bring both sides into step.
	for start, d := time.Now(), time.Duration(n*7919%100_000); time.Since(start) < d; {
	}
	end()
	want := byte(n)
	for i := range v.mem {
		v.mem[i] = want
	}
	<-writing
	<-a.Done()
	<-b.Done()
	for i, o := range v.mem {
		if o != want {
			v.x.t.Errorf("octet %d changed after the memory was invalidated", i)
			break
		}
	}
	for _, cq := range []*CQ{v.fcq, v.tcq} { // flushed requests; a Write that succeeded leaves no completion
		var wcs [64]WC
		for k := 1; k > 0; {
			k, err = cq.Poll(wcs[:])
			v.must(err)
		}
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
		ok := wc.Status == rdmap.StatusSuccess && wc.Invalidated
		check.That(t, ok == (qps == 1), "with %d QPs: %v, invalidated %v", qps, wc.Status, wc.Invalidated)
	}
}

// A QP that was closed shares nothing any more.
func TestClosedQPSharesNoRegion(t *testing.T) {
	x := newLab(t, nil)
	pd := x.b.AllocPD()
	a, b := x.joinIn(nil, pd, nil)
	other := newSide(t, x.b, pd, nil)
	must.OK(t, other.qp.Close())
	b.recv(1, 0, 100)
	a.post(SendWR{Op: OpSendInv, SGL: []SGE{a.mr.SGE(0, 10)}, InvalidateSTag: b.mr.STag()})
	wc := b.good()
	check.That(t, wc.Invalidated, "%+v", wc)
}
