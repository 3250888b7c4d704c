package pollpolicy

import (
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
)

// pingPongFor is a ping-pong of two ends that share one processor, for d: the other answers in five
// microseconds of it. It counts the waits that have slept, and those that have ceded first.
func (r *reader) pingPongFor(d time.Duration) (slept, ceded int) {
	for end := r.now.Add(d); r.now.Before(end); r.packetComes() {
		p := r.NextPause(r.now)
		for ; p != rawio.Cede && p != rawio.Sleep && p != rawio.Park; p = r.NextPause(r.now) {
			r.now = r.now.Add(time.Microsecond)
		}
		r.now = r.now.Add(5 * time.Microsecond)
		if p == rawio.Sleep {
			slept++
		} else {
			ceded++
		}
	}
	return slept, ceded
}

// waitOther is a wait for a packet from another processor, which comes after answers, and says
// whether it has slept: then a wake-up comes on top.
func (r *reader) waitOther(answers time.Duration) (slept bool) {
	for !slept && (r.emptyAt == rawio.Never || r.now.Sub(r.emptyAt) < answers) {
		if slept = r.NextPause(r.now) == rawio.Sleep; slept {
			r.now = r.now.Add(answers + testWake)
		}
		r.now = r.now.Add(time.Microsecond)
	}
	r.packetComes()
	return slept
}

// sharedReader is a reader that has shared its processor with the other end for long enough to
// sleep.
func sharedReader() *reader {
	r := newReader(0)
	r.pingPongUsual(200)
	r.pingPongFor(2 * yieldTimeBeforeSleep)
	return r
}

// Ends that have shared one processor for so long that the kernel would have moved one of them to
// an idle one sleep until their packets come, but for a wait now and then.
func TestSleepsWhereBothEndsShareAProcessor(t *testing.T) {
	r := newReader(0)
	r.pingPongUsual(200)
	slept, _ := r.pingPongFor(yieldTimeBeforeSleep)
	check.Equal(t, "slept before", slept, 0)
	r.pingPongFor(time.Millisecond)
	slept, ceded := r.pingPongFor(10 * time.Millisecond)
	if ceded == 0 || slept < 30*ceded || slept > 32*ceded {
		t.Errorf("slept in %d waits and ceded in %d, wanted one of %d", slept, ceded, minTrialEvery)
	}
}

// A process with one place for goroutines would keep it from all others while its reader sleeps in
// the kernel.
func TestDoesNotSleepWithOnePlaceForGoroutines(t *testing.T) {
	r := sharedReader()
	r.places = 1
	slept, _ := r.pingPongFor(10 * time.Millisecond)
	check.Equal(t, "slept", slept, 0)
}

// A reader that is to sleep does not look before, as nothing can have come.
func TestDoesNotLookBeforeItSleeps(t *testing.T) {
	r := sharedReader()
	r.pingPongFor(time.Microsecond)
	did, err := r.waitForPacket(1, 0)
	check.That(t, err == nil && fmt.Sprint(did) == fmt.Sprint([]rawio.Pause{rawio.Sleep, poll}), "it did %v: %v", did,
		err)
}

// A reader that has slept and finds nothing cedes, as long as it has patience.
func TestCedesWhereSleepHasBroughtNothing(t *testing.T) {
	r := sharedReader()
	want := fmt.Sprintf("%v at 0s, %v at 1µs, %[2]v at 2µs, %v at 3µs, ", rawio.Sleep, rawio.Cede, rawio.Yield)
	check.Equal(t, "said", r.runPauses(5*time.Microsecond, 0), want)
}

// Ends that have come apart would need a wake-up each for every packet. So a packet that ceding
// does not bring, in the wait that tries, ends the sleep.
func TestLooksAgainWhenTheEndsHaveComeApart(t *testing.T) {
	// right behind a cede, which seems to bring it, and later
	for _, answers := range []time.Duration{4 * time.Microsecond, 10 * time.Microsecond} {
		r := sharedReader()
		slept := 0
		for range 2 * minTrialEvery {
			if r.waitOther(answers) {
				slept++
			}
		}
		if slept > minTrialEvery || r.yieldPolicy.yieldsFirst() {
			t.Errorf("with a peer on another processor, and packets after %v, slept in %d of %d waits, helps %d",
				answers, slept, 2*minTrialEvery, r.yieldPolicy.yieldScore)
		}
	}
}

// A packet that comes while others have the processor, though nobody has ceded it, does not say
// that the ends have come apart: the other end may have been woken here.
func TestPacketsThatComeMeanwhileSayNothing(t *testing.T) {
	r := sharedReader()
	usual := r.yieldPolicy.usualWait
	for range 100 {
		r.NextPause(r.now)
		r.now = r.now.Add(30 * time.Microsecond)
		r.packetComes()
	}
	slept, _ := r.pingPongFor(time.Millisecond)
	check.That(t, slept > 0, "it does not sleep any more")
	check.Equal(t, "usual", r.yieldPolicy.usualWait, usual)
}

// Somebody who computes, and takes the processor for a slice now and then, has it from those who
// look as well: who sleeps is back as soon as his packet comes.
func TestSleepsWhereSomebodyTakesTheProcessor(t *testing.T) {
	r := sharedReader()
	for range 100 {
		r.pingPongShared(1, 3*time.Millisecond)
		slept, _ := r.pingPongFor(yieldTimeBeforeSleep / 2)
		if slept == 0 {
			t.Fatal("it does not sleep any more")
		}
	}
}

// Where others have had a processor for a slice none is idle to which the kernel would move one of
// two ends that share another: they sleep as soon as ceding comes first.
func TestSleepsAtOnceWhereASliceWasLost(t *testing.T) {
	r := newReader(0)
	r.pingPongUsual(200)
	r.loseSlice(3 * time.Millisecond)
	r.pingPongShared(yieldScoreNeeded, 5*time.Microsecond)
	slept, ceded := r.pingPongFor(time.Millisecond)
	check.That(t, slept > 30*ceded, "it slept in %d waits and ceded in %d", slept, ceded)
}

// waitAsleep is a wait in which nothing comes until the reader sleeps, and then after d. It says
// whether he looked for as long as is due where a slice was lost.
func (r *reader) waitAsleep(slice, d time.Duration) bool {
	begin := r.now
	for r.NextPause(r.now) == rawio.Yield {
		r.now = r.now.Add(time.Microsecond)
	}
	looked := r.now.Sub(begin)
	r.now = r.now.Add(d)
	r.packetComes()
	return r.yieldPolicy.yieldedAt == rawio.Never && looked >= slice/lateSliceDivisor
}

// A reader that yields where others have had a processor for a slice loses the rest of its own. So
// a reader whose packet is late there sleeps. Where that brings it at once, both ends have this
// processor, and ceding comes first; where not the other end has lost its own.
func TestSleepsForALatePacketWhereASliceWasLost(t *testing.T) {
	const slice, at, later = 4 * time.Millisecond, 10 * time.Microsecond, 2 * time.Millisecond
	for _, test := range []struct {
		waits []time.Duration
		helps int
	}{
		{[]time.Duration{at, at, at}, 3},
		{[]time.Duration{at, at, at, later}, 2},
		{[]time.Duration{later, later, at}, 1},
		{[]time.Duration{at, at, at, at, at, at, at, at}, yieldScoreNeeded},
	} {
		r := newReader(0)
		r.pingPongUsual(200)
		r.loseSlice(slice)
		for _, d := range test.waits {
			check.That(t, r.waitAsleep(slice, d),
				"in waits for packets that are there after %v it looked for less long, or ceded", test.waits)
		}
		check.Equal(t, fmt.Sprint("helps after ", test.waits), r.yieldPolicy.yieldScore, test.helps)
	}
}

// With one place for goroutines the reader cedes there.
func TestCedesForALatePacketWithOnePlaceForGoroutines(t *testing.T) {
	r := newReader(0)
	r.places = 1
	r.pingPongUsual(200)
	r.loseSlice(4 * time.Millisecond)
	said := r.runPauses(time.Millisecond, 0)
	check.That(t, hasPauses(said, rawio.Cede) && !hasPauses(said, rawio.Sleep), "it did %v", said)
}

// On a processor that somebody takes for a slice when it is ceded, a wait that tries whether the
// ends have come apart does not cede: it looks, as the packet comes so from another processor, and
// then sleeps.
func TestTriesWithoutCedingWhereThatIsDear(t *testing.T) {
	const slice = 3 * time.Millisecond
	r := sharedReader()
	for r.yieldPolicy.waitsSinceTrial+1 < minTrialEvery {
		r.pingPongFor(time.Microsecond)
	}
	r.pingPongShared(1, slice)
	slept, ceded := r.pingPongFor(2 * slice) // it is dear for longer
	check.Equal(t, "ceded", ceded, 0)
	if tries := (2*slice - time.Duration(slept)*5*time.Microsecond) / (slice / lateSliceDivisor); tries < 20 ||
		tries > 26 {
		t.Errorf("it slept in %d waits, and tried about %d times, wanted one in %d", slept, tries, minTrialEvery)
	}
	for range 2 * minTrialEvery {
		r.waitOther(10 * time.Microsecond)
	}
	check.That(t, !r.yieldPolicy.yieldsFirst(), "with a peer on another processor ceding helps, by %d",
		r.yieldPolicy.yieldScore)
}
