package wire

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/sctp/wire"
)

// read puts chunks between two others in a packet and returns the one in the middle: an encoder
// that gets a length or its padding wrong shifts what follows.
func read(t *testing.T, chunk []byte) wire.Chunk {
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

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func equal[T comparable](t *testing.T, name string, got, want T) {
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

func data(t *testing.T, v values) {
	flags, tsn, stream, ssn := v.flags, v.n[0], uint16(v.n[3]>>16), uint16(v.n[3])
	ppid, fsn, payload := v.n[1], v.n[2], v.b[:min(len(v.b), wire.MaxIDataPayload)]
	pad := wire.Padding(len(payload))
	b := wire.AppendDataHeader(nil, wire.DataFields{Flags: flags, TSN: wire.TSN(tsn), Stream: wire.StreamID(stream),
		SSN: wire.SSN(ssn), PPID: ppid, PayloadLen: len(payload)})
	d := must[wire.Data](t)(wire.AsData(read(t, slices.Concat(b, payload, pad))))
	equal(t, "Flags", d.Flags(), flags&0x0f)
	equal(t, "TSN", d.TSN(), wire.TSN(tsn))
	equal(t, "Stream", d.Stream(), wire.StreamID(stream))
	equal(t, "SSN", d.SSN(), wire.SSN(ssn))
	equal(t, "PPID", d.PPID(), ppid)
	equal(t, "Payload", string(d.Payload()), string(payload))

	b = wire.AppendIDataHeader(nil, wire.IDataFields{Flags: flags, TSN: wire.TSN(tsn), Stream: wire.StreamID(stream),
		MID: wire.MID(ssn), PPID: ppid, FSN: wire.FSN(fsn), PayloadLen: len(payload)})
	i := must[wire.IData](t)(wire.AsIData(read(t, slices.Concat(b, payload, pad))))
	equal(t, "Flags", i.Flags(), flags&0x0f)
	equal(t, "TSN", i.TSN(), wire.TSN(tsn))
	equal(t, "Stream", i.Stream(), wire.StreamID(stream))
	equal(t, "MID", i.MID(), wire.MID(ssn))
	equal(t, "Payload", string(i.Payload()), string(payload))
	if got, ok := i.PPID(); ok {
		equal(t, "PPID", got, ppid)
		equal(t, "FSN", i.FSN(), 0)
	} else {
		equal(t, "FSN", i.FSN(), wire.FSN(fsn))
	}
}

// lists covers the chunks that carry counted lists; each 4 octets of list are one entry.
func lists(t *testing.T, v values) {
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
	equal(t, "SackLen", wire.SackLen(len(gaps), len(dups)), len(b))
	s := must[wire.Sack](t)(wire.AsSack(read(t, b)))
	equal(t, "CumTSN", s.CumTSN(), wire.TSN(cum))
	equal(t, "ARwnd", s.ARwnd(), rwnd)
	equal(t, "NumGaps", s.NumGaps(), len(gaps))
	equal(t, "NumDups", s.NumDups(), len(dups))
	for i, g := range gaps {
		start, end := s.Gap(i)
		equal(t, "Gap", wire.GapBlock{Start: start, End: end}, g)
	}
	for i, d := range dups {
		equal(t, "Dup", s.Dup(i), d)
	}

	fwd := must[wire.ForwardTSN](t)(wire.AsForwardTSN(read(t, wire.AppendForwardTSN(nil, wire.TSN(cum), skips))))
	equal(t, "NewCumTSN", fwd.NewCumTSN(), wire.TSN(cum))
	equal(t, "NumSkips", fwd.NumSkips(), len(skips))
	for i, k := range skips {
		equal(t, "Skip", fwd.Skip(i), k)
	}
	ifwd := must[wire.IForwardTSN](t)(wire.AsIForwardTSN(read(t, wire.AppendIForwardTSN(nil, wire.TSN(cum), iskips))))
	equal(t, "NewCumTSN", ifwd.NewCumTSN(), wire.TSN(cum))
	equal(t, "NumSkips", ifwd.NumSkips(), len(iskips))
	for i, k := range iskips {
		equal(t, "Skip", ifwd.Skip(i), k)
	}
}

// initiation covers the fixed fields, and parameters of any type and value in order.
func initiation(t *testing.T, v values) {
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
	i := must[wire.Init](t)(wire.AsInit(read(t, wire.CloseChunk(b, 0))))
	equal(t, "Type", i.Type(), want)
	equal(t, "Tag", i.Tag(), tag)
	equal(t, "ARwnd", i.ARwnd(), rwnd)
	equal(t, "OutStreams", i.OutStreams(), out)
	equal(t, "InStreams", i.InStreams(), in)
	equal(t, "TSN", i.TSN(), wire.TSN(tsn))

	ps := i.Params()
	first, _ := ps.Next()
	second, _ := ps.Next()
	third, ok := ps.Next()
	if !ok {
		t.Fatal(ps.Err())
	}
	for _, p := range []wire.Param{first, third} {
		equal(t, "Type", p.Type(), wire.ParamType(ptype))
		equal(t, "Value", string(p.Value()), string(value))
	}
	equal(t, "Addr", must[netip.Addr](t)(second.Addr()), addr.Unmap().WithZone(""))
	if _, ok := ps.Next(); ok || ps.Err() != nil {
		t.Fatalf("a fourth parameter, %v", ps.Err())
	}
}

// control covers chunks of opaque octets and of single numbers.
func control(t *testing.T, v values) {
	n, code, info, bit := v.n[0], uint16(v.n[1]), v.b[:min(len(v.b), 60000)], v.flags&1 != 0
	h := must[wire.Heartbeat](t)(wire.AsHeartbeat(read(t, wire.AppendHeartbeat(nil, info))))
	equal(t, "Info", string(h.Info()), string(info))
	h = must[wire.Heartbeat](t)(wire.AsHeartbeat(read(t, wire.AppendHeartbeatAck(nil, h.Info()))))
	equal(t, "Info", string(h.Info()), string(info))
	k := must[wire.CookieEcho](t)(wire.AsCookieEcho(read(t, wire.AppendCookieEcho(nil, info))))
	equal(t, "Cookie", string(k.Cookie()), string(info))

	b := wire.AppendCause(wire.AppendAbort(nil, bit), wire.CauseCode(code), info)
	a := must[wire.Abort](t)(wire.AsAbort(read(t, wire.CloseChunk(b, 0))))
	equal(t, "T", a.T(), bit)
	causes := a.Causes()
	c, ok := causes.Next()
	if !ok {
		t.Fatal(causes.Err())
	}
	equal(t, "Code", c.Code(), wire.CauseCode(code))
	equal(t, "Info", string(c.Info()), string(info))

	s := must[wire.Shutdown](t)(wire.AsShutdown(read(t, wire.AppendShutdown(nil, wire.TSN(n)))))
	equal(t, "CumTSN", s.CumTSN(), wire.TSN(n))
	done := must[wire.ShutdownComplete](t)(wire.AsShutdownComplete(read(t, wire.AppendShutdownComplete(nil, bit))))
	equal(t, "T", done.T(), bit)
	e := must[wire.ECNE](t)(wire.AsECNE(read(t, wire.AppendECNE(nil, wire.TSN(n)))))
	equal(t, "TSN", e.TSN(), wire.TSN(n))
	w := must[wire.CWR](t)(wire.AsCWR(read(t, wire.AppendCWR(nil, wire.TSN(n)))))
	equal(t, "TSN", w.TSN(), wire.TSN(n))
	must[wire.Pad](t)(wire.AsPad(read(t, wire.AppendPad(nil, int(int32(n))%70000))))
	auth := must[wire.Auth](t)(wire.AsAuth(read(t, wire.AppendAuth(nil, code, wire.HMACID(n)))))
	equal(t, "KeyID", auth.KeyID(), code)
	equal(t, "HMACID", auth.HMACID(), wire.HMACID(n))
}

func reconfig(t *testing.T, v values) {
	request, response, tsn, count, list := v.n[0], v.n[1], v.n[2], uint16(v.n[3]), v.b
	var streams []wire.StreamID
	for ; len(list) >= 2 && len(streams) < 16000; list = list[2:] {
		streams = append(streams, wire.StreamID(binary.BigEndian.Uint16(list)))
	}
	sameStreams := func(l wire.Uint16List) {
		t.Helper()
		equal(t, "streams", l.Len(), len(streams))
		for i, s := range streams {
			equal(t, "stream", wire.StreamID(l.At(i)), s)
		}
	}
	pair := func(b []byte) (wire.Param, wire.Param) {
		t.Helper()
		ps := must[wire.Reconfig](t)(wire.AsReconfig(read(t, wire.CloseChunk(b, 0)))).Params()
		first, _ := ps.Next()
		second, _ := ps.Next()
		return first, second
	}

	b := wire.AppendOutgoingReset(wire.AppendReconfig(nil), request, response, wire.TSN(tsn), streams)
	p, q := pair(wire.AppendIncomingReset(b, request, streams))
	out := must[wire.OutgoingReset](t)(wire.AsOutgoingReset(p))
	equal(t, "RequestSeq", out.RequestSeq(), request)
	equal(t, "ResponseSeq", out.ResponseSeq(), response)
	equal(t, "LastTSN", out.LastTSN(), wire.TSN(tsn))
	sameStreams(out.Streams())
	in := must[wire.IncomingReset](t)(wire.AsIncomingReset(q))
	equal(t, "RequestSeq", in.RequestSeq(), request)
	sameStreams(in.Streams())

	b = wire.AppendReconfigResponse(wire.AppendReconfig(nil), response, wire.ReconfigResult(request))
	p, q = pair(wire.AppendTSNResetResponse(b, response, wire.ReconfigResult(request), wire.TSN(tsn),
		wire.TSN(request)))
	for _, r := range []wire.Param{p, q} {
		got := must[wire.ReconfigResponse](t)(wire.AsReconfigResponse(r))
		equal(t, "ResponseSeq", got.ResponseSeq(), response)
		equal(t, "Result", got.Result(), wire.ReconfigResult(request))
	}
	sender, receiver, _ := wire.ReconfigResponse(q).NextTSNs()
	equal(t, "Sender's Next TSN", sender, wire.TSN(tsn))
	equal(t, "Receiver's Next TSN", receiver, wire.TSN(request))

	b = wire.AppendAddStreams(wire.AppendReconfig(nil), wire.ParamAddOutStreams, request, count)
	p, q = pair(wire.AppendAddStreams(b, wire.ParamAddInStreams, request, count))
	for _, r := range []wire.Param{p, q} {
		got := must[wire.AddStreams](t)(wire.AsAddStreams(r))
		equal(t, "RequestSeq", got.RequestSeq(), request)
		equal(t, "Count", got.Count(), count)
	}
	p, _ = pair(wire.AppendTSNReset(wire.AppendReconfig(nil), request))
	equal(t, "TSNResetSeq", must[uint32](t)(p.TSNResetSeq()), request)
}

func asconf(t *testing.T, v values) {
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
	a := must[wire.Asconf](t)(wire.AsAsconf(read(t, wire.CloseChunk(b, 0))))
	equal(t, "Seq", a.Seq(), seq)
	equal(t, "Addr", a.Addr(), addr)
	ps := a.Params()
	for _, pt := range []wire.ParamType{wire.ParamAddIP, wire.ParamDeleteIP, wire.ParamSetPrimary} {
		p, _ := ps.Next()
		r := must[wire.AddrRequest](t)(wire.AsAddrRequest(p))
		equal(t, "Type", r.Type(), pt)
		equal(t, "CorrelationID", r.CorrelationID(), id)
		equal(t, "Addr", r.Addr(), addr)
	}

	b = wire.AppendSuccessIndication(wire.AppendAsconfAck(nil, seq), id)
	start := len(b)
	b = wire.AppendCause(wire.AppendErrorIndication(b, id), wire.CauseCode(code), info)
	b = wire.CloseChunk(wire.CloseParam(b, start), 0)
	ack := must[wire.AsconfAck](t)(wire.AsAsconfAck(read(t, b)))
	equal(t, "Seq", ack.Seq(), seq)
	ps = ack.Params()
	for _, success := range []bool{true, false} {
		p, _ := ps.Next()
		r := must[wire.AddrResponse](t)(wire.AsAddrResponse(p))
		equal(t, "Success", r.Success(), success)
		equal(t, "CorrelationID", r.CorrelationID(), id)
		causes := r.Causes()
		c, ok := causes.Next()
		if ok == success {
			t.Fatalf("success %v has cause %x", success, c)
		}
		if ok {
			equal(t, "Code", c.Code(), wire.CauseCode(code))
			equal(t, "Info", string(c.Info()), string(info))
		}
	}
}

// checksum cuts a packet at any two places: the checksum of the pieces is that of the whole, the
// packet that carries it is accepted, and any one octet changed is noticed.
func checksum(t *testing.T, v values) {
	chunks, x, y, at, change := v.b, uint16(v.n[0]), uint16(v.n[1]), uint16(v.n[2]), v.flags
	b := append(wire.AppendHeader(nil, 5000, 6000, 1), chunks...)
	first := wire.CommonHeaderLen + int(x)%(len(chunks)+1)
	second := first + int(y)%(len(b)-first+1)
	sum := wire.Checksum([][]byte{b[:first], b[first:second], b[second:]})
	equal(t, "checksum of the pieces", sum, wire.ChecksumBytes(b))
	wire.PutChecksum(b, sum)
	p := wire.Packet(b)
	equal(t, "ChecksumOK", p.ChecksumOK(), true)
	b[int(at)%len(b)] ^= change
	equal(t, "ChecksumOK after a change", p.ChecksumOK(), change == 0)
}
