package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/pflag"
)

// oneSignal is how long after a signal another is still the same: who starts a program in a group of processes may signal both.
const oneSignal = time.Second

// UntilSignal returns a context that ends with the first of the signals. A later one, of somebody who does not want to wait,
// ends the program at once.
func UntilSignal(signals ...os.Signal) context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, func() { time.AfterFunc(oneSignal, stop) })
	return ctx
}

// NewFlags returns the empty command line of a program. Its flags are shown in the order in which they are added.
func NewFlags(program string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(program, pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.SortFlags = false
	return fs
}

// Parse parses a command line. Asked for help, it prints about and the flags to stdout, and fails with
// pflag.ErrHelp. What is wrong is a *UsageError.
func Parse(fs *pflag.FlagSet, args []string, stdout io.Writer, about string) error {
	fs.Usage = func() { fmt.Fprintf(stdout, "%s\n\n%s", about, fs.FlagUsages()) }
	err := fs.Parse(args)
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		return Usagef("%v", err)
	}
	return err
}

// Complain says what has ended a program.
func Complain(stderr io.Writer, program string, err error) {
	fmt.Fprintf(stderr, "%s: %s\n", program, Explain(err))
	var usage *UsageError
	if errors.As(err, &usage) {
		fmt.Fprintf(stderr, "Try %s --help.\n", program)
	}
}
