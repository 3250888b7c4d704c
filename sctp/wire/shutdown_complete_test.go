package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestShutdownCompleteHasItsOctetsAndFields(t *testing.T) {
	// req 9260-3.3.13-2
	for raw, reflected := range map[string]bool{"0e000004": false, "0e010004": true} {
		b := wire.AppendShutdownComplete(nil, reflected)
		wantOctets(t, b, raw)
		check.Equal(t, "T", parseOne(t, wire.AsShutdownComplete, b).T(), reflected)
	}
}
