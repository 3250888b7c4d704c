package cli

import (
	"strings"

	"github.com/spf13/pflag"
)

// RefusedFlag is a flag of the original program that makes no sense here, and why. A user who is
// used to it gets an explanation.
type RefusedFlag struct {
	Short, Long string // one of them may be empty
	Why         string // a sentence
}

// refusedValue notes that its flag was given.
type refusedValue struct{ given bool }

func (r *refusedValue) String() string   { return "" }
func (r *refusedValue) Set(string) error { r.given = true; return nil }
func (r *refusedValue) Type() string     { return "" }

// AddRefusedFlags adds flags that are refused, and hides them from the help. It returns a function
// to call once the command line is parsed.
func AddRefusedFlags(fs *pflag.FlagSet, list []RefusedFlag) (check func() error) {
	seen := make([]refusedValue, len(list))
	for i, f := range list {
		long := f.Long
		if long == "" {
			long = "no-" + f.Short
		}
		fs.VarP(&seen[i], long, f.Short, f.Why)
		flag := fs.Lookup(long)
		flag.Hidden, flag.NoOptDefVal = true, "given"
	}
	return func() error {
		for i, f := range list {
			if seen[i].given {
				return Usagef("%s: %s", f.Name(), f.Why)
			}
		}
		return nil
	}
}

// Name is the flag as it is typed.
func (f RefusedFlag) Name() string {
	var names []string
	if f.Short != "" {
		names = append(names, "-"+f.Short)
	}
	if f.Long != "" {
		names = append(names, "--"+f.Long)
	}
	return strings.Join(names, ", ")
}
