package ahead

import (
	"sync/atomic"
	"unsafe"
)

// Sleeper is a goroutine that waits to be woken, where there are so many that neither its stack nor what the runtime keeps of it is in a cache by then. It may have
// gone on meanwhile, or its stack been moved: then the wrong memory comes, which does no harm. The zero value is none.
type Sleeper struct{ stack, of atomic.Uintptr }

// What the runtime, and this module, look at when a goroutine goes on: what is called to wait, and below that to answer, the callers up to the program's own, and the first octets of the runtime's.
// What is called to answer stores there and reads it again, as each return address: who reads what was just stored to a line that is not there waits for the line.
const (
	calledOctets = 1216
	callerOctets = 448
	ownOctets    = 400
)

// IsCaller says that the calling goroutine is about to wait.
func (s *Sleeper) IsCaller() {
	stack, of := self()
	if s.stack.Load() != stack || s.of.Load() != of { // to store is what costs
		s.stack.Store(stack)
		s.of.Store(of)
	}
}

// Wakes asks for what it needs to go on.
func (s *Sleeper) Wakes() {
	if stack := s.stack.Load(); stack != 0 {
		address(stack-calledOctets, calledOctets+callerOctets)
		address(s.of.Load(), ownOctets)
	}
}

// Receiver asks for what the runtime keeps of the goroutine that receives from a channel, for when what Behind has asked for is there: without it the goroutine cannot be found.
func Receiver[T any](ch *chan T) {
	Beyond((**byte)(unsafe.Pointer(ch)), receiverAt, receiverOctets)
}

// Where the runtime has the list of those who receive from a channel, on 64-bit machines, and how much it looks at of the first. Were it ever elsewhere, wrong memory would come and nothing else:
// a channel is longer than that.
const (
	receiverAt     = 64
	receiverOctets = 104
)
