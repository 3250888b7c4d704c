// Package wire fuzzes the parsers and encoders of sctp/wire. Two properties hold for any
// octets: parsing never panics and never leaves the packet; and what was encoded is what is parsed.
package wire

import (
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/sctp/wire"
)

func parseHex(text string) []byte {
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		panic(err)
	}
	return b
}

// seedChunks has one well-formed chunk of every type, and some that are not.
func seedChunks() [][]byte {
	v4, v6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	init := wire.AppendInit(nil, wire.ChunkInit, wire.InitFields{Tag: 1, ARwnd: 65536, OutStreams: 10, InStreams: 10,
		TSN: 7})
	init = wire.AppendAddressParam(wire.AppendAddressParam(init, v4), v6)
	init = wire.AppendCookiePreservative(init, 1000)
	init = wire.AppendSupportedAddrTypes(init, wire.ParamIPv4, wire.ParamIPv6)
	init = wire.AppendAdaptationIndication(init, 1)
	init = wire.AppendSupportedExtensions(init, wire.ChunkReconfig, wire.ChunkIData, wire.ChunkAsconf)
	init = wire.AppendForwardTSNSupported(init)
	init = wire.AppendZeroChecksumAcceptable(init, wire.ErrorDetectionDTLS)
	init = wire.AppendHMACAlgo(init, wire.HMACSHA256, wire.HMACSHA1)
	init = wire.AppendChunkList(init, wire.ChunkAsconf, wire.ChunkAsconfAck)
	init = wire.AppendKeyManagement(init, wire.KeyManagement{TieBreaker: 7, Client: true, Methods: []byte{192, 1}})
	init = wire.AppendPaddingParam(init, 16)
	init = wire.CloseChunk(init, 0)

	initAck := wire.AppendInit(nil, wire.ChunkInitAck,
		wire.InitFields{Tag: 1, ARwnd: 1500, OutStreams: 1, InStreams: 1})
	initAck = wire.CloseChunk(wire.AppendParam(initAck, wire.ParamStateCookie, []byte("cookie")), 0)

	abort := wire.AppendAbort(nil, true)
	abort = wire.AppendInvalidStreamCause(abort, 3)
	abort = wire.AppendMissingParamsCause(abort, wire.ParamStateCookie)
	abort = wire.AppendStaleCookieCause(abort, 1000)
	abort = wire.AppendNoUserDataCause(abort, 9)
	abort = wire.AppendUnsupportedHMACCause(abort, 2)
	abort = wire.AppendCause(abort, wire.CauseUserAbort, []byte("bye"))
	abort = wire.CloseChunk(abort, 0)

	failure := wire.AppendCause(wire.AppendError(nil), wire.CauseUnrecognizedChunkType, parseHex("fe000006 0102"))
	failure = wire.CloseChunk(wire.AppendCause(failure, wire.CauseRestart, wire.AppendAddressParam(nil, v4)), 0)

	asconf := wire.AppendAddrRequest(wire.AppendAsconf(nil, 1, v6), wire.ParamAddIP, 1, v4)
	asconf = wire.CloseChunk(asconf, 0)

	asconfAck := wire.AppendSuccessIndication(wire.AppendAsconfAck(nil, 1), 5)
	indication := len(asconfAck)
	asconfAck = wire.AppendCause(wire.AppendErrorIndication(asconfAck, 6), wire.CauseNoAuthorization, nil)
	asconfAck = wire.CloseChunk(wire.CloseParam(asconfAck, indication), 0)

	resets := wire.AppendOutgoingReset(wire.AppendReconfig(nil), 1, 2, 3, []wire.StreamID{4, 5, 6})
	resets = wire.CloseChunk(wire.AppendIncomingReset(resets, 2, []wire.StreamID{1}), 0)
	adds := wire.AppendAddStreams(wire.AppendReconfig(nil), wire.ParamAddOutStreams, 1, 2)
	adds = wire.CloseChunk(wire.AppendAddStreams(adds, wire.ParamAddInStreams, 2, 2), 0)
	responses := wire.AppendReconfigResponse(wire.AppendReconfig(nil), 1, wire.ReconfigDenied)
	responses = wire.CloseChunk(wire.AppendTSNResetResponse(responses, 2, wire.ReconfigPerformed, 3, 4), 0)
	tsnReset := wire.CloseChunk(wire.AppendTSNReset(wire.AppendReconfig(nil), 1), 0)

	data := wire.AppendDataHeader(nil, wire.DataFields{Flags: 3, TSN: 7, Stream: 1, SSN: 2, PPID: 16, PayloadLen: 5})
	iData := wire.AppendIDataHeader(nil, wire.IDataFields{Flags: 3, TSN: 7, Stream: 1, MID: 2, PPID: 16, PayloadLen: 5})

	return [][]byte{
		append(data, "hello\x00\x00\x00"...),
		append(iData, "hello\x00\x00\x00"...),
		init, initAck, abort, failure, asconf, asconfAck, resets, adds, responses, tsnReset,
		wire.AppendSack(nil, wire.SackFields{CumTSN: 12, Gaps: []wire.GapBlock{{Start: 2, End: 3}},
			Dups: []wire.TSN{10}}),
		wire.AppendHeartbeat(nil, []byte("nonce")),
		wire.AppendHeartbeatAck(nil, []byte("nonce")),
		wire.AppendShutdown(nil, 7),
		wire.AppendShutdownAck(nil),
		wire.AppendShutdownComplete(nil, true),
		wire.AppendCookieEcho(nil, []byte("cookie")),
		wire.AppendCookieAck(nil),
		wire.AppendECNE(nil, 7),
		wire.AppendCWR(nil, 7),
		wire.AppendAuth(nil, 1, wire.HMACSHA1),
		append(wire.AppendDTLSHeader(nil, true, 26), make([]byte, 27)...),
		wire.AppendForwardTSN(nil, 7, []wire.Skip{{Stream: 1, SSN: 2}}),
		wire.AppendIForwardTSN(nil, 7, []wire.ISkip{{Stream: 1, U: true, MID: 2}}),
		wire.AppendPad(nil, 16),
		parseHex("0b000000"),                            // chunk length 0
		parseHex("0a00ffff"),                            // past the end
		parseHex("0a000005 aa"),                         // final padding missing
		parseHex("03000010 00000000 00000000 ffffffff"), // counts past the end
		parseHex("04000008 00010005"),                   // parameter past its chunk
		parseHex("09000010 00020010 ffffffff 00070000"), // cause that counts too much
	}
}

// checkWithin fails unless inner lies in outer, and neither reads nor can append past its end.
func checkWithin(t *testing.T, outer, inner []byte) {
	t.Helper()
	if cap(inner) == 0 {
		return
	}
	base := uintptr(unsafe.Pointer(unsafe.SliceData(outer)))
	start := uintptr(unsafe.Pointer(unsafe.SliceData(inner)))
	if start < base || start-base > uintptr(len(outer)) || uintptr(cap(inner)) > uintptr(len(outer))-(start-base) {
		t.Fatalf("view of %d octets, capacity %d, leaves its %d octets", len(inner), cap(inner), len(outer))
	}
}
