package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/sctp/wire"
)

func TestCookieAckHasItsOctetsAndFields(t *testing.T) {
	b := wire.AppendCookieAck(nil)
	wantOctets(t, b, "0b000004")
	_, err := wire.AsCookieAck(onlyChunk(t, b))
	wantEqual(t, "error", err, nil)
}
