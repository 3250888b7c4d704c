package wire_test

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// dataAndSack is a packet with a SACK of two gap blocks and one duplicate, and a DATA chunk.
func dataAndSack(payload int) []byte {
	b := wire.AppendHeader(nil, 5000, 6000, 1)
	b = wire.AppendSack(b, wire.SackFields{CumTSN: 12, ARwnd: 4660,
		Gaps: []wire.GapBlock{{Start: 2, End: 3}, {Start: 5, End: 5}}, Dups: []wire.TSN{10}})
	b = wire.AppendDataHeader(b, wire.DataFields{Flags: wire.FlagB | wire.FlagE, TSN: 7, PPID: 16, PayloadLen: payload})
	b = append(b, make([]byte, payload)...)
	b = append(b, wire.Padding(payload)...)
	wire.PutChecksum(b, wire.ChecksumBytes(b))
	return b
}

var sink uint64 // keeps the compiler from leaving out what it computes

// readDataAndSack visits every field of the packet.
func readDataAndSack(b []byte) (sum uint64, err error) {
	p, err := wire.ParsePacket(b)
	if err != nil {
		return 0, err
	}
	sum = uint64(p.VTag())
	cs := p.Chunks()
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		switch c.Type() {
		case wire.ChunkData:
			d, err := wire.AsData(c)
			if err != nil {
				return 0, err
			}
			sum += uint64(d.TSN()) + uint64(d.Stream()) + uint64(d.SSN()) + uint64(d.PPID()) + uint64(len(d.Payload()))
		case wire.ChunkSack:
			s, err := wire.AsSack(c)
			if err != nil {
				return 0, err
			}
			sum += uint64(s.CumTSN()) + uint64(s.ARwnd())
			for i := range s.NumGaps() {
				start, end := s.Gap(i)
				sum += uint64(start) + uint64(end)
			}
			for i := range s.NumDups() {
				sum += uint64(s.Dup(i))
			}
		}
	}
	return sum, cs.Err()
}

func wantNoAllocs(t *testing.T, what string, f func()) {
	t.Helper()
	n := testing.AllocsPerRun(100, f)
	check.That(t, n == 0, "%s allocates %v times", what, n)
}

func TestParseAllocatesNothing(t *testing.T) {
	b := dataAndSack(1000)
	wantNoAllocs(t, "parsing DATA and SACK", func() {
		sum := must.Get(readDataAndSack(b))(t)
		sink += sum
	})

	init := wire.AppendInit(nil, wire.ChunkInit, wire.InitFields{})
	init = wire.AppendAddressParam(init, netip.MustParseAddr("2001:db8::1"))
	init = wire.AppendSupportedExtensions(init, wire.ChunkReconfig)
	init = parsePacket(t, wire.CloseChunk(init, 0))
	wantNoAllocs(t, "parsing INIT with its parameters", func() {
		cs := wire.Packet(init).Chunks()
		c, _ := cs.Next()
		i := must.Get(wire.AsInit(c))(t)
		ps := i.Params()
		for p, ok := ps.Next(); ok; p, ok = ps.Next() {
			if addr, err := p.Addr(); err == nil {
				sink += uint64(addr.BitLen())
			}
		}
	})
}

// A flood of malformed packets must not cost memory either.
func TestErrorsAllocateNothing(t *testing.T) {
	partial := parsePacket(t, parseHex(t, "0a00ffff"))
	badSack := parsePacket(t, parseHex(t, "03000010 00000000 00000000 ffff ffff"))
	badHeartbeat := parsePacket(t, parseHex(t, "04000008 00010005"))
	wantNoAllocs(t, "reporting malformed input", func() {
		cs := partial.Chunks()
		_, ok := cs.Next()
		must.That(t, !ok && cs.Err() != nil, "a partial chunk was taken")
		cs = badSack.Chunks()
		c, _ := cs.Next()
		_, err := wire.AsSack(c)
		must.That(t, err != nil, "a SACK of a wrong length was taken")
		cs = badHeartbeat.Chunks()
		c, _ = cs.Next()
		_, err = wire.AsHeartbeat(c)
		must.That(t, err != nil, "a HEARTBEAT of a wrong length was taken")
	})
}

func TestEncodeAllocatesNothing(t *testing.T) {
	b := make([]byte, 0, 70000)
	info, v6 := make([]byte, 41), netip.MustParseAddr("2001:db8::1")
	gaps, dups := make([]wire.GapBlock, 20), make([]wire.TSN, 3)
	skips, iskips, streams := make([]wire.Skip, 3), make([]wire.ISkip, 3), make([]wire.StreamID, 3)
	for name, f := range map[string]func(){
		"DATA": func() {
			b = wire.AppendHeader(b[:0], 1, 2, 3)
			b = wire.AppendDataHeader(b, wire.DataFields{TSN: 7, PayloadLen: 1000})
		},
		"I-DATA": func() { b = wire.AppendIDataHeader(b[:0], wire.IDataFields{TSN: 7, PayloadLen: 1000}) },
		"SACK":   func() { b = wire.AppendSack(b[:0], wire.SackFields{CumTSN: 7, Gaps: gaps, Dups: dups}) },
		"INIT": func() {
			b = wire.AppendInit(b[:0], wire.ChunkInit, wire.InitFields{Tag: 1})
			b = wire.AppendAddressParam(b, v6)
			b = wire.AppendAddressParam(b, testAddr)
			b = wire.AppendCookiePreservative(b, 1)
			b = wire.AppendSupportedAddrTypes(b, wire.ParamIPv4, wire.ParamIPv6)
			b = wire.AppendAdaptationIndication(b, 1)
			b = wire.AppendSupportedExtensions(b, wire.ChunkReconfig, wire.ChunkIData)
			b = wire.AppendForwardTSNSupported(b)
			b = wire.AppendHMACAlgo(b, wire.HMACSHA256, wire.HMACSHA1)
			b = wire.AppendChunkList(b, wire.ChunkAsconf, wire.ChunkAsconfAck)
			b = wire.AppendPaddingParam(b, 400)
			b = wire.CloseChunk(b, 0)
		},
		"HEARTBEAT": func() { b = wire.AppendHeartbeatAck(wire.AppendHeartbeat(b[:0], info), info) },
		"ABORT": func() {
			b = wire.AppendAbort(b[:0], true)
			b = wire.AppendCause(b, wire.CauseUserAbort, info)
			b = wire.AppendInvalidStreamCause(b, 1)
			b = wire.AppendMissingParamsCause(b, wire.ParamStateCookie)
			b = wire.AppendStaleCookieCause(b, 1)
			b = wire.AppendNoUserDataCause(b, 1)
			b = wire.AppendUnsupportedHMACCause(b, 2)
			b = wire.CloseChunk(b, 0)
		},
		"SHUTDOWN": func() {
			b = wire.AppendShutdown(b[:0], 1)
			b = wire.AppendShutdownAck(b)
			b = wire.AppendShutdownComplete(b, true)
		},
		"COOKIE":      func() { b = wire.AppendCookieAck(wire.AppendCookieEcho(b[:0], info)) },
		"ECNE, CWR":   func() { b = wire.AppendCWR(wire.AppendECNE(b[:0], 1), 2) },
		"FORWARD-TSN": func() { b = wire.AppendIForwardTSN(wire.AppendForwardTSN(b[:0], 1, skips), 1, iskips) },
		"AUTH":        func() { b = wire.AppendAuth(b[:0], 1, wire.HMACSHA256) },
		"DTLS":        func() { b = wire.AppendDTLSHeader(b[:0], true, 100) },
		"PAD":         func() { b = wire.AppendPad(b[:0], 65536) },
		"ASCONF": func() {
			b = wire.AppendAsconf(b[:0], 1, v6)
			b = wire.AppendAddrRequest(b, wire.ParamAddIP, 1, testAddr)
			b = wire.CloseChunk(b, 0)
		},
		"ASCONF-ACK": func() {
			b = wire.AppendAsconfAck(b[:0], 1)
			b = wire.AppendSuccessIndication(b, 1)
			b = wire.AppendErrorIndication(b, 2)
			b = wire.CloseChunk(b, 0)
		},
		"RE-CONFIG": func() {
			b = wire.AppendReconfig(b[:0])
			b = wire.AppendOutgoingReset(b, 1, 2, 3, streams)
			b = wire.AppendIncomingReset(b, 1, streams)
			b = wire.AppendTSNReset(b, 1)
			b = wire.AppendTSNResetResponse(b, 1, wire.ReconfigPerformed, 2, 3)
			b = wire.AppendAddStreams(b, wire.ParamAddOutStreams, 1, 2)
			b = wire.CloseChunk(b, 0)
		},
	} {
		wantNoAllocs(t, "encoding "+name, f)
	}
}

func TestChecksumAllocatesNothing(t *testing.T) {
	b := dataAndSack(1001)
	wantNoAllocs(t, "the checksum of a vector", func() {
		vec := [3][]byte{b[:60], b[60:1061], wire.Padding(1001)}
		sink += uint64(wire.Checksum(vec[:]))
		wire.PutChecksum(b, uint32(sink))
	})
	wantNoAllocs(t, "checking the checksum", func() {
		if wire.Packet(b).ChecksumOK() {
			sink++
		}
	})
}
