package wire

import (
	"bytes"
	"testing"

	"github.com/rddp-go/rddp/sctp/wire"
)

// visitChunk makes every view of c that it can, and calls every getter.
func visitChunk(t *testing.T, c wire.Chunk) {
	t.Helper()
	_ = c.Type().String()
	_, _ = c.Type().UnknownAction()
	_ = c.Flags()
	checkWithin(t, c, c.Value())
	if d, err := wire.AsData(c); err == nil {
		_, _, _, _, _ = d.TSN(), d.Stream(), d.SSN(), d.PPID(), d.Flags()
		_, _, _, _ = d.I(), d.U(), d.B(), d.E()
		checkWithin(t, c, d.Payload())
	}
	if d, err := wire.AsIData(c); err == nil {
		_, _, _, _, _ = d.TSN(), d.Stream(), d.MID(), d.FSN(), d.Flags()
		_, _, _, _ = d.I(), d.U(), d.B(), d.E()
		d.PPID()
		checkWithin(t, c, d.Payload())
	}
	if i, err := wire.AsInit(c); err == nil {
		_, _, _, _, _, _ = i.Type(), i.Tag(), i.ARwnd(), i.OutStreams(), i.InStreams(), i.TSN()
		visitParams(t, c, i.Params())
	}
	if s, err := wire.AsSack(c); err == nil {
		_, _ = s.CumTSN(), s.ARwnd()
		for i := range s.NumGaps() {
			s.Gap(i)
		}
		for i := range s.NumDups() {
			s.Dup(i)
		}
	}
	if h, err := wire.AsHeartbeat(c); err == nil {
		_ = h.Type()
		checkWithin(t, c, h.Info())
	}
	if a, err := wire.AsAbort(c); err == nil {
		a.T()
		visitCauses(t, c, a.Causes())
	}
	if e, err := wire.AsError(c); err == nil {
		visitCauses(t, c, e.Causes())
	}
	visitFixed(c)
	if a, err := wire.AsAuth(c); err == nil {
		_, _ = a.KeyID(), a.HMACID()
		checkWithin(t, c, a.HMAC())
	}
	if d, err := wire.AsDTLS(c); err == nil {
		_ = d.Restart()
		checkWithin(t, c, d.Record())
	}
	if p, err := wire.AsPad(c); err == nil {
		checkWithin(t, c, p.Padding())
	}
	if k, err := wire.AsCookieEcho(c); err == nil {
		checkWithin(t, c, k.Cookie())
	}
	if a, err := wire.AsAsconf(c); err == nil {
		_ = a.Seq()
		if !a.Addr().IsValid() {
			t.Fatal("ASCONF without an address was taken")
		}
		visitParams(t, c, a.Params())
	}
	if a, err := wire.AsAsconfAck(c); err == nil {
		_ = a.Seq()
		visitParams(t, c, a.Params())
	}
	if r, err := wire.AsReconfig(c); err == nil {
		visitParams(t, c, r.Params())
	}
	rebuildChunk(t, c)
}

// visitFixed takes the chunks that hold nothing but numbers.
func visitFixed(c wire.Chunk) {
	if s, err := wire.AsShutdown(c); err == nil {
		s.CumTSN()
	}
	if s, err := wire.AsShutdownComplete(c); err == nil {
		s.T()
	}
	_, _ = wire.AsShutdownAck(c)
	_, _ = wire.AsCookieAck(c)
	if e, err := wire.AsECNE(c); err == nil {
		e.TSN()
	}
	if w, err := wire.AsCWR(c); err == nil {
		w.TSN()
	}
	if f, err := wire.AsForwardTSN(c); err == nil {
		f.NewCumTSN()
		for i := range f.NumSkips() {
			f.Skip(i)
		}
	}
	if f, err := wire.AsIForwardTSN(c); err == nil {
		f.NewCumTSN()
		for i := range f.NumSkips() {
			f.Skip(i)
		}
	}
}

func visitParams(t *testing.T, outer []byte, ps wire.Params) {
	t.Helper()
	total := 0
	for p, ok := ps.Next(); ok; p, ok = ps.Next() {
		if total += len(p); total > len(outer) {
			t.Fatalf("parameters of %d octets in %d", total, len(outer))
		}
		checkWithin(t, outer, p)
		visitParam(t, p)
	}
	_ = ps.Err()
}

// visitParam reads p as every parameter there is, whatever its type says.
func visitParam(t *testing.T, p wire.Param) {
	t.Helper()
	if len(p) >= 4 {
		_ = p.Type().String()
		_, _ = p.Type().UnknownAction()
		checkWithin(t, p, p.Value())
	}
	_, _ = p.Addr()
	_, _ = p.CookieIncrement()
	_, _ = p.AdaptationIndication()
	_, _ = p.TSNResetSeq()
	if k, err := p.KeyManagement(); err == nil {
		checkWithin(t, p, k.Methods)
	}
	if m, err := p.ZeroChecksumMethod(); err == nil {
		_ = m.String()
	}
	_, _ = p.SupportsAddrType(wire.ParamIPv6)
	_, _ = p.ListsChunk(wire.ChunkAsconf)
	if ids, err := p.HMACIDs(); err == nil {
		visitList(t, p, ids)
	}
	if r, err := wire.AsAddrRequest(p); err == nil {
		_, _ = r.Type(), r.CorrelationID()
		if !r.Addr().IsValid() {
			t.Fatal("a request without an address was taken")
		}
	}
	if r, err := wire.AsAddrResponse(p); err == nil {
		_, _ = r.Success(), r.CorrelationID()
		visitCauses(t, p, r.Causes())
	}
	if r, err := wire.AsOutgoingReset(p); err == nil {
		_, _, _ = r.RequestSeq(), r.ResponseSeq(), r.LastTSN()
		visitList(t, p, r.Streams())
	}
	if r, err := wire.AsIncomingReset(p); err == nil {
		_ = r.RequestSeq()
		visitList(t, p, r.Streams())
	}
	if a, err := wire.AsAddStreams(p); err == nil {
		_, _, _ = a.Type(), a.RequestSeq(), a.Count()
	}
	if r, err := wire.AsReconfigResponse(p); err == nil {
		_, _ = r.ResponseSeq(), r.Result().String()
		r.NextTSNs()
	}
}

func visitCauses(t *testing.T, outer []byte, cs wire.Causes) {
	t.Helper()
	total := 0
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		if total += len(c); total > len(outer) {
			t.Fatalf("causes of %d octets in %d", total, len(outer))
		}
		checkWithin(t, outer, c)
		visitCause(t, c)
	}
	_ = cs.Err()
}

// visitCause reads c as every error cause there is. It does not go into parameters that quote
// causes again: those are shorter, and visited as parameters of their own elsewhere.
func visitCause(t *testing.T, c wire.Cause) {
	t.Helper()
	if len(c) >= 4 {
		_ = c.Code().String()
		checkWithin(t, c, c.Info())
		quoted := c.Params()
		for p, ok := quoted.Next(); ok; p, ok = quoted.Next() {
			checkWithin(t, c, p)
		}
		_ = quoted.Err()
	}
	_, _ = c.InvalidStream()
	_, _ = c.Staleness()
	_, _ = c.NoUserData()
	_, _ = c.UnsupportedHMAC()
	if types, err := c.MissingParams(); err == nil {
		visitList(t, c, types)
	}
	if u, err := c.UnrecognizedChunk(); err == nil {
		checkWithin(t, c, u)
		_, _, _ = u.Type(), u.Flags(), u.Value()
	}
}

func visitList(t *testing.T, outer []byte, l wire.Uint16List) {
	t.Helper()
	checkWithin(t, outer, l)
	for i := range l.Len() {
		l.At(i)
	}
}

func visitPacket(t *testing.T, b []byte) {
	p, err := wire.ParsePacket(b)
	if (err == nil) != (len(b) >= wire.CommonHeaderLen) {
		t.Fatalf("%d octets: %v", len(b), err)
	}
	if err != nil {
		return
	}
	_, _, _, _, _ = p.SrcPort(), p.DstPort(), p.VTag(), p.Checksum(), p.ChecksumOK()
	total, chunks, last := wire.CommonHeaderLen, 0, wire.Chunk(nil)
	cs := p.Chunks()
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		if total += len(c); total > len(b) || len(c) < wire.ChunkHeaderLen || cap(c) != len(c) {
			t.Fatalf("chunk of %d octets, capacity %d, makes %d of %d", len(c), cap(c), total, len(b))
		}
		checkWithin(t, b, c)
		visitChunk(t, c)
		chunks, last = chunks+1, c
	}
	if _, ok := cs.Next(); ok {
		t.Fatalf("a chunk after the end: %v", cs.Err())
	}
	d, lone := wire.LoneData(p)
	if want := chunks == 1 && cs.Err() == nil && last.Type() == wire.ChunkData &&
		len(last) > wire.DataHeaderLen; lone != want || lone && !bytes.Equal(d, last) {
		t.Fatalf("one DATA chunk alone: %v, %x", lone, d)
	}
}
