package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestReconfigHasItsOctetsAndFields(t *testing.T) {
	// req 6525-3.1-1, 6525-4-1
	b := wire.AppendReconfig(nil)
	wantOctets(t, b, "82000004")
	b = wire.AppendReconfigResponse(b, 9, wire.ReconfigPerformed)
	b = wire.AppendOutgoingReset(b, 7, 8, 0x01020304, []wire.StreamID{3})
	b = wire.CloseChunk(b, 0)
	wantOctets(t, b, "82000022 0010000c 00000009 00000001 000d0012 00000007 00000008 01020304 00030000")

	r := parseOne(t, wire.AsReconfig, b)
	ps := r.Params()
	p, _ := ps.Next()
	check.Equal(t, "first", p.Type(), wire.ParamReconfigResponse)
	p, _ = ps.Next()
	check.Equal(t, "second", p.Type(), wire.ParamOutgoingReset)
}

// The ten combinations of RFC 6525 section 3.1, and no other one of any two known parameters.
func TestReconfigCombinations(t *testing.T) {
	// req 6525-3.1-1
	const out, in, tsn, resp, addOut, addIn = wire.ParamOutgoingReset, wire.ParamIncomingReset, wire.ParamTSNReset,
		wire.ParamReconfigResponse, wire.ParamAddOutStreams, wire.ParamAddInStreams
	pairs := map[[2]wire.ParamType]bool{{out, in}: true, {addOut, addIn}: true, {resp, out}: true, {resp, resp}: true}
	all := []wire.ParamType{out, in, tsn, resp, addOut, addIn, wire.ParamStateCookie, wire.ParamECNCapable}

	chunk := func(types ...wire.ParamType) wire.Chunk {
		b := wire.AppendReconfig(nil)
		for _, pt := range types {
			b = wire.AppendParam(b, pt, nil)
		}
		return onlyChunk(t, wire.CloseChunk(b, 0))
	}
	check := func(want bool, types ...wire.ParamType) {
		t.Helper()
		switch _, err := wire.AsReconfig(chunk(types...)); {
		case want && err != nil:
			t.Errorf("%v: %v", types, err)
		case !want:
			wantErr(t, err, wire.ErrReconfigCombination)
		}
	}
	check(false)
	for i, first := range all {
		check(i < 6, first)
		for _, second := range all {
			check(pairs[[2]wire.ParamType{first, second}], first, second)
		}
	}
	check(false, resp, resp, resp)
}

func TestReconfigMalformed(t *testing.T) {
	must.Do(wire.AsReconfig(onlyChunk(t, parseHex(t, "8200000c 000f0008 00000001"))))(t)
	check.Fails(wire.AsReconfig(onlyChunk(t, parseHex(t, "8200000c 000f0009 00000001"))))(t, "error",
		wire.ErrParamPartial)
}

func TestOutgoingReset(t *testing.T) {
	// req 6525-4-1
	b := wire.AppendOutgoingReset(nil, 7, 8, 0x01020304, []wire.StreamID{3, 0xffff})
	wantOctets(t, b, "000d0014 00000007 00000008 01020304 0003 ffff")
	r := must.Get(wire.AsOutgoingReset(onlyParam(t, b)))(t)
	check.Equal(t, "RequestSeq", r.RequestSeq(), 7)
	check.Equal(t, "ResponseSeq", r.ResponseSeq(), 8)
	check.Equal(t, "LastTSN", r.LastTSN(), 0x01020304)
	check.Equal(t, "streams", r.Streams().Len(), 2)
	check.Equal(t, "second stream", r.Streams().At(1), 0xffff)

	for name, raw := range map[string]string{
		"too short":       "000d000c 00000007 00000008",
		"half a stream":   "000d0011 00000007 00000008 01020304 00",
		"one stream more": "000d0013 00000007 00000008 01020304 000000",
	} {
		t.Run(name, func(t *testing.T) {
			check.Fails(wire.AsOutgoingReset(onlyParam(t, parseHex(t, raw))))(t, "error", wire.ErrParamLength)
		})
	}
	r = must.Get(wire.AsOutgoingReset(
		onlyParam(t, wire.AppendOutgoingReset(nil, 1, 2, 3, make([]wire.StreamID, 32740)))))(t)
	check.Equal(t, "streams", r.Streams().Len(), 32740)
	wantOctets(t, wire.AppendOutgoingReset(nil, 1, 2, 3, make([]wire.StreamID, 65535))[:4], "000dfffe") // cut to fit
}

func TestIncomingReset(t *testing.T) {
	b := wire.AppendIncomingReset(nil, 7, []wire.StreamID{1, 2, 3})
	wantOctets(t, b, "000e000e 00000007 0001 0002 0003 0000")
	r := must.Get(wire.AsIncomingReset(onlyParam(t, b)))(t)
	check.Equal(t, "RequestSeq", r.RequestSeq(), 7)
	check.Equal(t, "streams", r.Streams().Len(), 3)
	check.Equal(t, "third stream", r.Streams().At(2), 3)
	wantOctets(t, wire.AppendIncomingReset(nil, 7, nil), "000e0008 00000007")
	wantOctets(t, wire.AppendIncomingReset(nil, 7, make([]wire.StreamID, 65535))[:4], "000efffe") // cut to fit

	check.Fails(wire.AsIncomingReset(onlyParam(t, parseHex(t, "000e0009 00000007 01"))))(t, "error",
		wire.ErrParamLength)
}

func TestTSNReset(t *testing.T) {
	b := wire.AppendTSNReset(nil, 7)
	wantOctets(t, b, "000f0008 00000007")
	check.Equal(t, "RequestSeq", must.Get(onlyParam(t, b).TSNResetSeq())(t), 7)
	check.Fails(onlyParam(t, parseHex(t, "000f000c 00000007 00000000")).TSNResetSeq())(t, "error", wire.ErrParamLength)
}

func TestReconfigResponse(t *testing.T) {
	b := wire.AppendReconfigResponse(nil, 7, wire.ReconfigInProgress)
	wantOctets(t, b, "0010000c 00000007 00000006")
	r := must.Get(wire.AsReconfigResponse(onlyParam(t, b)))(t)
	check.Equal(t, "ResponseSeq", r.ResponseSeq(), 7)
	check.Equal(t, "Result", r.Result(), wire.ReconfigInProgress)
	_, _, ok := r.NextTSNs()
	check.That(t, !ok, "Next TSNs are there")

	b = wire.AppendTSNResetResponse(nil, 7, wire.ReconfigPerformed, 0x01020304, 0x05060708)
	wantOctets(t, b, "00100014 00000007 00000001 01020304 05060708")
	r = must.Get(wire.AsReconfigResponse(onlyParam(t, b)))(t)
	sender, receiver, ok := r.NextTSNs()
	check.Equal(t, "Next TSNs are there", ok, true)
	check.Equal(t, "Sender's Next TSN", sender, 0x01020304)
	check.Equal(t, "Receiver's Next TSN", receiver, 0x05060708)

	for name, raw := range map[string]string{
		"no result":                 "00100008 00000007",
		"one of the two next TSNs":  "00100010 00000007 00000001 01020304",
		"octets behind the TSNs":    "00100018 00000007 00000001 01020304 05060708 00000000",
		"part of a sequence number": "00100006 0000",
	} {
		t.Run(name, func(t *testing.T) {
			check.Fails(wire.AsReconfigResponse(onlyParam(t, parseHex(t, raw))))(t, "error", wire.ErrParamLength)
		})
	}
}

func TestReconfigResults(t *testing.T) {
	// req 6525-4-2
	for number, name := range map[wire.ReconfigResult]string{
		0: "Success - Nothing to do", 1: "Success - Performed", 2: "Denied", 3: "Error - Wrong SSN",
		4: "Error - Request already in progress", 5: "Error - Bad Sequence Number", 6: "In progress", 7: "result 7",
	} {
		check.Equal(t, "name", number.String(), name)
	}
}

func TestAddStreams(t *testing.T) {
	// req 6525-4-1
	for pt, want := range map[wire.ParamType]string{
		wire.ParamAddOutStreams: "0011000c 00000007 0003 0000",
		wire.ParamAddInStreams:  "0012000c 00000007 0003 0000",
	} {
		b := wire.AppendAddStreams(nil, pt, 7, 3)
		wantOctets(t, b, want)
		a := must.Get(wire.AsAddStreams(onlyParam(t, b)))(t)
		check.Equal(t, "Type", a.Type(), pt)
		check.Equal(t, "RequestSeq", a.RequestSeq(), 7)
		check.Equal(t, "Count", a.Count(), 3)
	}
	check.Fails(onlyParam(t, parseHex(t, "00050004")).Addr())(t, "error", wire.ErrParamLength)
	check.Fails(wire.AsAddStreams(onlyParam(t, parseHex(t, "0011000a 00000007 0003"))))(t, "error", wire.ErrParamLength)
	check.Fails(wire.AsAddStreams(onlyParam(t, parseHex(t, "00120004"))))(t, "error", wire.ErrParamLength)
	check.Fails(wire.AsAddStreams(onlyParam(t, parseHex(t, "000f0008 00000007"))))(t, "error", wire.ErrParamType)
}
