package pollpolicy

import (
	"runtime"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// yieldPolicy decides when a reader that looks for a packet gives the processor up.
//
// For a packet that comes alone it usually must not. The packet is on its way from another
// processor. Ceding runs threads that the runtime has woken and that find nothing to do. But the
// packet may also depend on a thread that waits for this very processor. It may be of this process,
// with a goroutine that has yet to ask for the packet, or of the peer on the same host. That thread
// gets the processor when patience is over, or at a tick of the system's clock. So if a packet is
// later than usual the reader cedes once. It cedes again after twice that time. Ceding may be what
// brings the packets, as on a host with one processor where both ends look in turn. There the
// reader cedes at once, and at the next looks too. The first to have the processor then may be a
// thread of its own with nothing to do.
//
// Another program may have the processor then, and keep it for milliseconds. The other end has it
// for its patience at most. A loss of twice that is paid back with as long without ceding on this
// processor. On another processor both ends may be alone. Where packets come in numbers, the reader
// cedes at each look. There, and on a host with one processor, it parks instead for much longer. A
// reader that sleeps gets the processor at once when a packet comes. One that looks has used up its
// share of it.
//
// If ceding has come first for long, other threads have all the rest. Both ends have always been
// ready to run, and the kernel has not moved one of them. There the reader sleeps in the kernel
// instead, as programs with kernel sockets do. It does so once in a wait, before all else. The
// packet itself wakes it, often while the other end is still sending it. So only one of the two
// sleeps in each round trip, and no look finds nothing. If the kernel puts it beside a thread that
// computes, it has the processor as soon as its packet comes. But ends that sleep on processors of
// their own need two wake-ups for a round trip. So a wait now and then cedes as before. If that
// does not bring the packet, the ends have come apart, and the reader looks for packets once more.
//
// A scheduler gives a processor away for a slice, some milliseconds. A reader that cedes to a
// thread that computes loses its processor for a slice, though the packet may come at once. So does
// one that sleeps, if that thread's slice has just begun. The host is contested if other threads
// have recently had a processor for a slice, even if it was not ceded. Then a packet is late only
// after a small part of such a slice, and patience lasts for a larger part. Ends that keep their
// processors so lose them, and get them back, at the same ticks.
//
// After that the reader sleeps. By ceding it would lose what is left of its slice as well; by
// sleeping it keeps its share. A packet that comes at once speaks for ceding first. A later one
// speaks against it, as the other end was without a processor then. On a contested host no
// processor is idle to which the kernel might move one of two ends. So they sleep as soon as ceding
// comes first. On a processor that was lost by ceding, a trial looks for the packet instead.
type yieldPolicy struct {
	// The first quartile of short waits. A mean would include waits for a processor that other
	// threads have.
	usualWait         time.Duration
	yieldScore        int        // recent waits that ceding has ended, less yieldScoreLost for each other
	waitsSinceTrial   int        // waits with ceding since the last trial
	trialEvery        int        // a trial in so many waits
	yieldsHelpSinceAt rawio.Time // since when ceding has always helped

	waitBegun      bool          // a wait has begun
	isTrial        bool          // the wait is to show whether ceding still helps
	sleepsFirst    bool          // the wait begins with sleep, unless it is a trial
	nextYieldAfter time.Duration // no ceding before the wait has lasted so long
	yieldsInWait   int           // how often it has ceded in this wait
	trialSpins     bool          // the trial looks for packets without ceding
	decidedAt      rawio.Time    // when choosePause last decided
	isSpinning     bool          // the decision was to look again

	yieldedAt      rawio.Time // when it last ceded, until it is known how long that took; else Never
	yieldedCPU     *cpuLoss   // the processor that it ceded
	isSleeping     bool       // the last decision was to sleep
	yieldedForMany bool       // it was for packets in numbers, and says nothing of one alone
	cpuLosses      [trackedCPUs]cpuLoss

	sliceLostAt rawio.Time    // when other threads last had a processor for a slice
	lostSlice   time.Duration // how long that was, 0 before the first

	cpuNumber    func() int // which processor this is
	hasSingleCPU bool       // there is no other
	maxProcs     func() int // GOMAXPROCS
}

func newYieldPolicy() yieldPolicy {
	return yieldPolicy{yieldedAt: rawio.Never, trialEvery: minTrialEvery, cpuNumber: currentProcessor,
		hasSingleCPU: runtime.NumCPU() == 1, maxProcs: func() int { return runtime.GOMAXPROCS(0) }}
}

// usualWait shrinks by 1/usualWaitDecay when a wait was shorter, and grows by 1/usualWaitGrowth
// when one was longer.
const (
	usualWaitDecay  = 8
	usualWaitGrowth = 24
	minUsualStep    = 100 * time.Nanosecond // at least
)

// Once ceding has ended yieldScoreNeeded waits, it is the first thing to do in the next. One wait
// in minTrialEvery is a trial without it. If the packet comes as soon in a trial, ceding has ended
// no wait. Otherwise twice as many waits pass before the next trial, up to maxTrialEvery, as each
// costs as much as several waits.
const (
	yieldScoreNeeded = 8
	maxYieldScore    = 16
	yieldScoreLost   = 4
	minTrialEvery    = 32
	maxTrialEvery    = 256
	maxYieldsInRow   = 3 // so often at once
)

// yieldTimeBeforeSleep is how long ceding is the first thing to do before the reader sleeps. It is
// some ticks of the system's clock, at which the kernel moves a waiting thread to an idle
// processor.
const yieldTimeBeforeSleep = 20 * time.Millisecond

// A host is contested for contestedTime after a slice was lost. A packet is late after
// 1/lateSliceDivisor of the slice, and patience lasts 1/spinSliceDivisor of it.
const (
	contestedTime    = 100 * time.Millisecond
	lateSliceDivisor = 32
	spinSliceDivisor = 8
)

// yieldedWaitDivisor: other threads have had the processor if they had it for that part of the
// wait.
const yieldedWaitDivisor = 8

// yieldsFirst says whether ceding is to come first.
func (c *yieldPolicy) yieldsFirst() bool { return c.yieldScore >= yieldScoreNeeded }

// yieldingPersists says whether that has been so for long enough to sleep instead.
func (c *yieldPolicy) yieldingPersists(now rawio.Time) bool {
	return c.yieldsFirst() && (now.Sub(c.yieldsHelpSinceAt) >= yieldTimeBeforeSleep || c.isContested(now)) &&
		c.maxProcs() > 1
}

// isContested says whether other threads have recently had a processor for a slice.
func (c *yieldPolicy) isContested(now rawio.Time) bool {
	return c.lostSlice > 0 && now.Sub(c.sliceLostAt) < contestedTime
}

// lateAfter is the wait after which a packet is later than usual; wake is what a wake-up costs.
func (c *yieldPolicy) lateAfter(now rawio.Time, wake time.Duration) time.Duration {
	late := 2*c.usualWait + wake/4
	if c.isContested(now) {
		late = max(late, c.lostSlice/lateSliceDivisor)
	}
	return late
}

// sleepsWhenLate says whether to sleep where the reader would cede, if ceding does not come first.
func (c *yieldPolicy) sleepsWhenLate(now rawio.Time) bool {
	return !c.yieldsFirst() && c.isContested(now) && c.maxProcs() > 1
}

// minSpinBudget is how long to look at least.
func (c *yieldPolicy) minSpinBudget(now rawio.Time) time.Duration {
	if c.isContested(now) {
		return c.lostSlice / spinSliceDivisor
	}
	return 0
}

// sleepsNext says whether the next wait begins with sleep.
func (c *yieldPolicy) sleepsNext(now rawio.Time) bool {
	return c.waitsSinceTrial+1 < minTrialEvery && c.yieldingPersists(now)
}

// beginWait begins a wait. A trial of sleep cedes at once, unless this processor was lost by
// ceding. Then it looks for a while before it sleeps. Any other trial looks for as long as is
// usual.
func (c *yieldPolicy) beginWait(now rawio.Time, late time.Duration) {
	c.waitBegun, c.isTrial, c.trialSpins, c.sleepsFirst, c.nextYieldAfter, c.yieldsInWait = true, false, false,
		c.yieldingPersists(now), late, 0
	if !c.yieldsFirst() {
		return
	}
	c.waitsSinceTrial++
	if c.isTrial = c.waitsSinceTrial >= c.trialEvery || c.sleepsFirst && c.waitsSinceTrial >= minTrialEvery; c.isTrial {
		c.waitsSinceTrial = 0
	}
	c.trialSpins = c.isTrial && c.sleepsFirst && now < c.currentCPU().parkEndsAt
	if !c.trialSpins && (c.sleepsFirst || !c.isTrial) {
		c.nextYieldAfter = 0
	}
}

// choosePause says whether to yield, to cede or to sleep before the next look. waited is how long
// the wait has lasted, wake what a wake-up costs.
func (c *yieldPolicy) choosePause(now rawio.Time, waited, wake time.Duration) rawio.Pause {
	late := c.lateAfter(now, wake)
	if !c.waitBegun {
		c.beginWait(now, late)
	}
	if waited < c.nextYieldAfter {
		return rawio.Yield
	}
	c.yieldsInWait++
	if c.isSleeping = c.yieldsInWait == 1 && (c.sleepsFirst && (!c.isTrial || c.trialSpins) ||
		c.sleepsWhenLate(now)); c.isSleeping {
		return rawio.Sleep
	}
	c.yieldedCPU = c.currentCPU()
	owed := now < c.yieldedCPU.repayEndsAt
	if owed || !c.yieldsFirst() || c.yieldsInWait >= maxYieldsInRow {
		c.nextYieldAfter = max(2*waited, late)
	}
	if owed {
		return rawio.Yield
	}
	c.yieldedAt = now
	return rawio.Cede
}

// currentCPU is this processor.
func (c *yieldPolicy) currentCPU() *cpuLoss { return &c.cpuLosses[c.cpuNumber()%trackedCPUs] }

// yieldsForMany says whether to cede at a look for packets that come in numbers. If not, the reader
// parks.
func (c *yieldPolicy) yieldsForMany(now rawio.Time) bool {
	if c.yieldedCPU = c.currentCPU(); now < c.yieldedCPU.parkEndsAt {
		return false
	}
	c.yieldedAt, c.yieldedForMany = now, true
	return true
}

// parksInstead says whether to park instead of looking for a packet that comes alone.
func (c *yieldPolicy) parksInstead(now rawio.Time) bool {
	return c.hasSingleCPU && now < c.currentCPU().parkEndsAt
}

// recordPause notes what the reader is to do.
func (c *yieldPolicy) recordPause(now rawio.Time, p rawio.Pause) {
	c.decidedAt, c.isSpinning = now, p == rawio.Yield || p == rawio.Cede
}

// recordResume takes that the reader has the processor again.
func (c *yieldPolicy) recordResume(now rawio.Time, patience time.Duration) {
	if took := now.Sub(c.decidedAt); c.isSpinning && took > 2*patience {
		c.sliceLostAt, c.lostSlice = now, min(took, maxCPULoss)
	}
	c.isSleeping, c.isSpinning = false, false
	if c.yieldedAt == rawio.Never {
		return
	}
	if took := now.Sub(c.yieldedAt); took > 2*patience {
		c.yieldedCPU.recordLoss(now, took)
	}
	c.yieldedAt = rawio.Never
}

// endWait ends a wait. If the reader had just ceded, and other threads have had the processor, that
// has brought the packet. Such a wait says nothing of what is usual. A reader that is back within a
// small part of the wait has ceded to nobody. Other threads may have had the processor unasked, for
// longer than the shortest turn. Then the packet speaks neither for ceding nor against it.
func (c *yieldPolicy) endWait(now rawio.Time, waited, patience, turn time.Duration) {
	away, part := now.Sub(c.decidedAt) > turn, waited
	if c.isContested(now) {
		part = min(part, 2*c.usualWait) // the other end's turn is as short as ever
	}
	ceded := c.yieldedAt != rawio.Never && (away || !c.sleepsFirst)
	switch {
	case c.yieldedForMany:
		c.yieldedForMany = false
	case c.isSleeping && !c.yieldsFirst() && now.Sub(c.decidedAt) < patience:
		c.yieldScore++
	case c.isSleeping && !c.yieldsFirst():
		c.yieldScore = max(c.yieldScore-1, 0)
	case ceded && now.Sub(c.yieldedAt) < part/yieldedWaitDivisor:
		c.learnUsualWait(waited)
	case ceded, c.isSleeping:
		c.yieldScore = min(c.yieldScore+1, maxYieldScore)
		c.spaceOutTrials()
	case waited > patience:
	case away:
		c.spaceOutTrials()
	case c.yieldsFirst() && !c.isTrial: // another thread has had the processor all the same
		c.yieldScore -= yieldScoreLost
	default:
		c.learnUsualWait(waited)
		c.yieldScore, c.trialEvery, c.yieldsHelpSinceAt = 0, minTrialEvery, now
	}
	c.recordResume(now, patience)
	c.waitBegun = false
}

// spaceOutTrials ends a trial that says that it still helps.
func (c *yieldPolicy) spaceOutTrials() {
	if c.isTrial {
		c.trialEvery = min(2*c.trialEvery, maxTrialEvery)
	}
}

// learnUsualWait takes a short wait that nothing but its packet has ended.
func (c *yieldPolicy) learnUsualWait(waited time.Duration) {
	if waited < c.usualWait {
		c.usualWait -= c.usualWait / usualWaitDecay
	} else {
		c.usualWait += max(c.usualWait/usualWaitGrowth, minUsualStep)
	}
}
