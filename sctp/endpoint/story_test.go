package endpoint_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/lab"
	"github.com/rddp-go/rddp/internal/script"
	"github.com/rddp-go/rddp/sctp/endpoint"
)

// As in sctp/assoc: what an endpoint does with packets of no association.
func TestStoriesGoAsTheyAreTold(t *testing.T) { lab.Retell(t, "testdata/stories", *script.Update) }

func TestEveryCounterCountsInSomeStory(t *testing.T) {
	lab.EveryCounterCounts(t, "testdata/stories", endpoint.Stats{})
}
