package wire

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/sctp/wire"
)

// readChunk puts chunks between two others in a packet and returns the one in the middle: an
// encoder that gets a length or its padding wrong shifts what follows.
func readChunk(t *testing.T, chunk []byte) wire.Chunk {
	t.Helper()
	b := wire.AppendCookieAck(wire.AppendHeader(nil, 5000, 6000, 1))
	p, err := wire.ParsePacket(wire.AppendShutdownAck(append(b, chunk...)))
	if err != nil {
		t.Fatal(err)
	}
	var got []wire.Chunk
	cs := p.Chunks()
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		got = append(got, c)
	}
	if cs.Err() != nil || len(got) != 3 || got[0].Type() != wire.ChunkCookieAck ||
		got[2].Type() != wire.ChunkShutdownAck {
		t.Fatalf("%d chunks, %v", len(got), cs.Err())
	}
	if n := len(got[1]); !bytes.Equal(chunk[n:], wire.Padding(n)) {
		t.Fatalf("padding %x after %d octets", chunk[n:], n)
	}
	return got[1]
}

func mustParse[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func checkEqual[T comparable](t *testing.T, name string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s = %v, want %v", name, got, want)
	}
}

// values is what a round trip makes its chunks of.
type values struct {
	flags uint8
	n     [4]uint32
	b, c  []byte
}

func roundTripData(t *testing.T, v values) {
	flags, tsn, stream, ssn := v.flags, v.n[0], uint16(v.n[3]>>16), uint16(v.n[3])
	ppid, fsn, payload := v.n[1], v.n[2], v.b[:min(len(v.b), wire.MaxIDataPayload)]
	pad := wire.Padding(len(payload))
	b := wire.AppendDataHeader(nil, wire.DataFields{Flags: flags, TSN: wire.TSN(tsn), Stream: wire.StreamID(stream),
		SSN: wire.SSN(ssn), PPID: ppid, PayloadLen: len(payload)})
	d := mustParse[wire.Data](t)(wire.AsData(readChunk(t, slices.Concat(b, payload, pad))))
	checkEqual(t, "Flags", d.Flags(), flags&0x0f)
	checkEqual(t, "TSN", d.TSN(), wire.TSN(tsn))
	checkEqual(t, "Stream", d.Stream(), wire.StreamID(stream))
	checkEqual(t, "SSN", d.SSN(), wire.SSN(ssn))
	checkEqual(t, "PPID", d.PPID(), ppid)
	checkEqual(t, "Payload", string(d.Payload()), string(payload))

	b = wire.AppendIDataHeader(nil, wire.IDataFields{Flags: flags, TSN: wire.TSN(tsn), Stream: wire.StreamID(stream),
		MID: wire.MID(ssn), PPID: ppid, FSN: wire.FSN(fsn), PayloadLen: len(payload)})
	i := mustParse[wire.IData](t)(wire.AsIData(readChunk(t, slices.Concat(b, payload, pad))))
	checkEqual(t, "Flags", i.Flags(), flags&0x0f)
	checkEqual(t, "TSN", i.TSN(), wire.TSN(tsn))
	checkEqual(t, "Stream", i.Stream(), wire.StreamID(stream))
	checkEqual(t, "MID", i.MID(), wire.MID(ssn))
	checkEqual(t, "Payload", string(i.Payload()), string(payload))
	if got, ok := i.PPID(); ok {
		checkEqual(t, "PPID", got, ppid)
		checkEqual(t, "FSN", i.FSN(), 0)
	} else {
		checkEqual(t, "FSN", i.FSN(), wire.FSN(fsn))
	}
}

// roundTripLists covers the chunks that carry counted lists; each 4 octets of list are one entry.
func roundTripLists(t *testing.T, v values) {
	cum, rwnd, gapList, dupList := v.n[0], v.n[1], v.b, v.c
	var gaps []wire.GapBlock
	var skips []wire.Skip
	for ; len(gapList) >= 4 && len(gaps) < 8000; gapList = gapList[4:] {
		x, y := binary.BigEndian.Uint16(gapList), binary.BigEndian.Uint16(gapList[2:])
		gaps = append(gaps, wire.GapBlock{Start: x, End: y})
		skips = append(skips, wire.Skip{Stream: wire.StreamID(x), SSN: wire.SSN(y)})
	}
	var dups []wire.TSN
	var iskips []wire.ISkip
	for ; len(dupList) >= 4 && len(dups) < 8000; dupList = dupList[4:] {
		v := binary.BigEndian.Uint32(dupList)
		dups = append(dups, wire.TSN(v))
		iskips = append(iskips, wire.ISkip{Stream: wire.StreamID(v >> 16), U: v&1 != 0, MID: wire.MID(v)})
	}

	b := wire.AppendSack(nil, wire.SackFields{CumTSN: wire.TSN(cum), ARwnd: rwnd, Gaps: gaps, Dups: dups})
	checkEqual(t, "SackLen", wire.SackLen(len(gaps), len(dups)), len(b))
	s := mustParse[wire.Sack](t)(wire.AsSack(readChunk(t, b)))
	checkEqual(t, "CumTSN", s.CumTSN(), wire.TSN(cum))
	checkEqual(t, "ARwnd", s.ARwnd(), rwnd)
	checkEqual(t, "NumGaps", s.NumGaps(), len(gaps))
	checkEqual(t, "NumDups", s.NumDups(), len(dups))
	for i, g := range gaps {
		start, end := s.Gap(i)
		checkEqual(t, "Gap", wire.GapBlock{Start: start, End: end}, g)
	}
	for i, d := range dups {
		checkEqual(t, "Dup", s.Dup(i), d)
	}

	fwd := mustParse[wire.ForwardTSN](t)(
		wire.AsForwardTSN(readChunk(t, wire.AppendForwardTSN(nil, wire.TSN(cum), skips))))
	checkEqual(t, "NewCumTSN", fwd.NewCumTSN(), wire.TSN(cum))
	checkEqual(t, "NumSkips", fwd.NumSkips(), len(skips))
	for i, k := range skips {
		checkEqual(t, "Skip", fwd.Skip(i), k)
	}
	ifwd := mustParse[wire.IForwardTSN](t)(
		wire.AsIForwardTSN(readChunk(t, wire.AppendIForwardTSN(nil, wire.TSN(cum), iskips))))
	checkEqual(t, "NewCumTSN", ifwd.NewCumTSN(), wire.TSN(cum))
	checkEqual(t, "NumSkips", ifwd.NumSkips(), len(iskips))
	for i, k := range iskips {
		checkEqual(t, "Skip", ifwd.Skip(i), k)
	}
}

// roundTripInit covers the fixed fields, and parameters of any type and value in order.
func roundTripInit(t *testing.T, v values) {
	ack, tag, rwnd, tsn, ptype := v.flags&1 != 0, v.n[0], v.n[1], v.n[2], uint16(v.n[1])
	out, in, value := uint16(v.n[3]>>16), uint16(v.n[3]), v.b[:min(len(v.b), 30000)]
	addr, ok := netip.AddrFromSlice(v.c)
	if !ok {
		addr = netip.IPv6Unspecified()
	}
	want := wire.ChunkInit
	if ack {
		want = wire.ChunkInitAck
	}
	b := wire.AppendInit(nil, want, wire.InitFields{Tag: tag, ARwnd: rwnd, OutStreams: out, InStreams: in,
		TSN: wire.TSN(tsn)})
	b = wire.AppendParam(b, wire.ParamType(ptype), value)
	b = wire.AppendAddressParam(b, addr)
	b = wire.AppendParam(b, wire.ParamType(ptype), value)
	i := mustParse[wire.Init](t)(wire.AsInit(readChunk(t, wire.CloseChunk(b, 0))))
	checkEqual(t, "Type", i.Type(), want)
	checkEqual(t, "Tag", i.Tag(), tag)
	checkEqual(t, "ARwnd", i.ARwnd(), rwnd)
	checkEqual(t, "OutStreams", i.OutStreams(), out)
	checkEqual(t, "InStreams", i.InStreams(), in)
	checkEqual(t, "TSN", i.TSN(), wire.TSN(tsn))

	ps := i.Params()
	first, _ := ps.Next()
	second, _ := ps.Next()
	third, ok := ps.Next()
	if !ok {
		t.Fatal(ps.Err())
	}
	for _, p := range []wire.Param{first, third} {
		checkEqual(t, "Type", p.Type(), wire.ParamType(ptype))
		checkEqual(t, "Value", string(p.Value()), string(value))
	}
	checkEqual(t, "Addr", mustParse[netip.Addr](t)(second.Addr()), addr.Unmap().WithZone(""))
	if _, ok := ps.Next(); ok || ps.Err() != nil {
		t.Fatalf("a fourth parameter, %v", ps.Err())
	}
}

// roundTripControl covers chunks of opaque octets and of single numbers.
func roundTripControl(t *testing.T, v values) {
	n, code, info, bit := v.n[0], uint16(v.n[1]), v.b[:min(len(v.b), 60000)], v.flags&1 != 0
	h := mustParse[wire.Heartbeat](t)(wire.AsHeartbeat(readChunk(t, wire.AppendHeartbeat(nil, info))))
	checkEqual(t, "Info", string(h.Info()), string(info))
	h = mustParse[wire.Heartbeat](t)(wire.AsHeartbeat(readChunk(t, wire.AppendHeartbeatAck(nil, h.Info()))))
	checkEqual(t, "Info", string(h.Info()), string(info))
	k := mustParse[wire.CookieEcho](t)(wire.AsCookieEcho(readChunk(t, wire.AppendCookieEcho(nil, info))))
	checkEqual(t, "Cookie", string(k.Cookie()), string(info))

	b := wire.AppendCause(wire.AppendAbort(nil, bit), wire.CauseCode(code), info)
	a := mustParse[wire.Abort](t)(wire.AsAbort(readChunk(t, wire.CloseChunk(b, 0))))
	checkEqual(t, "T", a.T(), bit)
	causes := a.Causes()
	c, ok := causes.Next()
	if !ok {
		t.Fatal(causes.Err())
	}
	checkEqual(t, "Code", c.Code(), wire.CauseCode(code))
	checkEqual(t, "Info", string(c.Info()), string(info))

	s := mustParse[wire.Shutdown](t)(wire.AsShutdown(readChunk(t, wire.AppendShutdown(nil, wire.TSN(n)))))
	checkEqual(t, "CumTSN", s.CumTSN(), wire.TSN(n))
	done := mustParse[wire.ShutdownComplete](t)(
		wire.AsShutdownComplete(readChunk(t, wire.AppendShutdownComplete(nil, bit))))
	checkEqual(t, "T", done.T(), bit)
	e := mustParse[wire.ECNE](t)(wire.AsECNE(readChunk(t, wire.AppendECNE(nil, wire.TSN(n)))))
	checkEqual(t, "TSN", e.TSN(), wire.TSN(n))
	w := mustParse[wire.CWR](t)(wire.AsCWR(readChunk(t, wire.AppendCWR(nil, wire.TSN(n)))))
	checkEqual(t, "TSN", w.TSN(), wire.TSN(n))
	mustParse[wire.Pad](t)(wire.AsPad(readChunk(t, wire.AppendPad(nil, int(int32(n))%70000))))
	auth := mustParse[wire.Auth](t)(wire.AsAuth(readChunk(t, wire.AppendAuth(nil, code, wire.HMACID(n)))))
	checkEqual(t, "KeyID", auth.KeyID(), code)
	checkEqual(t, "HMACID", auth.HMACID(), wire.HMACID(n))
}

func roundTripReconfig(t *testing.T, v values) {
	request, response, tsn, count, list := v.n[0], v.n[1], v.n[2], uint16(v.n[3]), v.b
	var streams []wire.StreamID
	for ; len(list) >= 2 && len(streams) < 16000; list = list[2:] {
		streams = append(streams, wire.StreamID(binary.BigEndian.Uint16(list)))
	}
	sameStreams := func(l wire.Uint16List) {
		t.Helper()
		checkEqual(t, "streams", l.Len(), len(streams))
		for i, s := range streams {
			checkEqual(t, "stream", wire.StreamID(l.At(i)), s)
		}
	}
	pair := func(b []byte) (wire.Param, wire.Param) {
		t.Helper()
		ps := mustParse[wire.Reconfig](t)(wire.AsReconfig(readChunk(t, wire.CloseChunk(b, 0)))).Params()
		first, _ := ps.Next()
		second, _ := ps.Next()
		return first, second
	}

	b := wire.AppendOutgoingReset(wire.AppendReconfig(nil), request, response, wire.TSN(tsn), streams)
	p, q := pair(wire.AppendIncomingReset(b, request, streams))
	out := mustParse[wire.OutgoingReset](t)(wire.AsOutgoingReset(p))
	checkEqual(t, "RequestSeq", out.RequestSeq(), request)
	checkEqual(t, "ResponseSeq", out.ResponseSeq(), response)
	checkEqual(t, "LastTSN", out.LastTSN(), wire.TSN(tsn))
	sameStreams(out.Streams())
	in := mustParse[wire.IncomingReset](t)(wire.AsIncomingReset(q))
	checkEqual(t, "RequestSeq", in.RequestSeq(), request)
	sameStreams(in.Streams())

	b = wire.AppendReconfigResponse(wire.AppendReconfig(nil), response, wire.ReconfigResult(request))
	p, q = pair(wire.AppendTSNResetResponse(b, response, wire.ReconfigResult(request), wire.TSN(tsn),
		wire.TSN(request)))
	for _, r := range []wire.Param{p, q} {
		got := mustParse[wire.ReconfigResponse](t)(wire.AsReconfigResponse(r))
		checkEqual(t, "ResponseSeq", got.ResponseSeq(), response)
		checkEqual(t, "Result", got.Result(), wire.ReconfigResult(request))
	}
	sender, receiver, _ := wire.ReconfigResponse(q).NextTSNs()
	checkEqual(t, "Sender's Next TSN", sender, wire.TSN(tsn))
	checkEqual(t, "Receiver's Next TSN", receiver, wire.TSN(request))

	b = wire.AppendAddStreams(wire.AppendReconfig(nil), wire.ParamAddOutStreams, request, count)
	p, q = pair(wire.AppendAddStreams(b, wire.ParamAddInStreams, request, count))
	for _, r := range []wire.Param{p, q} {
		got := mustParse[wire.AddStreams](t)(wire.AsAddStreams(r))
		checkEqual(t, "RequestSeq", got.RequestSeq(), request)
		checkEqual(t, "Count", got.Count(), count)
	}
	p, _ = pair(wire.AppendTSNReset(wire.AppendReconfig(nil), request))
	checkEqual(t, "TSNResetSeq", mustParse[uint32](t)(p.TSNResetSeq()), request)
}

func roundTripASCONF(t *testing.T, v values) {
	seq, id, code, info := v.n[0], v.n[1], uint16(v.n[2]), v.b[:min(len(v.b), 60000)]
	addr, ok := netip.AddrFromSlice(v.c)
	if !ok {
		addr = netip.IPv4Unspecified()
	}
	addr = addr.Unmap()
	b := wire.AppendAsconf(nil, seq, addr)
	for _, pt := range []wire.ParamType{wire.ParamAddIP, wire.ParamDeleteIP, wire.ParamSetPrimary} {
		b = wire.AppendAddrRequest(b, pt, id, addr)
	}
	a := mustParse[wire.Asconf](t)(wire.AsAsconf(readChunk(t, wire.CloseChunk(b, 0))))
	checkEqual(t, "Seq", a.Seq(), seq)
	checkEqual(t, "Addr", a.Addr(), addr)
	ps := a.Params()
	for _, pt := range []wire.ParamType{wire.ParamAddIP, wire.ParamDeleteIP, wire.ParamSetPrimary} {
		p, _ := ps.Next()
		r := mustParse[wire.AddrRequest](t)(wire.AsAddrRequest(p))
		checkEqual(t, "Type", r.Type(), pt)
		checkEqual(t, "CorrelationID", r.CorrelationID(), id)
		checkEqual(t, "Addr", r.Addr(), addr)
	}

	b = wire.AppendSuccessIndication(wire.AppendAsconfAck(nil, seq), id)
	start := len(b)
	b = wire.AppendCause(wire.AppendErrorIndication(b, id), wire.CauseCode(code), info)
	b = wire.CloseChunk(wire.CloseParam(b, start), 0)
	ack := mustParse[wire.AsconfAck](t)(wire.AsAsconfAck(readChunk(t, b)))
	checkEqual(t, "Seq", ack.Seq(), seq)
	ps = ack.Params()
	for _, success := range []bool{true, false} {
		p, _ := ps.Next()
		r := mustParse[wire.AddrResponse](t)(wire.AsAddrResponse(p))
		checkEqual(t, "Success", r.Success(), success)
		checkEqual(t, "CorrelationID", r.CorrelationID(), id)
		causes := r.Causes()
		c, ok := causes.Next()
		if ok == success {
			t.Fatalf("success %v has cause %x", success, c)
		}
		if ok {
			checkEqual(t, "Code", c.Code(), wire.CauseCode(code))
			checkEqual(t, "Info", string(c.Info()), string(info))
		}
	}
}

// roundTripChecksum cuts a packet at any two places: the checksum of the pieces is that of the
// whole, the packet that carries it is accepted, and any one octet changed is noticed.
func roundTripChecksum(t *testing.T, v values) {
	chunks, x, y, at, change := v.b, uint16(v.n[0]), uint16(v.n[1]), uint16(v.n[2]), v.flags
	b := append(wire.AppendHeader(nil, 5000, 6000, 1), chunks...)
	first := wire.CommonHeaderLen + int(x)%(len(chunks)+1)
	second := first + int(y)%(len(b)-first+1)
	sum := wire.Checksum([][]byte{b[:first], b[first:second], b[second:]})
	checkEqual(t, "checksum of the pieces", sum, wire.ChecksumBytes(b))
	wire.PutChecksum(b, sum)
	p := wire.Packet(b)
	checkEqual(t, "ChecksumOK", p.ChecksumOK(), true)
	b[int(at)%len(b)] ^= change
	checkEqual(t, "ChecksumOK after a change", p.ChecksumOK(), change == 0)
}
