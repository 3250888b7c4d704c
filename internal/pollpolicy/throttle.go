package pollpolicy

import "time"

// Throttle is the pace of a caller that looks at much and is in no hurry. It takes a small part of
// one processor. On two processors, only yielding in between would delay one message in a hundred
// by a millisecond and more (test/watch). The zero value is at its first step.
type Throttle struct{ stepCount int }

// A rest follows on so many steps, of a microsecond or a few.
const (
	stepsPerRest = 32
	restTime     = 500 * time.Microsecond
)

// Step follows on each thing that was looked at.
func (s *Throttle) Step() {
	if s.stepCount++; s.stepCount%stepsPerRest == 0 {
		time.Sleep(restTime)
	}
}
