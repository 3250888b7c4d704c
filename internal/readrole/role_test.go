package readrole_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/readrole"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// reader is a receive goroutine whose read returns only when it is interrupted.
type reader struct {
	readrole.Role
	interrupted chan struct{}
	closed      chan struct{}
}

func newReader(t *testing.T) *reader {
	r := &reader{interrupted: make(chan struct{}, 1), closed: make(chan struct{})}
	epoch := time.Now()
	r.Init(func() { r.interrupted <- struct{}{} }, func() rawio.Time { return rawio.Time(time.Since(epoch)) })
	go func() {
		defer r.Retire()
		for {
			for !r.GrantRequest() {
				select {
				case <-r.interrupted:
				case <-r.closed:
					r.End()
					return
				}
			}
			if !r.HandOver(r.closed) {
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(r.closed)
		<-r.Retired()
		r.End()
	})
	return r
}

// has checks who has the role.
func (r *reader) has(t *testing.T, when string, want readrole.State) {
	t.Helper()
	synctest.Wait()
	check.Equal(t, "state "+when, r.State(), want)
}

// inBubble runs a test with a receive goroutine, in virtual time.
func inBubble(t *testing.T, f func(t *testing.T, r *reader, now func() rawio.Time)) {
	synctest.Test(t, func(t *testing.T) {
		epoch := time.Now()
		f(t, newReader(t), func() rawio.Time { return rawio.Time(time.Since(epoch)) })
	})
}

func TestRoleGoesToWhoIsQuick(t *testing.T) {
	inBubble(t, func(t *testing.T, r *reader, now func() rawio.Time) {
		r.has(t, "at first", readrole.Receiver)
		check.Equal(t, "given to a caller that is not quick", r.Take(true, false), false)
		check.Equal(t, "given where callers may not have it", r.Take(false, true), false)
		r.has(t, "after these", readrole.Receiver)
		must.That(t, r.Take(true, true), "not given to one that is quick")
		r.has(t, "while it reads", readrole.Caller)
		check.Equal(t, "given to two at a time", r.Take(true, true), false)
		r.Leave(now(), true)
		r.has(t, "while it does something else", readrole.Free)
		must.That(t, r.Take(true, true), "not given when it is back")
		r.Leave(now(), false)
		r.has(t, "when callers may not have it any more", readrole.Receiver)
	})
}

func TestReceiverTakesWhatIsLeftAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, r *reader, now func() rawio.Time) {
		must.That(t, r.Take(true, true), "not given")
		r.Leave(now(), true)
		for range 10 { // it is there now and then, whenever the timer looks
			time.Sleep(readrole.MaxLeftAlone - time.Microsecond) // of virtual time
			r.has(t, "while it is away", readrole.Free)
			must.That(t, r.Take(true, true), "not given when it is back")
			r.Leave(now(), true)
		}
		time.Sleep(readrole.MaxLeftAlone - time.Microsecond)
		r.has(t, "just before it has been away for long", readrole.Free)
		time.Sleep(time.Microsecond)
		r.has(t, "when it has been", readrole.Receiver)
	})
}

func TestRoleForWhoIsSlow(t *testing.T) {
	for _, tt := range []struct {
		name  string
		quick int // times that it was quick before
		lends bool
		gets  int // times in a row that it then gets the role, slow each time
	}{
		{"never quick", 1, true, 0},
		{"quick a few times", readrole.SlowReturnCost, true, 0},
		{"quick often enough for one", readrole.SlowReturnCost + 1, true, 1},
		{"always quick", 10 * readrole.MaxPromptScore, true, readrole.MaxPromptScore / readrole.SlowReturnCost},
		{"callers may not have it", 10 * readrole.MaxPromptScore, false, 0},
	} {
		inBubble(t, func(t *testing.T, r *reader, now func() rawio.Time) {
			for range tt.quick {
				must.That(t, r.Take(true, true), "%s: not given", tt.name)
				r.Leave(now(), true)
			}
			got := 0
			for r.Take(tt.lends, false) {
				got++
				r.Leave(now(), true)
			}
			check.Equal(t, tt.name+": times given", got, tt.gets)
			r.has(t, tt.name+": once it was refused", readrole.Receiver) // at once, so that somebody reads
		})
	}
}

// A caller that asks while the receive goroutine comes to its end does not wait for ever.
func TestRoleAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r readrole.Role
		r.Init(func() { // the receive goroutine finds an error instead
			r.End()
			r.Retire()
		}, func() rawio.Time { return 0 })
		check.Equal(t, "given", r.Take(true, true), false)
		check.Equal(t, "state", r.State(), readrole.Ended)
		<-r.Retired()
		check.Equal(t, "given later", r.Take(true, true), false)
	})
}
