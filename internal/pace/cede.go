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
//
// A scheduler gives a processor away for a slice, some milliseconds. Who cedes beside somebody who computes loses his for as long, though the packet may come at once, and who sleeps too, if that one has just begun with
// his. So where others have had a processor for a slice of late, even if nobody had ceded it, the host is contested: a packet is late behind a small part of such a slice only, and
// patience lasts for a larger one. Ends that keep their processors so lose them, and get them back, at the same ticks. Behind that the reader sleeps, for who cedes loses what is left of his slice as well, and who sleeps
// keeps his share: the packet speaks for ceding first if it comes at once, and against it else, as the other end was without a processor then. No processor is idle there to which the kernel might move one of two ends, so
// they sleep as soon as ceding comes first. And on a processor that was lost by ceding the wait that tries whether the ends have come apart looks for the packet instead.
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
	dear     bool          // it tries that without ceding
	looked   rawio.Time    // when it was said last what to do
	awake    bool          // that was to look again

	at     rawio.Time // the last time, until it is known how long that took; else Never
	cpu    *taken     // where that was
	asleep bool       // the last that was said is to sleep
	many   bool       // that was as packets come in numbers, and says nothing of one that comes alone
	taken  [cpus]taken

	lost  rawio.Time    // when others had a processor for a slice the last time
	slice time.Duration // how long that was, 0 before the first

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

// A host is contested for so long behind a slice that was lost. Parts of the slice are how late a packet must be there, and for how long there is patience.
const (
	contestedFor = 100 * time.Millisecond
	latePart     = 32
	patiencePart = 8
)

// cededPart is the part of a wait that others have had the processor for if they have had it.
const cededPart = 8

// first says whether ceding is to come first.
func (c *cession) first() bool { return c.helps >= helpsEnough }

// lasts says whether that has been so for long enough to sleep instead.
func (c *cession) lasts(now rawio.Time) bool {
	return c.first() && (now.Sub(c.since) >= cedesFor || c.contested(now)) && c.places() > 1
}

// contested says whether others have had a processor for a slice of late.
func (c *cession) contested(now rawio.Time) bool {
	return c.slice > 0 && now.Sub(c.lost) < contestedFor
}

// late is how long a wait for a packet has lasted that is later than usual, where a wake-up costs wake.
func (c *cession) late(now rawio.Time, wake time.Duration) time.Duration {
	late := 2*c.usual + wake/4
	if c.contested(now) {
		late = max(late, c.slice/latePart)
	}
	return late
}

// naps says whether to sleep where the reader would cede, though ceding does not come first.
func (c *cession) naps(now rawio.Time) bool {
	return !c.first() && c.contested(now) && c.places() > 1
}

// patience is how long to look at least.
func (c *cession) patience(now rawio.Time) time.Duration {
	if c.contested(now) {
		return c.slice / patiencePart
	}
	return 0
}

// sleepsNext says whether the next wait begins with sleep.
func (c *cession) sleepsNext(now rawio.Time) bool { return c.waits+1 < helpsTry && c.lasts(now) }

// begin begins a wait. A trial of sleep cedes at once, unless that is dear; then it looks for a while before it sleeps, and any other for as long as is usual.
func (c *cession) begin(now rawio.Time, late time.Duration) {
	c.begun, c.trial, c.dear, c.sleeping, c.next, c.row = true, false, false, c.lasts(now), late, 0
	if !c.first() {
		return
	}
	c.waits++
	if c.trial = c.waits >= c.every || c.sleeping && c.waits >= helpsTry; c.trial {
		c.waits = 0
	}
	c.dear = c.trial && c.sleeping && now < c.here().shared
	if !c.dear && (c.sleeping || !c.trial) {
		c.next = 0
	}
}

// look says whether to yield, to cede or to sleep before the next look, in a wait that has lasted for waited, where a wake-up costs wake.
func (c *cession) look(now rawio.Time, waited, wake time.Duration) rawio.Pause {
	late := c.late(now, wake)
	if !c.begun {
		c.begin(now, late)
	}
	if waited < c.next {
		return rawio.Yield
	}
	c.row++
	if c.asleep = c.row == 1 && (c.sleeping && (!c.trial || c.dear) || c.naps(now)); c.asleep {
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

// said takes what the reader was told to do.
func (c *cession) said(now rawio.Time, p rawio.Pause) {
	c.looked, c.awake = now, p == rawio.Yield || p == rawio.Cede
}

// back takes that the reader has the processor again.
func (c *cession) back(now rawio.Time, patience time.Duration) {
	if took := now.Sub(c.looked); c.awake && took > 2*patience {
		c.lost, c.slice = now, min(took, mostTaken)
	}
	c.asleep, c.awake = false, false
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
	away, part := now.Sub(c.looked) > turn, waited
	if c.contested(now) {
		part = min(part, 2*c.usual) // it has looked for long, but the other end's turn is as short as ever
	}
	ceded := c.at != rawio.Never && (away || !c.sleeping)
	switch {
	case c.many:
		c.many = false
	case c.asleep && !c.first() && now.Sub(c.looked) < patience:
		c.helps++
	case c.asleep && !c.first():
		c.helps = max(c.helps-1, 0)
	case ceded && now.Sub(c.at) < part/cededPart:
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
