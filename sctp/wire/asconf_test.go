package wire_test

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

var testAddr = netip.MustParseAddr("192.0.2.1")

func TestAsconfHasItsOctetsAndFields(t *testing.T) {
	b := wire.AppendAsconf(nil, 0x01020304, testAddr)
	wantOctets(t, b, "c1000010 01020304 00050008 c0000201")
	b = wire.AppendAddrRequest(b, wire.ParamAddIP, 0x01023474, testAddr)
	b = wire.CloseChunk(b, 0)
	// The example TLV of RFC 5061 section 4.2.1.
	wantOctets(t, b, "c1000020 01020304 00050008 c0000201 c0010010 01023474 00050008 c0000201")

	a := parseOne(t, wire.AsAsconf, b)
	check.Equal(t, "Seq", a.Seq(), 0x01020304)
	check.Equal(t, "Addr", a.Addr(), testAddr)
	ps := a.Params()
	p, _ := ps.Next()
	r := must.Get(wire.AsAddrRequest(p))(t)
	check.Equal(t, "Type", r.Type(), wire.ParamAddIP)
	check.Equal(t, "CorrelationID", r.CorrelationID(), 0x01023474)
	check.Equal(t, "Addr", r.Addr(), testAddr)
	p, ok := ps.Next()
	check.That(t, !ok && ps.Err() == nil, "then %x, %v", p, ps.Err())
}

func TestAsconfNeedsAnAddress(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		err       error
	}{
		{"no parameter", "c1000008 00000001", wire.ErrParamMissing},
		{"another parameter first", "c1000018 00000001 c0010010 01023474 00050008 c0000201", wire.ErrParamMissing},
		{"host name", "c100000e 00000001 000b0006 6100 0000", wire.ErrParamMissing},
		{"address of a wrong length", "c100000c 00000001 00050004", wire.ErrParamMissing},
		{"address past the chunk", "c100000c 00000001 00050008", wire.ErrParamPartial},
		{"half a parameter header", "c100000a 00000001 0005 0000", wire.ErrParamShort},
		{"no sequence number", "c1000004", wire.ErrChunkLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			check.Fails(wire.AsAsconf(onlyChunk(t, parseHex(t, c.raw))))(t, "error", c.err)
		})
	}
}

// The example TLVs of RFC 5061 sections 4.2.1, 4.2.2 and 4.2.4.
func TestAddrRequest(t *testing.T) {
	for _, c := range []struct {
		name string
		t    wire.ParamType
		id   uint32
		want string
	}{
		{"add", wire.ParamAddIP, 0x01023474, "c0010010 01023474 00050008 c0000201"},
		{"delete", wire.ParamDeleteIP, 0x01023476, "c0020010 01023476 00050008 c0000201"},
		{"set primary", wire.ParamSetPrimary, 0x01023479, "c0040010 01023479 00050008 c0000201"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := wire.AppendAddrRequest(nil, c.t, c.id, testAddr)
			wantOctets(t, b, c.want)
			r := must.Get(wire.AsAddrRequest(onlyParam(t, b)))(t)
			check.Equal(t, "Type", r.Type(), c.t)
			check.Equal(t, "CorrelationID", r.CorrelationID(), c.id)
			check.Equal(t, "Addr", r.Addr(), testAddr)
		})
	}
	for _, c := range []struct {
		name, raw string
		err       error
	}{
		{"no address", "c0010008 00000001", wire.ErrParamLength},
		{"no correlation ID", "c0010004", wire.ErrParamLength},
		{"address shorter than its room", "c0010014 00000001 00050008 c0000201 00000000", wire.ErrParamLength},
		{"address longer than its room", "c001000c 00000001 00050008", wire.ErrParamLength},
		{"address with another length than its room", "c0010010 00000001 00050007 c0000201", wire.ErrParamLength},
		{"host name", "c001000e 00000001 000b0006 6100", wire.ErrParamType},
		{"host name of no octets", "c001000c 00000001 000b0004", wire.ErrParamType},
		{"a response", "c0050008 00000001", wire.ErrParamType},
	} {
		t.Run(c.name, func(t *testing.T) {
			check.Fails(wire.AsAddrRequest(onlyParam(t, parseHex(t, c.raw))))(t, "error", c.err)
		})
	}
}
