package sctp

import (
	"bytes"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rddp-go/rddp/fuzz/corpus"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// FuzzAgainstGopacket compares our decoder with gopacket's on every packet that both accept.
//
//fuzz:covers ./sctp/wire
func FuzzAgainstGopacket(f *testing.F) {
	add := func(chunks ...byte) {
		f.Add(append(wire.AppendHeader(nil, 1, 2, 3), chunks...))
	}
	add(wire.AppendInit(nil, wire.ChunkInit, wire.InitFields{Tag: 7, ARwnd: 9000, OutStreams: 1, InStreams: 1,
		TSN: 5})...)
	add(wire.AppendSack(nil, wire.SackFields{CumTSN: 1, ARwnd: 100, Gaps: []wire.GapBlock{{Start: 2, End: 3}},
		Dups: []wire.TSN{9}})...)
	add(append(wire.AppendDataHeader(nil, wire.DataFields{Flags: wire.FlagB | wire.FlagE, TSN: 4, Stream: 2, SSN: 1,
		PPID: 16, PayloadLen: 4}), 1, 2, 3, 4)...)
	add(wire.AppendShutdown(nil, 5)...)
	for _, b := range corpus.Packets() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		ours, err := wire.ParsePacket(b)
		if err != nil {
			return
		}
		theirs := gopacket.NewPacket(b, layers.LayerTypeSCTP, gopacket.DecodeOptions{NoCopy: true})
		if theirs.ErrorLayer() != nil {
			return
		}
		var s *layers.SCTP
		var list []gopacket.Layer
		for _, l := range theirs.Layers() {
			if h, ok := l.(*layers.SCTP); ok {
				s = h
			} else {
				list = append(list, l)
			}
		}
		if s == nil {
			return
		}
		must.That(t, uint16(s.SrcPort) == ours.SrcPort() && uint16(s.DstPort) == ours.DstPort() &&
			s.VerificationTag == ours.VTag(), "header: ours %d %d %08x, theirs %+v", ours.SrcPort(), ours.DstPort(),
			ours.VTag(), s)
		it := ours.Chunks()
		for _, l := range list {
			c, ok := it.Next()
			if !ok {
				return // ours is stricter about lengths
			}
			compareChunk(t, c, l)
		}
	})
}

func compareChunk(t *testing.T, c wire.Chunk, l gopacket.Layer) {
	equal := func(what string, ours, theirs uint32) {
		t.Helper()
		must.That(t, ours == theirs, "%v %s: ours %d, theirs %d", c.Type(), what, ours, theirs)
	}
	header := func(theirs *layers.SCTPChunk) {
		t.Helper()
		equal("type", uint32(c.Type()), uint32(theirs.Type))
		equal("flags", uint32(c.Flags()), uint32(theirs.Flags))
		equal("length", uint32(len(c)), uint32(theirs.Length))
	}
	switch l := l.(type) {
	case *layers.SCTPData:
		header(&l.SCTPChunk)
		d, err := wire.AsData(c)
		if err != nil {
			return
		}
		equal("TSN", uint32(d.TSN()), l.TSN)
		equal("stream", uint32(d.Stream()), uint32(l.StreamId))
		equal("SSN", uint32(d.SSN()), uint32(l.StreamSequence))
		equal("PPID", d.PPID(), uint32(l.PayloadProtocol))
		must.That(t, d.U() == l.Unordered && d.B() == l.BeginFragment && d.E() == l.EndFragment,
			"flags %x are %v %v %v to them", d.Flags(), l.Unordered, l.BeginFragment, l.EndFragment)
		// It takes whatever follows a DATA chunk for its payload, short of the padding.
		n := min(len(d.Payload()), len(l.LayerPayload()))
		must.That(t, bytes.Equal(d.Payload()[:n], l.LayerPayload()[:n]), "payload: ours %x, theirs %x", d.Payload(),
			l.LayerPayload())
	case *layers.SCTPInit:
		header(&l.SCTPChunk)
		i, err := wire.AsInit(c)
		if err != nil {
			return
		}
		equal("tag", i.Tag(), l.InitiateTag)
		equal("a_rwnd", i.ARwnd(), l.AdvertisedReceiverWindowCredit)
		equal("OS", uint32(i.OutStreams()), uint32(l.OutboundStreams))
		equal("MIS", uint32(i.InStreams()), uint32(l.InboundStreams))
		equal("TSN", uint32(i.TSN()), l.InitialTSN)
		ps := i.Params()
		for _, q := range l.Parameters {
			p, ok := ps.Next()
			if !ok {
				break
			}
			compareValue(t, uint16(p.Type()), p.Value(), layers.SCTPParameter(q))
		}
	case *layers.SCTPSack:
		header(&l.SCTPChunk)
		k, err := wire.AsSack(c)
		if err != nil {
			return
		}
		equal("TSN", uint32(k.CumTSN()), l.CumulativeTSNAck)
		equal("a_rwnd", k.ARwnd(), l.AdvertisedReceiverWindowCredit)
		equal("gaps", uint32(k.NumGaps()), uint32(l.NumGapACKs))
		equal("duplicates", uint32(k.NumDups()), uint32(l.NumDuplicateTSNs))
	case *layers.SCTPHeartbeat:
		header(&l.SCTPChunk)
		if h, err := wire.AsHeartbeat(c); err == nil && len(l.Parameters) > 0 &&
			int(l.Parameters[0].Length) == len(c)-wire.ChunkHeaderLen {
			q := l.Parameters[0] // the one that there is to be
			must.Slice(t, "heartbeat of theirs", h.Info(), q.Value)
		}
	case *layers.SCTPError:
		header(&l.SCTPChunk)
		var causes wire.Causes
		if a, err := wire.AsAbort(c); err == nil {
			causes = a.Causes()
		} else if e, err := wire.AsError(c); err == nil {
			causes = e.Causes()
		}
		for _, q := range l.Parameters {
			p, ok := causes.Next()
			if !ok {
				break
			}
			compareValue(t, uint16(p.Code()), p.Info(), layers.SCTPParameter(q))
		}
	case *layers.SCTPCookieEcho:
		header(&l.SCTPChunk)
		if k, err := wire.AsCookieEcho(c); err == nil && !bytes.Equal(k.Cookie(), l.Cookie) {
			t.Fatalf("cookie: ours %x, theirs %x", k.Cookie(), l.Cookie)
		}
	case *layers.SCTPShutdown:
		header(&l.SCTPChunk)
		s, err := wire.AsShutdown(c)
		if err != nil {
			return
		}
		equal("TSN", uint32(s.CumTSN()), l.CumulativeTSNAck)
	case *layers.SCTPShutdownAck:
		header(&l.SCTPChunk)
	case *layers.SCTPEmptyLayer:
		header(&l.SCTPChunk)
	}
}

// compareValue compares a parameter or an error cause.
func compareValue(t *testing.T, typ uint16, value []byte, theirs layers.SCTPParameter) {
	t.Helper()
	must.That(t, typ == theirs.Type && len(value)+4 == int(theirs.Length) && bytes.Equal(value, theirs.Value),
		"ours %d %x, theirs %+v", typ, value, theirs)
}
