// Package invariant is for what cannot happen: code finds that an invariant of other code does not
// hold.
//
//   - In: what was found, by Violation.
//   - Out: an error, which the code hands up to the owner of the association, which aborts it. In
//     tests Violation panics, so that no test passes over it.
//   - Invariant: nothing that a peer sends may lead here. If it does, that ends what is concerned,
//     and not the process.
package invariant

import (
	"flag"
	"fmt"
	"sync/atomic"
	"syscall"
)

// Error says which part of the stack has contradicted itself, and with what. It matches
// syscall.ENOTRECOVERABLE.
type Error struct {
	Where string // the function that noticed
	What  string // what it saw, as much as is needed to see it again
}

func (e *Error) Error() string {
	return fmt.Sprintf("internal contradiction in %s: %s; please report this line", e.Where, e.What)
}

// Is makes the error match syscall.ENOTRECOVERABLE.
func (e *Error) Is(target error) bool { return target == syscall.ENOTRECOVERABLE }

var (
	panicsDisabled atomic.Bool
	violations     atomic.Uint64
)

// Total counts the calls of Violation, in the whole process.
func Total() uint64 { return violations.Load() }

// Violation returns the error, or panics with it in a test.
func Violation(where, format string, args ...any) *Error {
	violations.Add(1)
	e := &Error{Where: where, What: fmt.Sprintf(format, args...)}
	if flag.Lookup("test.v") != nil && !panicsDisabled.Load() {
		panic(e)
	}
	return e
}

// TolerateInTest is for tests of what a program would see. Violation does not panic until the
// function that it returns is called.
func TolerateInTest() (restore func()) {
	panicsDisabled.Store(true)
	return func() { panicsDisabled.Store(false) }
}
