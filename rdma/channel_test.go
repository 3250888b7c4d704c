package rdma

import (
	"context"
	"errors"
	"net"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/concurrent"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// One goroutine serves the CQs of a channel: an event names the CQ that was armed and has got what
// it was armed for.
func TestEventsNameTheirCQ(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newLab(t, nil)
		ch := x.a.CreateCompChannel()
		cqs := [2]*CQ{must.Get(ch.CreateCQ(256))(t), must.Get(ch.CreateCQ(256))(t)}
		var here, there [2]*side
		for i := range cqs {
			first := true // of the two sides
			here[i], there[i] = x.join(func(c *QPConfig) {
				if first {
					c.RecvCQ, first = cqs[i], false
				}
			})
			for id := range uint64(4) {
				here[i].recv(id, 0, 64)
			}
		}
		got := make(chan *CQ)
		go func() {
			for {
				cq, err := ch.GetEvent(t.Context())
				if err != nil {
					close(got)
					return
				}
				got <- cq
			}
		}()
		next := func() *CQ {
			synctest.Wait()
			select {
			case cq := <-got:
				return cq
			default:
				return nil
			}
		}
		send := func(i int, op rdmap.WROpcode) { there[i].post(SendWR{Op: op, Inline: []byte("x"), Flags: Unsignaled}) }
		send(0, OpSend)
		check.Equal(t, "event of a CQ that is not armed", next(), nil)
		cqs[0].Arm(true)
		cqs[1].Arm(false)
		send(0, OpSend)
		send(1, OpSend)
		check.Equal(t, "armed for any", next(), cqs[1])
		check.Equal(t, "armed for what is solicited", next(), nil)
		send(0, OpSendSE)
		check.Equal(t, "solicited", next(), cqs[0])
		send(1, OpSend)
		check.Equal(t, "event without having been armed again", next(), nil)
		for i, n := range []int{3, 2} {
			check.Equal(t, "completions", must.Get(cqs[i].Poll(make([]WC, 9)))(t), n)
		}
		cqs[0].Arm(false)
		here[0].qp.Close()
		check.Equal(t, "flushed", next(), cqs[0])
		x.a.Close()
		_, some := <-got
		check.That(t, !some, "an event of a closed Device")
	})
}

// What events a channel has is told apart from what was got and what was acknowledged, and the end
// of a CQ waits for the latter alone.
func TestDestroyWaitsForAcknowledgements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLab(t, nil).a
		ch := d.CreateCompChannel()
		one, two := must.Get(ch.CreateCQ(4))(t), must.Get(ch.CreateCQ(4))(t)
		event := func(cq *CQ) {
			cq.Arm(false)
			if cq.pushWC(WC{}) {
				cq.notifyWaiters()
			}
		}
		over := must.Ended()
		get := func(want *CQ, wantErr error) {
			t.Helper()
			cq, err := ch.GetEvent(over)
			check.That(t, cq == want && err == wantErr, "%p, %v", cq, err)
		}
		get(nil, context.Canceled)
		for range 2 { // it is about the CQ, not about each completion
			event(one)
			event(two)
		}
		<-ch.Ready()
		get(one, nil)
		event(one)
		get(two, nil)
		get(one, nil)
		get(nil, context.Canceled)
		event(two)
		for _, err := range []error{one.AckEvents(3), one.AckEvents(0), two.AckEvents(2),
			must.Get(d.CreateCQ(1))(t).AckEvents(1)} {
			e := new(LimitError)
			check.That(t, errors.As(err, &e), "%v", err)
		}
		e := new(InUseError)
		check.That(t, errors.As(ch.Destroy(), &e) && *e == (InUseError{"completion channel", "CQs", 2}), "%+v", e)
		check.Equal(t, "not acknowledged", one.Destroy(over), context.Canceled)
		end := make(chan error, 1)
		go func() { end <- one.Destroy(context.Background()) }()
		must.OK(t, one.AckEvents(1))
		synctest.Wait()
		check.Equal(t, "ended early", len(end), 0)
		must.OK(t, one.AckEvents(1))
		must.OK(t, <-end)
		must.OK(t, two.AckEvents(1))
		must.OK(t, two.Destroy(over)) // its last event was not got
		two.notifyWaiters()
		get(nil, context.Canceled)
		go func() { _, err := ch.GetEvent(context.Background()); end <- err }()
		synctest.Wait()
		must.OK(t, errors.Join(ch.Destroy(), ch.Destroy()))
		check.Equal(t, "who waits for events", <-end, ErrDestroyed)
		_, err := ch.CreateCQ(1)
		check.That(t, err == ErrDestroyed, "%v", err)
		_, err = ch.CreateCQ(0)
		check.That(t, err != nil && err != ErrDestroyed, "%v", err)
		ch = d.CreateCompChannel()
		full := must.Get(ch.CreateCQ(1))(t)
		full.pushWC(WC{})
		full.pushWC(WC{})
		full.notifyWaiters()
		get(full, nil) // an overflow
		go func() { _, err := ch.GetEvent(context.Background()); end <- err }()
		synctest.Wait()
		d.Close()
		check.Equal(t, "who waits on a closed Device", <-end, net.ErrClosed)
	})
}

// Completions come, CQs grow, and QPs and CQs end, while one goroutine serves a channel, which
// fails under the race detector only.
func TestAChannelServesWhatComesAndGoes(t *testing.T) {
	d := newLab(t, nil).a
	ch := d.CreateCompChannel()
	stay := must.Get(ch.CreateCQ(1 << 12))(t)
	life := func(i int) {
		cq, err := ch.CreateCQ(256)
		if err == nil {
			var qp *QP
			if qp, err = d.CreateQP(&QPConfig{PD: d.AllocPD(), SendCQ: cq, RecvCQ: stay}); err == nil {
				cq.Arm(i%2 == 0)
				qp.Close()
				cq.pushWC(WC{QPNum: qp.Num(), Status: StatusWRFlushErr})
				cq.notifyWaiters()
				err = cq.Destroy(t.Context())
			}
		}
		check.OK(t, err)
	}
	serving, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			cq, err := ch.GetEvent(serving)
			if err != nil {
				return
			}
			cq.Arm(false)
			_, _ = cq.Poll(make([]WC, 8))
			runtime.Gosched()
			check.OK(t, cq.AckEvents(1))
		}
	}()
	concurrent.RunTogether(200, life, life, func(i int) { _ = stay.Resize(1<<11 + i) },
		func(int) { stay.Arm(false); stay.pushWC(WC{}); stay.notifyWaiters() })
	stop()
	<-done
}
