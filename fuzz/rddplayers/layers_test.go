package rddplayers

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/fuzz/corpus"
	"github.com/rddp-go/rddp/rddplayers"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp/wire"
)

const segment, control = layers.SCTPPayloadDDPSegment, layers.SCTPPayloadDDPStream

// FuzzLayers decodes a message without the safety net of gopacket: nothing may panic, what the stack makes of the same
// octets is the same, and they are serialized again as they were.
//
//fuzz:covers ./rddplayers
func FuzzLayers(f *testing.F) {
	for op := range byte(16) {
		f.Add(uint32(segment), append([]byte{0, 1, 0xC1, 0x40 | op}, make([]byte, 20)...))
		f.Add(uint32(segment), append([]byte{0, 1, 0x41, 0x40 | op}, make([]byte, 80)...))
		f.Add(uint32(control), append([]byte{0, 1, 0, op}, make([]byte, 9)...))
	}
	term := rdmap.Terminate{HasLength: true, HasDDP: true, HasRDMA: true}
	f.Add(uint32(segment), append([]byte{0, 1, 0x41, 0x47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0}, term.Append(nil)...))
	for _, b := range corpus.Packets() {
		p, err := wire.ParsePacket(b)
		if err != nil {
			f.Fatal(err)
		}
		it := p.Chunks()
		for c, ok := it.Next(); ok; c, ok = it.Next() {
			if d, err := wire.AsData(c); err == nil && d.B() && d.E() && (d.PPID() == uint32(segment) || d.PPID() == uint32(control)) {
				f.Add(d.PPID(), d.Payload())
			}
		}
	}
	f.Fuzz(func(t *testing.T, ppid uint32, message []byte) {
		first := rddplayers.LayerTypeSegmentChunk
		if ppid == control {
			first = rddplayers.LayerTypeControl
		}
		p := gopacket.NewPacket(message, first, gopacket.DecodeOptions{SkipDecodeRecovery: true})
		d, _ := p.Layer(rddplayers.LayerTypeDDP).(*rddplayers.DDP)
		if d != nil {
			sameDDP(t, d, message[2:])
		}
		if p.ErrorLayer() != nil {
			return
		}
		if d != nil {
			sameRDMAP(t, d, p.Layer(rddplayers.LayerTypeRDMAP).(*rddplayers.RDMAP))
		}
		var list []gopacket.SerializableLayer
		for _, l := range p.Layers() {
			list = append(list, l.(gopacket.SerializableLayer))
		}
		b := gopacket.NewSerializeBuffer()
		if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{}, list...); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), message) {
			t.Fatalf("serialized %x\nfrom       %x", b.Bytes(), message)
		}
	})
}

func equal[T comparable](t *testing.T, what string, ours, theirs T) {
	t.Helper()
	if ours != theirs {
		t.Fatalf("%s: the stack says %v, the layers %v", what, ours, theirs)
	}
}

func sameDDP(t *testing.T, d *rddplayers.DDP, seg []byte) {
	c := ddp.Control(seg[0])
	equal(t, "T", c.Tagged(), d.Tagged)
	equal(t, "L", c.Last(), d.Last)
	equal(t, "DV", c.Version(), d.Version)
	if c.Tagged() {
		v := ddp.TaggedView(seg)
		equal(t, "RsvdULP", v.RsvdULP(), d.RsvdULP[0])
		equal(t, "STag", uint32(v.STag()), d.STag)
		equal(t, "TO", v.TO(), d.TO)
		equal(t, "payload", string(v.Payload()), string(d.Payload))
		return
	}
	v := ddp.UntaggedView(seg)
	equal(t, "RsvdULP", v.RsvdULP(), [5]byte(d.RsvdULP))
	equal(t, "QN", v.QN(), d.QN)
	equal(t, "MSN", v.MSN(), d.MSN)
	equal(t, "MO", v.MO(), d.MO)
	equal(t, "payload", string(v.Payload()), string(d.Payload))
}

func sameRDMAP(t *testing.T, d *rddplayers.DDP, r *rddplayers.RDMAP) {
	version, op := rdmap.SplitControl(d.RsvdULP[0])
	equal(t, "RV", version, r.Version)
	equal(t, "opcode", uint8(op), uint8(r.Opcode))
	if d.Tagged {
		return
	}
	equal(t, "Invalidate STag", binary.BigEndian.Uint32(d.RsvdULP[1:]), r.InvalidateSTag)
	switch op {
	case rdmap.OpReadRequest:
		q := rdmap.ParseReadRequest((*[rdmap.ReadRequestLen]byte)(d.Payload))
		equal(t, "Read Request", q, rdmap.ReadRequest{SinkSTag: ddp.STag(r.ReadRequest.SinkSTag), SinkTO: r.ReadRequest.SinkTO,
			Size: r.ReadRequest.Size, SrcSTag: ddp.STag(r.ReadRequest.SrcSTag), SrcTO: r.ReadRequest.SrcTO})
	case rdmap.OpAtomicRequest:
		q, ok := rdmap.ParseAtomicRequest((*[rdmap.AtomicRequestLen]byte)(d.Payload))
		a := r.AtomicRequest
		equal(t, "known operation", ok, a.Operation == 0 || a.Operation == 2)
		equal(t, "Request Identifier", q.ID, a.ID)
		equal(t, "Remote STag", uint32(q.STag), a.STag)
		equal(t, "Remote TO", q.TO, a.TO)
		equal(t, "Data", q.Op.Data, a.Data)
		equal(t, "Mask", q.Op.Mask, a.Mask)
		if ok && q.Op.Swap {
			equal(t, "Compare Data", q.Op.Compare, a.Compare)
			equal(t, "Compare Mask", q.Op.CompareMask, a.CompareMask)
		}
	case rdmap.OpAtomicResponse:
		q := rdmap.ParseAtomicResponse((*[rdmap.AtomicResponseLen]byte)(d.Payload))
		equal(t, "Atomic Response", q, rdmap.AtomicResponse{ID: r.AtomicResponse.ID, Original: r.AtomicResponse.Original})
	case rdmap.OpImmediate, rdmap.OpImmediateSE:
		equal(t, "Immediate Data", binary.BigEndian.Uint64(d.Payload), *r.Immediate)
	case rdmap.OpTerminate:
		sameTerminate(t, d, r.Terminate)
	}
}

func sameTerminate(t *testing.T, d *rddplayers.DDP, theirs *rddplayers.Terminate) {
	q, err := rdmap.ParseTerminate(d.Payload)
	if err != nil {
		t.Fatalf("the layers accept a Terminate that the stack does not: %x", d.Payload)
	}
	other := rdmap.Terminate{Layer: rdmap.Layer(theirs.Layer), EType: rdmap.EType(theirs.Type), Code: theirs.Code,
		HasLength: theirs.HasLength, HasDDP: theirs.HasDDP, HasRDMA: theirs.HasRDMA, SegLength: theirs.SegmentLength}
	copy(other.DDP[:], theirs.DDPHeader)
	copy(other.RDMA[:], theirs.RDMAPHeader)
	equal(t, "Terminate", q, other)
}
