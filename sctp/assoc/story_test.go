package assoc_test

import (
	"flag"
	"testing"

	"github.com/rddp-go/rddp/internal/lab"
	"github.com/rddp-go/rddp/sctp/assoc"
)

var update = flag.Bool("update", false, "write down what happens in testdata/stories now")

// What two hosts say to each other in testdata/stories, and when, and what they report and count, is written down to the octet. A change of
// that is either a fault or meant: then -update writes it down anew, for the diff to be read.
func TestStoriesGoAsTheyAreTold(t *testing.T) { lab.Retell(t, "testdata/stories", *update) }

func TestEveryCounterCountsInSomeStory(t *testing.T) {
	lab.EveryCounterCounts(t, "testdata/stories", assoc.Counters{})
}

// So do stories that chance has written, of which only a digest is. TestTellStory tells one: -seed N -v.
func TestStoriesByChanceGoAsTheyDid(t *testing.T) {
	lab.RetellChance(t, "testdata/chance.txt", 1000, *update)
}

var seed = flag.Int64("seed", 0, "the story to tell")

func TestTellStory(t *testing.T) {
	if told := lab.Tell(t, lab.Chance(*seed)); testing.Verbose() {
		t.Log(told)
	}
}
