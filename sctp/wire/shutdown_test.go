package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestShutdownHasItsOctetsAndFields(t *testing.T) {
	b := wire.AppendShutdown(nil, 0x01020304)
	wantOctets(t, b, "07000008 01020304")
	check.Equal(t, "CumTSN", as(t, wire.AsShutdown, b).CumTSN(), 0x01020304)
}
