package pollpolicy

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
)

const us = time.Microsecond

// A bet is on from scoreNeeded on, and made every retryEvery-th time below; it is won and lost one
// by one, within 0 and maxScore.
func TestABetAtItsLimits(t *testing.T) {
	for _, row := range []struct {
		won  int
		tell bool
		want int
	}{{0, false, 0}, {1, false, 0}, {0, true, 1}, {maxScore - 1, true, maxScore}, {maxScore, true, maxScore},
		{maxScore, false, maxScore - 1}, {5, true, 6}, {5, false, 4}} {
		b := predictor{score: row.won}
		b.recordOutcome(row.tell)
		check.Equal(t, fmt.Sprintf("won %d, told %v", row.won, row.tell), b.score, row.want)
	}
	for won, want := range map[int]string{scoreNeeded: "1111111111111111", scoreNeeded + 1: "1111111111111111",
		scoreNeeded - 1: "0000000100000001", 0: "0000000100000001"} {
		b := predictor{score: won}
		got := ""
		for range 2 * retryEvery {
			got += fmt.Sprint(map[bool]int{true: 1}[b.shouldTry()])
		}
		check.Equal(t, fmt.Sprint("made, won ", won), got, want)
	}
}

// A quota that stops the process is asked about once a second, and keeps the reader from looking
// for ten.
func TestTheCurbAtItsLimits(t *testing.T) {
	times, asked := int64(5), 0
	c := newQuotaGuard(func() int64 { asked++; return times })
	check.Equal(t, "asked at the start", asked, 1)
	at := rawio.Time(0).Add(quotaCheckInterval - 1)
	for _, row := range []struct {
		name  string
		after time.Duration
		times int64
		asked int
		on    bool
	}{
		{"before a second is over", 0, 6, 1, false}, {"after a second", 1, 6, 2, true}, {"right behind it", quotaCheckInterval - 1, 9, 2, true}, {"a second behind that", 1, 6, 3, true},
		{"when ten seconds are nearly over", quotaGuardTime - quotaCheckInterval - 1, 6, 4, true}, {"when they are over", 1, 6, 4, false}, {"when it is stopped again", quotaCheckInterval, 7, 5, true},
		{"when the count falls, as in another group", quotaGuardTime, 1, 6, false}, {"when it rises from there", quotaCheckInterval, 2, 7, true},
	} {
		at, times = at.Add(row.after), row.times
		on := c.isActive(at)
		check.That(t, on == row.on && asked == row.asked, "%s: %v, asked %d times; want %v, %d", row.name, on, asked,
			row.on, row.asked)
	}
}

// A processor that others have had is paid back for as long, and shared out by the kernel for a
// number of times as long, which doubles where they have it again soon and is halved else.
func TestWhatOthersHaveTakenAtItsLimits(t *testing.T) {
	var p cpuLoss
	now := rawio.Time(0).Add(time.Hour)
	for i, row := range []struct {
		after, took time.Duration
		times       int
	}{
		{0, 3 * time.Millisecond, 4}, {4*3*time.Millisecond + 4*3*time.Millisecond - 1, 3 * time.Millisecond, 8}, {8*3*time.Millisecond + 8*3*time.Millisecond, 3 * time.Millisecond, 4},
		{0, 3 * time.Millisecond, 8}, {0, 3 * time.Millisecond, 16}, {0, 3 * time.Millisecond, 32}, {0, 3 * time.Millisecond, 64}, {0, 3 * time.Millisecond, 64},
		{0, time.Hour, 64}, {0, maxCPULoss, 64}, {2 * 64 * maxCPULoss, maxCPULoss - 1, 32},
	} {
		now = now.Add(row.after)
		p.recordLoss(now, row.took)
		took := min(row.took, maxCPULoss)
		check.That(t, p.parkFactor == row.times && p.repayEndsAt == now.Add(took) &&
			p.parkEndsAt == now.Add(time.Duration(row.times)*took),
			"loss %d: %d times, back %v, shared %v; want %d times", i, p.parkFactor, p.repayEndsAt.Sub(now),
			p.parkEndsAt.Sub(now), row.times)
	}
}

// One measurement is bounded, and counts half beside what was measured before.
func TestSmoothAtItsLimits(t *testing.T) {
	for _, row := range []struct{ before, d, want time.Duration }{
		{0, 30 * us, 30 * us}, {0, minWakeCost - 1, minWakeCost}, {0, maxWakeCost + 1, maxWakeCost}, {0, minWakeCost, minWakeCost}, {0, maxWakeCost, maxWakeCost}, {10 * us, 20 * us, 15 * us}, {20 * us, time.Hour, 40 * us},
		{20 * us, 1, 14 * us}, {1, 11 * us, 5*us + 500},
	} {
		check.Equal(t, fmt.Sprintf("%v, then %v", row.before, row.d), smoothWake(row.before, row.d), row.want)
	}
	measuredAt = time.Now()
	n := 0
	measureAfter(time.Hour, func() time.Duration { n++; return us })
	check.Equal(t, "measured, a moment ago", n, 0)
	measuredAt = time.Now().Add(-time.Hour)
	measureAfter(time.Hour, func() time.Duration { n++; return us })
	check.Equal(t, "measured, as long ago as it has to be", n, 1)
	check.That(t, time.Since(measuredAt) < time.Minute, "that it was measured is not noted")
	measuredAt = time.Time{}
	measureAfter(time.Hour, func() time.Duration { n++; return us })
	check.Equal(t, "measured, never before", n, 2)
	measuredAt = time.Time{}
}

// cessionAt is one in the given state, at a time at which a slice of 4 ms may have been lost.
func cessionAt(set func(c *yieldPolicy, now rawio.Time)) (*yieldPolicy, rawio.Time) {
	now := rawio.Time(0).Add(time.Hour)
	c := newYieldPolicy()
	c.cpuNumber, c.hasSingleCPU, c.maxProcs = func() int { return 0 }, false, func() int { return 2 }
	c.usualWait = 10 * us
	set(&c, now)
	return &c, now
}

const slice = 4 * time.Millisecond

// loseSliceAt has a slice been lost so long ago.
func loseSliceAt(c *yieldPolicy, now rawio.Time, ago time.Duration) {
	c.lostSlice, c.sliceLostAt = slice, now.Add(-ago)
}

// What a yield tells follows from its numbers, exactly at their limits.
func TestWhatACessionTellsAtItsLimits(t *testing.T) {
	type say = func(c *yieldPolicy, now rawio.Time) any
	late := say(func(c *yieldPolicy, now rawio.Time) any { return c.lateAfter(now, 20*us) })
	lasts := say(func(c *yieldPolicy, now rawio.Time) any { return c.yieldingPersists(now) })
	naps := say(func(c *yieldPolicy, now rawio.Time) any { return c.sleepsWhenLate(now) })
	patience := say(func(c *yieldPolicy, now rawio.Time) any { return c.minSpinBudget(now) })
	next := say(func(c *yieldPolicy, now rawio.Time) any { return c.sleepsNext(now) })
	parks := say(func(c *yieldPolicy, now rawio.Time) any { return c.parksInstead(now) })
	gives := say(func(c *yieldPolicy, now rawio.Time) any {
		return fmt.Sprint(c.yieldsForMany(now), c.yieldedAt == now, c.yieldedForMany, c.yieldedCPU == &c.cpuLosses[0])
	})
	for _, row := range []struct {
		name string
		set  func(c *yieldPolicy, now rawio.Time)
		say  say
		want any
	}{
		{"late", func(*yieldPolicy, rawio.Time) {}, late, 25 * us},
		{"late where a slice was lost", func(c *yieldPolicy, now rawio.Time) { loseSliceAt(c, now, contestedTime-1) }, late, slice / lateSliceDivisor},
		{"late where one was lost long ago", func(c *yieldPolicy, now rawio.Time) { loseSliceAt(c, now, contestedTime) }, late, 25 * us},
		{"late where a short one was", func(c *yieldPolicy, now rawio.Time) { loseSliceAt(c, now, 0); c.lostSlice = 32 * us }, late, 25 * us},
		{"lasts, at the time", func(c *yieldPolicy, now rawio.Time) {
			c.yieldScore, c.yieldsHelpSinceAt = yieldScoreNeeded, now.Add(-yieldTimeBeforeSleep)
		}, lasts, true},
		{"lasts, before it", func(c *yieldPolicy, now rawio.Time) {
			c.yieldScore, c.yieldsHelpSinceAt = yieldScoreNeeded, now.Add(1-yieldTimeBeforeSleep)
		}, lasts, false},
		{"lasts, where ceding does not come first", func(c *yieldPolicy, now rawio.Time) {
			c.yieldScore, c.yieldsHelpSinceAt = yieldScoreNeeded-1, now.Add(-yieldTimeBeforeSleep)
		}, lasts, false},
		{"lasts, with one place", func(c *yieldPolicy, now rawio.Time) {
			c.yieldScore, c.yieldsHelpSinceAt, c.maxProcs = yieldScoreNeeded, now.Add(-yieldTimeBeforeSleep),
				func() int { return 1 }
		}, lasts, false},
		{"lasts at once where a slice was lost", func(c *yieldPolicy, now rawio.Time) {
			c.yieldScore, c.yieldsHelpSinceAt = yieldScoreNeeded, now
			loseSliceAt(c, now, 0)
		}, lasts, true},
		{"naps", func(c *yieldPolicy, now rawio.Time) { loseSliceAt(c, now, 0) }, naps, true},
		{"naps where no slice was lost", func(*yieldPolicy, rawio.Time) {}, naps, false},
		{"naps where ceding comes first", func(c *yieldPolicy, now rawio.Time) { loseSliceAt(c, now, 0); c.yieldScore = yieldScoreNeeded }, naps, false},
		{"naps with one place", func(c *yieldPolicy, now rawio.Time) { loseSliceAt(c, now, 0); c.maxProcs = func() int { return 1 } }, naps, false},
		{"patience", func(*yieldPolicy, rawio.Time) {}, patience, time.Duration(0)},
		{"patience where a slice was lost", func(c *yieldPolicy, now rawio.Time) { loseSliceAt(c, now, 0) }, patience, slice / spinSliceDivisor},
		{"sleeps next", func(c *yieldPolicy, now rawio.Time) {
			c.yieldScore, c.yieldsHelpSinceAt, c.waitsSinceTrial = yieldScoreNeeded, now.Add(-yieldTimeBeforeSleep),
				minTrialEvery-2
		}, next, true},
		{"sleeps next, but for a trial", func(c *yieldPolicy, now rawio.Time) {
			c.yieldScore, c.yieldsHelpSinceAt, c.waitsSinceTrial = yieldScoreNeeded, now.Add(-yieldTimeBeforeSleep),
				minTrialEvery-1
		}, next, false},
		{"sleeps next, where it does not last", func(c *yieldPolicy, now rawio.Time) { c.yieldScore, c.yieldsHelpSinceAt = yieldScoreNeeded, now }, next, false},
		{"parks, on the only processor", func(c *yieldPolicy, now rawio.Time) { c.hasSingleCPU, c.cpuLosses[0].parkEndsAt = true, now.Add(1) }, parks, true},
		{"parks, when that is over", func(c *yieldPolicy, now rawio.Time) { c.hasSingleCPU, c.cpuLosses[0].parkEndsAt = true, now }, parks, false},
		{"parks, with another processor", func(c *yieldPolicy, now rawio.Time) { c.cpuLosses[0].parkEndsAt = now.Add(1) }, parks, false},
		{"gives", func(c *yieldPolicy, now rawio.Time) { c.cpuLosses[0].parkEndsAt = now }, gives, "true true true true"},
		{"gives, where it is shared out", func(c *yieldPolicy, now rawio.Time) { c.cpuLosses[0].parkEndsAt = now.Add(1) }, gives, "false false false true"},
		{"here, beyond the processors that are told apart", func(c *yieldPolicy, now rawio.Time) { c.cpuNumber = func() int { return trackedCPUs + 3 } },
			func(c *yieldPolicy, _ rawio.Time) any { return c.currentCPU() == &c.cpuLosses[3] }, true},
	} {
		c, now := cessionAt(row.set)
		check.Equal(t, row.name, row.say(c, now), row.want)
	}
}

// A wait begins as what is known of ceding says.
func TestHowAWaitBegins(t *testing.T) {
	first := func(waits, every int) func(c *yieldPolicy, now rawio.Time) {
		return func(c *yieldPolicy, now rawio.Time) {
			c.yieldScore, c.waitsSinceTrial, c.trialEvery, c.yieldsHelpSinceAt = yieldScoreNeeded, waits, every,
				now.Add(1-yieldTimeBeforeSleep)
			c.yieldsInWait, c.isTrial, c.trialSpins, c.sleepsFirst = 7, true, true, true // of the last one
		}
	}
	for _, row := range []struct {
		name string
		set  func(c *yieldPolicy, now rawio.Time)
		want string // trial, dear, sleeping, next, row, waits
	}{
		{"where ceding does not come first", func(c *yieldPolicy, now rawio.Time) { first(5, minTrialEvery)(c, now); c.yieldScore-- }, "false false false 9µs 0 5"},
		{"at once", first(5, minTrialEvery), "false false false 0s 0 6"},
		{"the last before a trial", first(minTrialEvery-2, minTrialEvery), "false false false 0s 0 31"},
		{"a trial", first(minTrialEvery-1, minTrialEvery), "true false false 9µs 0 0"},
		{"no trial, as they are seldom", first(minTrialEvery-1, 2*minTrialEvery), "false false false 0s 0 32"},
		{"by sleep", func(c *yieldPolicy, now rawio.Time) {
			first(5, minTrialEvery)(c, now)
			c.yieldsHelpSinceAt = now.Add(-yieldTimeBeforeSleep)
		}, "false false true 0s 0 6"},
		{"by sleep, a trial", func(c *yieldPolicy, now rawio.Time) {
			first(minTrialEvery-1, 8*minTrialEvery)(c, now)
			c.yieldsHelpSinceAt = now.Add(-yieldTimeBeforeSleep)
		}, "true false true 0s 0 0"},
		{"by sleep, the last before it", func(c *yieldPolicy, now rawio.Time) {
			first(minTrialEvery-2, 8*minTrialEvery)(c, now)
			c.yieldsHelpSinceAt = now.Add(-yieldTimeBeforeSleep)
		}, "false false true 0s 0 31"},
		{"by sleep, a trial that is dear", func(c *yieldPolicy, now rawio.Time) {
			first(minTrialEvery-1, 8*minTrialEvery)(c, now)
			c.yieldsHelpSinceAt, c.cpuLosses[0].parkEndsAt = now.Add(-yieldTimeBeforeSleep), now.Add(1)
		}, "true true true 9µs 0 0"},
		{"by sleep, a trial that was dear", func(c *yieldPolicy, now rawio.Time) {
			first(minTrialEvery-1, 8*minTrialEvery)(c, now)
			c.yieldsHelpSinceAt, c.cpuLosses[0].parkEndsAt = now.Add(-yieldTimeBeforeSleep), now
		}, "true false true 0s 0 0"},
		{"a trial, where to cede is dear, but not to sleep", func(c *yieldPolicy, now rawio.Time) {
			first(minTrialEvery-1, minTrialEvery)(c, now)
			c.cpuLosses[0].parkEndsAt = now.Add(1)
		}, "true false false 9µs 0 0"},
	} {
		c, now := cessionAt(row.set)
		c.beginWait(now, 9*us)
		check.Equal(t, row.name, fmt.Sprint(c.isTrial, c.trialSpins, c.sleepsFirst, c.nextYieldAfter, c.yieldsInWait,
			c.waitsSinceTrial), row.want)
		check.That(t, c.waitBegun, "%s: it has not begun", row.name)
	}
}

// A look cedes, sleeps or yields, and says when it is the next one's turn.
func TestWhatALookSays(t *testing.T) {
	begun := func(next time.Duration, set func(c *yieldPolicy, now rawio.Time)) func(c *yieldPolicy, now rawio.Time) {
		return func(c *yieldPolicy, now rawio.Time) { c.waitBegun, c.nextYieldAfter = true, next; set(c, now) }
	}
	none := func(*yieldPolicy, rawio.Time) {}
	helps := func(c *yieldPolicy, now rawio.Time) { c.yieldScore = yieldScoreNeeded }
	for _, row := range []struct {
		name   string
		set    func(c *yieldPolicy, now rawio.Time)
		waited time.Duration
		want   string // what, next, row, ceded now, asleep
	}{
		{"before it is late", begun(30*us, none), 30*us - 1, "0 30µs 0 false false"},
		{"when it is late", begun(30*us, none), 30 * us, "1 60µs 1 true false"},
		{"when it is late soon", begun(5*us, none), 5 * us, "1 25µs 1 true false"},
		{"that begins", none, 25*us - 1, "0 25µs 0 false false"},
		{"that begins late", none, 25 * us, "1 50µs 1 true false"},
		{"where it helps", begun(0, helps), 0, "1 0s 1 true false"},
		{"where it helps, the second time", begun(0, func(c *yieldPolicy, now rawio.Time) { helps(c, now); c.yieldsInWait = 1 }), us, "1 0s 2 true false"},
		{"where it helps, the third time", begun(0, func(c *yieldPolicy, now rawio.Time) { helps(c, now); c.yieldsInWait = 2 }), us, "1 25µs 3 true false"},
		{"where it is paid back", begun(0, func(c *yieldPolicy, now rawio.Time) { helps(c, now); c.cpuLosses[0].repayEndsAt = now.Add(1) }), 20 * us, "0 40µs 1 false false"},
		{"where it has been", begun(0, func(c *yieldPolicy, now rawio.Time) { helps(c, now); c.cpuLosses[0].repayEndsAt = now }), 20 * us, "1 0s 1 true false"},
		{"by sleep", begun(0, func(c *yieldPolicy, now rawio.Time) { helps(c, now); c.sleepsFirst = true }), 0, "4 0s 1 false true"},
		{"by sleep, the second time", begun(0, func(c *yieldPolicy, now rawio.Time) { helps(c, now); c.sleepsFirst, c.yieldsInWait = true, 1 }), us, "1 0s 2 true false"},
		{"by sleep, in a trial", begun(0, func(c *yieldPolicy, now rawio.Time) { helps(c, now); c.sleepsFirst, c.isTrial = true, true }), 0, "1 0s 1 true false"},
		{"by sleep, in one that is dear", begun(0, func(c *yieldPolicy, now rawio.Time) {
			helps(c, now)
			c.sleepsFirst, c.isTrial, c.trialSpins = true, true, true
		}), 0, "4 0s 1 false true"},
		{"where a slice was lost", begun(0, func(c *yieldPolicy, now rawio.Time) { loseSliceAt(c, now, 0) }), 0, "4 0s 1 false true"},
		{"where a slice was lost, the second time", begun(0, func(c *yieldPolicy, now rawio.Time) { loseSliceAt(c, now, 0); c.yieldsInWait = 1 }), us, "1 125µs 2 true false"},
	} {
		c, now := cessionAt(row.set)
		p := c.choosePause(now, row.waited, 20*us)
		name := map[rawio.Pause]string{rawio.Yield: "0", rawio.Cede: "1", rawio.Sleep: "4"}[p]
		check.Equal(t, row.name, fmt.Sprint(name, " ", c.nextYieldAfter, c.yieldsInWait, " ", c.yieldedAt == now, " ",
			c.isSleeping), row.want)
	}
}

// When the reader has the processor again, what it took tells whether somebody else had it.
func TestWhoHadTheProcessor(t *testing.T) {
	for _, row := range []struct {
		name         string
		awake, ceded bool
		took         time.Duration
		slice, owed  time.Duration
	}{
		{"nobody", true, true, 60 * us, 0, 0}, {"somebody", true, true, 60*us + 1, 60*us + 1, 60*us + 1}, {"somebody, though it was not ceded", true, false, time.Millisecond, time.Millisecond, 0},
		{"nobody, as it slept", false, false, time.Millisecond, 0, 0}, {"somebody it was ceded to, as it slept since", false, true, time.Millisecond, 0, time.Millisecond},
		{"for longer than anybody computes", true, true, time.Hour, maxCPULoss, maxCPULoss},
	} {
		c, now := cessionAt(func(c *yieldPolicy, now rawio.Time) {
			c.decidedAt, c.isSpinning, c.isSleeping, c.yieldedCPU = now.Add(-row.took), row.awake, true, &c.cpuLosses[0]
			if row.ceded {
				c.yieldedAt = now.Add(-row.took)
			}
		})
		c.recordResume(now, 30*us)
		owed := time.Duration(0)
		if c.cpuLosses[0].repayEndsAt != 0 {
			owed = c.cpuLosses[0].repayEndsAt.Sub(now)
		}
		check.That(t, c.lostSlice == row.slice && owed == row.owed && (c.sliceLostAt == now) == (row.slice > 0) &&
			!c.isSpinning && !c.isSleeping && c.yieldedAt == rawio.Never,
			"%s: a slice of %v, owed %v, %+v", row.name, c.lostSlice, owed, c.yieldedAt)
	}
	for p, want := range map[rawio.Pause]bool{rawio.Yield: true, rawio.Cede: true, rawio.Sleep: false,
		rawio.Park: false, rawio.Block: false} {
		c, now := cessionAt(func(*yieldPolicy, rawio.Time) {})
		c.recordPause(now, p)
		check.That(t, c.isSpinning == want && c.decidedAt == now, "told to %v it looks again: %v", p, c.isSpinning)
	}
}

// What a packet that comes says of ceding and of what is usual.
func TestWhatAPacketSays(t *testing.T) {
	const patience, turn = 120 * us, 5 * us
	cedes := func(ago time.Duration, set func(c *yieldPolicy)) func(c *yieldPolicy, now rawio.Time) {
		return func(c *yieldPolicy, now rawio.Time) {
			c.yieldedAt, c.decidedAt, c.yieldScore = now.Add(-ago), now.Add(-ago), 3
			set(c)
		}
	}
	looks := func(ago time.Duration, set func(c *yieldPolicy)) func(c *yieldPolicy, now rawio.Time) {
		return func(c *yieldPolicy, now rawio.Time) { c.decidedAt, c.yieldScore = now.Add(-ago), 3; set(c) }
	}
	none := func(*yieldPolicy) {}
	firsts := func(c *yieldPolicy) { c.yieldScore = 12 }
	for _, row := range []struct {
		name   string
		set    func(c *yieldPolicy, now rawio.Time)
		waited time.Duration
		want   string // helps, every, usual is learnt
	}{
		{"among many", cedes(20*us, func(c *yieldPolicy) { c.yieldedForMany = true }), 40 * us, "3 32 false"},
		{"behind a cede", cedes(20*us, none), 40 * us, "4 32 false"},
		{"behind a cede, the most", cedes(20*us, func(c *yieldPolicy) { c.yieldScore = maxYieldScore }), 40 * us, "16 32 false"},
		{"behind a cede, in a trial", cedes(20*us, func(c *yieldPolicy) { c.isTrial = true }), 40 * us, "4 64 false"},
		{"behind a cede, in the rarest trial", cedes(20*us, func(c *yieldPolicy) { c.isTrial, c.trialEvery = true, maxTrialEvery }), 40 * us, "4 256 false"},
		{"right behind a cede", cedes(5*us-1, none), 40 * us, "3 32 true"},
		{"behind a cede, just long enough", cedes(5*us, none), 40 * us, "4 32 false"},
		{"behind a cede, where it sleeps else, and nobody was there", cedes(5*us, func(c *yieldPolicy) { c.sleepsFirst = true }), 40 * us, "0 32 true"},
		{"behind a cede, where it sleeps else, and somebody was", cedes(5*us+1, func(c *yieldPolicy) { c.sleepsFirst = true }), 40 * us, "4 32 false"},
		{"behind sleep", looks(20*us, func(c *yieldPolicy) { c.isSleeping, c.yieldScore = true, 12 }), 40 * us, "13 32 false"},
		{"behind a nap, at once", looks(patience-1, func(c *yieldPolicy) { c.isSleeping = true }), 400 * us, "4 32 false"},
		{"behind a nap, later", looks(patience, func(c *yieldPolicy) { c.isSleeping = true }), 400 * us, "2 32 false"},
		{"behind a nap, later, where nothing helps", looks(patience, func(c *yieldPolicy) { c.isSleeping, c.yieldScore = true, 0 }), 400 * us, "0 32 false"},
		{"behind patience", looks(us, none), patience + 1, "3 32 false"},
		{"at the end of patience", looks(us, none), patience, "0 32 true"},
		{"while somebody had the processor", looks(turn+1, none), 40 * us, "3 32 false"},
		{"while somebody had it, in a trial", looks(turn+1, func(c *yieldPolicy) { c.isTrial = true }), 40 * us, "3 64 false"},
		{"by itself, after a turn", looks(turn, none), 40 * us, "0 32 true"},
		{"by itself", looks(us, func(c *yieldPolicy) { c.trialEvery = 256 }), 40 * us, "0 32 true"},
		{"by itself, where ceding comes first", looks(us, firsts), 40 * us, "8 32 false"},
		{"by itself, where ceding comes first, in a trial", looks(us, func(c *yieldPolicy) { firsts(c); c.isTrial = true }), 40 * us, "0 32 true"},
		{"right behind a cede, as others compute", cedes(3*us, func(c *yieldPolicy) { c.lostSlice, c.sliceLostAt = slice, rawio.Time(0).Add(time.Hour) }), 400 * us, "4 32 false"},
		{"right behind it, within a part of what is usual", cedes(2*us, func(c *yieldPolicy) { c.lostSlice, c.sliceLostAt = slice, rawio.Time(0).Add(time.Hour) }), 400 * us, "3 32 true"},
	} {
		c, now := cessionAt(row.set)
		c.waitBegun = true
		c.endWait(now, row.waited, patience, turn)
		check.Equal(t, row.name, fmt.Sprint(c.yieldScore, c.trialEvery, c.usualWait != 10*us), row.want)
		check.That(t, !c.waitBegun && !c.yieldedForMany && c.yieldedAt == rawio.Never, "%s: the wait goes on: %+v",
			row.name, c)
		check.That(t, (c.yieldsHelpSinceAt == now) == (c.yieldScore == 0 && c.usualWait != 10*us), "%s: since %v",
			row.name, c.yieldsHelpSinceAt)
	}
	for _, row := range []struct{ usual, waited, want time.Duration }{
		{16 * us, 16*us - 1, 14 * us}, {16 * us, 16 * us, 16*us + 16*us/24}, {us, 2 * us, us + minUsualStep}, {0, 0, minUsualStep}, {2400, 2400, 2500}, {2424, 3000, 2525},
	} {
		c := yieldPolicy{usualWait: row.usual}
		c.learnUsualWait(row.waited)
		check.Equal(t, fmt.Sprintf("usual %v, waited %v", row.usual, row.waited), c.usualWait, row.want)
	}
}

// The state follows from three counts, exactly at their limits.
func TestTheStateAtItsLimits(t *testing.T) {
	for _, row := range []struct {
		from       State
		lone, calm int
		hurry      bool
		want       State
	}{
		{Concurrent, shortBatchesNeeded, 0, true, PingPong}, {Concurrent, shortBatchesNeeded, 0, false, Idle}, {Bulk, shortBatchesNeeded, maxCalmBatches, true, PingPong}, {Concurrent, shortBatchesNeeded - 1, 0, true, Concurrent},
		{PingPong, shortBatchesNeeded - 1, maxCalmBatches, true, PingPong}, {PingPong, 1, 0, true, PingPong}, {Idle, 1, 0, false, Idle}, {Bulk, 1, 0, false, Bulk},
		{PingPong, 0, calmBatchesNeeded, true, Bulk}, {PingPong, 0, calmBatchesNeeded - 1, true, Concurrent}, {Idle, 0, 1, true, Concurrent}, {Concurrent, 0, calmBatchesNeeded, true, Bulk}, {Concurrent, 0, calmBatchesNeeded - 1, true, Concurrent},
		{Bulk, 0, calmBatchesNeeded - 1, true, Bulk}, {Bulk, 0, 1, true, Bulk}, {Bulk, 0, 0, true, Concurrent}, {Bulk, 0, maxCalmBatches, false, Bulk},
	} {
		p := New(0, nil)
		p.shortBatches, p.calmBatches, p.waitsAreShort = row.lone, row.calm, row.hurry
		check.Equal(t, fmt.Sprintf("%+v", row), p.nextState(row.from), row.want)
	}
	for _, row := range []struct {
		name            string
		packets, octets int
		woken           uint64
		lone, calm      int
		wantL, wantC    int
	}{
		{"few and short", maxFewPackets, maxFewOctets, 0, 3, 5, 4, 6}, {"one more", maxFewPackets + 1, 100, 0, 3, 5, 0, 6}, {"one octet more", 1, maxFewOctets + 1, 0, 3, 5, 0, 6},
		{"the most in a row", 1, 1, 0, shortBatchesNeeded, maxCalmBatches, shortBatchesNeeded, maxCalmBatches}, {"the last but one", 1, 1, 0, shortBatchesNeeded - 1, maxCalmBatches - 1, shortBatchesNeeded, maxCalmBatches},
		{"one that wakes", 1, 1, 1, 3, 40, 4, 40 - calmBatchesLost}, {"one that wakes, at the end", 1, 1, 1, 3, 31, 4, 0},
	} {
		p := New(0, nil)
		p.shortBatches, p.calmBatches = row.lone, row.calm
		p.RecordHandled(row.packets, row.octets, row.woken, false)
		check.Equal(t, row.name, [3]uint64{uint64(p.shortBatches), uint64(p.calmBatches), p.wokenByLast},
			[3]uint64{uint64(row.wantL), uint64(row.wantC), row.woken})
	}
	for _, row := range []struct {
		name     string
		woken    uint64
		answered bool
		takes    int
		want     int
		taken    bool
	}{
		{"for one", 1, false, 5, 6, false}, {"for one, enough", 1, false, takerBatchesNeeded - 1, takerBatchesNeeded, true}, {"for one, the most", 1, false, maxTakerBatches, maxTakerBatches, true},
		{"for none", 0, false, 5, 5, false}, {"for none, enough", 0, false, takerBatchesNeeded, takerBatchesNeeded, true}, {"for two", 2, false, takerBatchesNeeded + 3, takerBatchesNeeded - 1, false},
		{"for two, still enough", 2, false, takerBatchesNeeded + 4, takerBatchesNeeded, true}, {"answered", 1, true, 50, 46, true}, {"answered, none left", 0, true, 3, 0, false},
	} {
		p := New(0, nil)
		p.takerBatches = row.takes
		p.countTaker(row.woken, row.answered)
		check.That(t, p.takerBatches == row.want && p.hasSingleTaker.Load() == row.taken, "%s: %d, taken %v",
			row.name, p.takerBatches, p.hasSingleTaker.Load())
		p.countTaker(row.woken, row.answered) // which says so again
		p.takerBatches = takerBatchesNeeded - 5
		p.countTaker(0, true)
		check.Equal(t, row.name+", then not", p.hasSingleTaker.Load(), false)
	}
}

// What arrives is counted exactly at its limits: whether waits are short, what work takes, and
// where a train ends.
func TestWhatArrivesAtItsLimits(t *testing.T) {
	at := func(set func(p *reader)) *reader {
		r := newReader(0)
		r.now = r.now.Add(time.Hour)
		set(r)
		return r
	}
	patience := 6 * testWake
	for _, row := range []struct {
		name       string
		soon       int
		hurry      bool
		waited     time.Duration
		want       int
		wantHurry  bool
		train      int
		woken      uint64
		trainAfter int
	}{
		{"a short wait", 5, false, patience, 6, false, 0, 0, 1}, {"a long one", 5, true, patience + 1, 4, false, 0, 0, 1},
		{"the most", maxShortWaits, true, us, maxShortWaits, true, 0, 0, 1}, {"none left", 0, false, time.Second, 0, false, 0, 0, 1},
		{"enough", shortWaitsToEnter - 1, false, us, shortWaitsToEnter, true, 0, 0, 1}, {"nearly enough", shortWaitsToEnter - 2, false, us, shortWaitsToEnter - 1, false, 0, 0, 1},
		{"not enough any more", shortWaitsToLeave + 1, true, time.Second, shortWaitsToLeave, false, 0, 0, 1}, {"still enough", shortWaitsToLeave + 2, true, time.Second, shortWaitsToLeave + 1, true, 0, 0, 1},
		{"within a train", 0, false, testWake / 4, 1, false, 3, 0, 4}, {"behind a train", 0, false, testWake/4 + 1, 1, false, 3, 0, 1}, {"behind one that wakes", 0, false, us, 1, false, 3, 1, 1},
	} {
		r := at(func(r *reader) {
			r.shortWaits, r.waitsAreShort, r.trainLen, r.wokenByLast = row.soon, row.hurry, row.train, row.woken
		})
		r.emptyAt = r.now.Add(-row.waited)
		r.emptyPauses, r.trainLooks = 3, 4
		r.RecordArrival(r.now, 1)
		check.That(t, r.shortWaits == row.want && r.waitsAreShort == row.wantHurry && r.trainLen == row.trainAfter,
			"%s: soon %d, hurry %v, train %d", row.name, r.shortWaits, r.waitsAreShort, r.trainLen)
		check.That(t, r.emptyAt == rawio.Never && r.emptyPauses == 0 && r.trainLooks == 0 && r.arrivedAt == r.now,
			"%s: %+v", row.name, r.Policy)
	}
	for _, row := range []struct {
		name              string
		gave              bool
		took, work, least time.Duration
		wantW, wantL      time.Duration
	}{
		{"not given way", false, 90 * us, 10 * us, 64 * us, 10 * us, 64 * us}, {"the first", true, 80 * us, 0, 0, 10 * us, 80 * us}, {"as long", true, 64 * us, 0, 64 * us, 8 * us, 64 * us},
		{"longer", true, 80 * us, 0, 64 * us, 10 * us, 65 * us}, {"just shorter than that", true, 65*us - 1, 0, 64 * us, (65*us - 1) / 8, 65*us - 1}, {"as long as that", true, 65 * us, 0, 64 * us, 65 * us / 8, 65 * us},
		{"for very long", true, time.Hour, 0, 64 * us, maxWorkTime / 8, 65 * us}, {"less than before", true, 8 * us, 16 * us, 64 * us, 15 * us, 8 * us},
	} {
		r := at(func(r *reader) {
			r.gaveWay, r.workTime, r.minWorkTime, r.arrivedAt = row.gave, row.work, row.least, r.now.Add(-row.took)
		})
		r.measureWork(r.now)
		check.That(t, r.workTime == row.wantW && r.minWorkTime == row.wantL && !r.gaveWay, "%s: work %v, least %v",
			row.name, r.workTime, r.minWorkTime)
	}
	r := at(func(r *reader) { r.awaitsTrain, r.trainPredictor = true, predictor{score: 5} })
	r.RecordArrival(r.now, 1)
	check.That(t, r.trainPredictor.score == 6 && !r.awaitsTrain, "a train that goes on: %+v", r.trainPredictor)
	for _, row := range []struct {
		name  string
		ago   time.Duration
		looks int
		late  bool
	}{{"in time", testWake / 4, 0, false}, {"too late", testWake/4 + 1, 0, true},
		{"after the last look but one", 0, maxTrainLooks - 2, false},
		{"after the last look", 0, maxTrainLooks - 1, true}} {
		r := at(func(r *reader) {
			r.awaitsTrain, r.trainPredictor, r.emptyAt, r.trainLooks = true, predictor{score: 5}, r.now.Add(-row.ago),
				row.looks
		})
		check.Equal(t, "the next of a train, "+row.name, r.TrainIsLate(r.now), row.late)
		check.Equal(t, "what is said of it, "+row.name, r.trainPredictor.score,
			map[bool]int{true: 4, false: 5}[row.late])
	}
	for n, want := range map[int]bool{1: false, minManyPackets: true} {
		r := at(func(r *reader) { r.trainLen = minTrainPackets - 1 })
		check.Equal(t, fmt.Sprint("follows on a batch of ", n), r.ExpectsMore(n), want)
	}
	r = at(func(r *reader) { r.trainLen = minTrainPackets })
	check.Equal(t, "follows in a train", r.ExpectsMore(1), true)
	for train, want := range map[int]int{0: 1, 1: 1, 2: 8} {
		r := at(func(r *reader) { r.trainLen = train; r.state.Store(int32(PingPong)) })
		check.Equal(t, "room", len(r.LimitRoom(make([]rawio.Packet, 8))), want)
		r.state.Store(int32(Idle))
		check.Equal(t, "room of one that is quiet", len(r.LimitRoom(make([]rawio.Packet, 8))), 8)
	}
}

// What the reader does when nothing is there, in each state, at the limits of its patience.
func TestPausesAtTheirLimits(t *testing.T) {
	patience := 6 * testWake
	for _, row := range []struct {
		name   string
		state  State
		poll   time.Duration
		waited time.Duration
		set    func(r *reader)
		want   rawio.Pause
	}{
		{"many, at once, a few woken", Concurrent, 0, 0, func(r *reader) { r.waitsAreShort, r.wokenByLast = true, maxFewWoken }, rawio.Yield},
		{"many, at once, more woken", Concurrent, 0, 0, func(r *reader) { r.waitsAreShort, r.wokenByLast = true, maxFewWoken+1 }, rawio.Cede},
		{"many, again", Concurrent, 0, patience - 1, func(r *reader) { r.waitsAreShort, r.emptyPauses = true, 1 }, rawio.Cede},
		{"many, when patience is over", Concurrent, 0, patience, func(r *reader) { r.waitsAreShort, r.emptyPauses = true, 1 }, rawio.Park},
		{"many, again, and waits are long", Concurrent, 0, us, func(r *reader) { r.emptyPauses = 1 }, rawio.Park},
		{"many, shared out", Concurrent, 0, us, func(r *reader) {
			r.waitsAreShort, r.emptyPauses, r.yieldPolicy.cpuLosses[0].parkEndsAt = true, 1, r.now.Add(1)
		}, rawio.Park},
		{"many, at once, waits are long", Concurrent, 0, 0, func(r *reader) {}, rawio.Yield},
		{"single, at once, somebody woken", PingPong, 0, 0, func(r *reader) { r.wokenByLast = 1 }, rawio.Yield},
		{"single, at once, somebody woken, patience over", PingPong, 0, patience, func(r *reader) { r.wokenByLast = 1 }, rawio.Yield},
		{"single, at once, nobody woken, patience over", PingPong, 0, patience, func(r *reader) {}, rawio.Park},
		{"single, again, late", PingPong, 0, patience - 1, func(r *reader) { r.emptyPauses = 1 }, rawio.Cede},
		{"single, again, patience over", PingPong, 0, patience, func(r *reader) { r.emptyPauses = 1 }, rawio.Park},
		{"single, again, patience of a lost slice", PingPong, 0, slice/spinSliceDivisor - 1, func(r *reader) { r.emptyPauses = 1; loseSliceAt(&r.yieldPolicy, r.now, 0) }, rawio.Sleep},
		{"single, again, that over too", PingPong, 0, slice / spinSliceDivisor, func(r *reader) { r.emptyPauses = 1; loseSliceAt(&r.yieldPolicy, r.now, 0) }, rawio.Park},
		{"many, a lost slice gives no patience", Concurrent, 0, patience, func(r *reader) { r.waitsAreShort, r.emptyPauses = true, 1; loseSliceAt(&r.yieldPolicy, r.now, 0) }, rawio.Park},
		{"quiet", Idle, 0, 0, func(r *reader) { r.waitCount = 1 }, rawio.Park},
		{"quiet, to measure", Idle, 0, 0, func(r *reader) { r.waitCount = measureWorkEvery }, rawio.Yield},
		{"quiet, to measure, again", Idle, 0, 0, func(r *reader) { r.waitCount, r.emptyPauses = measureWorkEvery, 1 }, rawio.Park},
		{"bulk, at once", Bulk, 0, 0, func(r *reader) { r.waitsAreShort = true }, rawio.Block},
		{"bulk, again", Bulk, 0, 0, func(r *reader) { r.waitsAreShort, r.emptyPauses = true, 1 }, rawio.Park},
		{"bulk, waits are long", Bulk, 0, 0, func(r *reader) {}, rawio.Park},
		{"told to poll", Idle, time.Millisecond, time.Millisecond - 1, func(r *reader) {}, rawio.Yield},
		{"told to poll, over", Idle, time.Millisecond, time.Millisecond, func(r *reader) {}, rawio.Park},
		{"told never to", Concurrent, -1, 0, func(r *reader) { r.waitsAreShort, r.wokenByLast = true, 99 }, rawio.Park},
		{"told never to, bulk", Bulk, -1, 0, func(r *reader) { r.waitsAreShort = true }, rawio.Block},
		{"patience is longer by twice the work", Concurrent, 0, patience + 2*us - 1, func(r *reader) { r.waitsAreShort, r.emptyPauses, r.workTime = true, 1, us }, rawio.Cede},
		{"and no longer", Concurrent, 0, patience + 2*us, func(r *reader) { r.waitsAreShort, r.emptyPauses, r.workTime = true, 1, us }, rawio.Park},
	} {
		r := newReader(row.poll)
		r.now = r.now.Add(time.Hour)
		r.state.Store(int32(row.state))
		r.quotaGuard.checkedAt = r.now
		r.emptyAt = r.now.Add(-row.waited)
		row.set(r)
		check.Equal(t, row.name, r.choosePause(r.now), row.want)
	}
	for _, row := range []struct {
		state State
		taken bool
		want  time.Duration
	}{{PingPong, false, patience}, {Idle, true, patience}, {Concurrent, true, testWake / 2}, {Concurrent, false, 0},
		{Bulk, true, 0}} {
		r := newReader(0)
		r.state.Store(int32(row.state))
		r.hasSingleTaker.Store(row.taken)
		check.Equal(t, fmt.Sprintf("lends, %+v", row), r.LendLimit(), row.want)
	}
	r := newReader(0)
	r.now = r.now.Add(time.Hour)
	for i, want := range []bool{true, false} { // Many yields first; the second pause of a wait measures nothing
		r.NextPause(r.now)
		check.That(t, r.gaveWay == want && r.waitCount == 1 && r.emptyPauses == i+1 && r.emptyAt == r.now,
			"pause %d: %v, %d waits, %d blind", i, r.gaveWay, r.waitCount, r.emptyPauses)
	}
}

// A reader that is let go on first does not look; what a look has found is a bet of its own.
func TestLetsAtItsLimits(t *testing.T) {
	for _, row := range []struct {
		name  string
		state State
		poll  time.Duration
		blind int
		woken uint64
		won   int
		lets  bool
		tries bool
	}{
		{"many", Concurrent, 0, 0, 1, 0, true, false}, {"many, again", Concurrent, 0, 1, 1, 0, false, false}, {"many, nobody woken", Concurrent, 0, 0, 0, 0, false, false}, {"many, told to poll", Concurrent, 1, 0, 1, 0, false, false},
		{"bulk", Bulk, 0, 0, 1, 0, false, false}, {"quiet", Idle, 0, 0, 1, 0, false, false}, {"single", PingPong, 0, 0, 1, 0, true, false}, {"single, where another follows", PingPong, 0, 0, 1, scoreNeeded, false, true},
	} {
		r := newReader(row.poll)
		r.state.Store(int32(row.state))
		r.emptyPauses, r.wokenByLast, r.lookPredictor.score = row.blind, row.woken, row.won
		check.That(t, r.pausesFirst() == row.lets && r.looksFirst == row.tries, "%s: tries %v", row.name, r.looksFirst)
	}
	for _, row := range []struct {
		tries   bool
		n, want int
	}{{true, 0, 7}, {true, 1, 8 + lookPayoff}, {false, 0, 8}, {false, 1, 8}} {
		r := newReader(0)
		r.looksFirst, r.lookPredictor.score = row.tries, 8
		r.recordLook(row.n)
		check.That(t, r.lookPredictor.score == row.want && !r.looksFirst, "%+v: %d", row, r.lookPredictor.score)
	}
}

// A read without room fails, one that the link ends fails as the link says, and what it reads is
// counted.
func TestReadsThatFail(t *testing.T) {
	r := newReader(0)
	r.clock = func() rawio.Time { return r.now }
	w := &waiter{r: r, comes: 1}
	n, err := r.ReadPaced(w, nil)
	check.That(t, n == 0 && err == errNoRoom && len(w.did) == 0, "without room: %d, %v", n, err)
	w = &waiter{r: r, waits: 1}
	n, err = r.ReadPaced(w, make([]rawio.Packet, 2))
	check.That(t, n == 0 && errors.Is(err, errTired), "that the link ends: %d, %v", n, err)
	for _, octets := range []int{maxFewOctets, maxFewOctets + 1} {
		r = newReader(0)
		r.clock = func() rawio.Time { return r.now }
		r.shortBatches = 3
		pkts := make([]rawio.Packet, 2)
		pkts[0].Data, pkts[1].Data = make([]byte, octets), make([]byte, 99)
		n, err = r.ReadPaced(&waiter{r: r, comes: 1}, pkts)
		check.That(t, n == 1 && err == nil && r.shortBatches == map[bool]int{true: 4}[octets == maxFewOctets] &&
			r.arrivedAt == r.now && r.calmBatches == 1, "%d octets: %d, %v, lone %d", octets, n, err, r.shortBatches)
	}
	before := Now()
	if after := Now(); after < before || before < 0 || time.Duration(after) > time.Since(clockStart)+time.Second {
		t.Errorf("the clock: %v, then %v", before, after)
	}
}
