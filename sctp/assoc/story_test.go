package assoc_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// What two hosts say to each other in testdata/stories, and when, and what they report and count,
// is written down to the octet. A change of that is either a fault or meant: then -update writes it
// down anew, for the diff to be read.
func TestStoriesGoAsTheyAreTold(t *testing.T) {
	sctptest.CheckScenarios(t, "testdata/stories", *fuzzinput.Update)
}

func TestEveryCounterCountsInSomeStory(t *testing.T) {
	sctptest.EveryCounterCounts(t, "testdata/stories", assoc.Counters{})
}

// So do stories that chance has written, of which only a digest is. TestTellStory tells one: -seed
// N -v.
func TestStoriesByChanceGoAsTheyDid(t *testing.T) {
	fuzzinput.CheckRecording(t, "testdata/chance.txt", 1000, func(seed int, told *strings.Builder) {
		told.WriteString(sctptest.RunScenario(t, sctptest.RandomScenario(int64(seed))))
	})
}

var seed = flag.Int64("seed", 0, "the story to tell")

func TestTellStory(t *testing.T) {
	if told := sctptest.RunScenario(t, sctptest.RandomScenario(*seed)); testing.Verbose() {
		t.Log(told)
	}
}
