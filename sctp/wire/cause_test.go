package wire_test

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestInvalidStreamCause(t *testing.T) {
	b := wire.AppendInvalidStreamCause(nil, 0x1234)
	wantOctets(t, b, "00010008 1234 0000")
	check.Equal(t, "stream", must.Get(onlyCause(t, b).InvalidStream())(t), 0x1234)
	check.Fails(onlyCause(t, parseHex(t, "00010006 1234")).InvalidStream())(t, "error", wire.ErrCauseLength)
	check.Fails(onlyCause(t, parseHex(t, "00040004")).InvalidStream())(t, "error", wire.ErrCauseCode)
}

func TestMissingParamCause(t *testing.T) {
	// req 9260-3.3.10.2-1
	b := wire.AppendMissingParamsCause(nil, wire.ParamStateCookie, wire.ParamIPv4)
	wantOctets(t, b, "0002000c 00000002 0007 0005")
	types := must.Get(onlyCause(t, b).MissingParams())(t)
	check.Equal(t, "count", types.Len(), 2)
	check.Equal(t, "type", wire.ParamType(types.At(0)), wire.ParamStateCookie)
	wantOctets(t, wire.AppendMissingParamsCause(nil, make([]wire.ParamType, 40000)...)[:4], "0002fffe") // cut to fit

	for _, raw := range []string{
		"00020008 00000001",      // counts a type that is not there
		"0002000c ffffffff 0007", // counts what no chunk can hold
		"00020006 0000",          // no room for the count
	} {
		b := parseHex(t, raw)
		b[3] = byte(len(b))
		check.Fails(onlyCause(t, b).MissingParams())(t, "error", wire.ErrCauseLength)
	}
}

func TestStaleCookieCause(t *testing.T) {
	// req 9260-3.3.10.3-1
	b := wire.AppendStaleCookieCause(nil, 1_000_000)
	wantOctets(t, b, "00030008 000f4240")
	check.Equal(t, "staleness", must.Get(onlyCause(t, b).Staleness())(t), 1_000_000)
	check.Fails(onlyCause(t, parseHex(t, "00030004")).Staleness())(t, "error", wire.ErrCauseLength)
}

func TestNoUserDataCause(t *testing.T) {
	b := wire.AppendNoUserDataCause(nil, 0xfffffffe)
	wantOctets(t, b, "00090008 fffffffe")
	check.Equal(t, "TSN", must.Get(onlyCause(t, b).NoUserData())(t), 0xfffffffe)
	check.Fails(onlyCause(t, parseHex(t, "00090007 ffffff")).NoUserData())(t, "error", wire.ErrCauseLength)
}

func TestUnrecognizedChunkCause(t *testing.T) {
	// req 9260-3.3.10.6-1
	unknown := onlyChunk(t, parseHex(t, "c1010007 010203"))
	b := wire.AppendCause(nil, wire.CauseUnrecognizedChunkType, unknown)
	wantOctets(t, b, "0006000b c1010007 01020300")
	c := must.Get(onlyCause(t, b).UnrecognizedChunk())(t)
	wantOctets(t, c, "c1010007 010203")
	check.Equal(t, "Type", c.Type(), wire.ChunkAsconf)
	check.Equal(t, "octets of a bare header",
		len(must.Get(onlyCause(t, parseHex(t, "00060008 c1010004")).UnrecognizedChunk())(t)), 4)
	check.Fails(onlyCause(t, parseHex(t, "00060007 c10100")).UnrecognizedChunk())(t, "error", wire.ErrCauseLength)
}

// Causes that quote parameters: each quote is complete with type and length.
func TestCausesThatQuoteParameters(t *testing.T) {
	for _, c := range []struct {
		name string
		code wire.CauseCode
		add  func([]byte) []byte
		want string
	}{
		// req 9260-3.3.10.5-1
		{"unresolvable address", wire.CauseUnresolvableAddress, func(b []byte) []byte {
			return wire.AppendParam(b, wire.ParamHostName, []byte("a\x00"))
		}, "0005000a 000b0006 61000000"},
		// req 9260-3.3.10.8-1
		{"unrecognized parameters", wire.CauseUnrecognizedParams, func(b []byte) []byte {
			return wire.AppendParam(wire.AppendParam(b, 0xfffd, nil), 0xfffe, []byte{1})
		}, "0008000d fffd0004 fffe0005 01000000"},
		// req 9260-3.3.10.11-1
		{"restart with new addresses", wire.CauseRestart, func(b []byte) []byte {
			b = wire.AppendAddressParam(b, netip.MustParseAddr("192.0.2.1"))
			return wire.AppendAddressParam(b, netip.MustParseAddr("192.0.2.2"))
		}, "000b0014 00050008 c0000201 00050008 c0000202"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := wire.CloseParam(c.add(wire.AppendCause(nil, c.code, nil)), 0)
			wantOctets(t, b, c.want)
			quoted := onlyCause(t, b).Params()
			n := 0
			for _, ok := quoted.Next(); ok; _, ok = quoted.Next() {
				n++
			}
			check.Equal(t, "Err", quoted.Err(), nil)
			check.That(t, n != 0, "no quoted parameter was read back")
		})
	}
}

func TestUnsupportedHMACCause(t *testing.T) {
	b := wire.AppendUnsupportedHMACCause(nil, 2)
	wantOctets(t, b, "01050006 0002 0000")
	check.Equal(t, "HMAC identifier", must.Get(onlyCause(t, b).UnsupportedHMAC())(t), 2)
	check.Fails(onlyCause(t, parseHex(t, "01050005 00")).UnsupportedHMAC())(t, "error", wire.ErrCauseLength)
}

func TestCauseIsCutToFit(t *testing.T) {
	b := wire.AppendCause(nil, wire.CauseProtocolViolation, make([]byte, 70000))
	wantOctets(t, b[:4], "000dffff")
	check.Equal(t, "octets", len(b), 65536)
}

func TestCauseCodes(t *testing.T) {
	// req 9260-3.3.10-1
	// req 5061-4.3-1
	for number, name := range map[wire.CauseCode]string{
		1: "Invalid Stream Identifier", 2: "Missing Mandatory Parameter", 3: "Stale Cookie",
		4: "Out of Resource", 5: "Unresolvable Address", 6: "Unrecognized Chunk Type",
		7: "Invalid Mandatory Parameter", 8: "Unrecognized Parameters", 9: "No User Data",
		10: "Cookie Received While Shutting Down", 11: "Restart of an Association with New Addresses",
		12: "User-Initiated Abort", 13: "Protocol Violation",
		0xa0: "Request to Delete Last Remaining IP Address", 0xa1: "Operation Refused Due to Resource Shortage",
		0xa2: "Request to Delete Source IP Address", 0xa3: "Association Aborted Due to Illegal ASCONF-ACK",
		0xa4: "Request Refused - No Authorization", 0x105: "Unsupported HMAC Identifier",
		14: "cause code 14",
	} {
		check.Equal(t, "name", number.String(), name)
	}
}
