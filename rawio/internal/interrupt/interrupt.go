// Package interrupt wakes readers of descriptors: it is what a rawio.Interrupter is made of.
package interrupt

import (
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// Interrupter interrupts one reader of a descriptor, which blocks in the runtime's poller.
type Interrupter struct {
	file interface{ SetReadDeadline(time.Time) error }
	flag atomic.Bool
}

// New returns the Interrupter of a descriptor's reader.
func New(f *os.File) *Interrupter { return &Interrupter{file: f} }

// Interrupt implements rawio.Interrupter.
func (i *Interrupter) Interrupt() {
	i.flag.Store(true)
	_ = i.file.SetReadDeadline(time.Unix(1, 0)) // fails for a closed one
}

// Pending is for a reader that polls: it should stop.
func (i *Interrupter) Pending() bool { return i.flag.Load() }

// Check reports whether the reader was interrupted, when it came back with nothing but err, and lets it
// block again.
func (i *Interrupter) Check(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) && !i.flag.Load() {
		return false
	}
	i.flag.Store(false)
	_ = i.file.SetReadDeadline(time.Time{})
	return true
}

var _ rawio.Interrupter = (*Interrupter)(nil)
