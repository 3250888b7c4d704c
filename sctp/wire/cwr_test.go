package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestCWRHasItsOctetsAndFields(t *testing.T) {
	b := wire.AppendCWR(nil, 0x01020304)
	wantOctets(t, b, "0d000008 01020304")
	check.Equal(t, "TSN", as(t, wire.AsCWR, b).TSN(), 0x01020304)
}
