package sctp

import (
	"errors"
	"net"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/sched"
)

// Calls that wait for room in the send buffer are served in the order in which they came, whatever
// the length of their messages, and none that comes later goes before them. One that gives up in
// the middle keeps nobody.
func TestWritersAreServedInOrder(t *testing.T) {
	const large, short = 40 << 10, 100
	for _, row := range []struct {
		name    string
		lengths []int
		gives   int // up, by its deadline; -1: none
	}{
		{"short behind large", []int{large, short, short}, -1},
		{"large behind short and large", []int{large, short, large, short}, -1},
		{"the first gives up", []int{large, large, short}, 0},
		{"one in the middle gives up", []int{large, large, short}, 1},
		{"the last gives up", []int{large, short, large}, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calm := &Config{DisablePMTUD: true, HeartbeatInterval: -1, SendBuffer: 64 << 10}
				c, s := newPair(t).connect(t, calm, quiet)
				synctest.Wait()
				s.lock() // nothing is acknowledged
				must.Do(c.WriteMsg(make([]byte, 60<<10), SendInfo{}))(t)
				ended := make(chan int, len(row.lengths))
				want := []int{60 << 10}
				for i, n := range row.lengths {
					if i != row.gives {
						want = append(want, n)
					}
					d := &deadline{t: c.t}
					if i == row.gives {
						d.set(time.Now().Add(time.Millisecond))
					}
					go func() {
						_, err := c.writeMessage(make([]byte, n), SendInfo{}, d)
						check.That(t, (err == os.ErrDeadlineExceeded) == (i == row.gives) &&
							(err == nil) == (i != row.gives), "call %d: %v", i, err)
						ended <- i
					}()
					synctest.Wait()
					check.Equal(t, "calls that did not wait", len(ended), 0)
				}
				if row.gives >= 0 {
					time.Sleep(time.Millisecond)
					synctest.Wait()
					check.Equal(t, "the call that gives up", <-ended, row.gives)
				}
				s.unlock()
				var got []int
				buf := make([]byte, 64<<10)
				for range want {
					n, _, err := s.ReadMsg(buf)
					must.OK(t, err)
					got = append(got, n)
				}
				check.That(t, slices.Equal(got, want), "messages of %v octets, want %v", got, want)
				synctest.Wait()
				c.lock()
				check.That(t, c.send.firstWriter == nil, "calls still wait")
				c.unlock()
			})
		})
	}
}

// A larger SendBuffer wakes those that wait for room, as far as it has room for them, and they keep
// their order.
func TestLargerSendBufferWakesWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calm := &Config{DisablePMTUD: true, HeartbeatInterval: -1, SendBuffer: 4 << 10}
		c, s := newPair(t).connect(t, calm, quiet)
		synctest.Wait()
		s.lock() // nothing is acknowledged
		must.Do(c.WriteMsg(make([]byte, 4<<10), SendInfo{}))(t)
		const writers = 3
		ended := make(chan int, writers)
		for i := range writers {
			go func() {
				must.Do(c.WriteMsg(make([]byte, 3<<10), SendInfo{}))(t)
				ended <- i
			}()
			synctest.Wait()
		}
		check.Equal(t, "calls that did not wait", len(ended), 0)
		must.OK(t, c.Reconfigure(func(cfg *Config) { cfg.SendBuffer = 64 << 10 }))
		synctest.Wait()
		check.Equal(t, "calls that are woken", len(ended), writers)
		s.unlock()
	})
}

// Events that come together wake as many calls of NextEvent as there are events.
func TestEventsThatComeTogetherWakeEveryReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newPair(t).connect(t, &Config{DisablePMTUD: true, HeartbeatInterval: -1, Events: 9}, quiet)
		expectEvent(t, c, EventUp)
		const readers = 3
		got := make(chan Event, readers)
		for range readers {
			go func() { got <- must.Get(c.NextEvent(t.Context()))(t) }()
		}
		synctest.Wait()
		c.lock()
		for range readers {
			c.queueEvent(assoc.Event{Kind: assoc.EventMTUChanged})
		}
		c.unlock()
		synctest.Wait()
		check.Equal(t, "readers that are woken", len(got), readers)
	})
}

// Under a scheduler a stream that writes little does not wait for one that fills the send buffer.
// Calls of one stream keep their order, and so do those that wait for room in all of it.
func TestWritersOfStreamsAreServedApart(t *testing.T) {
	const bulk = 60 << 10
	for _, row := range []struct {
		name  string
		calls []SendInfo // of messages of 1500 octets, but for bulk on stream 1
		soon  []int      // calls that end before there is any acknowledgement
		order []uint16   // streams of messages as they arrive, behind the first
	}{
		{"one short", []SendInfo{{Stream: 1}, {Stream: 2}}, []int{1}, []uint16{2, 1}},
		{"short behind bulk of its own", []SendInfo{{Stream: 1}, {Stream: 1, PPID: 1}}, nil, []uint16{1, 1}},
		{"two streams", []SendInfo{{Stream: 1}, {Stream: 3}, {Stream: 1}, {Stream: 2}}, []int{1, 3}, []uint16{2, 3, 1, 1}},
		{"more than its share", []SendInfo{{Stream: 1}, {Stream: 2}, {Stream: 2}, {Stream: 2}, {Stream: 2}}, []int{1, 2},
			[]uint16{2, 2, 2, 2, 1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := newPair(t).connect(t, &Config{DisablePMTUD: true, HeartbeatInterval: -1, SendBuffer: 64 << 10,
					NewScheduler: sched.Priority}, quiet)
				for i := range uint16(4) {
					must.OK(t, c.SetStreamValue(i, 4-i))
				}
				must.OK(t, c.SetStreamValue(2, 0))
				synctest.Wait()
				s.lock() // nothing is acknowledged
				must.Do(c.WriteMsg(make([]byte, bulk), SendInfo{Stream: 1}))(t)
				ended := make([]chan error, len(row.calls))
				for i, info := range row.calls {
					n := 1500
					if info.Stream == 1 && info.PPID == 0 {
						n = bulk
					}
					ended[i] = make(chan error, 1)
					go func() { _, err := c.WriteMsg(make([]byte, n), info); ended[i] <- err }()
					synctest.Wait()
				}
				for i, e := range ended {
					check.Equal(t, "call "+string('0'+rune(i))+" has ended", len(e) > 0, slices.Contains(row.soon, i))
				}
				s.unlock()
				var got []uint16
				buf := make([]byte, 64<<10)
				for i := range 1 + len(row.calls) {
					_, info, err := s.ReadMsg(buf)
					if must.OK(t, err); i > 0 || info.Stream != 1 {
						got = append(got, info.Stream)
					}
				}
				check.Equal(t, "messages behind the first", len(got), len(row.order))
				slices.Sort(got[len(row.soon):]) // they wait for room that comes bit by bit
				slices.Sort(row.order[len(row.soon):])
				check.That(t, slices.Equal(got, row.order), "streams %v, want %v", got, row.order)
				for _, e := range ended {
					must.OK(t, <-e)
				}
				c.lock()
				check.That(t, c.send.firstWriter == nil, "calls still wait")
				c.unlock()
			})
		})
	}
}

// Calls that wait under a scheduler hear of the end, of a deadline, and of another scheduler.
func TestWritersOfStreamsDoNotWaitForNothing(t *testing.T) {
	end := errors.New("any error")
	for _, row := range []struct {
		name string
		do   func(c, s *Conn, d *deadline)
		want []error // of two calls of stream 1 and one of stream 2; nil: they have written
	}{
		{"close", func(c, _ *Conn, _ *deadline) { c.Close() }, []error{net.ErrClosed, net.ErrClosed, net.ErrClosed}},
		{"deadline", func(_, _ *Conn, d *deadline) { d.set(time.Unix(1, 0)) }, []error{os.ErrDeadlineExceeded, nil, nil}},
		{"no scheduler", func(c, _ *Conn, _ *deadline) { c.SetScheduler(nil) }, []error{nil, nil, nil}},
		{"another one", func(c, _ *Conn, _ *deadline) { c.SetScheduler(sched.RoundRobin()) }, []error{nil, nil, nil}},
		{"one that is no more and is again", func(c, _ *Conn, _ *deadline) {
			c.SetScheduler(nil)
			synctest.Wait()
			c.SetScheduler(sched.FairCapacity())
		}, []error{nil, nil, nil}},
		{"abort", func(c, _ *Conn, _ *deadline) { c.Abort("over") }, []error{end, end, end}},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := newPair(t).connect(t, &Config{DisablePMTUD: true, HeartbeatInterval: -1, SendBuffer: 8000,
					NewScheduler: sched.RoundRobin}, quiet)
				synctest.Wait()
				s.lock() // nothing is acknowledged
				must.Do(c.WriteMsg(make([]byte, 8000), SendInfo{Stream: 1}))(t)
				must.Do(c.WriteMsg(make([]byte, 400), SendInfo{Stream: 2}))(t)
				d := &deadline{t: c.t}
				ended := make([]chan error, 3)
				for i, stream := range []uint16{1, 1, 2} {
					ended[i] = make(chan error, 1)
					go func() {
						of := &deadline{t: c.t}
						if i == 0 {
							of = d
						}
						_, err := c.writeMessage(make([]byte, 1000), SendInfo{Stream: stream}, of)
						ended[i] <- err
					}()
					synctest.Wait()
					check.Equal(t, "calls that have ended", len(ended[i]), 0)
				}
				row.do(c, s, d)
				synctest.Wait()
				s.unlock()
				go readAll(s)
				for i, e := range ended {
					err := <-e
					check.That(t, (err == nil) == (row.want[i] == nil), "call %d: %v, want %v", i, err, row.want[i])
				}
			})
		})
	}
}
