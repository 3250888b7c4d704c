package assoc_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
)

// Each way in which an association can end has an error that no other has, and the package comment
// lists it. (That there are no others, TestEverythingInEachState looks at.)
func TestEveryEndHasAnErrorOfItsOwn(t *testing.T) {
	ends := sctptest.Endings(t)
	for i, end := range ends {
		t.Run(end.Doc, func(t *testing.T) {
			l := end.Drive(t)
			err, down := l.Host.DownErr()
			must.That(t, down, "in %v", l.A.State())
			for j, other := range ends {
				check.That(t, other.Match(err) == (i == j), "%v taken for %s: %v", err, other.Doc, i != j)
			}
			check.Documented(t, "   - "+end.Doc)
		})
	}
}
