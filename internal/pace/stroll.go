package pace

import "time"

// Stroll is the pace of who looks at much and is in no hurry. It takes a small part of one processor: on two of them, who computes and only yields in
// between makes one message in a hundred wait for a millisecond and more (test/watch). The zero value is at its first step.
type Stroll struct{ steps int }

// A rest follows on so many steps, of a microsecond or a few.
const (
	strollSteps = 32
	strollRest  = 500 * time.Microsecond
)

// Step follows on each thing that was looked at.
func (s *Stroll) Step() {
	if s.steps++; s.steps%strollSteps == 0 {
		time.Sleep(strollRest)
	}
}
