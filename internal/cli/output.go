package cli

import (
	"io"
	"sync"
)

// Output is the standard output of a program, which remembers what became of it: a disk that is
// full is no reason to stop measuring, but who reads the figures has to know that some are missing.
// It may be used by several goroutines.
type Output struct {
	To io.Writer

	mu  sync.Mutex
	err error // the first
}

func (o *Output) Write(b []byte) (int, error) {
	n, err := o.To.Write(b)
	if err != nil {
		o.mu.Lock()
		if o.err == nil {
			o.err = err
		}
		o.mu.Unlock()
	}
	return n, err
}

// Exit returns the exit status: that of the program, or failed, and why on stderr, where not all of
// the output was written.
func (o *Output) Exit(code, failed int, stderr io.Writer, program string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return code
	}
	PrintError(stderr, program, o.err)
	return failed
}
