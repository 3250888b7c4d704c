package arch

import (
	"flag"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

var updateAliases = flag.Bool("update-aliases", false, "write what aliases stand for into their comments")

// go doc shows of an alias no more than its comment. So that shows the fields and methods of the
// type, as they are.
func TestAliasesShowTheirTypes(t *testing.T) {
	for _, dir := range aliased {
		list := findAliases(t, dir)
		check.That(t, len(list) > 3, "%s has %d aliases of structs", dir, len(list))
		if *updateAliases {
			writeAliases(t, list)
			list = findAliases(t, dir)
		}
		for _, a := range list {
			check.That(t, slices.Equal(a.got, a.want),
				"the comment of %s.%s does not show the type as it is: make api", dir, a.name)
		}
	}
}
