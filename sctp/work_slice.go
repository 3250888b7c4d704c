package sctp

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// One packet may have much work done, and one association may get many. Its owner lets others have
// the gate, and whoever reads the link turns to the packets of others, when that has taken a slice
// of time. What is left goes on after that.
const (
	// sliceTime is the time, and stepsPerClockCheck after how many steps the clock is looked at.
	// Packets that have come and are handled get half of it, so that what they bring can be handed
	// on in the other.
	sliceTime          = 300 * time.Microsecond
	stepsPerClockCheck = 64

	// maxSendTime is how long an owner sends before it opens the gate. Who waits there is mostly
	// about to add to what there is to send: the two would go on with it by turns.
	maxSendTime = 2 * sliceTime
)

// workSlice is what was done since the gate was taken.
type workSlice struct {
	stepsAtCheck uint64     // when the clock was looked at last, or the gate was taken
	beganAt      rawio.Time // when it was first; 0: never
}

// ensureBegun has the slice begin no later than now: what comes takes long, whatever its steps.
func (s *workSlice) ensureBegun(now rawio.Time) {
	if s.beganAt == 0 {
		s.beganAt = now
	}
}

// stepCounter is an Upper that counts its work as assoc.Assoc.Steps does.
type stepCounter interface{ Steps() uint64 }

// workSteps is what the peer, and readers, have had done so far. Owner only.
func (c *Conn) workSteps() uint64 {
	n := c.a.Steps()
	if c.stepCounter != nil {
		n += c.stepCounter.Steps()
	}
	return n
}

// sliceIsOver says whether so much of the slice is. It is so for good until the gate is taken anew.
// Owner only.
func (c *Conn) sliceIsOver(part time.Duration) bool {
	s := &c.workSlice
	n := c.workSteps()
	if n-s.stepsAtCheck < stepsPerClockCheck {
		return false
	}
	now := c.t.now()
	s.ensureBegun(now)
	if now.Sub(s.beganAt) < part {
		s.stepsAtCheck = n
		return false
	}
	return true
}
