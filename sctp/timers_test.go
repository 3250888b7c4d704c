package sctp

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// Of many, of which some have become earlier, none is late.
func TestManyTimersGoOffWhenTheyAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, conns, left, rand := time.Now(), make([]Conn, 500), 0, rand.New(rand.NewPCG(1, 2))
		now := func() rawio.Time { return rawio.Time(time.Since(start)) }
		h := newTimers(now, func(c *Conn) { left--; check.Equal(t, "goes off", now(), c.recv.lastReadAt) }, func() {})
		for i := range conns {
			c := &conns[i]
			c.recv.lastReadAt = rawio.Never
			c.timer.dueAt.Store(rawio.Never)
			for range 3 {
				c = &conns[rand.IntN(i+1)]
				c.recv.lastReadAt = min(c.recv.lastReadAt, rawio.Time(1+rand.IntN(1e9)))
				h.setDeadline(c, c.recv.lastReadAt, 0)
			}
			h.remove(&conns[rand.IntN(i+1)])
		}
		h.mu.Lock()
		left = h.heap.len()
		h.mu.Unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		check.That(t, left == 0 && h.heap.len() == 0, "%d have not gone off", left)
	})
}

// Each deadline goes off when it is due, the earliest first, also one that has become earlier or
// later; one that is removed, or is left when the heap is closed, never does, and nothing keeps the
// closed heap at work.
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
		}, func() {})
		for i := range conns {
			list = append(list, &conns[i])
			conns[i].timer.dueAt.Store(rawio.Never)
		}
		for _, d := range []struct {
			conn int
			at   time.Duration
		}{{0, 3 * time.Second}, {1, time.Second}, {2, 2 * time.Second}, {3, 4 * time.Second},
			{3, 500 * time.Millisecond}, {1, 2500 * time.Millisecond}, {4, 5 * time.Second}, {5, 6 * time.Second}} {
			h.setDeadline(&conns[d.conn], rawio.Time(d.at), 0)
		}
		h.remove(&conns[2])
		time.Sleep(time.Hour)
		synctest.Wait()
		check.Slice(t, "what went off", fired, []string{"3 at 500ms", "1 at 2.5s", "0 at 3s", "4 at 5s"})
		check.That(t, h.armedAt == rawio.Never && !h.timer.Stop(), "a closed heap has a timer")
	})
}

// What the send buffer had for a message is given back when the program has written nothing for a
// while, though no timer of the protocol goes off; a program that writes keeps it, and nothing goes
// off for an association that never had anything, has given it back, or has ended.
func TestQuietAssociationGivesMemoryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c, d := p.connect(t, quiet, quiet)
		held := func() int {
			c.lock()
			defer c.unlock()
			return c.send.buffer.heldOctets()
		}
		time.Sleep(time.Hour)
		check.That(t, c.timer.dueAt.Load() == rawio.Never && d.timer.dueAt.Load() == rawio.Never,
			"a timer of an idle association is due at %v, or %v", c.timer.dueAt.Load(), d.timer.dueAt.Load())
		for range 10 {
			must.Do(c.WriteMsg([]byte("x"), SendInfo{}))(t)
			time.Sleep(assoc.IdleAfter / 2)
			check.That(t, held() > 0, "a program that writes has lost its buffer")
		}
		rests := func(c *Conn) bool {
			c.lock()
			defer c.unlock()
			return c.core.IsIdle()
		}
		b := make([]byte, 10)
		for range 10 { // d has only to read, and has to for its memory
			check.That(t, !rests(d), "an association with unread messages rests")
			must.Two(d.ReadMsg(b))(t)
		}
		time.Sleep(2 * assoc.IdleAfter)
		check.Equal(t, "octets held", held(), 0)
		check.That(t, rests(c) && rests(d), "who wrote does not rest, or who read")
		time.Sleep(time.Hour)
		check.Equal(t, "when a timer of it is due", c.timer.dueAt.Load(), rawio.Never)
		must.Do(c.WriteMsg([]byte("x"), SendInfo{}))(t)
		must.Two(d.ReadMsg(b))(t)
		time.Sleep(3 * assoc.IdleAfter)
		check.That(t, held() == 0 && rests(c), "a lone message has left %d octets, or keeps it from resting", held())
		must.Do(c.WriteMsg([]byte("x"), SendInfo{}))(t)
		c.Abort("")
		check.Equal(t, "when one of an association that has ended is", c.timer.dueAt.Load(), rawio.Never)
	})
}

// What may be served earlier is when something else is due, so many together as go into one batch,
// and what they send goes when these were served. What is due is served however many there are, and
// what has moved nobody wakes up for.
func TestWhoIsAwakeServesOthersToo(t *testing.T) {
	const many = 2*maxServedAtOnce + 10
	for _, tt := range []struct {
		name string
		due  func(i int) time.Duration
		soon time.Duration // slack
		late time.Duration // to which all deadlines but that of the first are moved
		want string        // when, how many, how many batches
	}{
		{"no slack", func(i int) time.Duration { return time.Second * time.Duration(1+i) }, 0, 0, fmt.Sprint(time.Second, " 1 1, ", 2*time.Second, " 1 1")},
		{"slack", func(i int) time.Duration { return time.Second + time.Duration(i) }, time.Millisecond, 0, fmt.Sprint(time.Second, " 128 2, ", time.Second+128, " 128 2")},
		{"all are due", func(int) time.Duration { return time.Second }, 0, 0, fmt.Sprint(time.Second, " 266 3")},
		{"moved", func(i int) time.Duration { return time.Second + time.Duration(i) }, 0, 2 * time.Second, fmt.Sprint(time.Second, " 1 1, ", 2*time.Second, " 265 3")},
	} {
		synctest.Test(t, func(t *testing.T) {
			start, conns := time.Now(), make([]Conn, many)
			now := func() rawio.Time { return rawio.Time(time.Since(start)) }
			var mu sync.Mutex // a run may be over but for its last batch when the next begins
			var story []string
			at, n, batches := rawio.Time(0), 0, 0
			tell := func() {
				if n > 0 {
					story = append(story, fmt.Sprint(time.Duration(at), " ", n, " ", batches))
				}
				at, n, batches = now(), 0, 0
			}
			h := newTimers(now, func(*Conn) {
				mu.Lock()
				defer mu.Unlock()
				if now() != at {
					tell()
				}
				n++
			}, func() {
				mu.Lock()
				batches++
				mu.Unlock()
			})
			for i := range conns {
				conns[i].timer.dueAt.Store(rawio.Never)
				h.setDeadline(&conns[i], rawio.Time(tt.due(i)), tt.soon)
			}
			for i := 1; i < many && tt.late > 0; i++ {
				h.setDeadline(&conns[i], rawio.Time(tt.late), 0)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			tell()
			check.Equal(t, tt.name+": the first that went off", strings.Join(story[:min(2, len(story))], ", "), tt.want)
			check.Equal(t, tt.name+": left", h.heap.len(), 0)
		})
	}
}
