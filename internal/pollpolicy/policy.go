package pollpolicy

import (
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/internal/limits"
	"github.com/rddp-go/rddp/rawio"
)

// State is what packets come like.
type State int32

// The states; the package comment has the table.
const (
	Concurrent State = iota // to begin with: it takes nothing for granted
	Idle
	PingPong
	Bulk
)

func (s State) String() string { return [...]string{"concurrent", "idle", "ping-pong", "bulk"}[s] }

// A batch is of few short packets when it has no more than this. It takes several in a row to tell.
const (
	maxFewPackets      = 2
	maxFewOctets       = 4 << 10
	shortBatchesNeeded = 8
)

// shortWaits counts short waits less the others, from 0 to maxShortWaits. From shortWaitsToEnter on
// the next wait is expected to be short, until the count is down to shortWaitsToLeave.
const (
	maxShortWaits     = 32
	shortWaitsToEnter = 24
	shortWaitsToLeave = 8
)

// calmBatches counts batches that wake no goroutine, from 0 to maxCalmBatches. One that does takes
// calmBatchesLost back.
const (
	maxCalmBatches    = 64
	calmBatchesNeeded = 32
	calmBatchesLost   = 32
)

// workTime is smoothed over workSmoothing waits. A goroutine that has the processor for long counts
// for maxWorkTime at most. In state Idle the reader gives way first in one of measureWorkEvery
// waits, to learn of the work.
const (
	workSmoothing    = 8
	measureWorkEvery = 8
	maxWorkTime      = time.Millisecond
	minWorkGrowth    = 64 // minWorkTime grows by 1/minWorkGrowth with each batch
)

// takerBatches counts batches that wake one goroutine, of an association that sends nothing in
// between. It is from 0 to maxTakerBatches; any other batch takes takerBatchesLost back.
const (
	maxTakerBatches    = 64
	takerBatchesNeeded = 32
	takerBatchesLost   = 4
)

// maxFewWoken is the most woken goroutines that have their turn before other threads of the host.
const maxFewWoken = 16

// lookPayoff is how many failed looks are paid for by one that finds a packet.
const lookPayoff = 4

// A train is so many packets without a gap, or in one batch.
const (
	minTrainPackets = 4
	minManyPackets  = 2
	maxTrainLooks   = 64
)

// Policy watches what arrives at one queue of a link. Only the reader calls its methods, except
// State, LendLimit and BaseSpinBudget.
type Policy struct {
	state          atomic.Int32
	hasSingleTaker atomic.Bool // one goroutine takes all that comes, and nothing is sent back

	wakeCost func() time.Duration // what waking a thread costs
	pollTime time.Duration        // see New
	clock    func() rawio.Time

	shortBatches int // batches in a row of few short packets, shortBatchesNeeded at most
	calmBatches  int // of batches
	shortWaits   int // of waits
	takerBatches int // of batches

	waitsAreShort bool          // most recent waits were short
	workTime      time.Duration // what a batch takes, until the goroutines that it wakes have had their turn
	minWorkTime   time.Duration // the least that it has recently taken
	arrivedAt     rawio.Time    // when the last one did
	gaveWay       bool          // the reader has given way since, for the first time
	waitCount     int           // so far
	trainLen      int           // packets without a gap between them
	// Goroutines woken by the last batch. If there are any, waiting delays them too, and what comes
	// next may be the answer to theirs.
	wokenByLast uint64
	emptyAt     rawio.Time // when nothing was there any more, Never while something may be
	emptyPauses int        // pauses since
	trainLooks  int        // for the next packet of a train since

	trainPredictor predictor // that the next packet of a train comes in time
	awaitsTrain    bool      // it is made
	// That a look right after a lone packet that has woken a goroutine finds one more.
	lookPredictor   predictor
	looksFirst      bool      // it is made
	answerPredictor predictor // that goroutines answer at once what a batch has brought them

	yieldPolicy yieldPolicy
	quotaGuard  quotaGuard
}

// New returns a Policy for a link. poll is how long to look for packets before a reader blocks. 0
// is for as long as it pays, less than 0 for never.
func New(poll time.Duration, clock func() rawio.Time) *Policy {
	return &Policy{pollTime: poll, clock: clock, wakeCost: WakeCost, emptyAt: rawio.Never,
		trainPredictor: predictor{score: maxScore}, yieldPolicy: newYieldPolicy(),
		quotaGuard: newQuotaGuard(limits.ThrottleCount)}
}

// BaseSpinBudget returns how long to look for a packet from an end that only has to answer. Any
// goroutine may call it.
func (p *Policy) BaseSpinBudget() time.Duration { return 6 * p.wakeCost() }

// spinBudget is BaseSpinBudget and the work that is done here while the reader gives way, and as
// much at the peer.
func (p *Policy) spinBudget() time.Duration { return p.BaseSpinBudget() + 2*p.workTime }

// State returns the state.
func (p *Policy) State() State { return State(p.state.Load()) }

// LendLimit is for goroutines that read the link themselves while they wait. It returns how soon
// one must be back; 0 if none may. Where packets come one at a time, the packet then wakes that
// goroutine directly. Where they come in numbers, and one goroutine takes them all, its own work is
// not done while others read. Lending pays if that work is less than what waking it costs.
func (p *Policy) LendLimit() time.Duration {
	switch s := p.State(); {
	case s == PingPong || s == Idle:
		return p.BaseSpinBudget()
	case s == Concurrent && p.hasSingleTaker.Load():
		return p.wakeCost() / 2
	}
	return 0
}

// KeepsThread reports whether the reader is to stay on its thread. Its system calls take so long
// that the runtime would otherwise give its place away.
func (p *Policy) KeepsThread() bool { return p.State() == Bulk }

// LimitRoom returns how much of the room to offer. A system call that may take only one packet does
// not look for a second.
func (p *Policy) LimitRoom(pkts []rawio.Packet) []rawio.Packet {
	if p.State() == PingPong && p.trainLen < 2 {
		return pkts[:1]
	}
	return pkts
}

// RecordArrival takes a batch.
func (p *Policy) RecordArrival(now rawio.Time, packets int) {
	if p.awaitsTrain {
		p.awaitsTrain = false
		p.trainPredictor.recordOutcome(true)
	}
	if p.emptyAt != rawio.Never {
		waited := now.Sub(p.emptyAt)
		p.yieldPolicy.endWait(now, waited, p.spinBudget(), p.minWorkTime)
		if waited <= p.spinBudget() {
			p.shortWaits = min(p.shortWaits+1, maxShortWaits)
		} else {
			p.shortWaits = max(p.shortWaits-1, 0)
		}
		if p.shortWaits >= shortWaitsToEnter {
			p.waitsAreShort = true
		} else if p.shortWaits <= shortWaitsToLeave {
			p.waitsAreShort = false
		}
		if waited > p.wakeCost()/4 || p.wokenByLast > 0 {
			p.trainLen = 0
		}
		p.measureWork(now)
	}
	p.arrivedAt = now
	p.emptyAt, p.emptyPauses, p.trainLooks = rawio.Never, 0, 0
	p.trainLen += packets
}

// measureWork measures the work when a reader that has given way has the processor again.
func (p *Policy) measureWork(now rawio.Time) {
	if p.gaveWay {
		p.gaveWay = false
		took := min(now.Sub(p.arrivedAt), maxWorkTime)
		p.workTime += (took - p.workTime) / workSmoothing
		if more := p.minWorkTime + p.minWorkTime/minWorkGrowth; took < more || p.minWorkTime == 0 {
			p.minWorkTime = took
		} else {
			p.minWorkTime = more
		}
	}
}

// ExpectsMore reports whether to look for more right after a batch: one of several packets, or of a
// train.
func (p *Policy) ExpectsMore(packets int) bool {
	return packets >= minManyPackets || p.trainLen >= minTrainPackets
}

// TrainIsLate reports, when nothing is there, whether the next packet of a train is late or not to
// be waited for. However coarse the clock is, it is late after maxTrainLooks.
func (p *Policy) TrainIsLate(now rawio.Time) bool {
	if p.emptyAt == rawio.Never {
		p.emptyAt = now
		p.awaitsTrain = p.wokenByLast == 0 && p.trainPredictor.shouldTry()
	}
	p.trainLooks++
	if p.awaitsTrain && (now.Sub(p.emptyAt) > p.wakeCost()/4 || p.trainLooks >= maxTrainLooks) {
		p.awaitsTrain = false
		p.trainPredictor.recordOutcome(false)
	}
	return !p.awaitsTrain
}

// HoldsSack reports whether an acknowledgement waits for the answer, until the goroutines that a
// batch has woken have had their turn. RecordHeldSack learns whether that was right.
func (p *Policy) HoldsSack() bool { return p.State() == Concurrent && p.answerPredictor.shouldTry() }

// RecordHeldSack follows on HoldsSack.
func (p *Policy) RecordHeldSack(answered bool) { p.answerPredictor.recordOutcome(answered) }

// RecordHandled notes that a batch, and what followed it, has been handled. woken is how many
// goroutines it has woken. answered says that its association is another than before, or has sent
// messages since.
func (p *Policy) RecordHandled(packets, octets int, woken uint64, answered bool) {
	if packets > maxFewPackets || octets > maxFewOctets {
		p.shortBatches = 0
	} else if p.shortBatches < shortBatchesNeeded {
		p.shortBatches++
	}
	p.wokenByLast = woken
	if woken == 0 {
		p.calmBatches = min(p.calmBatches+1, maxCalmBatches)
	} else {
		p.calmBatches = max(p.calmBatches-calmBatchesLost, 0)
	}
	p.countTaker(woken, answered)
	p.state.Store(int32(p.nextState(p.State())))
}

func (p *Policy) countTaker(woken uint64, answered bool) {
	switch {
	case woken > 1 || answered:
		p.takerBatches = max(p.takerBatches-takerBatchesLost, 0)
	case woken == 1:
		p.takerBatches = min(p.takerBatches+1, maxTakerBatches)
	}
	if is := p.takerBatches >= takerBatchesNeeded; is != p.hasSingleTaker.Load() {
		p.hasSingleTaker.Store(is)
	}
}

func (p *Policy) nextState(s State) State {
	switch {
	case p.shortBatches == shortBatchesNeeded && p.waitsAreShort:
		return PingPong
	case p.shortBatches == shortBatchesNeeded:
		return Idle
	case p.shortBatches == 0 && p.calmBatches >= calmBatchesNeeded:
		return Bulk
	case p.shortBatches == 0 && p.calmBatches == 0, p.shortBatches == 0 && s != Bulk:
		return Concurrent
	}
	return s
}

// pausesFirst says whether the reader pauses before it looks. The goroutines that the last packets
// have woken go on first, and what comes next is usually an answer to theirs. Where lone packets
// are of several connections the next may be there already; then the reader looks first.
func (p *Policy) pausesFirst() bool {
	if p.emptyPauses > 0 || p.wokenByLast == 0 || p.pollTime != 0 {
		return false
	}
	if p.State() == PingPong {
		p.looksFirst = p.lookPredictor.shouldTry()
		return !p.looksFirst
	}
	return p.State() == Concurrent
}

// recordLook takes what a look has found.
func (p *Policy) recordLook(n int) {
	if !p.looksFirst {
		return
	}
	p.looksFirst = false
	if n == 0 {
		p.lookPredictor.recordOutcome(false)
		return
	}
	for range lookPayoff {
		p.lookPredictor.recordOutcome(true)
	}
}

// NextPause returns what to do as nothing is there.
func (p *Policy) NextPause(now rawio.Time) rawio.Pause {
	if p.emptyAt == rawio.Never {
		p.emptyAt = now
	}
	p.measureWork(now)
	p.yieldPolicy.recordResume(now, p.spinBudget())
	pause := p.choosePause(now)
	p.yieldPolicy.recordPause(now, pause)
	if p.emptyPauses++; p.emptyPauses == 1 {
		p.waitCount++
		p.gaveWay = pause == rawio.Yield || pause == rawio.Cede
	}
	return pause
}

func (p *Policy) choosePause(now rawio.Time) rawio.Pause {
	waited, first, s, patience := now.Sub(p.emptyAt), p.emptyPauses == 0, p.State(), p.spinBudget()
	if s == PingPong {
		patience = max(patience, p.yieldPolicy.minSpinBudget(now))
	}
	looks := p.pollTime == 0 && waited < patience && !p.quotaGuard.isActive(now) && !p.yieldPolicy.parksInstead(now)
	switch {
	case looks && s == Concurrent && p.waitsAreShort && !(first && p.wokenByLast <= maxFewWoken):
		if p.yieldPolicy.yieldsForMany(now) {
			return rawio.Cede
		}
	case looks && s == PingPong && (!(first && p.wokenByLast > 0) || p.yieldPolicy.sleepsNext(now)):
		return p.yieldPolicy.choosePause(now, waited, p.wakeCost())
	case looks && s == PingPong,
		p.pollTime == 0 && first && (s == Concurrent || s == PingPong && p.wokenByLast > 0 ||
			s == Idle && p.waitCount%measureWorkEvery == 0),
		p.pollTime > 0 && waited < p.pollTime:
		return rawio.Yield
	case s == Bulk && first && p.waitsAreShort:
		return rawio.Block
	}
	return rawio.Park
}
