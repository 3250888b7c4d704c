package cli

import (
	"io"
	"sync"
)

// Output is the standard output of a program, which remembers its first error. A full disk is no
// reason to stop measuring, but the reader has to know that figures are missing. Several goroutines
// may use it.
type Output struct {
	To io.Writer

	mu  sync.Mutex
	err error // the first error
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

// Exit returns the exit status of the program. If output was lost, it says why on stderr and
// returns failed.
func (o *Output) Exit(code, failed int, stderr io.Writer, program string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		return code
	}
	PrintError(stderr, program, o.err)
	return failed
}
