package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestShutdownAckHasItsOctetsAndFields(t *testing.T) {
	b := wire.AppendShutdownAck(nil)
	wantOctets(t, b, "08000004")
	must.Do(wire.AsShutdownAck(onlyChunk(t, b)))(t)
}
