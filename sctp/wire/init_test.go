package wire_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestInitHasItsOctetsAndFields(t *testing.T) {
	// req 9260-3.3.2-1
	// req 9260-3.3.2.1-1
	f := wire.InitFields{Tag: 0x01020304, ARwnd: 65536, OutStreams: 10, InStreams: 2048, TSN: 0xfffffffe}
	b := wire.AppendInit(nil, wire.ChunkInit, f)
	wantOctets(t, b, "01000014 01020304 00010000 000a 0800 fffffffe")
	b = wire.AppendAddressParam(b, netip.MustParseAddr("192.0.2.1"))
	b = wire.AppendSupportedExtensions(b, wire.ChunkReconfig)
	b = wire.CloseChunk(b, 0)
	wantOctets(t, b, "01000021 01020304 00010000 000a 0800 fffffffe 00050008 c0000201 80080005 82000000")

	i := parseOne(t, wire.AsInit, b)
	check.Equal(t, "Type", i.Type(), wire.ChunkInit)
	check.Equal(t, "Tag", i.Tag(), f.Tag)
	check.Equal(t, "ARwnd", i.ARwnd(), f.ARwnd)
	check.Equal(t, "OutStreams", i.OutStreams(), f.OutStreams)
	check.Equal(t, "InStreams", i.InStreams(), f.InStreams)
	check.Equal(t, "TSN", i.TSN(), f.TSN)
	ps := i.Params()
	var types []wire.ParamType
	for p, ok := ps.Next(); ok; p, ok = ps.Next() {
		types = append(types, p.Type())
	}
	check.That(t, slices.Equal(types, []wire.ParamType{wire.ParamIPv4, wire.ParamSupportedExtensions}) &&
		ps.Err() == nil,
		"parameters %v, %v", types, ps.Err())
}

func TestInitAckHasItsOctetsAndFields(t *testing.T) {
	// req 9260-3.3.3-1
	b := wire.AppendInit(nil, wire.ChunkInitAck, wire.InitFields{Tag: 1, ARwnd: 1500, OutStreams: 1, InStreams: 1})
	b = wire.AppendParam(b, wire.ParamStateCookie, []byte{0xc0, 0x0c})
	b = wire.CloseChunk(b, 0)
	wantOctets(t, b, "0200001a 00000001 000005dc 0001 0001 00000000 00070006 c00c0000")
	check.Equal(t, "Type", parseOne(t, wire.AsInit, b).Type(), wire.ChunkInitAck)
}

// The values of fixed fields are left to the caller, whose answer depends on the field and the
// state.
func TestInitValuesAreNotJudged(t *testing.T) {
	check.Equal(t, "Tag", parseOne(t, wire.AsInit, parseHex(t, "01ff0014 00000000 00000000 0000 0000 00000000")).Tag(), 0)
}
