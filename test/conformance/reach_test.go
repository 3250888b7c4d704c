package conformance

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/race"
)

// What a test cites a row for is in reach of a program: a codec that nobody calls holds no row.
func TestCitedCodeIsInReach(t *testing.T) {
	race.Alone(t)
	if testing.Short() {
		t.Skip("compiles every package")
	}
	check.OK(t, CitedOutOfReach("../.."))
}
