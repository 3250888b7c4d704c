package assoc_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// The chunks of extensions that are not offered are unknown chunks: what their high bits say is
// done, and nothing else.
func TestChunksOfExtensionsThatAreNotOffered(t *testing.T) {
	peer, added := netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.0.77")
	asconf := wire.AppendAsconf(nil, 1000, peer)
	asconf = wire.AppendAddrRequest(asconf, wire.ParamAddIP, 1, added)
	asconf = wire.AppendAddrRequest(asconf, wire.ParamSetPrimary, 2, added)
	asconf = wire.CloseChunk(wire.AppendAddrRequest(asconf, wire.ParamDeleteIP, 3, peer), 0)
	auth := wire.AppendAuth(nil, 0, wire.HMACSHA256)
	reconfig := wire.CloseChunk(wire.AppendParam(wire.AppendReconfig(nil), wire.ParamTSNReset, []byte{0, 0, 3, 0xe8}),
		0)
	for _, row := range []struct {
		name  string
		chunk []byte
		want  string
	}{
		// req 9260-3.2-5
		{"ASCONF (11) is skipped and reported", asconf, "ERROR HEARTBEAT ACK"},
		{"FORWARD TSN (11) too", wire.AppendForwardTSN(nil, 1004, nil), "ERROR HEARTBEAT ACK"}, // req 3758-3.3-1
		// req 9260-3.2-4
		{"ASCONF-ACK (10) is skipped", wire.CloseChunk(wire.AppendAsconfAck(nil, 1000), 0), "HEARTBEAT ACK"},
		{"RE-CONFIG (10) too", reconfig, "HEARTBEAT ACK"},
		// req 9260-3.2-3
		{"type 65 (01) ends the packet and is reported", wire.AppendChunk(nil, 65, 3, []byte("data")), "ERROR"},
		// req 9260-3.2-2
		{"AUTH (00) ends the packet", auth, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
			before := l.A.Stats()
			out := l.Send(l.Tag, row.chunk, wire.AppendHeartbeat(nil, []byte("x")))
			l.Expect(out, row.want)
			if len(out) > 0 && sctptest.Has(out[0], wire.ChunkError) {
				code, _ := sctptest.CauseOf(out[0])
				check.That(t, code == wire.CauseUnrecognizedChunkType, "cause %v", code)
			}
			// Addresses, TSNs and streams are what they were.
			p := sctptest.Paths(l.A)
			check.That(t, len(p) == 1 && p[0].Remote.Addr() == peer && p[0].Primary, "paths %+v", p)
			after := l.A.Stats()
			check.That(t, after.InStreams == before.InStreams && after.OutStreams == before.OutStreams &&
				after.DataIn == 0,
				"%+v, before %+v", after, before)
			out = l.Send(l.Tag, l.Data("in its turn"))
			k, err := wire.AsSack(sctptest.ChunkOf(out[0], wire.ChunkSack))
			check.That(t, err == nil && k.CumTSN() == l.TSN-1, "cumulative TSN %d, %v", k.CumTSN(), err)
		})
	}
}

// Nothing in INIT or INIT ACK says that an extension were there.
func TestExtensionsAreNotOffered(t *testing.T) {
	offers := []wire.ParamType{wire.ParamForwardTSN, wire.ParamZeroChecksum, wire.ParamRandom, wire.ParamChunkList, wire.ParamHMACAlgo,
		wire.ParamSupportedExtensions}
	check := func(c wire.Chunk) {
		t.Helper()
		init := must.Get(wire.AsInit(c))(t)
		ps := init.Params()
		for p, ok := ps.Next(); ok; p, ok = ps.Next() {
			// req 5061-4.2.7-2: no chunk type is listed but those that are there
			check.That(t, !slices.Contains(offers, p.Type()), "%v has %v", c.Type(), p.Type())
		}
	}
	cfg := &assoc.Config{Adaptation: ptrTo32(5)}
	w := sctptest.NewWorld(t)
	w.Connect(cfg)
	w.Flush()
	check(sctptest.ChunkOf(w.Sent[0].Pkt, wire.ChunkInit))
	l := sctptest.NewLab(t)
	l.Listen(cfg)
	all := [][]byte{wire.AppendParam(nil, wire.ParamForwardTSN, nil),
		wire.AppendParam(nil, wire.ParamRandom, make([]byte, 32)),
		wire.AppendParam(nil, wire.ParamChunkList, []byte{0xc1, 0x80}),
		wire.AppendParam(nil, wire.ParamHMACAlgo, []byte{0, 3, 0, 1}),
		wire.AppendParam(nil, wire.ParamSupportedExtensions, []byte{0xc0, 0xc1, 0x80, 0x0f, 0x82, 0x40, 0xc2})}
	out := l.Send(0, sctptest.InitChunk(l.PeerTag, l.TSN, all...)) // whatever the peer offers
	l.Expect(out, "INIT ACK")
	check(sctptest.ChunkOf(out[0], wire.ChunkInitAck))
}

func TestParametersOfASCONFInAnInitAreIgnored(t *testing.T) {
	// req 5061-4.2-1
	added := netip.MustParseAddr("10.7.7.7")
	for _, typ := range []wire.ParamType{wire.ParamAddIP, wire.ParamDeleteIP, wire.ParamSetPrimary} {
		l := sctptest.NewLab(t)
		l.Listen(nil)
		l.Initiate(wire.AppendAddrRequest(nil, typ, 1, added), wire.AppendAdaptationIndication(nil, 5))
		l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
		v, ok := l.A.PeerAdaptation()
		check.That(t, l.A.State() == assoc.Established && l.A.NumPaths() == 1 && v == 5 && ok,
			"parameter %#x: %v with %d paths, what follows it was read: %v", typ, l.A.State(), l.A.NumPaths(), ok)
	}
}

func TestPaddingParameterLeavesNoTrace(t *testing.T) {
	answer := func(params ...[]byte) (wire.Init, int) {
		l := sctptest.NewLab(t)
		l.Listen(nil)
		out := l.Send(0, sctptest.InitChunk(l.PeerTag, l.TSN, params...))
		l.Expect(out, "INIT ACK")
		ack := l.NoteInitAck(out[0])
		// req 4820-4-3: silently
		check.That(t, sctptest.ParamOf(ack, wire.ParamUnrecognizedParam) == nil, "PAD was reported")
		l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
		must.That(t, l.A != nil, "no association")
		v, ok := l.A.PeerAdaptation()
		check.That(t, v == 6 && ok, "adaptation %d %v", v, ok) // req 4820-4-3: what follows is read
		return ack, len(l.Cookie)
	}
	code := wire.AppendAdaptationIndication(nil, 6)
	plain, size := answer(code)
	padded, other := answer(wire.AppendPaddingParam(nil, 1200), code)
	check.That(t, other == size && len(padded) == len(plain),
		// req 4820-4-4
		"with PAD the cookie has %d octets instead of %d, the INIT ACK %d instead of %d", other, size, len(padded),
		len(plain))
}
