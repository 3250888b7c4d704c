package sctp

import (
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
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
