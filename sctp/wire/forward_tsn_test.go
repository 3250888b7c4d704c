package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestForwardTSNHasItsOctetsAndFields(t *testing.T) {
	b := wire.AppendForwardTSN(nil, 0x01020304, []wire.Skip{{Stream: 1, SSN: 2}, {Stream: 0xffff, SSN: 0xfffe}})
	wantOctets(t, b, "c0000010 01020304 0001 0002 ffff fffe")
	f := parseOne(t, wire.AsForwardTSN, b)
	check.Equal(t, "NewCumTSN", f.NewCumTSN(), 0x01020304)
	check.Equal(t, "NumSkips", f.NumSkips(), 2)
	check.Equal(t, "first", f.Skip(0), wire.Skip{Stream: 1, SSN: 2})
	check.Equal(t, "second", f.Skip(1), wire.Skip{Stream: 0xffff, SSN: 0xfffe})

	wantOctets(t, wire.AppendForwardTSN(nil, 7, nil), "c0000008 00000007")
	check.Fails(wire.AsForwardTSN(onlyChunk(t, parseHex(t, "c000000a 00000007 0001 0000"))))(t, "error",
		wire.ErrChunkLength)

	f = parseOne(t, wire.AsForwardTSN, wire.AppendForwardTSN(nil, 7, make([]wire.Skip, 20000)))
	check.Equal(t, "skips that fit", f.NumSkips(), 16381)
}
