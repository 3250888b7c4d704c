package prefetch

import (
	"sync/atomic"
	"unsafe"
)

// BlockedGoroutine is a goroutine that waits to be woken. There are so many that neither its stack
// nor what the runtime keeps of it is in a cache by then. It may have gone on meanwhile, or its
// stack been moved: then the wrong memory comes, which does no harm. The zero value is none.
type BlockedGoroutine struct{ stack, runtimeG atomic.Uintptr }

// What the runtime, and this module, look at when a goroutine goes on. It is what is called to
// wait, and below that to answer, and the callers up to the program's own. It is also the first
// octets of what the runtime keeps. What is called to answer stores there and reads it again, as
// each return address. Such a read waits for the line if it is not there.
const (
	calledOctets    = 1216
	callerOctets    = 448
	goroutineOctets = 400
)

// SetCaller notes that the calling goroutine is about to wait.
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

// ChanReceiver asks for what the runtime keeps of the goroutine that receives from a channel. Call
// it when what Pointee has asked for is there: without that the goroutine cannot be found.
func ChanReceiver[T any](ch *chan T) {
	NestedPointee((**byte)(unsafe.Pointer(ch)), receiverOffset, receiverOctets)
}

// Where the runtime has the list of a channel's receivers, on 64-bit machines, and how much it
// looks at of the first. Were it ever elsewhere, wrong memory would come and nothing else: a
// channel is longer than that.
const (
	receiverOffset = 64
	receiverOctets = 104
)
