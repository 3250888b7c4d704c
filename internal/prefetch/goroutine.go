package prefetch

import (
	"sync/atomic"
	"unsafe"
)

// BlockedGoroutine is a goroutine that waits to be woken, where there are so many that neither its
// stack nor what the runtime keeps of it is in a cache by then. It may have gone on meanwhile, or
// its stack been moved: then the wrong memory comes, which does no harm. The zero value is none.
type BlockedGoroutine struct{ stack, runtimeG atomic.Uintptr }

// What the runtime, and this module, look at when a goroutine goes on: what is called to wait, and
// below that to answer, the callers up to the program's own, and the first octets of the runtime's.
// What is called to answer stores there and reads it again, as each return address: who reads what
// was just stored to a line that is not there waits for the line.
const (
	calledOctets    = 1216
	callerOctets    = 448
	goroutineOctets = 400
)

// SetCaller says that the calling goroutine is about to wait.
func (s *BlockedGoroutine) SetCaller() {
	stack, of := self()
	if s.stack.Load() != stack || s.runtimeG.Load() != of { // to store is what costs
		s.stack.Store(stack)
		s.runtimeG.Store(of)
	}
}

// FetchStack asks for what it needs to go on.
func (s *BlockedGoroutine) FetchStack() {
	if stack := s.stack.Load(); stack != 0 {
		address(stack-calledOctets, calledOctets+callerOctets)
		address(s.runtimeG.Load(), goroutineOctets)
	}
}

// ChanReceiver asks for what the runtime keeps of the goroutine that receives from a channel, for
// when what Behind has asked for is there: without it the goroutine cannot be found.
func ChanReceiver[T any](ch *chan T) {
	NestedPointee((**byte)(unsafe.Pointer(ch)), receiverOffset, receiverOctets)
}

// Where the runtime has the list of those who receive from a channel, on 64-bit machines, and how
// much it looks at of the first. Were it ever elsewhere, wrong memory would come and nothing else:
// a channel is longer than that.
const (
	receiverOffset = 64
	receiverOctets = 104
)
