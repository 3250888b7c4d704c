package sctp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/rawio"
)

// Of many, of which some have become earlier, none is late.
func TestManyTimersGoOffWhenTheyAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, conns, left, rand := time.Now(), make([]Conn, 500), 0, rand.New(rand.NewPCG(1, 2))
		now := func() rawio.Time { return rawio.Time(time.Since(start)) }
		h := newTimers(now, func(c *Conn) { left--; check.Equal(t, "goes off", now(), c.readAt) })
		for i := range conns {
			c := &conns[i]
			c.heapIndex, c.readAt = -1, rawio.Never
			c.due.Store(rawio.Never)
			for range 3 {
				c = &conns[rand.IntN(i+1)]
				c.readAt = min(c.readAt, rawio.Time(1+rand.IntN(1e9)))
				h.set(c, c.readAt)
			}
			h.remove(&conns[rand.IntN(i+1)])
		}
		h.mu.Lock()
		left = len(h.conns)
		h.mu.Unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		check.That(t, left == 0 && len(h.conns) == 0, "%d have not gone off", left)
	})
}

// Each deadline goes off when it is due, the earliest first, also one that has become earlier; one that is removed, or is
// left when the heap is closed, never does, and nothing keeps the closed heap at work.
func TestTimersGoOffWhenTheyAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		now := func() rawio.Time { return rawio.Time(time.Since(start)) }
		var conns [6]Conn
		var list []*Conn
		var fired []string
		var h *timers
		h = newTimers(now, func(c *Conn) {
			i := slices.IndexFunc(list, func(d *Conn) bool { return d == c })
			fired = append(fired, fmt.Sprint(i, " at ", time.Duration(now())))
			if i == 4 {
				h.close()
			}
		})
		for i := range conns {
			list = append(list, &conns[i])
			conns[i].heapIndex = -1
			conns[i].due.Store(rawio.Never)
		}
		for _, d := range []struct {
			conn int
			at   time.Duration
		}{{0, 3 * time.Second}, {1, time.Second}, {2, 2 * time.Second}, {3, 4 * time.Second}, {3, 500 * time.Millisecond}, {1, time.Hour}, {4, 5 * time.Second}, {5, 6 * time.Second}} {
			h.set(&conns[d.conn], rawio.Time(d.at))
		}
		h.remove(&conns[2])
		time.Sleep(time.Hour)
		synctest.Wait()
		check.Slice(t, "what went off", fired, []string{"3 at 500ms", "1 at 1s", "0 at 3s", "4 at 5s"})
		check.That(t, h.armed == rawio.Never && !h.timer.Stop(), "a closed heap has a timer")
	})
}
