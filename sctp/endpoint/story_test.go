package endpoint_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/endpoint"
)

// As in sctp/assoc: what an endpoint does with packets of no association.
func TestStoriesGoAsTheyAreTold(t *testing.T) {
	sctptest.CheckScenarios(t, "testdata/stories", *fuzzinput.Update)
}

func TestEveryCounterCountsInSomeStory(t *testing.T) {
	sctptest.EveryCounterCounts(t, "testdata/stories", endpoint.Stats{},
		"ZeroChecksum") // which needs a link that detects errors: TestZeroChecksum of package sctp
}
