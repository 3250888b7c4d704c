package main

import (
	"encoding/binary"
	"fmt"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// message is one message that was sent: what Wireshark must show of it, by the names of its fields.
type message struct {
	what    string
	numbers map[string]uint64
	octets  map[string][]byte
	payload []byte // the user's octets, or private data; of all segments together

	header    []byte          // DDP header, if it is one segment
	request   []byte          // Read or Atomic Request Header
	terminate rdmap.Terminate // of a Terminate Message
}

// Function codes of session control messages.
const (
	fnInitiate         = 1
	fnAccept           = 2
	fnReject           = 3
	fnTerminate        = 4
	fnEnhancedInitiate = 5
	fnEnhancedAccept   = 6
	fnEnhancedReject   = 7
)

func controlMessage(fn byte, private []byte) message {
	return message{what: fmt.Sprintf("session control %d", fn), payload: private,
		numbers: map[string]uint64{"rddp.function": uint64(fn), "rddp.private.length": uint64(len(private))}}
}

func enhancedControl(fn byte, s llp.Setup, private []byte) message {
	m := controlMessage(fn, private)
	bit := func(rtr llp.RTR) uint64 { return boolToInt(s.RTR&rtr != 0) }
	for name, v := range map[string]uint64{
		"ird": uint64(s.IRD), "ord": uint64(s.ORD), "a": boolToInt(s.PeerToPeer),
		"b": bit(llp.RTRSend), "c": bit(llp.RTRWrite), "d": bit(llp.RTRRead),
	} {
		m.numbers["rddp.enhanced."+name] = v
	}
	return m
}

func boolToInt(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// taggedMessage has the fields of a tagged message. STag and TO of one without payload mean
// nothing: any will do.
func taggedMessage(op rdmap.Opcode, stag ddp.STag, to uint64, payload []byte) message {
	m := message{what: op.String(), payload: payload, header: make([]byte, ddp.TaggedHeaderLen),
		numbers: map[string]uint64{"iwarp_ddp.tagged_flag": 1, "iwarp_rdma.opcode": uint64(op)}}
	ddp.Tagged{Last: true, Rsvd: rdmap.Control(op), STag: stag, TO: to}.Put(m.header)
	if len(payload) > 0 {
		m.numbers["iwarp_ddp.stag"] = uint64(stag)
		m.numbers["iwarp_ddp.tagged_offset"] = to
	}
	return m
}

func writeMessage(stag ddp.STag, to uint64, payload []byte) message {
	return taggedMessage(rdmap.OpWrite, stag, to, payload)
}

func readResponse(stag ddp.STag, to uint64, payload []byte) message {
	return taggedMessage(rdmap.OpReadResponse, stag, to, payload)
}

func untaggedMessage(op rdmap.Opcode, qn, msn uint32, inv ddp.STag) message {
	rsvd := [5]byte{rdmap.Control(op)}
	binary.BigEndian.PutUint32(rsvd[1:], uint32(inv))
	m := message{what: op.String(), header: make([]byte, ddp.UntaggedHeaderLen),
		numbers: map[string]uint64{"iwarp_ddp.tagged_flag": 0, "iwarp_rdma.opcode": uint64(op),
			"iwarp_ddp.qn": uint64(qn), "iwarp_ddp.msn": uint64(msn), "iwarp_ddp.mo": 0},
		octets: map[string][]byte{"iwarp_ddp.rsvdulp": rsvd[:]}}
	ddp.Untagged{Last: true, Rsvd: rsvd, QN: qn, MSN: msn}.Put(m.header)
	return m
}

func sendMessage(op rdmap.Opcode, msn uint32, inv ddp.STag, payload []byte) message {
	m := untaggedMessage(op, rdmap.QueueSend, msn, inv)
	m.payload = payload
	if inv != 0 {
		m.numbers["iwarp_rdma.inval_stag"] = uint64(inv)
	}
	return m
}

func readRequest(msn uint32, sink ddp.STag, sinkTO uint64, size uint32, src ddp.STag, srcTO uint64) message {
	m := untaggedMessage(rdmap.OpReadRequest, rdmap.QueueReadRequest, msn, 0)
	for name, v := range map[string]uint64{
		"sinkstag": uint64(sink), "sinkto": sinkTO, "rdmardsz": uint64(size), "srcstag": uint64(src), "srcto": srcTO,
	} {
		m.numbers["iwarp_rdma."+name] = v
	}
	var b [rdmap.ReadRequestLen]byte
	r := rdmap.ReadRequest{SinkSTag: sink, SinkTO: sinkTO, Size: size, SrcSTag: src, SrcTO: srcTO}
	r.Put(&b)
	m.request = b[:]
	return m
}

// immediateMessage is Immediate Data, which Wireshark 4.0 knows no name for: rddp.lua shows it.
func immediateMessage(op rdmap.Opcode, msn uint32, v uint64) message {
	m := untaggedMessage(op, rdmap.QueueSend, msn, 0)
	m.numbers["rddp.immediate"] = v
	return m
}

func atomicRequest(msn uint32, stag ddp.STag, to uint64, op rdmap.AtomicOp) message {
	m := untaggedMessage(rdmap.OpAtomicRequest, rdmap.QueueReadRequest, msn, 0)
	fields := map[string]uint64{"opcode": 0, "remote_stag": uint64(stag), "remote_tagged_offset": to,
		"add_data": op.Data, "add_mask": op.Mask, "compare_data": 0, "compare_mask": 1<<64 - 1}
	if op.Swap {
		fields = map[string]uint64{"opcode": 2, "remote_stag": uint64(stag), "remote_tagged_offset": to,
			"swap_data": op.Data, "swap_mask": op.Mask, "compare_data": op.Compare, "compare_mask": op.CompareMask}
	}
	for name, v := range fields {
		m.numbers["iwarp_rdma.atomic."+name] = v
	}
	m.request = make([]byte, rdmap.AtomicRequestLen)
	return m
}

func atomicResponse(msn uint32, original uint64) message {
	m := untaggedMessage(rdmap.OpAtomicResponse, rdmap.QueueAtomicResponse, msn, 0)
	m.numbers["iwarp_rdma.atomic.original_remote_data_value"] = original
	return m
}

// terminateMessage is a Terminate Message about culprit, a message of one segment. What it quotes
// is what RFC 5040 Figure 10 says for its layer and type.
func terminateMessage(t rdmap.Terminate, culprit *message) message {
	m := untaggedMessage(rdmap.OpTerminate, rdmap.QueueTerminate, 1, 0)
	m.what += fmt.Sprintf(" %d/%d/%#02x", t.Layer, t.EType, t.Code)
	local := t.EType == 0 // of all layers: local catastrophic errors, and those of setup
	if !local {
		t.HasLength, t.HasDDP = true, true
		t.SegLength = uint16(len(culprit.header) + len(culprit.payload))
		copy(t.DDP[:], culprit.header)
		t.SegLength += uint16(len(culprit.request))
		if t.HasRDMA {
			copy(t.RDMA[:], culprit.request)
		}
	}
	m.terminate = t
	for name, v := range map[string]uint64{
		"term_layer": uint64(t.Layer), "term_hdrct_m": boolToInt(t.HasLength), "hdrct_d": boolToInt(t.HasDDP),
		"hdrct_r":   boolToInt(t.HasRDMA),
		"term_rsvd": 0,
	} {
		m.numbers["iwarp_rdma."+name] = v
	}
	etype, code := "_rdma", "_rdma"
	switch {
	case t.Layer == rdmap.LayerDDP && t.EType == rdmap.EType(ddp.TypeTagged):
		etype, code = "_ddp", "_ddp_tagged"
	case t.Layer == rdmap.LayerDDP && t.EType == rdmap.EType(ddp.TypeUntagged):
		etype, code = "_ddp", "_ddp_untagged"
	case t.Layer == rdmap.LayerDDP:
		etype, code = "_ddp", ""
	case t.Layer == rdmap.LayerLLP:
		etype, code = "_llp", "_llp"
	case t.EType == rdmap.LocalCatastrophic: // whose code has no meaning
		code = ""
	}
	m.numbers["iwarp_rdma.term_etype"+etype] = uint64(t.EType)
	m.numbers["iwarp_rdma.term_errcode"+code] = uint64(t.Code)
	return m
}
