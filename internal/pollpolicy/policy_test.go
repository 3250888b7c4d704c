package pollpolicy

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/rawio"
)

const testWake = 20 * time.Microsecond

// load is a pattern of what arrives: batches, with waits between them, some of which wake a
// goroutine.
type load struct {
	name           string
	packets        int
	size           int
	work           time.Duration // that those whom it wakes have before they are done
	wait           time.Duration // after that
	every          int           // so manieth batch wakes somebody
	wakes          uint64        // so many goroutines
	answers        bool          // they send something
	state          State
	follows, keeps bool
	lends          time.Duration
	pause          [3]rawio.Pause // at once, again, after a long while
}

var loads = []load{
	{"ping-pong", 1, 100, 0, testWake / 8, 1, 1, false, PingPong, false, false, 6 * testWake, [3]rawio.Pause{rawio.Yield, rawio.Cede, rawio.Park}},
	{"ping-pong of ends that sleep", 1, 100, 0, 5 * testWake, 1, 1, false, PingPong, false, false, 6 * testWake, [3]rawio.Pause{rawio.Yield, rawio.Yield, rawio.Park}},
	{"a message now and then", 1, 100, 0, time.Millisecond, 1, 1, false, Idle, false, false, 6 * testWake, [3]rawio.Pause{rawio.Park, rawio.Park, rawio.Park}},
	{"messages for many", 16, 100, 0, 10 * time.Microsecond, 1, maxFewWoken, true, Concurrent, true, false, 0, [3]rawio.Pause{rawio.Yield, rawio.Cede, rawio.Park}},
	{"messages for more", 16, 100, 0, 10 * time.Microsecond, 1, maxFewWoken + 1, true, Concurrent, true, false, 0, [3]rawio.Pause{rawio.Cede, rawio.Cede, rawio.Park}},
	{"messages for many, now and then", 16, 100, 0, time.Millisecond, 1, 1, true, Concurrent, true, false, 0, [3]rawio.Pause{rawio.Yield, rawio.Park, rawio.Park}},
	{"a stream of messages for one", 16, 1500, 0, 10 * time.Microsecond, 2, 1, false, Concurrent, true, false, testWake / 2, [3]rawio.Pause{rawio.Yield, rawio.Cede, rawio.Park}},
	{"a stream of messages for two", 16, 1500, 0, 10 * time.Microsecond, 2, 2, false, Concurrent, true, false, 0, [3]rawio.Pause{rawio.Yield, rawio.Cede, rawio.Park}},
	{"work for each, as much at the peer", 1, 100, 10 * testWake, 10 * testWake, 1, 1, false, PingPong, false, false, 6 * testWake, [3]rawio.Pause{rawio.Yield, rawio.Yield, rawio.Park}},
	{"work for many, as much at the peer", 16, 100, 20 * testWake, 20 * testWake, 1, 40, true, Concurrent, true, false, 0, [3]rawio.Pause{rawio.Cede, rawio.Cede, rawio.Park}},
	{"long work now and then", 1, 100, 10 * testWake, 2 * time.Millisecond, 1, 1, false, Idle, false, false, 6 * testWake, [3]rawio.Pause{rawio.Park, rawio.Park, rawio.Park}},
	{"bulk", 40, 1500, 0, 30 * time.Microsecond, 100, 1, false, Bulk, true, true, 0, [3]rawio.Pause{rawio.Block, rawio.Park, rawio.Park}},
	{"long packets", 1, 64000, 0, 30 * time.Microsecond, 100, 1, false, Bulk, false, true, 0, [3]rawio.Pause{rawio.Block, rawio.Park, rawio.Park}},
	{"acknowledgements of bulk", 1, 40, 0, 30 * time.Microsecond, 0, 1, false, PingPong, false, false, 6 * testWake, [3]rawio.Pause{rawio.Yield, rawio.Cede, rawio.Park}},
}

// reader is what a Pace is told in virtual time.
type reader struct {
	*Policy
	now  rawio.Time
	n    int
	rand *rand.Rand
	cpu  int // that the reader runs on

	places int // for goroutines to run
}

func newReader(poll time.Duration) *reader {
	r := &reader{Policy: New(poll, nil), rand: rand.New(rand.NewPCG(1, 2))}
	r.wakeCost = func() time.Duration { return testWake }
	r.places = 2
	r.yieldPolicy.cpuNumber, r.yieldPolicy.hasSingleCPU, r.yieldPolicy.maxProcs = func() int { return r.cpu }, false,
		func() int { return r.places }
	return r
}

// runBatch is a batch of the load, after its wait, which scatters.
func (r *reader) runBatch(l load) {
	done := r.now.Add(l.work)
	comes := done.Add(l.wait/2 + time.Duration(r.rand.Int64N(int64(l.wait))))
	for p := r.NextPause(r.now); r.now.Before(comes) && (p == rawio.Yield || p == rawio.Cede); p = r.NextPause(r.now) {
		r.now = max(done, r.now.Add(testWake/8))
	}
	r.now = max(r.now, comes)
	r.RecordArrival(r.now, l.packets)
	woken := uint64(0)
	if r.n++; l.every > 0 && r.n%l.every == 0 {
		woken = l.wakes
	}
	r.RecordHandled(l.packets, l.packets*l.size, woken, l.answers && woken > 0)
}

// Each load has one state, whatever came before it: the reader is there within 100 ms, and has not
// changed its mind more than twice on the way.
func TestOneLoadLeadsToOneStateWhateverCameBefore(t *testing.T) {
	race.Alone(t)
	for _, before := range loads {
		for _, l := range loads {
			r := newReader(0)
			for range 1000 {
				r.runBatch(before)
			}
			changes, last := 0, r.State()
			begin := r.now
			there := r.now
			for i := 0; i < 1000 || r.now.Sub(begin) < 200*time.Millisecond; i++ {
				r.runBatch(l)
				if s := r.State(); s != last {
					changes, last, there = changes+1, s, r.now
				}
			}
			check.That(t, last == l.state && changes <= 2 && there.Sub(begin) <= 100*time.Millisecond,
				"%s after %s: %v, after %d changes and %v, want %v", l.name, before.name, last, changes,
				there.Sub(begin), l.state)
			check.Equal(t, l.name+" after "+before.name+": lends", r.LendLimit(), l.lends)
		}
	}
}

// The state answers what the reader asks.
func TestWhatTheReaderDoesFollowsFromTheState(t *testing.T) {
	for _, l := range loads {
		r := newReader(0)
		for range 1001 { // not at one of those waits in which a quiet reader measures
			r.runBatch(l)
		}
		check.That(t, r.ExpectsMore(l.packets) == l.follows && r.KeepsThread() == l.keeps && r.LendLimit() == l.lends,
			"%s: follows %v, keeps %v, lends %v", l.name, r.ExpectsMore(l.packets), r.KeepsThread(), r.LendLimit())
		n := len(r.LimitRoom(make([]rawio.Packet, 8)))
		check.That(t, (n == 1) == (l.state == PingPong) && (n == 1 || n == 8), "%s: room for %d", l.name, n)
		got := [3]rawio.Pause{r.NextPause(r.now), r.NextPause(r.now.Add(r.spinBudget() - 1)),
			r.NextPause(r.now.Add(r.spinBudget()))}
		check.Equal(t, l.name+": pauses", got, l.pause)
	}
}

// A link that was told how long to poll does so, whatever comes, and one that was told not to never
// does.
func TestPollingIsAsConfigured(t *testing.T) {
	for _, l := range loads {
		long, never := newReader(time.Second), newReader(-1)
		for range 1000 {
			long.runBatch(l)
			never.runBatch(l)
		}
		first := long.NextPause(long.now)
		late := long.NextPause(long.now.Add(time.Second))
		check.That(t, first == rawio.Yield && late != rawio.Yield, "%s: told to poll: %v, then %v", l.name, first, late)
		check.That(t, never.NextPause(never.now) != rawio.Yield, "%s: polls, as it was not to", l.name)
	}
}

// Where the processor time runs out nobody looks for packets, for a while.
func TestReaderWithAQuotaDoesNotLook(t *testing.T) {
	for _, l := range loads {
		r, times := newReader(0), int64(7)
		r.quotaGuard = newQuotaGuard(func() int64 { return times })
		looks := l.pause[1] != rawio.Park
		for _, more := range []int64{0, 0, 1, 0} {
			r.now, times = r.now.Add(quotaGuardTime), times+more
			for range 5000 { // it was away, as if somebody had computed
				r.runBatch(l)
			}
			r.NextPause(r.now)
			p := r.NextPause(r.now.Add(testWake))
			check.That(t, (p == rawio.Park || p == rawio.Block) == (more > 0 || !looks), "%s, stopped %d times: %v",
				l.name, more, p)
		}
	}
}

// A train is of packets without a gap: one that waits is late after a quarter of a wake-up, and
// then the train is over.
func TestTrainEndsWithAGap(t *testing.T) {
	r := newReader(0)
	for i := range minTrainPackets {
		must.That(t, !r.ExpectsMore(1), "%d packets are a train", i)
		r.TrainIsLate(r.now)
		r.now = r.now.Add(testWake / 4)
		r.RecordArrival(r.now, 1)
	}
	check.That(t, r.ExpectsMore(1) && !r.TrainIsLate(r.now) && !r.TrainIsLate(r.now.Add(testWake/4)) &&
		r.TrainIsLate(r.now.Add(testWake/4+1)),
		"the next packet of a train is not waited for, or too long")
	for n := 0; !r.TrainIsLate(r.now); n++ {
		must.That(t, n <= maxTrainLooks, "it is waited for as long as the clock stands still")
	}
	r.RecordArrival(r.now.Add(testWake/4+1), 1)
	check.That(t, !r.ExpectsMore(1) && len(r.LimitRoom(make([]rawio.Packet, 8))) == 8, "a gap goes unnoticed")
}

// The next packet of a train is waited for where it mostly comes; elsewhere now and then, to see
// whether it does by now. Where batches wake goroutines it never is: they would wait as well.
func TestTrainIsWaitedForWhereItGoesOn(t *testing.T) {
	r := newReader(0)
	waits := func(gap time.Duration) (n int) {
		for range 10 * retryEvery {
			r.RecordArrival(r.now, minTrainPackets)
			comes := r.now.Add(gap)
			for first := true; r.now.Before(comes) && !r.TrainIsLate(r.now); first = false {
				if first {
					n++
				}
				r.now = r.now.Add(testWake / 8)
			}
			r.now = max(r.now, comes)
		}
		return n
	}
	for range 2 {
		for _, woken := range []uint64{0, 1} {
			r.RecordHandled(minTrainPackets, 6000, woken, false)
			all, some := 10*retryEvery, 10
			if woken > 0 {
				all, some = 0, 0
			}
			waits(testWake / 8)
			check.Equal(t, fmt.Sprint(woken, " woken: waits for what comes"), waits(testWake/8), all)
			waits(2 * testWake)
			check.Equal(t, fmt.Sprint(woken, " woken: waits for what does not"), waits(2*testWake), some)
		}
	}
}

// An acknowledgement is held where batches bring messages and these are answered at once; elsewhere
// now and then.
func TestAcknowledgementIsHeldWhereItIsAnswered(t *testing.T) {
	for _, l := range loads {
		r := newReader(0)
		for range 1000 {
			r.runBatch(l)
		}
		holds := func(answered bool) (n int) {
			for range 10 * retryEvery {
				if r.HoldsSack() {
					n++
					r.RecordHeldSack(answered)
				}
			}
			return n
		}
		for _, answered := range []bool{true, false} {
			want := 0
			switch {
			case l.state == Concurrent && answered:
				want = 10 * retryEvery
			case l.state == Concurrent:
				want = 10
			}
			for range maxScore {
				holds(answered)
			}
			check.Equal(t, l.name+": held", holds(answered), want)
		}
	}
}

// While packets come without a gap, there is room for many: one system call each would never catch
// up.
func TestRoomForManyWhereOneFollowsAnother(t *testing.T) {
	r := newReader(0)
	for range 100 {
		r.runBatch(loads[0])
	}
	r.RecordArrival(r.now, 1)
	check.Equal(t, "room for", len(r.LimitRoom(make([]rawio.Packet, 8))), 8)
}

// What a wake-up costs is measured, and bounded where it was disturbed; of a machine on which it
// cannot be it is assumed.
func TestWakeIsMeasuredWithinBounds(t *testing.T) {
	wakeCost.Store(0)
	check.Equal(t, "before it is measured", WakeCost(), defaultWakeCost)
	measuredAt = time.Time{}
	for range 2 {
		MeasureWake()
		check.That(t, WakeCost() >= minWakeCost && WakeCost() <= maxWakeCost, "%v", WakeCost())
	}
}

// While links are read it is measured again, every ten seconds at most, and what was measured
// before counts as much: so it follows a machine that changes.
func TestWakeIsMeasuredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wakeCost.Store(int64(50 * time.Microsecond))
		measuredAt = time.Now()
		times := 0
		for range 100 {
			time.Sleep(remeasureInterval / 10)
			measureAfter(remeasureInterval, func() time.Duration { times++; return 10 * time.Microsecond })
		}
		check.Equal(t, "measurements in ten times as long", times, 10)
		check.That(t, WakeCost() < 11*time.Microsecond, "%v, as it was long ago", WakeCost())
		time.Sleep(remeasureInterval)
		measureAfter(remeasureInterval, func() time.Duration { return time.Hour })
		check.That(t, WakeCost() <= (10*time.Microsecond+maxWakeCost)/2+time.Microsecond,
			"%v after one that was disturbed", WakeCost())
		time.Sleep(remeasureInterval)
		before := WakeCost()
		measureAfter(remeasureInterval, func() time.Duration { return 0 })
		check.Equal(t, "after one that has failed", WakeCost(), before)
	})
	measuredAt = time.Time{}
}

// A reader that is throttled rests after every 32nd step, and at no other.
func TestStrollRestsNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Throttle
		for step, began := 1, time.Now(); step <= 100; step++ {
			s.Step()
			check.Equal(t, "time taken", time.Since(began), time.Duration(step/32)*500*time.Microsecond)
		}
	})
}
