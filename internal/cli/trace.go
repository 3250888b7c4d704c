package cli

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/sctp"
	"github.com/rddp-go/rddp/sctp/qlog"
)

// Trace writes what a tool's associations do into a file, if --trace asks for it. Without that flag
// its methods do nothing.
type Trace struct {
	fileName string
	file     *qlog.File
}

// Add defines the flag.
func (t *Trace) Add(fs *pflag.FlagSet) {
	fs.StringVar(&t.fileName, "trace", "",
		"write what the associations do into this `file`, 128M in all at most, in qlog's format; ddpbench trace "+
			"FILE draws it")
}

// Open begins the file.
func (t *Trace) Open(program, vantage string) (err error) {
	if t.fileName == "" {
		return nil
	}
	if t.file, err = qlog.Create(t.fileName, &qlog.Options{Title: program, Vantage: vantage}); err != nil {
		return Usagef("--trace: %v", err)
	}
	return nil
}

// Tracer returns the tracer of one device.
func (t *Trace) Tracer(source string) sctp.Tracer {
	if t.file == nil {
		return nil
	}
	return t.file.Tracer(source)
}

// Close ends the file, and prints on w what is missing from it. It reports whether the disk has
// taken all of it.
func (t *Trace) Close(program string, w io.Writer) (written bool) {
	if t.file == nil {
		return true
	}
	if err := t.file.Close(); err != nil {
		fmt.Fprintf(w, "%s: the trace is not complete: %v\n", program, err)
		return false
	}
	if n := t.file.Dropped(); n > 0 {
		fmt.Fprintf(w, "%s: the trace is not complete: %d events came faster than they could be written\n", program, n)
	}
	return true
}
