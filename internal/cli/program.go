package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/pflag"
)

// sameSignalWithin is how long a second signal counts as the first. A user who starts a program in
// a process group may signal both.
const sameSignalWithin = time.Second

// UntilSignal returns a context that ends with the first of the signals. A later signal, of a user
// who does not want to wait, ends the program at once.
func UntilSignal(signals ...os.Signal) context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, func() { time.AfterFunc(sameSignalWithin, stop) })
	return ctx
}

// NewFlags returns the empty command line of a program. It shows flags in the order in which they
// are added.
func NewFlags(program string) *pflag.FlagSet {
	fs := pflag.NewFlagSet(program, pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.SortFlags = false
	return fs
}

// Version is the release of this build, and what made it.
func Version() string {
	v := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	return fmt.Sprintf("%s, %s %s/%s", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Parse parses a command line. If asked for help, it prints about and the flags to stdout; if asked
// for the version, that. Then it fails with pflag.ErrHelp. Mistakes are a *UsageError.
func Parse(fs *pflag.FlagSet, args []string, stdout io.Writer, about string) error {
	fs.Usage = func() { fmt.Fprintf(stdout, "%s\n\n%s", about, fs.FlagUsages()) }
	short := "V"
	if fs.ShorthandLookup(short) != nil {
		short = ""
	}
	version := fs.BoolP("version", short, false, "print the version and exit")
	err := fs.Parse(args)
	if err == nil && *version {
		fmt.Fprintf(stdout, "%s of rddp %s\n", fs.Name(), Version())
		return pflag.ErrHelp
	}
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		return Usagef("%s", describeMisuse(err))
	}
	return err
}

// flagKinds describe the values of flags that are no Number, by the type that pflag gives them.
var flagKinds = map[string]string{"bool": "true or false", "bytesHex": "bytes in hex, such as 00ff"}

// describeMisuse describes a mistake in a command line, without the words of package strconv.
func describeMisuse(err error) string {
	var value *pflag.InvalidValueError
	if !errors.As(err, &value) {
		return err.Error()
	}
	f := value.GetFlag()
	name, why := "--"+f.Name, errors.Unwrap(value).Error()
	if kind := flagKinds[f.Value.Type()]; kind != "" {
		why = "it is " + kind
	}
	if f.Shorthand != "" {
		name = "-" + f.Shorthand
	}
	return fmt.Sprintf("%s %s: %s", name, value.GetValue(), why)
}

// ReportFailure is PrintError. If JSON was asked for, it instead prints an object with the error,
// behind the others.
func ReportFailure(stdout, stderr io.Writer, program string, asJSON bool, err error) {
	if !asJSON {
		PrintError(stderr, program, err)
		return
	}
	b, _ := json.Marshal(map[string]string{"type": "failed", "error": Explain(err)}) // strings always marshal
	fmt.Fprintf(stdout, "%s\n", b)
}

// PrintError prints what has ended a program.
func PrintError(stderr io.Writer, program string, err error) {
	fmt.Fprintf(stderr, "%s: %s\n", program, Explain(err))
	var usage *UsageError
	if errors.As(err, &usage) {
		fmt.Fprintf(stderr, "Try %s --help.\n", program)
	}
}
