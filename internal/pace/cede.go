package pace

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// cession decides when a reader that looks for a packet cedes the processor.
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
type cession struct {
	usual time.Duration // what three of four short waits are longer than: a mean would be what an end waits for a processor that others have
	begun bool          // this wait has
	next  time.Duration // not before it has lasted so long
	row   int           // how often it has in this wait
	helps int           // how many waits it has ended of late, less helpsCost for each other
	waits int           // in which that was enough; see trial
	at    rawio.Time    // the last time, until it is known how long that took; else Never
	cpu   *taken        // where that was
	many  bool          // that was as packets come in numbers, and says nothing of one that comes alone
	taken [cpus]taken

	where func() int // which processor this is
	one   bool       // there is no other
}

// cpus is how many processors are told apart, by the last bits of their numbers.
const cpus = 8

// taken is what others have had of a processor when it was ceded.
type taken struct {
	back  rawio.Time // until then it is paid back
	sleep rawio.Time // until then the kernel is to share it out
	times int        // for how many times as long as they had it
}

// times is doubled where others have the processor again before as much time is over once more, and else halved. Who is away for longer than mostTaken was
// stopped, or asleep with the host.
const (
	timesLeast = 4
	timesMost  = 64
	mostTaken  = 10 * time.Millisecond
)

// lost takes that others have had it for so long.
func (t *taken) lost(now rawio.Time, took time.Duration) {
	took = min(took, mostTaken)
	if now.Sub(t.sleep) < time.Duration(t.times)*took {
		t.times = min(2*t.times, timesMost)
	} else {
		t.times /= 2
	}
	t.times = max(t.times, timesLeast)
	t.back, t.sleep = now.Add(took), now.Add(time.Duration(t.times)*took)
}

// usual becomes so small a part of it shorter where a wait was, and longer where one was.
const (
	usualLess = 8
	usualMore = 24
	usualStep = 100 * time.Nanosecond // at least
)

// Where ceding has ended helpsEnough waits it is the first thing to do in the next. One wait in helpsTry does without: if the packet comes as soon, it has ended none.
const (
	helpsEnough = 8
	helpsMost   = 16
	helpsCost   = 4
	helpsTry    = 32
	helpsRow    = 3 // so often at once
)

// cededPart is the part of a wait that others have had the processor for if they have had it.
const cededPart = 8

// first says whether ceding is to come first.
func (c *cession) first() bool { return c.helps >= helpsEnough }

// trial says whether this wait is to tell whether it still helps.
func (c *cession) trial() bool { return c.begun && c.waits%helpsTry == 0 }

// due says whether to cede in a wait that has lasted for waited, where a wake-up costs wake.
func (c *cession) due(now rawio.Time, waited, wake time.Duration) bool {
	late := 2*c.usual + wake/4
	if !c.begun {
		c.begun, c.next, c.row = true, late, 0
		if c.first() {
			if c.waits++; c.waits%helpsTry != 0 {
				c.next = 0
			}
		}
	}
	if waited < c.next {
		return false
	}
	c.row++
	c.cpu = c.here()
	owed := now < c.cpu.back
	if owed || !c.first() || c.row >= helpsRow {
		c.next = max(2*waited, late)
	}
	if !owed {
		c.at = now
	}
	return !owed
}

// here is this processor.
func (c *cession) here() *taken { return &c.taken[c.where()%cpus] }

// gives says whether to cede at a look for packets that come in numbers. If not, the reader parks.
func (c *cession) gives(now rawio.Time) bool {
	if c.cpu = c.here(); now < c.cpu.sleep {
		return false
	}
	c.at, c.many = now, true
	return true
}

// sleeps says whether to park instead of looking for a packet that comes alone.
func (c *cession) sleeps(now rawio.Time) bool { return c.one && now < c.here().sleep }

// back takes that the reader has the processor again.
func (c *cession) back(now rawio.Time, patience time.Duration) {
	if c.at == rawio.Never {
		return
	}
	if took := now.Sub(c.at); took > 2*patience {
		c.cpu.lost(now, took)
	}
	c.at = rawio.Never
}

// came ends a wait. If the reader had just ceded, and others have had the processor, that has brought the packet, and says nothing of what is usual. Who is back
// within a small part of the wait has ceded to nobody.
func (c *cession) came(now rawio.Time, waited, patience time.Duration) {
	switch {
	case c.many:
		c.many = false
	case c.at != rawio.Never && now.Sub(c.at) < waited/cededPart:
		c.learn(waited)
	case c.at != rawio.Never:
		c.helps = min(c.helps+1, helpsMost)
	case waited > patience:
	case c.first() && !c.trial(): // somebody else has had the processor all the same
		c.helps -= helpsCost
	default:
		c.learn(waited)
		c.helps = 0
	}
	c.back(now, patience)
	c.begun = false
}

// learn takes a short wait that nothing but its packet has ended.
func (c *cession) learn(waited time.Duration) {
	if waited < c.usual {
		c.usual -= c.usual / usualLess
	} else {
		c.usual += max(c.usual/usualMore, usualStep)
	}
}
