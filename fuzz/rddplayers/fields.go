package rddplayers

import (
	"encoding/binary"
	"testing"

	"github.com/google/gopacket/layers"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rawio/rddplayers"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

const segment, control = layers.SCTPPayloadDDPSegment, layers.SCTPPayloadDDPStream

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
		equal(t, "Read Request", q, rdmap.ReadRequest{SinkSTag: ddp.STag(r.ReadRequest.SinkSTag),
			SinkTO: r.ReadRequest.SinkTO,
			Size:   r.ReadRequest.Size, SrcSTag: ddp.STag(r.ReadRequest.SrcSTag), SrcTO: r.ReadRequest.SrcTO})
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
		equal(t, "Atomic Response", q, rdmap.AtomicResponse{ID: r.AtomicResponse.ID,
			Original: r.AtomicResponse.Original})
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
