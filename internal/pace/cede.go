package pace

import (
	"runtime"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// cession decides when a reader that looks for a packet gives the processor up.
//
// For one that comes alone it mostly must not: the packet is on its way from another processor, and who cedes has threads run that the runtime has woken and that find nothing to do. But who
// is to bring the packet may wait for this very processor: a thread of this process, on which a goroutine has yet to ask for it, or one of the peer's on the same
// host. That one gets it when patience is over, or at a tick of the system's clock. So a packet that is later than usual has the reader cede
// once, and again when it has waited for twice as long. Where that is what brings the packets, as on a host with one processor, where both ends
// look for them in turn, it cedes at once, and at the next looks too: the first to have the processor then may be a thread of its own with nothing to do.
//
// Somebody else may have the processor then, and keep it for milliseconds; the other end has it for its patience at most. Where it takes twice that,
// it is paid back with as long without ceding on this processor: on another both ends may be alone. Where packets come in numbers, who looks cedes at each look; there, and where the
// host has one processor, he parks instead for much longer: who sleeps gets the processor at once when a packet comes, and who looks has used up his share of it.
//
// Where ceding comes first for long, others have all the rest: both ends have always been ready to run, and the kernel has not
// moved one of them. There the reader sleeps in the kernel instead, once in a wait and before all else, as programs do whose sockets are the kernel's. The packet itself wakes it, often while the other end is still at
// sending it, so that only one of the two sleeps for each round trip; no look finds nothing; and when the kernel puts it beside somebody who computes, it has the processor as soon
// as its packet comes. But ends that sleep on processors of their own need two wake-ups for a round trip. So a wait now and then cedes as before: if that does not bring the packet, they
// have come apart, and it looks for packets once more.
type cession struct {
	usual time.Duration // what three of four short waits are longer than: a mean would be what an end waits for a processor that others have
	helps int           // how many waits it has ended of late, less helpsCost for each other
	waits int           // in which that was enough, since the last trial
	every int           // so manieth is one, as long as it looks in it
	since rawio.Time    // that has not been in vain

	begun    bool          // this wait has
	trial    bool          // it is to tell whether it still helps
	sleeping bool          // it is to sleep, but for a trial
	next     time.Duration // not before it has lasted so long
	row      int           // how often it has in this wait
	looked   rawio.Time    // when it was said last what to do

	at     rawio.Time // the last time, until it is known how long that took; else Never
	cpu    *taken     // where that was
	asleep bool       // the last that was said is to sleep
	many   bool       // that was as packets come in numbers, and says nothing of one that comes alone
	taken  [cpus]taken

	where  func() int // which processor this is
	one    bool       // there is no other
	places func() int // GOMAXPROCS
}

func newCession() cession {
	return cession{at: rawio.Never, every: helpsTry, where: processor, one: runtime.NumCPU() == 1, places: func() int { return runtime.GOMAXPROCS(0) }}
}

// usual becomes so small a part of it shorter where a wait was, and longer where one was.
const (
	usualLess = 8
	usualMore = 24
	usualStep = 100 * time.Nanosecond // at least
)

// Where ceding has ended helpsEnough waits it is the first thing to do in the next. One wait in helpsTry does without: if the packet comes as soon, it has ended none. Else there
// are twice as many before the next such trial, helpsSeldom at most, as each costs as much as several waits.
const (
	helpsEnough = 8
	helpsMost   = 16
	helpsCost   = 4
	helpsTry    = 32
	helpsSeldom = 256
	helpsRow    = 3 // so often at once
)

// cedesFor is how long it is the first thing to do before the reader sleeps: some ticks of the system's clock, at which the kernel moves a thread that waits to a processor that is idle.
const cedesFor = 20 * time.Millisecond

// cededPart is the part of a wait that others have had the processor for if they have had it.
const cededPart = 8

// first says whether ceding is to come first.
func (c *cession) first() bool { return c.helps >= helpsEnough }

// lasts says whether that has been so for long enough to sleep instead.
func (c *cession) lasts(now rawio.Time) bool {
	return c.first() && now.Sub(c.since) >= cedesFor && c.places() > 1
}

// sleepsNext says whether the next wait begins with sleep.
func (c *cession) sleepsNext(now rawio.Time) bool { return c.waits+1 < helpsTry && c.lasts(now) }

// begin begins a wait. A trial of sleep cedes at once, any other looks for as long as is usual.
func (c *cession) begin(now rawio.Time, late time.Duration) {
	c.begun, c.trial, c.sleeping, c.next, c.row = true, false, c.lasts(now), late, 0
	if !c.first() {
		return
	}
	c.waits++
	if c.trial = c.waits >= c.every || c.sleeping && c.waits >= helpsTry; c.trial {
		c.waits = 0
	}
	if c.sleeping || !c.trial {
		c.next = 0
	}
}

// look says whether to yield, to cede or to sleep before the next look, in a wait that has lasted for waited, where a wake-up costs wake.
func (c *cession) look(now rawio.Time, waited, wake time.Duration) rawio.Pause {
	late := 2*c.usual + wake/4
	if !c.begun {
		c.begin(now, late)
	}
	if waited < c.next {
		return rawio.Yield
	}
	c.row++
	if c.asleep = c.sleeping && !c.trial && c.row == 1; c.asleep {
		return rawio.Sleep
	}
	c.cpu = c.here()
	owed := now < c.cpu.back
	if owed || !c.first() || c.row >= helpsRow {
		c.next = max(2*waited, late)
	}
	if owed {
		return rawio.Yield
	}
	c.at = now
	return rawio.Cede
}

// here is this processor.
func (c *cession) here() *taken { return &c.taken[c.where()%cpus] }

// gives says whether to cede at a look for packets that come in numbers. If not, the reader parks.
func (c *cession) gives(now rawio.Time) bool {
	if c.cpu = c.here(); now < c.cpu.shared {
		return false
	}
	c.at, c.many = now, true
	return true
}

// parks says whether to park instead of looking for a packet that comes alone.
func (c *cession) parks(now rawio.Time) bool { return c.one && now < c.here().shared }

// back takes that the reader has the processor again.
func (c *cession) back(now rawio.Time, patience time.Duration) {
	c.asleep = false
	if c.at == rawio.Never {
		return
	}
	if took := now.Sub(c.at); took > 2*patience {
		c.cpu.lost(now, took)
	}
	c.at = rawio.Never
}

// came ends a wait. If the reader had just ceded, and others have had the processor, that has brought the packet, and says nothing of what is usual. Who is back
// within a small part of the wait has ceded to nobody. A packet that comes while others have the processor for longer than a turn takes at least, though nobody has ceded it, speaks
// neither for ceding nor against it.
func (c *cession) came(now rawio.Time, waited, patience, turn time.Duration) {
	away := now.Sub(c.looked) > turn
	ceded := c.at != rawio.Never && (away || !c.sleeping)
	switch {
	case c.many:
		c.many = false
	case ceded && now.Sub(c.at) < waited/cededPart:
		c.learn(waited)
	case ceded, c.asleep:
		c.helps = min(c.helps+1, helpsMost)
		c.tried()
	case waited > patience:
	case away:
		c.tried()
	case c.first() && !c.trial: // somebody else has had the processor all the same
		c.helps -= helpsCost
	default:
		c.learn(waited)
		c.helps, c.every, c.since = 0, helpsTry, now
	}
	c.back(now, patience)
	c.begun = false
}

// tried ends a trial that says that it still helps.
func (c *cession) tried() {
	if c.trial {
		c.every = min(2*c.every, helpsSeldom)
	}
}

// learn takes a short wait that nothing but its packet has ended.
func (c *cession) learn(waited time.Duration) {
	if waited < c.usual {
		c.usual -= c.usual / usualLess
	} else {
		c.usual += max(c.usual/usualMore, usualStep)
	}
}
