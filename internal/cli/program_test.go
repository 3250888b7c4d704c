package cli

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/internal/test/check"
)

// A mistake is a sentence about the flag as it is typed; help and version are printed, and nothing
// runs then.
func TestCommandLines(t *testing.T) {
	const flags = "  -c, --count n      how many (default 3)\n      --other hex    octets\n  -b, --both         both ways\n"
	for _, row := range []struct {
		name, line string
		says       string // of the mistake
		prints     string
		err        error
	}{
		{"nothing", "", "", "", nil},
		{"what is good", "-c 4 --both", "", "", nil},
		{"a number that is none, by its letter", "-c x", "-c x: it is a whole number, from 1 to 9", "", nil},
		{"a number that is none, by its name", "--count=10", "-c 10: it is a whole number, from 1 to 9", "", nil},
		{"no hex", "--other xy", "--other xy: it is bytes in hex, such as 00ff", "", nil},
		{"neither true nor false", "--both=perhaps", "-b perhaps: it is true or false", "", nil},
		{"no such flag", "--none", "unknown flag: --none", "", nil},
		{"no value", "--count", "flag needs an argument: --count", "", nil},
		{"help", "-h", "", "what it is\n\n", pflag.ErrHelp},
		{"help, by its name", "--help -c 4", "", "what it is\n\n", pflag.ErrHelp},
		{"version", "--version", "", "tool of rddp " + Version() + "\n", pflag.ErrHelp},
		{"version, by its letter", "-V -c 4", "", "tool of rddp " + Version() + "\n", pflag.ErrHelp},
		{"a mistake beside the version", "-V -c x", "-c x: it is a whole number, from 1 to 9", "", nil},
	} {
		var n int
		fs := NewFlags("tool")
		fs.VarP(Int(&n, 3, 1, 9), "count", "c", "how many")
		fs.BytesHex("other", nil, "octets")
		fs.BoolP("both", "b", false, "both ways")
		var out strings.Builder
		err := Parse(fs, strings.Fields(row.line), &out, "what it is")
		if row.says != "" {
			var usage *UsageError
			check.That(t, errors.As(err, &usage) && usage.Text == row.says, "%s: %v, want %s", row.name, err, row.says)
		} else {
			check.Error(t, row.name, err, row.err)
		}
		if strings.HasSuffix(row.prints, "\n\n") {
			head, rest, _ := strings.Cut(out.String(), "\n\n")
			check.Equal(t, row.name+": about", head+"\n\n", row.prints)
			at := -1
			for line := range strings.Lines(flags) { // in the order in which they were added
				word := strings.Fields(line)[0]
				i := strings.Index(rest, word)
				check.That(t, i > at, "%s: %s is missing, or comes too early, in\n%s", row.name, word, rest)
				at = i
			}
		} else {
			check.Equal(t, row.name+": prints", out.String(), row.prints)
		}
	}
	fs, own := NewFlags("tool"), ""
	fs.StringVarP(&own, "verbose", "V", "", "") // the letter is the program's
	check.OK(t, Parse(fs, []string{"-V", "x"}, nil, ""))
	check.Equal(t, "the program's own -V", own, "x")
	check.That(t, strings.HasSuffix(Version(), fmt.Sprintf(", %s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)) &&
		!strings.HasPrefix(Version(), ","), "version %q", Version())
}

// What has ended a program is told in one place: on stderr, with a hint to the help for a mistake,
// or for programs that read it as an object.
func TestFailuresAreReported(t *testing.T) {
	for _, row := range []struct {
		name        string
		err         error
		asJSON      bool
		out, stderr string
	}{
		{"an error", errors.New("it broke"), false, "", "tool: it broke\n"},
		{"a mistake", Usagef("-%c is odd", 'x'), false, "", "tool: -x is odd\nTry tool --help.\n"},
		{"a mistake within", fmt.Errorf("here: %w", Usagef("odd")), false, "", "tool: odd\nTry tool --help.\n"},
		{"as JSON", errors.New(`it "broke"`), true, `{"error":"it \"broke\"","type":"failed"}` + "\n", ""},
		{"a mistake, as JSON", Usagef("odd"), true, `{"error":"odd","type":"failed"}` + "\n", ""},
	} {
		var out, stderr strings.Builder
		ReportFailure(&out, &stderr, "tool", row.asJSON, row.err)
		check.Equal(t, row.name+": stdout", out.String(), row.out)
		check.Equal(t, row.name+": stderr", stderr.String(), row.stderr)
	}
}

// A flag of the original is refused by its name and a reason, if it was given, and does not show in
// the help.
func TestRefusedFlags(t *testing.T) {
	list := []RefusedFlag{{"x", "", "there is none"}, {"", "exact", "it always is"}, {"y", "yes", "nobody asks"}}
	for line, want := range map[string]string{"": "", "-x": "-x: there is none", "--exact": "--exact: it always is",
		"--exact=3": "--exact: it always is", "-y": "-y, --yes: nobody asks", "--yes": "-y, --yes: nobody asks",
		"--yes -x": "-x: there is none"} {
		fs := NewFlags("tool")
		refuse := AddRefusedFlags(fs, list)
		var help strings.Builder
		check.OK(t, Parse(fs, strings.Fields(line), &help, ""))
		err := refuse()
		var usage *UsageError
		check.That(t, (err == nil) == (want == "") && (err == nil || errors.As(err, &usage) && usage.Text == want),
			"%q: %v, want %q", line, err, want)
		usages := fs.FlagUsages()
		check.That(t, !strings.Contains(usages, "exact") && !strings.Contains(usages, "-x") && !strings.Contains(usages, "yes"),
			"the help has what is refused:\n%s", usages)
	}
}

// Each controller goes by its name, and nothing else is one.
func TestControllersByName(t *testing.T) {
	for name, is := range map[string]bool{"cubic": true, "newreno": true, "rfc9260": true, "bbr": true, "": false,
		"vegas": false, "BBR": false} {
		var c controllerFlag
		err := c.Set(name)
		var usage *UsageError
		check.That(t, (err == nil) == is && (c.factory != nil) == is && (is || errors.As(err, &usage) &&
			strings.Contains(usage.Text, "cubic, newreno, rfc9260 or bbr")), "%q: %v", name, err)
		check.That(t, c.String() == name || !is && c.String() == "", "%q is called %q", name, c.String())
		check.Equal(t, "kind", c.Type(), "name")
	}
}
