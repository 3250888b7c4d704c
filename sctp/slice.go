package sctp

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// One packet may have much work done, and one association may get many. Its owner lets others have the gate, and whoever reads the
// link turns to the packets of others, when that has taken a slice of time. What is left goes on after that.
const (
	// sliceTime is the time, and sliceSteps after how many steps the clock is looked at. Packets that have come and are handled
	// get half of it, so that what they bring can be handed on in the other.
	sliceTime  = 300 * time.Microsecond
	sliceSteps = 64

	// sendTime is how long an owner sends before it opens the gate. Who waits there is mostly about to add to what there is to send: the two
	// would go on with it by turns.
	sendTime = 2 * sliceTime
)

// slice is what was done since the gate was taken.
type slice struct {
	steps uint64     // when the clock was looked at last, or the gate was taken
	began rawio.Time // when it was first; 0: never
}

// start has the slice begin no later than now: what comes takes long, whatever its steps.
func (s *slice) start(now rawio.Time) {
	if s.began == 0 {
		s.began = now
	}
}

// stepper is an Upper that counts its work as assoc.Assoc.Steps does.
type stepper interface{ Steps() uint64 }

// steps is what the peer, and readers, have had done so far. Owner only.
func (c *Conn) steps() uint64 {
	n := c.a.Steps()
	if c.stepper != nil {
		n += c.stepper.Steps()
	}
	return n
}

// over says whether so much of the slice is. It is so for good until the gate is taken anew. Owner only.
func (c *Conn) over(part time.Duration) bool {
	s := &c.slice
	n := c.steps()
	if n-s.steps < sliceSteps {
		return false
	}
	now := c.t.now()
	s.start(now)
	if now.Sub(s.began) < part {
		s.steps = n
		return false
	}
	return true
}
