package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestIForwardTSNHasItsOctetsAndFields(t *testing.T) {
	b := wire.AppendIForwardTSN(nil, 0x01020304,
		[]wire.ISkip{{Stream: 1, MID: 0x0a0b0c0d}, {Stream: 2, U: true, MID: 3}})
	wantOctets(t, b, "c2000018 01020304 0001 0000 0a0b0c0d 0002 0001 00000003")
	f := parseOne(t, wire.AsIForwardTSN, b)
	check.Equal(t, "NewCumTSN", f.NewCumTSN(), 0x01020304)
	check.Equal(t, "NumSkips", f.NumSkips(), 2)
	check.Equal(t, "ordered", f.Skip(0), wire.ISkip{Stream: 1, MID: 0x0a0b0c0d})
	check.Equal(t, "unordered", f.Skip(1), wire.ISkip{Stream: 2, U: true, MID: 3})

	f = parseOne(t, wire.AsIForwardTSN, parseHex(t, "c2000010 00000000 0001 fffe 00000000"))
	check.Equal(t, "U with all reserved bits set", f.Skip(0).U, false)

	check.Fails(wire.AsIForwardTSN(onlyChunk(t, parseHex(t, "c200000c 00000007 00010000"))))(t, "error",
		wire.ErrChunkLength)

	f = parseOne(t, wire.AsIForwardTSN, wire.AppendIForwardTSN(nil, 7, make([]wire.ISkip, 20000)))
	check.Equal(t, "skips that fit", f.NumSkips(), 8190)
}
