package assoc_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// The chunks of extensions that are not offered are unknown chunks: what their high bits say is done, and
// nothing else.
func TestChunksOfExtensionsThatAreNotOffered(t *testing.T) {
	peer, added := netip.MustParseAddr("10.0.0.9"), netip.MustParseAddr("10.0.0.77")
	asconf := wire.AppendAsconf(nil, 1000, peer)
	asconf = wire.AppendAddrRequest(asconf, wire.ParamAddIP, 1, added)
	asconf = wire.AppendAddrRequest(asconf, wire.ParamSetPrimary, 2, added)
	asconf = wire.CloseChunk(wire.AppendAddrRequest(asconf, wire.ParamDeleteIP, 3, peer), 0)
	auth := wire.AppendAuth(nil, 0, wire.HMACSHA256)
	reconfig := wire.CloseChunk(wire.AppendParam(wire.AppendReconfig(nil), wire.ParamTSNReset, []byte{0, 0, 3, 0xe8}), 0)
	idata := wire.AppendIDataHeader(nil, wire.IDataFields{Flags: wire.FlagB | wire.FlagE, TSN: 1000, PayloadLen: 4})
	idata = append(idata, "data"...)
	for _, row := range []struct {
		name  string
		chunk []byte
		want  string
	}{
		// req 9260-3.2-5
		{"ASCONF (11) is skipped and reported", asconf, "ERROR HEARTBEAT ACK"},
		{"FORWARD TSN (11) too", wire.AppendForwardTSN(nil, 1004, nil), "ERROR HEARTBEAT ACK"}, // req 3758-3.3-1
		{"I-FORWARD-TSN (11) too", wire.AppendIForwardTSN(nil, 1004, nil), "ERROR HEARTBEAT ACK"},
		// req 9260-3.2-4
		{"ASCONF-ACK (10) is skipped", wire.CloseChunk(wire.AppendAsconfAck(nil, 1000), 0), "HEARTBEAT ACK"},
		{"RE-CONFIG (10) too", reconfig, "HEARTBEAT ACK"},
		// req 9260-3.2-3
		{"I-DATA (01) ends the packet and is reported", idata, "ERROR"},
		// req 9260-3.2-2
		{"AUTH (00) ends the packet", auth, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := passiveLab(t, &assoc.Config{HeartbeatInterval: -1})
			before := l.a.Stats()
			out := l.send(l.tag, row.chunk, wire.AppendHeartbeat(nil, []byte("x")))
			l.expect(out, row.want)
			if len(out) > 0 && has(out[0], wire.ChunkError) {
				if code, _ := causeOf(out[0]); code != wire.CauseUnrecognizedChunkType {
					t.Errorf("cause %v", code)
				}
			}
			// Addresses, TSNs and streams are what they were.
			if p := paths(l.a); len(p) != 1 || p[0].Remote.Addr() != peer || !p[0].Primary {
				t.Errorf("paths %+v", p)
			}
			after := l.a.Stats()
			if after.InStreams != before.InStreams || after.OutStreams != before.OutStreams || after.DataIn != 0 {
				t.Errorf("%+v, before %+v", after, before)
			}
			out = l.send(l.tag, l.data("in its turn"))
			if k, err := wire.AsSack(chunkOf(out[0], wire.ChunkSack)); err != nil || k.CumTSN() != l.tsn-1 {
				t.Errorf("cumulative TSN %d, %v", k.CumTSN(), err)
			}
		})
	}
}

// Nothing in INIT or INIT ACK says that an extension were there.
func TestExtensionsAreNotOffered(t *testing.T) {
	offers := []wire.ParamType{wire.ParamForwardTSN, wire.ParamRandom, wire.ParamChunkList, wire.ParamHMACAlgo, wire.ParamSupportedExtensions}
	check := func(c wire.Chunk) {
		t.Helper()
		init, err := wire.AsInit(c)
		if err != nil {
			t.Fatal(err)
		}
		ps := init.Params()
		for p, ok := ps.Next(); ok; p, ok = ps.Next() {
			if slices.Contains(offers, p.Type()) { // req 5061-4.2.7-2: no chunk type is listed but those that are there
				t.Errorf("%v has %v", c.Type(), p.Type())
			}
		}
	}
	cfg := &assoc.Config{Adaptation: u32(5)}
	w := newWorld(t)
	w.connect(cfg)
	w.flush()
	check(chunkOf(w.sent[0].pkt, wire.ChunkInit))
	l := bareLab(t)
	l.listen(cfg)
	all := [][]byte{wire.AppendParam(nil, wire.ParamForwardTSN, nil), wire.AppendParam(nil, wire.ParamRandom, make([]byte, 32)),
		wire.AppendParam(nil, wire.ParamChunkList, []byte{0xc1, 0x80}), wire.AppendParam(nil, wire.ParamHMACAlgo, []byte{0, 3, 0, 1}),
		wire.AppendParam(nil, wire.ParamSupportedExtensions, []byte{0xc0, 0xc1, 0x80, 0x0f, 0x82, 0x40, 0xc2})}
	out := l.send(0, initChunk(l.peerTag, l.tsn, all...)) // whatever the peer offers
	l.expect(out, "INIT ACK")
	check(chunkOf(out[0], wire.ChunkInitAck))
}
