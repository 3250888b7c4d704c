package endpoint_test

import (
	"flag"
	"testing"

	"github.com/rddp-go/rddp/internal/lab"
	"github.com/rddp-go/rddp/sctp/endpoint"
)

var update = flag.Bool("update", false, "write down what happens in testdata/stories now")

// As in sctp/assoc: what an endpoint does with packets of no association.
func TestStoriesGoAsTheyAreTold(t *testing.T) { lab.Retell(t, "testdata/stories", *update) }

func TestEveryCounterCountsInSomeStory(t *testing.T) {
	lab.EveryCounterCounts(t, "testdata/stories", endpoint.Stats{})
}
