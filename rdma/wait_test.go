package rdma

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// Whoever waits for completions reads the link, and still stops when its context ends, whichever of
// several contexts that is.
func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newLab(t, nil)
		a, b := x.join(nil)
		go func() { // answers every message
			for i := uint64(0); ; i++ {
				var wcs [1]WC
				for n := 0; n == 0; n, _ = b.cq.Poll(wcs[:]) {
					if b.cq.Wait(t.Context()) != nil {
						return
					}
				}
				if wcs[0].Opcode != rdmap.WCRecv || wcs[0].Status != rdmap.StatusSuccess {
					return
				}
				b.recv(i, 0, 64)
				b.post(SendWR{Op: OpSend, Inline: []byte("pong"), Flags: Unsignaled})
			}
		}()
		b.recv(0, 0, 64)
		for i := range uint64(64) {
			a.recv(i, 0, 64)
			a.post(SendWR{Op: OpSend, Inline: []byte("ping"), Flags: Unsignaled})
			must.Equal(t, "opcode", a.good().Opcode, rdmap.WCRecv)
			synctest.Wait()
		}
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			end := make(chan error)
			go func() { end <- a.cq.Wait(ctx) }()
			synctest.Wait()
			cancel()
			err := <-end
			check.That(t, errors.Is(err, context.Canceled), "%v", err)
		}
	})
}

// woken reports whether a CQ has given a token.
func woken(c *CQ) bool {
	select {
	case <-c.Ready():
		return true
	default:
		return false
	}
}

// A caller that waits for completions hears of those of a QP that was closed before it had a peer.
func TestCloseOfAQPWithoutAPeerWakesWhoWaits(t *testing.T) {
	a := newSide(t, newLab(t, nil).a, nil, nil)
	a.recv(1, 0, 8)
	a.cq.Arm(false)
	a.qp.Close()
	check.That(t, woken(a.cq) && a.wc().Status == rdmap.StatusWRFlushErr, "nobody is woken")
}

// Which completions wake the caller that has armed a CQ: any, or the solicited and the failed ones.
// A caller that waits for any goes on waiting for any.
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
			cq := must.Get(newLab(t, nil).a.CreateCQ(4))(t)
			for _, how := range row.arm {
				cq.Arm(how == solicited)
			}
			for i := range 2 { // it is armed for one
				wake := cq.pushWC(row.wc)
				if wake {
					cq.notifyWaiters()
				}
				want := row.want && i == 0
				check.That(t, wake == want && woken(cq) == want, "completion %d wakes: %v", i+1, wake)
			}
		})
	}
}

// watched is a context that counts who watches it.
type watched struct {
	context.Context
	done         chan struct{}
	begun, ended int
}

func (w *watched) Done() <-chan struct{} { return w.done }
func (w *watched) Err() error            { return context.Canceled } // for callers that look
func (w *watched) AfterFunc(func()) func() bool {
	w.begun++
	return func() bool { w.ended++; return true }
}

// Each context that a CQ is waited on with is watched once, and not any more when there is another.
func TestCQWatchesOneContext(t *testing.T) {
	cq := must.Get(newLab(t, nil).a.CreateCQ(1))(t)
	one, two := &watched{context.Background(), make(chan struct{}), 0, 0},
		&watched{context.Background(), make(chan struct{}), 0, 0}
	cq.ctxWatch.watchContext(one, cq.dev)
	cq.ctxWatch.watchContext(one, cq.dev)
	cq.ctxWatch.watchContext(two, cq.dev)
	check.That(t, one.begun == 1 && one.ended == 1 && two.begun == 1 && two.ended == 0, "%+v, then %+v", one, two)
}

// A CQ that has overflowed says so when what fits is polled, also before its QPs hear of it, and
// tells the Device once.
func TestOverflowIsToldOnce(t *testing.T) {
	d := newLab(t, nil).a
	cq := must.Get(d.CreateCQ(1))(t)
	over := must.Ended()
	check.That(t, !cq.pushWC(WC{ID: 1}) && cq.Wait(over) == nil && cq.pushWC(WC{ID: 2}),
		"the one that fits calls for help, or is not waited for, or the other does not")
	var wcs [2]WC
	n, err := cq.Poll(wcs[:])
	check.That(t, n == 1 && err == nil && wcs[0].ID == 1, "%d, %v", n, err)
	n, err = cq.Poll(wcs[:])
	check.That(t, n == 0 && err == ErrCQOverflow && cq.Wait(over) == nil, "%d, %v", n, err)
	cq.notifyWaiters()
	cq.notifyWaiters()
	event(t, d, EventCQError)
	ev, some := d.events.pop()
	check.That(t, !some && d.Stats().CQOverflows == 1 && cq.pushWC(WC{}) && !cq.pushWC(WC{}),
		"%+v, or Wait has not armed it, or one more that does not fit calls for help again", ev)
}
