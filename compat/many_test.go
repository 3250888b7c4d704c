package compat

import (
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp"
)

// All calls may be made at once, of sockets that listen, connect, are connected, and end. The race
// detector looks on.
func TestCallsFromManyGoroutines(t *testing.T) {
	l, at := listenSocket(t)
	var all sync.WaitGroup
	go func() {
		for i := range byte(20) {
			_ = l.Setsockopt(optNoDelay, []byte{i & 1, 0, 0, 0})
			_ = l.Setsockopt(optContext, append(make([]byte, 4), i, 0, 0, 0))
			_, _ = l.Getsockopt(optContext, make([]byte, 8))
			_, _, _ = l.LocalAddrs()
		}
	}()
	ppids := new(PPIDs)
	for range 3 {
		all.Go(func() {
			ppids.In(ppids.Out(46))
			a := NewSocket(false, false)
			must.Get(a.Connect(at))(t)
			b := must.Get(l.Accept())(t)
			var calls sync.WaitGroup
			for _, s := range []*Socket{a, b} {
				for _, call := range []func(){
					func() { _, _ = s.Send([]byte("x"), nil) },
					func() { _, _ = s.Send([]byte("x"), &SndRcvInfo{Stream: 1}) },
					func() { readSocket(s, 1) },
					func() { readSocket(s, 99) },
					func() { _ = s.SetTimeout(false, time.Millisecond) },
					func() { _ = s.SetTimeout(true, time.Second) },
					func() { _ = s.SetReadDeadline(time.Now().Add(time.Hour)) },
					func() { _ = s.Setsockopt(optEvents, []byte{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}) },
					func() { _ = s.Setsockopt(optMappedV4, []byte{0, 0, 0, 0}) },
					func() { _ = s.SetBuffer(true, 100_000) },
					func() { _, _ = s.Buffer(false) },
					func() { s.notifyCutOff(new(sctp.RecvInfo)) },
					func() { _, _ = s.Getsockopt(optStatus, make([]byte, 176)) },
					func() { _, _ = s.Getsockopt(optPeerAddrParams, make([]byte, 156)) },
					func() { _, _, _ = s.LocalAddrs() },
					func() { _, _, _ = s.RemoteAddrs() },
					func() { _ = s.Shutdown() },
				} {
					calls.Go(call)
					calls.Go(call)
				}
			}
			calls.Wait()
			check.OK(t, a.Dup().Close())
			check.OK(t, a.Close())
			check.OK(t, b.Close())
		})
	}
	all.Wait()
}

// A call that waits sleeps until it has a reason to look: what has no end in time sets no deadline,
// and what was news once is not for ever.
func TestWaitsDoNotSpin(t *testing.T) {
	var set []time.Time
	w := &callWaits{setConnDeadline: func(at time.Time) error { set = append(set, at); return nil }}
	last := func() time.Time { return set[len(set)-1] }
	w.updateWaits(func(*callWaits) {})
	check.Equal(t, "deadlines of one who waits for ever", len(set), 0)
	check.That(t, w.beginCall() == nil, "a call without a timeout has an end")
	w.endCall(nil)

	w.updateWaits(func(w *callWaits) { w.timeout = time.Hour })
	check.Equal(t, "deadlines of nobody", len(set), 0)
	before := time.Now()
	first, second := w.beginCall(), w.beginCall()
	in := first.Sub(before)
	check.That(t, in >= time.Hour && in < time.Hour+time.Minute && last() == *first,
		"an hour is %v, the deadline that of %v", in, last())
	check.Equal(t, "one whose time is not over", w.checkExpired(first), nil)
	w.endCall(first)
	check.Equal(t, "the deadline", last(), *second)
	*second = before
	check.Equal(t, "one whose time is over", w.checkExpired(second), error(syscall.EAGAIN))
	w.endCall(second)
	check.That(t, last().IsZero() && len(w.callEnds) == 0, "when nobody waits: %v", last())

	n := len(set)
	w.setLookAgain(true)
	check.Equal(t, "the deadline when there is news", last(), pastTime)
	check.Equal(t, "one that looks", w.checkExpired(nil), nil)
	w.setLookAgain(true)
	w.setLookAgain(false)
	check.That(t, last().IsZero() && len(set) == n+2, "%d deadlines, the last %v", len(set)-n, last())

	deadline := before.Add(time.Hour)
	w.updateWaits(func(w *callWaits) { w.timeout, w.deadline = 0, deadline })
	check.That(t, last() == deadline && w.checkExpired(nil) == nil, "deadline %v", last())
	w.updateWaits(func(w *callWaits) { w.timeout = 2 * time.Hour })
	end := w.beginCall()
	check.Equal(t, "the deadline before a later end", last(), deadline)
	w.endCall(end)
	w.updateWaits(func(w *callWaits) { w.nonblock = true })
	check.That(t, last() == pastTime && w.checkExpired(nil) == syscall.EAGAIN, "without waiting: %v", last())
}
