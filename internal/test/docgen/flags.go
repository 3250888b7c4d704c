package docgen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// ForeignFlag is a flag of another program, as its help lists it.
type ForeignFlag struct{ Short, Long string }

// FlagTables says what a tool makes of the flags of another program. The first table has those that
// it takes, with the tool's own words. The second has those that it refuses, a row for each reason.
// A flag that is neither is an error.
func FlagTables(fs *pflag.FlagSet, theirs []ForeignFlag, program string) (string, error) {
	var taken, refused strings.Builder
	var reasons []string
	refusedFor := map[string][]string{}
	for _, f := range theirs {
		var own *pflag.Flag
		if f.Long != "" {
			own = fs.Lookup(f.Long)
		}
		if own == nil && f.Short != "" {
			own = fs.ShorthandLookup(f.Short)
		}
		switch {
		case own == nil:
			return "", fmt.Errorf("%s is neither taken nor refused", f.name())
		case own.Hidden:
			if !slices.Contains(reasons, own.Usage) {
				reasons = append(reasons, own.Usage)
			}
			refusedFor[own.Usage] = append(refusedFor[own.Usage], f.name())
		default:
			_, usage := pflag.UnquoteUsage(own)
			fmt.Fprintf(&taken, "| %s | %s |\n", f.name(), usage)
		}
	}
	for _, why := range reasons {
		fmt.Fprintf(&refused, "| %s | %s |\n", strings.Join(refusedFor[why], ", "), why)
	}
	return fmt.Sprintf("| taken | what `%s` does |\n|---|---|\n%s\n| refused | why |\n|---|---|\n%s", program, &taken,
		&refused), nil
}

// name is the flag as it is typed, in Markdown.
func (f ForeignFlag) name() string {
	switch {
	case f.Long == "":
		return "`-" + f.Short + "`"
	case f.Short == "":
		return "`--" + f.Long + "`"
	}
	return "`-" + f.Short + "`/`--" + f.Long + "`"
}
