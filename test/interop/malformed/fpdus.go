package main

import (
	"bytes"
	"slices"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/mpa"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// note is what a Send begins with that the other end takes (../verbs).
var note = make([]byte, 16)

// fpduRows are for a server that has accepted. It has posted a few receives of 80 octets.
func fpduRows() []row {
	good := untagged(rdmap.QueueSend, 1, rdmap.OpSend, note)
	const ddpTagged, ddpUntagged = rdmap.EType(ddp.TypeTagged), rdmap.EType(ddp.TypeUntagged)
	crc := fpdu(good)
	crc[len(crc)-1] ^= 1
	list := []row{
		{name: "a CRC that is wrong", fpdus: crc, want: terminatedEither(rdmap.LayerLLP, rdmap.ETypeMPA, mpa.CodeCRC)},
		{name: "an octet that is wrong", fpdus: change(fpdu(good), 21, 'X'),
			want: terminatedEither(rdmap.LayerLLP, rdmap.ETypeMPA, mpa.CodeCRC)},
		{name: "no ULPDU", fpdus: fpdu(nil), fin: true, want: []string{closed}},
		{name: "a ULPDU of less than a header", fpdus: fpdu(good[:10]), fin: true, want: []string{closed}},
		{name: "the end of the stream in an FPDU", fpdus: fpdu(good)[:20], fin: true, want: []string{closed}},
		{name: "a second Request", fpdus: (&mpa.Frame{CRC: true, Revision: mpa.Revision}).Append(nil), fin: true,
			want: slices.Concat([]string{closed},
				terminatedEither(rdmap.LayerRDMA, rdmap.RemoteOperation, rdmap.CodeInvalidVersion))},

		{name: "a version of DDP, untagged", fpdus: fpdu(change(good, 0, good[0]&^3|2)),
			want: terminatedEither(rdmap.LayerDDP, ddpUntagged, ddp.CodeUntaggedVersion)},
		{name: "a version of DDP, tagged", fpdus: fpdu(change(tagged(1, rdmap.OpWrite, note), 0, 0x82)),
			want: terminatedEither(rdmap.LayerDDP, ddpTagged, ddp.CodeTaggedVersion)},
		{name: "queue 5", fpdus: fpdu(untagged(5, 1, rdmap.OpSend, note)),
			want: terminatedEither(rdmap.LayerDDP, ddpUntagged, ddp.CodeInvalidQN)},
		{name: "MSN 2 before MSN 1", fpdus: fpdu(untagged(rdmap.QueueSend, 2, rdmap.OpSend, note)),
			want: terminatedEither(rdmap.LayerDDP, ddpUntagged, ddp.CodeMSNRange)},
		{name: "MSN 1 twice", fpdus: slices.Concat(fpdu(good), fpdu(good)),
			want: terminatedEither(rdmap.LayerDDP, ddpUntagged, ddp.CodeMSNRange)},
		{name: "a first segment with MO 100", fpdus: fpdu(change(good, 17, 100)),
			want: terminatedEither(rdmap.LayerDDP, ddpUntagged, ddp.CodeInvalidMO)},
		{name: "a Send that is longer than its buffer",
			fpdus: fpdu(untagged(rdmap.QueueSend, 1, rdmap.OpSend, make([]byte, 1000))),
			want: slices.Concat(terminatedEither(rdmap.LayerDDP, ddpUntagged, ddp.CodeTooLong),
				terminatedEither(rdmap.LayerDDP, ddpUntagged, ddp.CodeNoBuffer))}, // as siw has it
		{name: "a Write by an STag that nobody gave", fpdus: fpdu(tagged(0x12345678, rdmap.OpWrite, note)),
			want: terminatedEither(rdmap.LayerDDP, ddpTagged, ddp.CodeInvalidSTag)},

		{name: "a version of RDMAP", fpdus: fpdu(change(good, 1, good[1]&^0xc0|0x80)),
			want: terminatedEither(rdmap.LayerRDMA, rdmap.RemoteOperation, rdmap.CodeInvalidVersion)},
		{name: "a reserved opcode", fpdus: fpdu(untagged(rdmap.QueueSend, 1, 15, note)),
			want: terminatedEither(rdmap.LayerRDMA, rdmap.RemoteOperation, rdmap.CodeUnexpectedOpcode)},
		{name: "a Read Response that nobody asked for", fpdus: fpdu(tagged(0x12345678, rdmap.OpReadResponse, note)),
			want: slices.Concat(terminatedEither(rdmap.LayerRDMA, rdmap.RemoteOperation, rdmap.CodeUnexpectedOpcode),
				terminatedEither(rdmap.LayerDDP, rdmap.EType(ddp.TypeLocal), 0))}, // as siw has it
		{name: "a Read by an STag that nobody gave",
			fpdus: fpdu(untagged(rdmap.QueueReadRequest, 1, rdmap.OpReadRequest,
				readRequest(0x12345678))),
			want: terminatedEither(rdmap.LayerRDMA, rdmap.RemoteProtection, rdmap.CodeInvalidSTag)},
		{name: "half a Read Request", fpdus: fpdu(untagged(rdmap.QueueReadRequest, 1, rdmap.OpReadRequest, note[:10])),
			fin: true, want: []string{closed}},
		{name: "an STag to invalidate that nobody gave",
			fpdus: fpdu(invalidates(untagged(rdmap.QueueSend, 1, rdmap.OpSendInv, note),
				0x12345678)),
			want: slices.Concat(terminatedEither(rdmap.LayerRDMA, rdmap.RemoteProtection, rdmap.CodeCannotInvalidate),
				terminatedEither(rdmap.LayerRDMA, rdmap.RemoteOperation, rdmap.CodeCannotInvalidate),
				terminatedEither(rdmap.LayerRDMA, rdmap.RemoteProtection, rdmap.CodeInvalidSTag))},
		{name: "a Terminate", fpdus: fpdu(untagged(rdmap.QueueTerminate, 1, rdmap.OpTerminate, []byte{0, 0, 0, 0})),
			want: []string{closed}},
	}
	start := (&mpa.Frame{CRC: true, Revision: mpa.Revision}).Append(nil)
	for i := range list {
		list[i].start = start
	}
	return list
}

// untagged is the ULPDU of an untagged message of one segment.
func untagged(qn, msn uint32, op rdmap.Opcode, payload []byte) []byte {
	b := make([]byte, ddp.UntaggedHeaderLen)
	ddp.Untagged{Last: true, QN: qn, MSN: msn, Rsvd: [5]byte{rdmap.Control(op)}}.Put(b)
	return append(b, payload...)
}

// tagged is the ULPDU of a tagged message of one segment.
func tagged(stag ddp.STag, op rdmap.Opcode, payload []byte) []byte {
	b := make([]byte, ddp.TaggedHeaderLen)
	ddp.Tagged{Last: true, STag: stag, Rsvd: rdmap.Control(op)}.Put(b)
	return append(b, payload...)
}

func readRequest(stag ddp.STag) []byte {
	var b [rdmap.ReadRequestLen]byte
	(&rdmap.ReadRequest{SinkSTag: 1, Size: 8, SrcSTag: stag}).Put(&b)
	return b[:]
}

// invalidates puts the STag to invalidate into a Send with Invalidate (RFC 5040 section 4.1).
func invalidates(ulpdu []byte, stag ddp.STag) []byte {
	b := bytes.Clone(ulpdu)
	b[2], b[3], b[4], b[5] = byte(stag>>24), byte(stag>>16), byte(stag>>8), byte(stag)
	return b
}
