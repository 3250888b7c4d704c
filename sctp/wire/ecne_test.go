package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestECNEHasItsOctetsAndFields(t *testing.T) {
	b := wire.AppendECNE(nil, 0x01020304)
	wantOctets(t, b, "0c000008 01020304")
	check.Equal(t, "TSN", as(t, wire.AsECNE, b).TSN(), 0x01020304)
}
