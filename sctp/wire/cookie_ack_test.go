package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestCookieAckHasItsOctetsAndFields(t *testing.T) {
	b := wire.AppendCookieAck(nil)
	wantOctets(t, b, "0b000004")
	must.Do(wire.AsCookieAck(onlyChunk(t, b)))(t)
}
