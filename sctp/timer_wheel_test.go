package sctp

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/concurrent"
	"github.com/rddp-go/rddp/rawio"
)

// crowdOfTimers has so many associations that near deadlines go to the wheel, and each wait for the
// next HEARTBEAT.
func crowdOfTimers(fire func(*Conn)) (h *timers, now func() rawio.Time, conns []Conn) {
	start := time.Now()
	now = func() rawio.Time { return rawio.Time(time.Since(start)) }
	h, conns = newTimers(now, fire, func() {}), make([]Conn, manyAssocsMin+100)
	for i := range conns {
		c := &conns[i]
		c.timer.dueAt.Store(rawio.Never)
		c.timer.heapAt = rawio.Never
		h.setDeadline(c, rawio.Time(30*time.Second+time.Duration(i)), 0)
	}
	return h, now, conns
}

// Of many, whose deadlines become earlier and later by chance, within the wheel's slots, around and
// beyond them, each is served when it wants to be, and none but then.
func TestCrowdIsServedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // of all that is the test's
		var h *timers
		var now func() rawio.Time
		fired, early := 0, 0
		h, now, conns := crowdOfTimers(func(c *Conn) {
			mu.Lock()
			defer mu.Unlock()
			if fired++; c.timer.wantedAt.Load() != now() {
				early++
			}
			h.setDeadline(c, now().Add(600*time.Millisecond), 0) // too far for the wheel
		})
		rand, late := rand.New(rand.NewPCG(3, 4)), 0
		for range 5000 {
			mu.Lock()
			for range rand.IntN(20) {
				c, ahead := &conns[rand.IntN(len(conns))], time.Duration(1+rand.IntN(int(time.Second)>>rand.IntN(10)))
				if rand.IntN(8) == 0 { // some have ended, and others began
					h.remove(c)
				}
				h.setDeadline(c, now().Add(ahead), 0)
			}
			mu.Unlock()
			time.Sleep(time.Duration(rand.IntN(int(4 * time.Millisecond))))
			synctest.Wait()
			mu.Lock()
			for i := range conns {
				if conns[i].timer.wantedAt.Load() < now() {
					late++
				}
			}
			mu.Unlock()
		}
		check.That(t, fired > 10_000 && early == 0 && late == 0,
			"%d were served, %d at a wrong time; %d times one was late", fired, early, late)
		for i := range conns {
			h.remove(&conns[i])
		}
		time.Sleep(time.Second)
		synctest.Wait()
		check.That(t, h.wheel.numDeadlines == 0 && h.armedAt == rawio.Never,
			"the wheel has %d deadlines, of none; the timer is set for %v", h.wheel.numDeadlines, h.armedAt)
	})
}

// A near deadline that moves before it comes leaves the heap as it was, and what the wheel has of
// it goes with its slot.
func TestDeadlineThatMovesLeavesTheHeapAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, now, conns := crowdOfTimers(func(*Conn) { t.Error("served") })
		c, far := &conns[len(conns)-1], rawio.Time(30*time.Second+time.Duration(len(conns)-1))
		place := h.heap.positions[c.timer.heapID-1]
		for range 10 {
			h.setDeadline(c, now().Add(20*time.Millisecond), 0)
			h.mu.Lock() // the timer may go off at any time
			check.Equal(t, "deadlines in the wheel", h.wheel.numDeadlines, 1)
			h.mu.Unlock()
			h.setDeadline(c, far+1, 0)
			time.Sleep(20 * time.Millisecond)
			synctest.Wait()
			check.That(t, h.wheel.numDeadlines == 0 && c.timer.dueAt.Load() == far && c.timer.heapAt == far &&
				h.heap.positions[c.timer.heapID-1] == place, "%d deadlines in the wheel, due %v, in the heap %v",
				h.wheel.numDeadlines, c.timer.dueAt.Load(), c.timer.heapAt)
		}
		h.setDeadline(c, now().Add(20*time.Millisecond), 0)
		h.close()
		check.Equal(t, "deadlines in the wheel of closed timers", h.wheel.numDeadlines, 0)
		time.Sleep(time.Minute)
	})
}

// The wheel takes what is due after the slot that has begun, and before it has gone round, or where
// few come before a quarter of that.
func TestWheelTakesWhatIsNear(t *testing.T) {
	const slot = wheelSlotNanos
	now := rawio.Time(10*slot + 5)
	type deadline struct {
		due, begins rawio.Time
		ok          bool
	}
	for reach, last := range map[rawio.Time][2]deadline{
		wheelNearSlots: {{(11+wheelNearSlots)*slot - 1, (10 + wheelNearSlots) * slot, true},
			{(11 + wheelNearSlots) * slot, 0, false}},
		wheelSlots: {{(11+wheelSlots)*slot - 1, (10 + wheelSlots) * slot, true},
			{(11 + wheelSlots) * slot, 0, false}},
	} {
		for _, tt := range append([]deadline{{now, 0, false}, {11*slot - 1, 0, false}, {11 * slot, 11 * slot, true},
			{12*slot - 1, 11 * slot, true}, {rawio.Never, 0, false}}, last[:]...) {
			w := timerWheel{isBusy: reach == wheelSlots}
			begins, ok := w.tryPut(func() rawio.Time { return now }, nil, tt.due)
			check.That(t, ok == tt.ok && begins == tt.begins, "due at %d: %d, %v", tt.due, begins, ok)
			if !ok {
				check.That(t, w.numDeadlines == 0 && w.nextSlotAt() == rawio.Never,
					"due at %d: refused, and %d are there", tt.due, w.numDeadlines)
				continue
			}
			check.Equal(t, "the first slot begins", w.nextSlotAt(), tt.begins)
			check.That(t, w.takeSlot(tt.begins-1) == nil, "due at %d: taken before its slot begins", tt.due)
			list := w.takeSlot(tt.begins)
			check.That(t, len(list) == 1 && list[0].dueAt == tt.due && w.numDeadlines == 0 &&
				w.takeSlot(tt.begins) == nil, "due at %d: %v, and %d are left", tt.due, list, w.numDeadlines)
		}
	}
}

// What is a second ahead goes to the wheel while many come, by the time that has passed, and to the
// heap again when few do.
func TestWheelReachesFarWhereManyCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *timers
		var now func() rawio.Time
		h, now, conns := crowdOfTimers(func(c *Conn) { h.setDeadline(c, now().Add(time.Minute), 0) })
		far := func(what string, c *Conn, want int) {
			t.Helper()
			h.mu.Lock()
			before := h.wheel.numDeadlines
			h.mu.Unlock()
			h.setDeadline(c, now().Add(time.Second), 0)
			h.mu.Lock()
			defer h.mu.Unlock()
			check.Equal(t, what+": a second ahead, in the wheel", h.wheel.numDeadlines-before, want)
		}
		come := func(n, times int) {
			for range times {
				for i := range n {
					h.setDeadline(&conns[i], now().Add(20*time.Millisecond), 0)
				}
				// and each is served, which has it come once more
				time.Sleep(wheelNearSlots * wheelSlotNanos / time.Duration(times))
				synctest.Wait()
			}
		}
		far("at first", &conns[500], 0)
		come(200, 8)
		come(200, 8)
		far("many", &conns[501], 1)
		come(50, 8)
		come(400, 1)
		come(400, 1)
		far("few, though many at once", &conns[502], 0)
		h.close()
	})
}

// The deadlines of a crowd move while the timers are served, and none is lost by that.
func TestDeadlinesOfACrowdMoveWhileOthersAreServed(t *testing.T) {
	const moving = 8
	var owned [moving]sync.Mutex // each has one owner at a time, as an association has
	var come [moving]chan struct{}
	index := map[*Conn]int{}
	var now func() rawio.Time
	h, now, conns := crowdOfTimers(func(c *Conn) {
		i := index[c]
		owned[i].Lock()
		defer owned[i].Unlock()
		if come[i] != nil && c.timer.wantedAt.Load() <= now() {
			close(come[i])
			come[i] = nil
		}
	})
	for i := range moving {
		index[&conns[i]] = i
	}
	own := func(i int, do func(c *Conn)) {
		owned[i].Lock()
		defer owned[i].Unlock()
		do(&conns[i])
	}
	set := func(ahead time.Duration) func(int) {
		return func(i int) { own(i%moving, func(c *Conn) { h.setDeadline(c, now().Add(ahead), 0) }) }
	}
	concurrent.RunTogether(2000, set(time.Hour), set(100*time.Microsecond), set(9*time.Millisecond),
		set(20*time.Millisecond),
		func(i int) { own(i*3%moving, h.remove) }, func(int) { h.runExpired() })
	var wait []chan struct{}
	for i := range moving {
		own(i, func(c *Conn) {
			come[i] = make(chan struct{})
			wait = append(wait, come[i])
			h.setDeadline(c, now().Add(10*time.Millisecond), 0)
		})
	}
	for _, c := range wait {
		<-c
	}
	h.close()
}
