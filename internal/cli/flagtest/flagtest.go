// Package flagtest tests every number of a command line against its range.
package flagtest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/test/check"
)

// notNumbers are texts that no number of a command line can be.
var notNumbers = []string{"", " ", "x", "NaN", "nan", "Inf", "+Inf", "-Inf", "inf", "1e400", "-1e400", "0x", "1,5",
	"1 ", "--1", "99999999999999999999999", "-99999999999999999999999", "1e10s", "NaNs"}

// nonNumberTypes are the kinds of flags that are no numbers, by their type.
var nonNumberTypes = []string{"bool", "string", "bytesHex", "name", ""}

// CheckNumbers checks that each flag that takes a number is a cli.Number. It also checks that parse
// takes both ends of the range, and refuses everything outside it. The refusal must name the flag
// and the range. flags returns a new command line.
func CheckNumbers(t *testing.T, flags func() *pflag.FlagSet, parse func(args ...string) error) {
	t.Helper()
	seen := 0
	flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || slices.Contains(nonNumberTypes, f.Value.Type()) {
			return
		}
		n, ok := f.Value.(*cli.Number)
		if !ok {
			t.Errorf("--%s takes a %s, which has no range: it is to be a cli.Number", f.Name, f.Value.Type())
			return
		}
		seen++
		least, most, zero := n.Range()
		bad := append(slices.Clone(notNumbers), outsideRange(least, most)...)
		if !zero && least != "0" && !strings.HasPrefix(least, "-") {
			bad = append(bad, "0", "0.0", "-0", "0s", "1e-300")
		}
		for _, text := range bad {
			err := parse("--" + f.Name + "=" + text)
			var usage *cli.UsageError
			check.That(t, errors.As(err, &usage) && strings.Contains(err.Error(), f.Name) || errors.As(err, &usage) &&
				strings.HasPrefix(err.Error(), "-"+f.Shorthand+" "),
				"--%s=%s: %v", f.Name, text, err)
			check.That(t, err != nil && strings.Contains(err.Error(), least) && strings.Contains(err.Error(), most) &&
				!strings.Contains(err.Error(), "%!"),
				"--%s=%s is refused by %q, without its range", f.Name, text, err)
		}
		for _, text := range []string{least, most} {
			check.OK(t, flags().Set(f.Name, text))
		}
	})
	check.That(t, seen > 0, "no flag takes a number")
}

// outsideRange returns values beyond the ends of a range, as text.
func outsideRange(least, most string) []string {
	list := []string{"1e10" + strings.TrimLeft(most, "0123456789.eE+-"), "-1e10", most + "0", most + "9", "9" + most,
		"1e300"}
	if !strings.HasPrefix(least, "-") {
		list = append(list, "-1", "-0.5", "-1s", "-1ns", "-"+most)
	} else {
		list = append(list, least+"0", "-9"+least[1:])
	}
	return list
}
