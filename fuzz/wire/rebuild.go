package wire

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/sctp/wire"
)

// rebuildChunk encodes what it has read of a well-formed chunk of an extension: the octets are those
// of the chunk, but for reserved bits and padding, which are sent as 0.
func rebuildChunk(t *testing.T, c wire.Chunk) {
	t.Helper()
	if int(binary.BigEndian.Uint16(c[2:])) != len(c) {
		return // a view over other octets than those of the chunk
	}
	want := slices.Clone(c)
	var got []byte
	switch c.Type() {
	case wire.ChunkForwardTSN:
		f, err := wire.AsForwardTSN(c)
		if err != nil {
			return
		}
		var skips []wire.Skip
		for i := range f.NumSkips() {
			skips = append(skips, f.Skip(i))
		}
		want[1] = 0
		got = wire.AppendForwardTSN(nil, f.NewCumTSN(), skips)
	case wire.ChunkIForwardTSN:
		f, err := wire.AsIForwardTSN(c)
		if err != nil {
			return
		}
		var skips []wire.ISkip
		for i := range f.NumSkips() {
			skips = append(skips, f.Skip(i))
			want[8+8*i+2], want[8+8*i+3] = 0, want[8+8*i+3]&1
		}
		want[1] = 0
		got = wire.AppendIForwardTSN(nil, f.NewCumTSN(), skips)
	case wire.ChunkIData:
		d, err := wire.AsIData(c)
		if err != nil {
			return
		}
		ppid, _ := d.PPID()
		want[1], want[10], want[11] = want[1]&0x0f, 0, 0
		got = wire.AppendIDataHeader(nil, wire.IDataFields{Flags: d.Flags(), TSN: d.TSN(), Stream: d.Stream(),
			MID: d.MID(), PPID: ppid, FSN: d.FSN(), PayloadLen: len(d.Payload())})
		got = append(got, d.Payload()...)
	case wire.ChunkReconfig:
		rebuildReconfig(t, c)
		return
	default:
		return
	}
	if !bytes.Equal(got[:min(len(got), len(want))], want) {
		t.Fatalf("%x is encoded as %x", want, got)
	}
}

// rebuildReconfig does so with each parameter that is well-formed by itself.
func rebuildReconfig(t *testing.T, c wire.Chunk) {
	t.Helper()
	r, err := wire.AsReconfig(c)
	if err != nil {
		return
	}
	ps := r.Params()
	for p, ok := ps.Next(); ok; p, ok = ps.Next() {
		want := slices.Clone(p)
		got := rebuildParam(p)
		if got == nil {
			continue
		}
		if p.Type() == wire.ParamAddOutStreams || p.Type() == wire.ParamAddInStreams {
			want = append(want[:min(10, len(want))], 0, 0)
		}
		if !bytes.Equal(got[:min(len(p), len(got))], want) {
			t.Fatalf("%x is encoded as %x", want, got)
		}
	}
}

func rebuildParam(p wire.Param) []byte {
	if out, err := wire.AsOutgoingReset(p); err == nil {
		return wire.AppendOutgoingReset(nil, out.RequestSeq(), out.ResponseSeq(), out.LastTSN(),
			streamIDs(out.Streams()))
	}
	if in, err := wire.AsIncomingReset(p); err == nil {
		return wire.AppendIncomingReset(nil, in.RequestSeq(), streamIDs(in.Streams()))
	}
	if seq, err := p.TSNResetSeq(); err == nil {
		return wire.AppendTSNReset(nil, seq)
	}
	if a, err := wire.AsAddStreams(p); err == nil {
		return wire.AppendAddStreams(nil, a.Type(), a.RequestSeq(), a.Count())
	}
	if r, err := wire.AsReconfigResponse(p); err == nil {
		if sender, receiver, ok := r.NextTSNs(); ok {
			return wire.AppendTSNResetResponse(nil, r.ResponseSeq(), r.Result(), sender, receiver)
		}
		return wire.AppendReconfigResponse(nil, r.ResponseSeq(), r.Result())
	}
	return nil
}

func streamIDs(l wire.Uint16List) (ids []wire.StreamID) {
	for i := range l.Len() {
		ids = append(ids, wire.StreamID(l.At(i)))
	}
	return ids
}
