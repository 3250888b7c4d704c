package simulation

import (
	"fmt"
	"time"
)

// Invariant is the name of something that must always hold.
type Invariant string

// What the oracle of RDMA looks at.
const (
	Conduct Invariant = "conduct of the stack" // whatever has no name of its own
	Lost    Invariant = "nothing lost"
	Twice   Invariant = "nothing twice"
	Order   Invariant = "order where promised"
	Octets  Invariant = "memory oracle to the octet"
	Outside Invariant = "no write outside"
	Revoked Invariant = "no write after revocation"
)

// Violation is a violation of an invariant.
type Violation struct {
	Invariant Invariant
	Host      string // "-": none, or several
	At        time.Duration
	What      string
}

func (b *Violation) Error() string {
	return fmt.Sprintf("at %v: %s: %s: %s", b.At, b.Invariant, b.Host, b.What)
}

// recordViolation records the first violation.
func (w *World) recordViolation(i Invariant, h *Host, format string, args ...any) {
	name := "-"
	if h != nil {
		name = h.name
	}
	if w.err == nil {
		w.err = &Violation{i, name, time.Duration(w.now), fmt.Sprintf(format, args...)}
	}
}

// failf records a violation that has no name of its own.
func (w *World) failf(format string, args ...any) { w.recordViolation(Conduct, nil, format, args...) }

// Violation returns the first violation, nil if there is none.
func (w *World) Violation() *Violation { return w.err }
