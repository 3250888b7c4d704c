package wire_test

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestAddressParam(t *testing.T) {
	for _, c := range []struct{ name, addr, want, back string }{
		// req 9260-3.3.2.1-2
		{"IPv4", "192.0.2.1", "00050008 c0000201", "192.0.2.1"},
		{"IPv6", "2001:db8::1", "00060014 20010db8 00000000 00000000 00000001", "2001:db8::1"},
		// req 9260-3.3.2.1.2-1
		// req 9260-3.3.2.1.2-2
		{"IPv4-mapped IPv6 goes out as IPv4", "::ffff:192.0.2.1", "00050008 c0000201", "192.0.2.1"},
		{"a zone stays at home", "fe80::1%eth0", "00060014 fe800000 00000000 00000000 00000001", "fe80::1"},
		{"unspecified IPv4", "0.0.0.0", "00050008 00000000", "0.0.0.0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := wire.AppendAddressParam(nil, netip.MustParseAddr(c.addr))
			wantOctets(t, b, c.want)
			check.Equal(t, "Addr", must.Get(onlyParam(t, b).Addr())(t), netip.MustParseAddr(c.back))
		})
	}
	wantOctets(t, wire.AppendAddressParam(nil, netip.Addr{}), "")
}

func TestReceivedAddressParam(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		want      netip.Addr
		err       error
	}{
		{"IPv4-mapped IPv6 comes back as IPv4", "00060014 00000000 00000000 0000ffff c0000201", netip.MustParseAddr("192.0.2.1"), nil},
		{"IPv4 of 3 octets", "00050007 c00002", netip.Addr{}, wire.ErrParamLength},
		{"IPv4 of 5 octets", "00050009 c000020100", netip.Addr{}, wire.ErrParamLength},
		{"IPv6 of 4 octets", "00060008 c0000201", netip.Addr{}, wire.ErrParamLength},
		{"host name", "000b0006 6100", netip.Addr{}, wire.ErrParamType},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr, err := onlyParam(t, parseHex(t, c.raw)).Addr()
			check.Equal(t, "Addr", addr, c.want)
			if c.err != nil {
				wantErr(t, err, c.err)
			}
		})
	}
}

func TestCookiePreservative(t *testing.T) {
	// req 9260-3.3.2.1.3-1
	b := wire.AppendCookiePreservative(nil, 1000)
	wantOctets(t, b, "00090008 000003e8")
	check.Equal(t, "CookieIncrement", must.Get(onlyParam(t, b).CookieIncrement())(t), 1000)

	check.Fails(onlyParam(t, parseHex(t, "00090006 03e8")).CookieIncrement())(t, "error", wire.ErrParamLength)
	check.Fails(onlyParam(t, parseHex(t, "c0060008 00000001")).CookieIncrement())(t, "error", wire.ErrParamType)
}

func TestSupportedAddrTypes(t *testing.T) {
	// req 9260-3.3.2.1.5-1
	// req 9260-3.3.2.1.5-2
	b := wire.AppendSupportedAddrTypes(nil, wire.ParamIPv4, wire.ParamHostName)
	wantOctets(t, b, "000c0006 0005 0000")
	b = wire.AppendSupportedAddrTypes(nil, wire.ParamIPv4, wire.ParamIPv6)
	wantOctets(t, b, "000c0008 0005 0006")

	for list, v4 := range map[string]bool{"000c0008 0006 000b": false, "000c0008 000b 0006": false,
		"000c000a 0006 000b 0005": true} {
		received := onlyParam(t, parseHex(t, list))
		for at, want := range map[wire.ParamType]bool{
			wire.ParamIPv4: v4, wire.ParamIPv6: true,
			wire.ParamHostName: false, // req 9260-3.3.2.1.5-3
		} {
			check.Equal(t, list+": "+at.String(), must.Get(received.SupportsAddrType(at))(t), want)
		}
	}
	check.Fails(onlyParam(t, parseHex(t, "c0000004")).SupportsAddrType(wire.ParamIPv4))(t, "error", wire.ErrParamType)
}

func TestAdaptationIndication(t *testing.T) {
	// req 5061-4.2.6-1
	b := wire.AppendAdaptationIndication(nil, 0x00000001)
	wantOctets(t, b, "c0060008 00000001")
	code := must.Get(onlyParam(t, b).AdaptationIndication())(t)
	check.Equal(t, "code point", code, 1)
	wantOctets(t, wire.AppendAdaptationIndication(nil, 0xfedcba98), "c0060008 fedcba98")

	check.Fails(onlyParam(t, parseHex(t, "c0060009 00000001 02")).AdaptationIndication())(t, "error",
		wire.ErrParamLength)
}

func TestSupportedExtensions(t *testing.T) {
	// req 5061-4.2.7-1
	b := wire.AppendSupportedExtensions(nil, wire.ChunkAsconf, wire.ChunkAsconfAck, wire.ChunkAuth,
		wire.ChunkReconfig, wire.ChunkIData)
	wantOctets(t, b, "80080009 c1800f82 40000000")
	p := onlyParam(t, b)
	for ct, want := range map[wire.ChunkType]bool{
		wire.ChunkAsconf: true, wire.ChunkAuth: true, wire.ChunkIData: true,
		wire.ChunkForwardTSN: false,
		wire.ChunkData:       false, // 0 is also the padding, which is no list entry
	} {
		check.Equal(t, ct.String(), must.Get(p.ListsChunk(ct))(t), want)
	}
	listed, err := onlyParam(t, parseHex(t, "c0000004")).ListsChunk(wire.ChunkData)
	wantErr(t, err, wire.ErrParamType)
	check.Equal(t, "listed", listed, false)
}

func TestForwardTSNSupported(t *testing.T) {
	wantOctets(t, wire.AppendForwardTSNSupported(nil), "c0000004")
}
