package pollpolicy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// runPauses are what the reader does, a look in each microsecond, while nothing comes for d. A cede
// takes it so long.
func (r *reader) runPauses(d, cede time.Duration) (said string) {
	last := rawio.Pause(99)
	for end := r.now.Add(d); r.now.Before(end); r.now = r.now.Add(time.Microsecond) {
		p := r.NextPause(r.now)
		if p != last || p == rawio.Cede {
			said += fmt.Sprintf("%v at %v, ", p, r.now.Sub(r.emptyAt))
		}
		if last = p; p == rawio.Park {
			break
		}
		if p == rawio.Cede {
			r.now = r.now.Add(cede)
		}
	}
	return said
}

// hasPauses says whether the reader has done that in pauses.
func hasPauses(said string, p rawio.Pause) bool {
	return strings.Contains(said, fmt.Sprintf("%v at ", p))
}

// packetComes is a packet, which wakes somebody.
func (r *reader) packetComes() {
	r.RecordArrival(r.now, 1)
	r.RecordHandled(1, 100, 1, false)
}

// pingPongUsual is a ping-pong whose packets come after ten microseconds.
func (r *reader) pingPongUsual(rounds int) (ceded int) {
	for range rounds {
		if said := r.runPauses(10*time.Microsecond, 0); said != fmt.Sprintf("%v at 0s, ", rawio.Yield) {
			ceded++
		}
		r.packetComes()
	}
	return ceded
}

// A reader that looks for a packet on its way does not yield; where it is later than usual, it may
// wait for this very processor. When a wake-up costs 20 microseconds, that is behind 2 x 10, or a
// little less, and 5. A look takes one.
func TestCedesForALatePacket(t *testing.T) {
	r := newReader(0)
	r.pingPongUsual(200)
	if n := r.pingPongUsual(200); n != 0 {
		t.Errorf("ceded in %d of 200 usual waits", n)
	}
	usual := r.yieldPolicy.usualWait
	if usual < 8*time.Microsecond || usual > 11*time.Microsecond {
		t.Errorf("%v is usual", usual)
	}
	late := (2*usual + 6*time.Microsecond - 1).Truncate(time.Microsecond)
	want := fmt.Sprintf("%v at 0s, ", rawio.Yield)
	for at := late; at < 122*time.Microsecond; at *= 2 {
		want += fmt.Sprintf("%v at %v, %v at %v, ", rawio.Cede, at, rawio.Yield, at+time.Microsecond)
	}
	want += fmt.Sprintf("%v at 122µs, ", rawio.Park)
	if got := r.runPauses(time.Millisecond, 0); got != want {
		t.Errorf("for a late packet: %s\nwanted %s", got, want)
	}
}

// A packet that is there behind a cede does not make waiting usual; one that is not does, so that a
// peer that takes its time is not ceded to for ever.
func TestCedeLearnsWhatIsUsual(t *testing.T) {
	r := newReader(0)
	r.pingPongUsual(200)
	for range 200 {
		r.runPauses(25*time.Microsecond, 40*time.Microsecond) // the last was a cede
		r.packetComes()
	}
	if n := r.pingPongUsual(200); n != 0 || r.yieldPolicy.usualWait > 11*time.Microsecond {
		t.Errorf("ceded in %d of 200 usual waits, of %v", n, r.yieldPolicy.usualWait)
	}
	for range 200 {
		r.runPauses(80*time.Microsecond, 0)
		r.packetComes()
	}
	if said := r.runPauses(80*time.Microsecond, 0); said != fmt.Sprintf("%v at 0s, ", rawio.Yield) {
		t.Errorf("with a peer that takes 80 microseconds: %s", said)
	}
}

// pingPongShared is a ping-pong of two ends that share one processor: the other looks for the
// answer as soon as it has the processor, and gives it back after d. The goroutine that was woken
// here goes first.
func (r *reader) pingPongShared(rounds int, d time.Duration) (first int) {
	for range rounds {
		looks := 1
		for ; r.NextPause(r.now) != rawio.Cede && looks < 1000; looks++ {
			r.now = r.now.Add(time.Microsecond)
		}
		if looks == 2 { // first who was woken
			first++
		}
		r.now = r.now.Add(d)
		r.packetComes()
	}
	return first
}

// Where ceding brings the packets it comes first, and no longer than that.
func TestCedesAtOnceWhereThatBringsThePackets(t *testing.T) {
	r := newReader(0)
	r.pingPongUsual(200)
	r.pingPongShared(yieldScoreNeeded, 5*time.Microsecond)
	if n := r.pingPongShared(320, 5*time.Microsecond); n != 317 {
		t.Errorf("ceded at once in %d of 320 waits, wanted all but that number %d, and %d and %d after it", n,
			minTrialEvery, 2*minTrialEvery, 4*minTrialEvery)
	}
	r.pingPongShared(1, 150*time.Microsecond) // once the other end looks for as long as it has patience
	if n := r.pingPongShared(10, 5*time.Microsecond); n != 10 {
		t.Errorf("after that ceded at once in %d of 10 waits", n)
	}
	// once somebody else has taken the processor while this end looked, and given it back to the
	// other
	r.pingPongUsual(1)
	if n := r.pingPongShared(10, 5*time.Microsecond); n != 10 {
		t.Errorf("after one packet that came by itself ceded at once in %d of 10 waits", n)
	}
	if n := r.pingPongUsual(200); n > maxYieldScore/yieldScoreLost {
		t.Errorf("with a peer on another processor ceded in %d of 200 usual waits", n)
	}
	r.pingPongShared(yieldScoreNeeded, 5*time.Microsecond)
	for range 100 { // who cedes has the processor for as long as the packet takes: it would come as soon without
		for p := r.NextPause(r.now); p != rawio.Cede &&
			r.now.Sub(r.emptyAt) < 5*time.Microsecond; p = r.NextPause(r.now) {
			r.now = r.now.Add(time.Microsecond)
		}
		r.now = r.emptyAt.Add(5 * time.Microsecond)
		r.packetComes()
	}
	if n := r.pingPongUsual(200); n != 0 || r.yieldPolicy.yieldScore != 0 {
		t.Errorf("ceding seems to help where a packet comes as soon without; ceded in %d of 200 usual waits", n)
	}
}

// A reader that has yielded, and finds nothing, may have done so to a thread of its own: where
// ceding brings the packets it does so again at once, twice.
func TestCedesThreeTimesAtOnceWhereThatBringsThePackets(t *testing.T) {
	r := newReader(0)
	r.pingPongUsual(200)
	r.pingPongShared(yieldScoreNeeded, 5*time.Microsecond)
	want := fmt.Sprintf("%v at 0s, %[2]v at 1µs, %[2]v at 4µs, %[2]v at 7µs, %[1]v at 10µs, ", rawio.Yield, rawio.Cede)
	if got := r.runPauses(15*time.Microsecond, 2*time.Microsecond); got != want {
		t.Errorf("where a cede takes two microseconds and brings nothing: %s\nwanted %s", got, want)
	}
}

// What somebody who computes takes is paid back on the processor that he has taken, as he may be
// there still. On another both ends may be alone.
func TestPaysBackOnTheProcessorThatWasTaken(t *testing.T) {
	r := newReader(0)
	r.places = 1 // else it sleeps
	r.pingPongUsual(200)
	r.pingPongShared(yieldScoreNeeded, 5*time.Microsecond)
	r.pingPongShared(1, 3*time.Millisecond)
	taken := r.now
	r.cpu = 1
	if n := r.pingPongShared(32, 5*time.Microsecond); n != 31 {
		t.Errorf("on another processor ceded at once in %d of 32 waits, wanted all but one", n)
	}
	for r.cpu = 0; r.now.Sub(taken) < 2900*time.Microsecond; r.packetComes() {
		if said := r.runPauses(50*time.Microsecond, 0); hasPauses(said, rawio.Cede) {
			t.Fatalf("on the one that was taken for 3ms, %v later: %s", r.now.Sub(taken), said)
		}
	}
	r.now = taken.Add(3 * time.Millisecond)
	r.packetComes()
	if said := r.runPauses(time.Millisecond, 0); !hasPauses(said, rawio.Cede) {
		t.Errorf("after as long without, for a late packet: %s", said)
	}
}

// setParkTime is for how long who waits parks from now on, to a wait.
func (r *reader) setParkTime(waits func() string) time.Duration {
	begin := r.now
	for r.now.Sub(begin) < time.Second && hasPauses(waits(), rawio.Park) {
	}
	return r.now.Sub(begin).Round(time.Millisecond)
}

// Where there is one processor, the kernel shares it out better than who looks: to those who sleep
// until a packet comes. Whether somebody computes still is tried ever more seldom.
func TestParksBesideWhoComputesOnTheOnlyProcessor(t *testing.T) {
	const long = 4 * time.Millisecond
	for _, one := range []bool{false, true} {
		r := newReader(0)
		r.yieldPolicy.hasSingleCPU = one
		r.pingPongUsual(200)
		r.pingPongShared(yieldScoreNeeded, 5*time.Microsecond)
		if n := r.pingPongShared(10, 150*time.Microsecond); n != 10 {
			t.Errorf("only processor %t: beside another end that has patience ceded at once in %d of 10 waits", one, n)
		}
		for _, times := range []time.Duration{4, 8, 16, 32, 64, 64} {
			r.pingPongShared(1, long)
			got := r.setParkTime(func() string {
				said := r.runPauses(20*time.Microsecond, 0)
				yields, sleeps := fmt.Sprintf("%v at 0s, ", rawio.Yield), fmt.Sprintf("%v at 0s, ", rawio.Sleep)
				if !strings.HasPrefix(said, yields) && !strings.HasPrefix(said, sleeps) {
					t.Errorf("only processor %t: before those that were woken had their turn: %s", one, said)
				}
				r.now = r.now.Add(20 * time.Microsecond)
				r.packetComes()
				return said
			})
			if want := times * long; !one && got > 0 || one && got != want {
				t.Errorf("only processor %t: parked for %v, wanted %v", one, got, want)
			}
		}
	}
}

// Where packets come in numbers who looks cedes at each look. Once that has given the processor to
// somebody who computes he parks instead, on that processor: for longer each time where somebody
// has it at once again, and for less where not.
func TestParksBesideWhoComputesWherePacketsComeInNumbers(t *testing.T) {
	const long = 3 * time.Millisecond
	r := newReader(0)
	come := func() {
		r.RecordArrival(r.now, 16)
		r.RecordHandled(16, 1600, 40, true)
	}
	waits := func() string {
		said := r.runPauses(20*time.Microsecond, 0)
		r.now = r.now.Add(20 * time.Microsecond)
		come()
		return said
	}
	for range 100 {
		waits()
	}
	if got := waits(); r.State() != Concurrent ||
		!strings.HasPrefix(got, fmt.Sprintf("%v at 0s, %[1]v at 1µs, ", rawio.Cede)) {
		t.Fatalf("in state %v: %s", r.State(), got)
	}
	lose := func() {
		r.NextPause(r.now)
		r.now = r.now.Add(long)
		come()
	}
	for _, times := range []time.Duration{4, 8, 16, 32, 64, 64} {
		lose()
		r.cpu = 1
		if got := waits(); hasPauses(got, rawio.Park) {
			t.Errorf("on another processor: %s", got)
		}
		r.cpu = 0
		if got, want := r.setParkTime(waits), times*long; got != want {
			t.Errorf("parked for %v, wanted %v", got, want)
		}
	}
	for _, times := range []time.Duration{32, 16, 8, 4, 4} {
		for end := r.now.Add(2 * times * long); r.now.Before(end); {
			waits()
		}
		lose()
		if got, want := r.setParkTime(waits), times*long; got != want {
			t.Errorf("after as long in peace parked for %v, wanted %v", got, want)
		}
	}
	if n := r.yieldPolicy.yieldScore; n != 0 {
		t.Errorf("for a packet that comes alone ceding helps, by %d", n)
	}
}

// Somebody who computes keeps the processor for four milliseconds. That costs no more than half of
// the time, and hardly any where packets are there within a small part of that.
func TestCedesSeldomToWhoComputes(t *testing.T) {
	const long = 4 * time.Millisecond
	for _, test := range []struct{ late, least, most time.Duration }{
		{100 * time.Microsecond, 8 * long, 12 * long}, // once in contestedTime
		{200 * time.Microsecond, 100 * long, time.Second/2 + 2*long},
	} {
		r := newReader(0)
		r.pingPongUsual(200)
		begin, ceded := r.now, time.Duration(0)
		for r.now.Sub(begin) < time.Second {
			before := r.now
			r.runPauses(test.late, long)
			if took := r.now.Sub(before); took > long {
				ceded += took
			}
			r.packetComes()
			r.pingPongUsual(20)
		}
		if ceded < test.least || ceded > test.most {
			t.Errorf(
				"where packets come after %v somebody else had the processor for %v of a second, wanted %v to %v",
				test.late, ceded, test.least, test.most)
		}
	}
}

// loseSlice is a look that takes as long as somebody else has the processor for, though nobody
// ceded it.
func (r *reader) loseSlice(slice time.Duration) {
	r.NextPause(r.now)
	r.now = r.now.Add(time.Microsecond)
	r.NextPause(r.now)
	r.now = r.now.Add(slice)
	r.NextPause(r.now)
	r.packetComes()
}

// A reader that gives a processor up beside a computing process loses it for a slice. So where one
// was lost the reader looks for longer before, for parts of that slice, and no longer than others
// compute.
func TestLooksForLongerWhereASliceWasLost(t *testing.T) {
	const slice = 4 * time.Millisecond
	r := newReader(0)
	r.pingPongUsual(200)
	r.loseSlice(slice)
	lost := r.now
	late, patience := slice/lateSliceDivisor, slice/spinSliceDivisor
	want := fmt.Sprintf("%[1]v at 0s, %[2]v at %[5]v, %[3]v at %[6]v, %[1]v at %[7]v, %[3]v at %[8]v, %[1]v at "+
		"%[9]v, %[4]v at %[10]v, ",
		rawio.Yield, rawio.Sleep, rawio.Cede, rawio.Park, late, late+time.Microsecond, late+2*time.Microsecond,
		2*late+2*time.Microsecond, 2*late+3*time.Microsecond, patience)
	if got := r.runPauses(time.Millisecond, 0); got != want {
		t.Errorf("behind a slice of %v: %s\nwanted %s", slice, got, want)
	}
	r.now = lost.Add(contestedTime)
	r.packetComes()
	r.pingPongUsual(200)
	want = fmt.Sprintf("%v at 122µs, ", rawio.Park)
	if got := r.runPauses(time.Millisecond, 0); !strings.HasSuffix(got, want) {
		t.Errorf("%v later: %s\nwanted %s", contestedTime, got, want)
	}
}

// What the other end takes for its patience is not paid back.
func TestCedesAgainBehindWhoHadPatience(t *testing.T) {
	r := newReader(0)
	r.pingPongUsual(200)
	for range 3 {
		if said := r.runPauses(100*time.Microsecond, 150*time.Microsecond); !strings.Contains(said,
			fmt.Sprint(rawio.Cede, " at 2")) {
			t.Errorf("where it takes 150 microseconds: %s", said)
		}
		r.packetComes()
	}
}

// An end that has to wait for its processor in every other wait, as others have it, still cedes as
// soon as the packet is later than where nobody else does.
func TestWhatOthersTakeIsNotUsual(t *testing.T) {
	r := newReader(0)
	r.pingPongUsual(200)
	late := fmt.Sprintf("%v at ", rawio.Cede)
	for range 500 {
		r.pingPongUsual(1)
		said := r.runPauses(90*time.Microsecond, 0)
		_, at, ceded := strings.Cut(said, late)
		d, err := time.ParseDuration(strings.SplitN(at, ",", 2)[0])
		if !ceded || err != nil || d > 40*time.Microsecond {
			t.Fatalf("for a packet that comes after 90 microseconds, as half do: %s, %v is usual", said,
				r.yieldPolicy.usualWait)
		}
		r.packetComes()
	}
}
