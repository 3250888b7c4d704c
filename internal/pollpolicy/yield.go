package pollpolicy

import (
	"runtime"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// yieldPolicy decides when a reader that looks for a packet gives the processor up.
//
// For one that comes alone it mostly must not: the packet is on its way from another processor, and
// who cedes has threads run that the runtime has woken and that find nothing to do. But who is to
// bring the packet may wait for this very processor: a thread of this process, on which a goroutine
// has yet to ask for it, or one of the peer's on the same host. That one gets it when patience is
// over, or at a tick of the system's clock. So a packet that is later than usual has the reader
// cede once, and again when it has waited for twice as long. Where that is what brings the packets,
// as on a host with one processor, where both ends look for them in turn, it cedes at once, and at
// the next looks too: the first to have the processor then may be a thread of its own with nothing
// to do.
//
// Somebody else may have the processor then, and keep it for milliseconds; the other end has it for
// its patience at most. Where it takes twice that, it is paid back with as long without ceding on
// this processor: on another both ends may be alone. Where packets come in numbers, who looks cedes
// at each look; there, and where the host has one processor, he parks instead for much longer: who
// sleeps gets the processor at once when a packet comes, and who looks has used up his share of it.
//
// Where ceding comes first for long, others have all the rest: both ends have always been ready to
// run, and the kernel has not moved one of them. There the reader sleeps in the kernel instead,
// once in a wait and before all else, as programs do whose sockets are the kernel's. The packet
// itself wakes it, often while the other end is still at sending it, so that only one of the two
// sleeps for each round trip; no look finds nothing; and when the kernel puts it beside somebody
// who computes, it has the processor as soon as its packet comes. But ends that sleep on processors
// of their own need two wake-ups for a round trip. So a wait now and then cedes as before: if that
// does not bring the packet, they have come apart, and it looks for packets once more.
//
// A scheduler gives a processor away for a slice, some milliseconds. Who cedes beside somebody who
// computes loses his for as long, though the packet may come at once, and who sleeps too, if that
// one has just begun with his. So where others have had a processor for a slice of late, even if
// nobody had ceded it, the host is contested: a packet is late behind a small part of such a slice
// only, and patience lasts for a larger one. Ends that keep their processors so lose them, and get
// them back, at the same ticks. Behind that the reader sleeps, for who cedes loses what is left of
// his slice as well, and who sleeps keeps his share: the packet speaks for ceding first if it comes
// at once, and against it else, as the other end was without a processor then. No processor is idle
// there to which the kernel might move one of two ends, so they sleep as soon as ceding comes
// first. And on a processor that was lost by ceding the wait that tries whether the ends have come
// apart looks for the packet instead.
type yieldPolicy struct {
	usualWait         time.Duration // what three of four short waits are longer than: a mean would be what an end waits for a processor that others have
	yieldScore        int           // how many waits it has ended of late, less yieldScoreLost for each other
	waitsSinceTrial   int           // in which that was enough, since the last trial
	trialEvery        int           // so manieth is one, as long as it looks in it
	yieldsHelpSinceAt rawio.Time    // that has not been in vain

	waitBegun      bool          // this wait has
	isTrial        bool          // it is to tell whether it still helps
	sleepsFirst    bool          // it is to sleep, but for a trial
	nextYieldAfter time.Duration // not before it has lasted so long
	yieldsInWait   int           // how often it has in this wait
	trialSpins     bool          // it tries that without ceding
	decidedAt      rawio.Time    // when it was said last what to do
	isSpinning     bool          // that was to look again

	yieldedAt      rawio.Time // the last time, until it is known how long that took; else Never
	yieldedCPU     *cpuLoss   // where that was
	isSleeping     bool       // the last that was said is to sleep
	yieldedForMany bool       // that was as packets come in numbers, and says nothing of one that comes alone
	cpuLosses      [trackedCPUs]cpuLoss

	sliceLostAt rawio.Time    // when others had a processor for a slice the last time
	lostSlice   time.Duration // how long that was, 0 before the first

	cpuNumber    func() int // which processor this is
	hasSingleCPU bool       // there is no other
	maxProcs     func() int // GOMAXPROCS
}

func newYieldPolicy() yieldPolicy {
	return yieldPolicy{yieldedAt: rawio.Never, trialEvery: minTrialEvery, cpuNumber: currentProcessor, hasSingleCPU: runtime.NumCPU() == 1, maxProcs: func() int { return runtime.GOMAXPROCS(0) }}
}

// usual becomes so small a part of it shorter where a wait was, and longer where one was.
const (
	usualWaitDecay  = 8
	usualWaitGrowth = 24
	minUsualStep    = 100 * time.Nanosecond // at least
)

// Where ceding has ended yieldScoreNeeded waits it is the first thing to do in the next. One wait
// in minTrialEvery does without: if the packet comes as soon, it has ended none. Else there are
// twice as many before the next such trial, maxTrialEvery at most, as each costs as much as several
// waits.
const (
	yieldScoreNeeded = 8
	maxYieldScore    = 16
	yieldScoreLost   = 4
	minTrialEvery    = 32
	maxTrialEvery    = 256
	maxYieldsInRow   = 3 // so often at once
)

// yieldTimeBeforeSleep is how long it is the first thing to do before the reader sleeps: some ticks
// of the system's clock, at which the kernel moves a thread that waits to a processor that is idle.
const yieldTimeBeforeSleep = 20 * time.Millisecond

// A host is contested for so long behind a slice that was lost. Parts of the slice are how late a
// packet must be there, and for how long there is patience.
const (
	contestedTime    = 100 * time.Millisecond
	lateSliceDivisor = 32
	spinSliceDivisor = 8
)

// yieldedWaitDivisor is the part of a wait that others have had the processor for if they have had
// it.
const yieldedWaitDivisor = 8

// yieldsFirst says whether ceding is to come first.
func (c *yieldPolicy) yieldsFirst() bool { return c.yieldScore >= yieldScoreNeeded }

// yieldingPersists says whether that has been so for long enough to sleep instead.
func (c *yieldPolicy) yieldingPersists(now rawio.Time) bool {
	return c.yieldsFirst() && (now.Sub(c.yieldsHelpSinceAt) >= yieldTimeBeforeSleep || c.isContested(now)) && c.maxProcs() > 1
}

// isContested says whether others have had a processor for a slice of late.
func (c *yieldPolicy) isContested(now rawio.Time) bool {
	return c.lostSlice > 0 && now.Sub(c.sliceLostAt) < contestedTime
}

// lateAfter is how long a wait for a packet has lasted that is later than usual, where a wake-up
// costs wake.
func (c *yieldPolicy) lateAfter(now rawio.Time, wake time.Duration) time.Duration {
	late := 2*c.usualWait + wake/4
	if c.isContested(now) {
		late = max(late, c.lostSlice/lateSliceDivisor)
	}
	return late
}

// sleepsWhenLate says whether to sleep where the reader would cede, though ceding does not come
// first.
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

// beginWait begins a wait. A trial of sleep cedes at once, unless that is dear; then it looks for a
// while before it sleeps, and any other for as long as is usual.
func (c *yieldPolicy) beginWait(now rawio.Time, late time.Duration) {
	c.waitBegun, c.isTrial, c.trialSpins, c.sleepsFirst, c.nextYieldAfter, c.yieldsInWait = true, false, false, c.yieldingPersists(now), late, 0
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

// choosePause says whether to yield, to cede or to sleep before the next look, in a wait that has
// lasted for waited, where a wake-up costs wake.
func (c *yieldPolicy) choosePause(now rawio.Time, waited, wake time.Duration) rawio.Pause {
	late := c.lateAfter(now, wake)
	if !c.waitBegun {
		c.beginWait(now, late)
	}
	if waited < c.nextYieldAfter {
		return rawio.Yield
	}
	c.yieldsInWait++
	if c.isSleeping = c.yieldsInWait == 1 && (c.sleepsFirst && (!c.isTrial || c.trialSpins) || c.sleepsWhenLate(now)); c.isSleeping {
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

// recordPause takes what the reader was told to do.
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

// endWait ends a wait. If the reader had just ceded, and others have had the processor, that has
// brought the packet, and says nothing of what is usual. Who is back within a small part of the
// wait has ceded to nobody. A packet that comes while others have the processor for longer than a
// turn takes at least, though nobody has ceded it, speaks neither for ceding nor against it.
func (c *yieldPolicy) endWait(now rawio.Time, waited, patience, turn time.Duration) {
	away, part := now.Sub(c.decidedAt) > turn, waited
	if c.isContested(now) {
		part = min(part, 2*c.usualWait) // it has looked for long, but the other end's turn is as short as ever
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
	case c.yieldsFirst() && !c.isTrial: // somebody else has had the processor all the same
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
