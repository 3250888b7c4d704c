package sctp

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// One packet may cause much work, and one association may get many packets. After a slice of time
// its owner lets others have the lock. The reader of the link then turns to the packets of others.
// What is left goes on after that.
const (
	// sliceTime is the time, and stepsPerClockCheck after how many steps the clock is looked at.
	// Packets that have come get half of the slice, so that what they bring can be handed on in the
	// other.
	sliceTime          = 300 * time.Microsecond
	stepsPerClockCheck = 64

	// maxSendTime is how long an owner sends before it releases the lock. A goroutine that waits
	// for the lock is usually about to add to what there is to send. The two would go on with it by
	// turns.
	maxSendTime = 2 * sliceTime
)

// assocLock.slice is what was done since the lock was taken.
type workSlice struct {
	stepsAtCheck uint64     // when the clock was looked at last, or the lock was taken
	beganAt      rawio.Time // when it was first; 0: never
}

// ensureBegun makes the slice begin now at the latest, as long work follows, whatever its steps.
func (s *workSlice) ensureBegun(now rawio.Time) {
	if s.beganAt == 0 {
		s.beganAt = now
	}
}

// upper.stepCounter is an Upper that counts its work as assoc.Assoc.Steps does.
type stepCounter interface{ Steps() uint64 }

// workSteps is how many steps the peer, and readers, have caused so far. Owner only.
func (c *Conn) workSteps() uint64 {
	n := c.core.Steps()
	if c.upper.stepCounter != nil {
		n += c.upper.stepCounter.Steps()
	}
	return n
}

// sliceIsOver says whether so much of the slice is used. It stays so until the lock is taken anew.
// Owner only.
func (c *Conn) sliceIsOver(part time.Duration) bool {
	s := &c.assocLock.slice
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
