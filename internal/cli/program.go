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

// sameSignalWithin is how long after a signal another is still the same: who starts a program in a
// group of processes may signal both.
const sameSignalWithin = time.Second

// UntilSignal returns a context that ends with the first of the signals. A later one, of somebody
// who does not want to wait, ends the program at once.
func UntilSignal(signals ...os.Signal) context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, func() { time.AfterFunc(sameSignalWithin, stop) })
	return ctx
}

// NewFlags returns the empty command line of a program. Its flags are shown in the order in which
// they are added.
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

// Parse parses a command line. Asked for help or the version, it prints about and the flags, or the
// version, to stdout, and fails with pflag.ErrHelp. What is wrong is a *UsageError.
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

// flagKinds are what values of flags are that are no Number, by the type that pflag gives them.
var flagKinds = map[string]string{"bool": "true or false", "bytesHex": "bytes in hex, such as 00ff"}

// describeMisuse says what is wrong with a command line, without the words of package strconv.
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

// ReportFailure is Complain, or where JSON was asked for an object that says the same, behind the
// others.
func ReportFailure(stdout, stderr io.Writer, program string, asJSON bool, err error) {
	if !asJSON {
		PrintError(stderr, program, err)
		return
	}
	b, _ := json.Marshal(map[string]string{"type": "failed", "error": Explain(err)}) // strings always marshal
	fmt.Fprintf(stdout, "%s\n", b)
}

// PrintError says what has ended a program.
func PrintError(stderr io.Writer, program string, err error) {
	fmt.Fprintf(stderr, "%s: %s\n", program, Explain(err))
	var usage *UsageError
	if errors.As(err, &usage) {
		fmt.Fprintf(stderr, "Try %s --help.\n", program)
	}
}
