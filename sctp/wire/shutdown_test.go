package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestShutdownECNEAndCWRHaveTheirOctetsAndTSN(t *testing.T) {
	s, e, c := wire.AppendShutdown(nil, 0x01020304), wire.AppendECNE(nil, 0x01020304), wire.AppendCWR(nil, 0x01020304)
	wantOctets(t, s, "07000008 01020304")
	wantOctets(t, e, "0c000008 01020304")
	wantOctets(t, c, "0d000008 01020304")
	check.Equal(t, "TSN of SHUTDOWN", parseOne(t, wire.AsShutdown, s).CumTSN(), 0x01020304)
	check.Equal(t, "TSN of ECNE", parseOne(t, wire.AsECNE, e).TSN(), 0x01020304)
	check.Equal(t, "TSN of CWR", parseOne(t, wire.AsCWR, c).TSN(), 0x01020304)
}

func TestShutdownAckAndCookieAckHaveTheirOctets(t *testing.T) {
	s, c := wire.AppendShutdownAck(nil), wire.AppendCookieAck(nil)
	wantOctets(t, s, "08000004")
	wantOctets(t, c, "0b000004")
	must.Do(wire.AsShutdownAck(onlyChunk(t, s)))(t)
	must.Do(wire.AsCookieAck(onlyChunk(t, c)))(t)
}
