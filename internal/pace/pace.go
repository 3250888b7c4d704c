package pace

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
	Many State = iota // to begin with: it takes nothing for granted
	Quiet
	Single
	Bulk
)

func (s State) String() string { return [...]string{"many", "quiet", "single", "bulk"}[s] }

// A batch is of few short packets when it has no more than this. It takes several in a row to tell.
const (
	fewPackets  = 2
	fewOctets   = 4 << 10
	loneBatches = 8
)

// soon counts short waits less the others, from 0 to soonMost. The next is expected to be short from soonEnough on, and until soonNot.
const (
	soonMost   = 32
	soonEnough = 24
	soonNot    = 8
)

// calm counts batches that wake nobody, from 0 to calmMost; one that does takes calmCost back.
const (
	calmMost   = 64
	calmEnough = 32
	calmCost   = 32
)

// work is smoothed over so many waits, and a goroutine that has the processor for long does not count for more than mostWork. In state Quiet
// the reader gives way first, to learn of it, in one of so many waits.
const (
	workWeight = 8
	workEvery  = 8
	mostWork   = time.Millisecond
	leastMore  = 64 // the least becomes so small a part of it longer with each
)

// takes counts batches that wake one goroutine, of an association that sends nothing in between, from 0 to takesMost; any other takes takesCost back.
const (
	takesMost   = 64
	takesEnough = 32
	takesCost   = 4
)

// fewWoken is how many goroutines a batch may have woken for these to have their turn before other threads of the host do.
const fewWoken = 16

// behindPays is how many looks in vain one pays for that finds a packet.
const behindPays = 4

// A train is so many packets without a gap, or in one batch.
const (
	trainPackets = 4
	manyPackets  = 2
	mostLooks    = 64
)

// Pace watches what arrives at one queue of a link. All methods are the reader's, but for State, Lends and Patience.
type Pace struct {
	state atomic.Int32
	taken atomic.Bool // one goroutine takes all that comes, and nothing is sent back

	wake  func() time.Duration // what waking a thread costs
	poll  time.Duration        // see New
	clock func() rawio.Time

	lone  int // batches in a row of few short packets, loneBatches at most
	calm  int // of batches
	soon  int // of waits
	takes int // of batches

	hurry bool          // most waits of late were short
	work  time.Duration // what a batch takes here, until those that it wakes have had their turn
	least time.Duration // that it has taken of late
	came  rawio.Time    // when the last one did
	gave  bool          // the reader has given way since, for the first time
	waits int           // so far
	train int           // packets without a gap between them
	woken uint64        // goroutines by the last batch. If any, this one may as well: they would wait too; and what comes next may be the answer to theirs
	empty rawio.Time    // when nothing was there any more, Never while something may be
	blind int           // pauses since
	looks int           // for the next packet of a train since

	trains  bet  // that the next packet of a train comes in time
	waiting bool // it is made
	behind  bet  // that a look right behind packets that come alone, and have woken somebody, finds one more
	tries   bool // it is made
	answers bet  // that goroutines answer at once what a batch has brought them

	cession cession
	curb    curb
}

// New returns a Pace for a link that was told how long to look for packets before a reader blocks: 0 is for as long as it
// pays, less for never.
func New(poll time.Duration, clock func() rawio.Time) *Pace {
	return &Pace{poll: poll, clock: clock, wake: Wake, empty: rawio.Never, trains: bet{won: betMost}, cession: newCession(), curb: newCurb(limits.Throttled)}
}

// Patience returns how long to look for a packet that is expected of an end that has nothing to do but to answer. Others than the reader may ask.
func (p *Pace) Patience() time.Duration { return 6 * p.wake() }

// patience is that and work: what is done here while the reader gives way, and as much at the peer.
func (p *Pace) patience() time.Duration { return p.Patience() + 2*p.work }

// State returns the state.
func (p *Pace) State() State { return State(p.state.Load()) }

// Lends returns how soon a goroutine must be back that is to read the link itself while it waits, 0 if none is to. Where packets come one at a time,
// the packet then wakes that one, not another that has to wake it in turn. Where they come in numbers, and one goroutine takes all that they bring, what it
// does in between is not done while others read; that pays if it is less than what it costs to wake it.
func (p *Pace) Lends() time.Duration {
	switch s := p.State(); {
	case s == Single || s == Quiet:
		return p.Patience()
	case s == Many && p.taken.Load():
		return p.wake() / 2
	}
	return 0
}

// Keeps reports whether the reader is to stay on its thread: it spends its time in system calls that take long enough for the
// runtime to give its place away meanwhile.
func (p *Pace) Keeps() bool { return p.State() == Bulk }

// Room returns how much room to offer, of what there is: a system call that may take one packet only does not look for a second in vain.
func (p *Pace) Room(pkts []rawio.Packet) []rawio.Packet {
	if p.State() == Single && p.train < 2 {
		return pkts[:1]
	}
	return pkts
}

// Arrived takes a batch.
func (p *Pace) Arrived(now rawio.Time, packets int) {
	if p.waiting {
		p.waiting = false
		p.trains.tell(true)
	}
	if p.empty != rawio.Never {
		waited := now.Sub(p.empty)
		p.cession.came(now, waited, p.patience(), p.least)
		if waited <= p.patience() {
			p.soon = min(p.soon+1, soonMost)
		} else {
			p.soon = max(p.soon-1, 0)
		}
		if p.soon >= soonEnough {
			p.hurry = true
		} else if p.soon <= soonNot {
			p.hurry = false
		}
		if waited > p.wake()/4 || p.woken > 0 {
			p.train = 0
		}
		p.worked(now)
	}
	p.came = now
	p.empty, p.blind, p.looks = rawio.Never, 0, 0
	p.train += packets
}

// worked measures the work when the reader has the processor again for which it has given way.
func (p *Pace) worked(now rawio.Time) {
	if p.gave {
		p.gave = false
		took := min(now.Sub(p.came), mostWork)
		p.work += (took - p.work) / workWeight
		if more := p.least + p.least/leastMore; took < more || p.least == 0 {
			p.least = took
		} else {
			p.least = more
		}
	}
}

// Follows reports whether to look for more right behind a batch: one of several packets, or of a train.
func (p *Pace) Follows(packets int) bool { return packets >= manyPackets || p.train >= trainPackets }

// Late reports whether the next packet of a train has not come in time, as nothing is there, or is not to be waited for. However coarse the clock is,
// it is after mostLooks.
func (p *Pace) Late(now rawio.Time) bool {
	if p.empty == rawio.Never {
		p.empty = now
		p.waiting = p.woken == 0 && p.trains.on()
	}
	p.looks++
	if p.waiting && (now.Sub(p.empty) > p.wake()/4 || p.looks >= mostLooks) {
		p.waiting = false
		p.trains.tell(false)
	}
	return !p.waiting
}

// Holds reports whether to leave an acknowledgement to the answer, until those that a batch has woken have had their turn. Held takes whether that
// was right.
func (p *Pace) Holds() bool { return p.State() == Many && p.answers.on() }

// Held follows on Holds.
func (p *Pace) Held(answered bool) { p.answers.tell(answered) }

// Handled takes that a batch, and what followed it, has been handled: how many octets and packets it was, how many goroutines they have
// woken, and whether they were of another association than those before, or it has sent messages since.
func (p *Pace) Handled(packets, octets int, woken uint64, answered bool) {
	if packets > fewPackets || octets > fewOctets {
		p.lone = 0
	} else if p.lone < loneBatches {
		p.lone++
	}
	p.woken = woken
	if woken == 0 {
		p.calm = min(p.calm+1, calmMost)
	} else {
		p.calm = max(p.calm-calmCost, 0)
	}
	p.take(woken, answered)
	p.state.Store(int32(p.judge(p.State())))
}

func (p *Pace) take(woken uint64, answered bool) {
	switch {
	case woken > 1 || answered:
		p.takes = max(p.takes-takesCost, 0)
	case woken == 1:
		p.takes = min(p.takes+1, takesMost)
	}
	if is := p.takes >= takesEnough; is != p.taken.Load() {
		p.taken.Store(is)
	}
}

func (p *Pace) judge(s State) State {
	switch {
	case p.lone == loneBatches && p.hurry:
		return Single
	case p.lone == loneBatches:
		return Quiet
	case p.lone == 0 && p.calm >= calmEnough:
		return Bulk
	case p.lone == 0 && p.calm == 0, p.lone == 0 && s != Bulk:
		return Many
	}
	return s
}

// lets says whether the reader pauses before it looks: those that the last packets have woken go on first, and what comes next is mostly an answer to theirs.
// Where packets that come alone are of several connections the next may be there already: then it looks first.
func (p *Pace) lets() bool {
	if p.blind > 0 || p.woken == 0 || p.poll != 0 {
		return false
	}
	if p.State() == Single {
		p.tries = p.behind.on()
		return !p.tries
	}
	return p.State() == Many
}

// looked takes what a look has found.
func (p *Pace) looked(n int) {
	if !p.tries {
		return
	}
	p.tries = false
	if n == 0 {
		p.behind.tell(false)
		return
	}
	for range behindPays {
		p.behind.tell(true)
	}
}

// Pause returns what to do as nothing is there.
func (p *Pace) Pause(now rawio.Time) rawio.Pause {
	if p.empty == rawio.Never {
		p.empty = now
	}
	p.worked(now)
	p.cession.back(now, p.patience())
	pause := p.pause(now)
	p.cession.said(now, pause)
	if p.blind++; p.blind == 1 {
		p.waits++
		p.gave = pause == rawio.Yield || pause == rawio.Cede
	}
	return pause
}

func (p *Pace) pause(now rawio.Time) rawio.Pause {
	waited, first, s, patience := now.Sub(p.empty), p.blind == 0, p.State(), p.patience()
	if s == Single {
		patience = max(patience, p.cession.patience(now))
	}
	looks := p.poll == 0 && waited < patience && !p.curb.on(now) && !p.cession.parks(now)
	switch {
	case looks && s == Many && p.hurry && !(first && p.woken <= fewWoken):
		if p.cession.gives(now) {
			return rawio.Cede
		}
	case looks && s == Single && (!(first && p.woken > 0) || p.cession.sleepsNext(now)):
		return p.cession.look(now, waited, p.wake())
	case looks && s == Single,
		p.poll == 0 && first && (s == Many || s == Single && p.woken > 0 || s == Quiet && p.waits%workEvery == 0),
		p.poll > 0 && waited < p.poll:
		return rawio.Yield
	case s == Bulk && first && p.hurry:
		return rawio.Block
	}
	return rawio.Park
}
