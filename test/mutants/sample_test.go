package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

// The seed decides what is drawn: the same one draws the same again, and others come to everything
// in the end.
func TestSeedDecidesWhatIsDrawn(t *testing.T) {
	var list []*fault
	for _, name := range strings.Fields("a b c d e f g h") {
		list = append(list, &fault{name: name})
	}
	names := func(drawn []*fault) (s string) {
		for _, f := range drawn {
			s += f.name
		}
		return s
	}
	all := make(map[string]bool)
	for _, seed := range strings.Fields("00000001 00000002 00000003 00000004 00000005 00000006 00000007 00000008") {
		drawn := names(drawProofs(list, seed, 3))
		check.Equal(t, "drawn again", names(drawProofs(list, seed, 3)), drawn)
		check.That(t, len(drawn) == 3 && slices.IsSorted([]byte(drawn)), "drawn by %s: %s", seed, drawn)
		for _, name := range strings.Split(drawn, "") {
			all[name] = true
		}
	}
	check.Equal(t, "drawn by eight seeds", len(all), len(list))
	check.Equal(t, "the list is left as it is", names(list), "abcdefgh")
	check.Equal(t, "more than there are", names(drawProofs(list, "00000001", 9)), "abcdefgh")
}

// A twentieth of a sample is of concurrency, but none of one so small that this would be most of
// its work.
func TestSmallSamplesHaveNoMutantsOfConcurrency(t *testing.T) {
	for _, row := range []struct{ sample, race int }{{1, 0}, {50, 0}, {99, 0}, {100, 5}, {1000, 50}} {
		check.Equal(t, "mutants of concurrency", raceShare(row.sample), row.race)
	}
}
