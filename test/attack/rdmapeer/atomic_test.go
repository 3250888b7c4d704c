package rdmapeer

import (
	"encoding/binary"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

func TestAtomicAttacks(t *testing.T) {
	const tailAt = (pageAtomic+1)*pageLen - 8
	word := func(x *target, at int) uint64 { return binary.NativeEndian.Uint64(x.want[at:]) }
	runAttacks(t, []attack{
		{name: "an atomic on the last 8 octets of a region is carried out",
			do: func(x *target) {
				was := word(x, tailAt)
				fetchAdd(func(_ *target, r *rdmap.AtomicRequest) { r.TO += pageLen - 8 })(x)
				x.msn[1]++
				m := x.victimMessage()
				got := rdmap.ParseAtomicResponse(
					(*[rdmap.AtomicResponseLen]byte)(ddp.UntaggedView(m.data[2:]).Payload()))
				if got.ID != 9 || got.Original != was {
					x.t.Errorf("response %+v, want the value %#x", got, was)
				}
				binary.NativeEndian.PutUint64(x.want[tailAt:], was+1)
			},
			want: unharmed{}},
		// req 7306-8.2-3, 7306-5.1.1-4, 7306-5.1.1-5
		{name: "a FetchAdd on an address that is not aligned changes nothing",
			do:   fetchAdd(func(_ *target, r *rdmap.AtomicRequest) { r.TO += 4 }),
			want: operationError(rdmap.CodeCatastrophic)},
		{name: "a FetchAdd of 0 on an address that is not aligned reads nothing",
			do:   fetchAdd(func(_ *target, r *rdmap.AtomicRequest) { r.TO, r.Op = r.TO+1, rdmap.FetchAdd(0) }),
			want: operationError(rdmap.CodeCatastrophic)},
		// req 7306-5.1.2-3, 7306-5.1.2-4
		{name: "a CmpSwap on an address that is not aligned changes nothing",
			do: fetchAdd(func(_ *target, r *rdmap.AtomicRequest) {
				r.TO, r.Op = r.TO+7, rdmap.AtomicOp{Swap: true, Mask: 1<<64 - 1} // compares nothing, swaps all
			}),
			want: operationError(rdmap.CodeCatastrophic)},
		// req 7306-8.2-4
		{name: "an atomic that begins in a region and ends behind it is out of bounds",
			do:   fetchAdd(func(_ *target, r *rdmap.AtomicRequest) { r.TO += pageLen - 4 }),
			want: protectionError(rdmap.CodeBounds)},
		{name: "an atomic behind a region is out of bounds",
			do:   fetchAdd(func(_ *target, r *rdmap.AtomicRequest) { r.TO += pageLen }),
			want: protectionError(rdmap.CodeBounds)},
		{name: "an atomic before a region is out of bounds",
			do:   fetchAdd(func(_ *target, r *rdmap.AtomicRequest) { r.TO -= 8 }),
			want: protectionError(rdmap.CodeBounds)},
		{name: "an atomic whose end wraps the Tagged Offset is a wrap",
			do:   fetchAdd(func(x *target, r *rdmap.AtomicRequest) { r.STag, r.TO = x.top.STag(), 1<<64-1 }),
			want: protectionError(rdmap.CodeTOWrap)},
		{name: "an atomic on memory that may be read and written, but not by atomics, is refused",
			do: addTo(func(x *target) *rdma.MR { return x.rw }), want: protectionError(rdmap.CodeAccess)},
		{name: "an atomic on memory that may only be read is refused",
			do: addTo(func(x *target) *rdma.MR { return x.ro }), want: protectionError(rdmap.CodeAccess)},
		{name: "an atomic on memory that may only be written is refused",
			do: addTo(func(x *target) *rdma.MR { return x.wo }), want: protectionError(rdmap.CodeAccess)},
		{name: "an atomic on memory that was never advertised is refused",
			do: addTo(func(x *target) *rdma.MR { return x.local }), want: protectionError(rdmap.CodeAccess)},
		{name: "a FetchAdd of 0 does not read what may not be read",
			do:   fetchAdd(func(x *target, r *rdmap.AtomicRequest) { r.STag, r.Op = x.wo.STag(), rdmap.FetchAdd(0) }),
			want: protectionError(rdmap.CodeAccess)},
		// req 5042-6.1.1-3, 5042-6.1.1-4, 5042-6.1.1-1
		{name: "an atomic in another Protection Domain is refused",
			do: addTo(func(x *target) *rdma.MR { return x.foreign }), want: protectionError(rdmap.CodeNotAssociated)},
		{name: "an atomic on the region of another queue pair is refused",
			do: addTo(func(x *target) *rdma.MR { return x.scoped }), want: protectionError(rdmap.CodeNotAssociated)},
		{name: "an atomic on an invalidated region is refused",
			do: addTo(func(x *target) *rdma.MR { return x.revoked }), want: protectionError(rdmap.CodeInvalidSTag)},
		{name: "an atomic on an STag that was made up is refused",
			do:   fetchAdd(func(_ *target, r *rdmap.AtomicRequest) { r.STag ^= 1 }),
			want: protectionError(rdmap.CodeInvalidSTag)},

		// req 7306-5.2.1-11
		{name: "the reserved atomic operation changes nothing", do: atomicOp(1), want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "atomic operation 15 changes nothing", do: atomicOp(15), want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "an Atomic Request one octet short changes nothing",
			do:   func(x *target) { x.sendSegment(x.fetchAdd(1)[:18+51]) },
			want: operationError(rdmap.CodeUnspecified)},
		{name: "an Atomic Request with the length of a Read Request changes nothing",
			do:   func(x *target) { x.sendSegment(x.fetchAdd(1)[:18+28]) },
			want: operationError(rdmap.CodeUnspecified)},
		{name: "an Atomic Request one octet too long changes nothing",
			do:   func(x *target) { x.sendSegment(append(x.fetchAdd(1), 0)) },
			want: untaggedError(ddp.CodeTooLong)},
		// req 7306-4.1-2
		{name: "an Atomic Request on the queue of Sends changes nothing but the receive",
			do: func(x *target) {
				seg := with(x.fetchAdd(1), 9, rdmap.QueueSend) // the low octet of the QN
				x.sendSegment(seg)
				copy(x.want[recvAt:], ddp.UntaggedView(seg).Payload())
			},
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		// req 5042-6.4.3.3-2, 7306-5.2-1
		{name: "one request more than the IRD finds no buffer, Reads and atomics together",
			do: func(x *target) {
				x.segmentAs(x.ssn+2, x.fetchAdd(3))
				x.culprit = x.last
				x.segmentAs(x.ssn+1, readRequest(2, rdmap.ReadRequest{Size: 8, SrcSTag: x.ro.STag(), SrcTO: base}))
				x.segmentAs(x.ssn, x.fetchAdd(1))
				x.ssn += 3
				binary.NativeEndian.PutUint64(x.want[pageAtomic*pageLen:], word(x, pageAtomic*pageLen)+1)
			},
			want: untaggedError(ddp.CodeNoBuffer)},
		{name: "an atomic behind an error is not carried out",
			// req 5041-7.1-16, 7306-5.4-2
			do: func(x *target) {
				x.segmentAs(x.ssn+1, x.fetchAdd(1)) // it comes first, but it is not its turn
				x.segmentAs(x.ssn, write(0xBAD, base, evil(8)))
				x.ssn += 2
			},
			want: taggedError(ddp.CodeInvalidSTag)},
		{name: "an Atomic Response does not pass for a request",
			do: func(x *target) {
				x.sendSegment(untagged(rdmap.OpAtomicResponse, rdmap.QueueReadRequest, 1, 0, evil(12)))
			},
			want: operationError(rdmap.CodeUnexpectedOpcode)},

		// req 7306-5.2.2-7
		{name: "an Atomic Response that nobody asked for is unexpected",
			do:   func(x *target) { x.sendSegment(atomicResponse(1, 0)) },
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "an Atomic Response with another identifier completes nothing",
			do:   func(x *target) { x.sendSegment(atomicResponse(1, x.doAtomic()+1)) },
			want: operationError(rdmap.CodeUnspecified)},
		{name: "an Atomic Response one octet short completes nothing",
			do:   func(x *target) { x.sendSegment(atomicResponse(1, x.doAtomic())[:18+11]) },
			want: operationError(rdmap.CodeUnspecified)},
		{name: "an Atomic Response one octet too long completes nothing",
			do:   func(x *target) { x.sendSegment(append(atomicResponse(1, x.doAtomic()), 0)) },
			want: untaggedError(ddp.CodeTooLong)},
		{name: "a Read Response to an atomic completes nothing",
			do: func(x *target) {
				x.doAtomic()
				x.sendSegment(tagged(rdmap.OpReadResponse, 0, 0, nil))
			},
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "a second response to one atomic is unexpected",
			do: func(x *target) {
				id := x.doAtomic()
				x.sendSegment(atomicResponse(1, id))
				x.sendSegment(atomicResponse(2, id))
			},
			want: operationError(rdmap.CodeUnexpectedOpcode), good: 1},
		{name: "a second response with the number of the first was delivered long ago",
			do: func(x *target) {
				id := x.doAtomic()
				x.sendSegment(atomicResponse(1, id))
				x.sendSegment(atomicResponse(1, id))
			},
			want: untaggedError(ddp.CodeMSNRange), good: 1},
		{name: "more responses than requests can be outstanding find no buffer",
			do: func(x *target) {
				x.sendSegment(atomicResponse(1000, 0))
			},
			want: untaggedError(ddp.CodeNoBuffer)},
	})
}

func TestImmediateDataAttacks(t *testing.T) {
	imm := func(msn uint32, n int) []byte { return untagged(rdmap.OpImmediate, rdmap.QueueSend, msn, 0, evil(n)) }
	runAttacks(t, []attack{
		// req 7306-6.3-2, 7306-8.2-1
		{name: "Immediate Data without a receive is an error",
			with: setup{recvs: -1},
			do:   oneSegment(func(*target) []byte { return imm(1, 8) }), want: untaggedError(ddp.CodeNoBuffer)},
		{name: "Immediate Data beyond the last receive is an error",
			do: oneSegment(func(*target) []byte { return imm(2, 8) }), want: untaggedError(ddp.CodeNoBuffer)},
		{name: "Immediate Data takes a receive and leaves its memory alone",
			do: oneSegment(func(*target) []byte { return imm(1, 8) }), want: unharmed{}, good: 1},
		// req 7306-6.3-5
		{name: "Immediate Data of 7 octets is not delivered",
			do: oneSegment(func(*target) []byte { return imm(1, 7) }), want: operationError(rdmap.CodeUnspecified)},
		{name: "Immediate Data of no octets is not delivered",
			do: oneSegment(func(*target) []byte { return imm(1, 0) }), want: operationError(rdmap.CodeUnspecified)},
		{name: "Immediate Data of 9 octets leaves the receive's memory alone",
			do: oneSegment(func(*target) []byte { return imm(1, 9) }), want: untaggedError(ddp.CodeTooLong)},
		{name: "Immediate Data of the length of the receive leaves its memory alone",
			do: oneSegment(func(*target) []byte { return imm(1, 64) }), want: untaggedError(ddp.CodeTooLong)},
		{name: "Immediate Data at an offset leaves the receive's memory alone",
			do: oneSegment(func(*target) []byte {
				return untagged(rdmap.OpImmediateSE, rdmap.QueueSend, 1, 8, evil(8))
			}),
			want: untaggedError(ddp.CodeInvalidMO)},
		{name: "a message that begins as a Send and ends as Immediate Data is not delivered",
			do: func(x *target) {
				x.sendSegment(more(sendSegment(1, 0, 8)))
				copy(x.want[recvAt:], evil(8))
				x.sendSegment(untagged(rdmap.OpImmediate, rdmap.QueueSend, 1, 8, evil(8)))
			},
			want: untaggedError(ddp.CodeInvalidMO)},
		{name: "Immediate Data does not pass for a Read Request",
			do: oneSegment(func(*target) []byte {
				return untagged(rdmap.OpImmediate, rdmap.QueueReadRequest, 1, 0, evil(8))
			}),
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "Immediate Data to a tagged buffer is an unexpected opcode",
			do:   oneSegment(func(x *target) []byte { return tagged(rdmap.OpImmediate, x.rw.STag(), base, evil(8)) }),
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "a second Immediate Data with one message sequence number is not delivered",
			with: setup{recvs: 2},
			do: func(x *target) {
				x.sendSegment(imm(1, 8))
				x.sendSegment(imm(1, 8))
			},
			want: untaggedError(ddp.CodeMSNRange), good: 1},
	})
}

func TestTerminateAttacks(t *testing.T) {
	term := func(payload []byte) func(*target) {
		return oneSegment(func(*target) []byte {
			return untagged(rdmap.OpTerminate, rdmap.QueueTerminate, 1, 0, payload)
		})
	}
	whole := rdmap.Terminate{Layer: rdmap.LayerRDMA, EType: rdmap.RemoteProtection, HasLength: true, HasDDP: true,
		HasRDMA: true}
	runAttacks(t, []attack{
		// req 5040-5.4-4, 5040-6.2.1-2
		{name: "a Terminate ends the stream without an answer but the session's own", do: term(whole.Append(nil)), want: torndown{}},
		{name: "a Terminate with nothing quoted ends the stream", do: term([]byte{0, 0, 0, 0}), want: torndown{}},
		{name: "a Terminate of a layer, type and code that do not exist ends the stream",
			// req 5040-4.8-11
			do: term([]byte{0xFF, 0xFF, 0x1F, 0xFF}), want: torndown{}},
		{name: "a Terminate that quotes a Send of ours that never was blames no request",
			do: term((&rdmap.Terminate{Layer: rdmap.LayerDDP, EType: 2, Code: 5, HasLength: true, HasDDP: true,
				DDP: [18]byte{0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 99}}).Append(nil)), want: torndown{}},
		// req 5040-4.8-18, 5040-5.4-5
		{name: "a Terminate of no octets is malformed", do: term(nil), want: operationError(rdmap.CodeUnspecified)},
		{name: "a Terminate of 3 octets is malformed", do: term([]byte{0, 0, 0}), want: operationError(rdmap.CodeUnspecified)},
		{name: "a Terminate whose M bit announces a length that is not there is malformed",
			do: term([]byte{0, 0, 0x80, 0, 1}), want: operationError(rdmap.CodeUnspecified)},
		{name: "a Terminate whose D bit announces a header that is not there is malformed",
			do: term([]byte{0, 0, 0x40, 0, 0, 1}), want: operationError(rdmap.CodeUnspecified)},
		{name: "a Terminate that quotes a header cut short is malformed",
			do: term(whole.Append(nil)[:4+2+17]), want: operationError(rdmap.CodeUnspecified)},
		{name: "a Terminate whose R bit announces a header that is not there is malformed",
			do: term(whole.Append(nil)[:4+2+18+27]), want: operationError(rdmap.CodeUnspecified)},
		{name: "a Terminate longer than any does not fit its buffer",
			do: term(append(whole.Append(nil), 0)), want: untaggedError(ddp.CodeTooLong)},
		{name: "a Terminate of RDMAP version 0 is not one",
			do: oneSegment(func(*target) []byte {
				return with(untagged(rdmap.OpTerminate, rdmap.QueueTerminate, 1, 0, []byte{0, 0, 0, 0}), 1,
					byte(rdmap.OpTerminate))
			}),
			want: operationError(rdmap.CodeInvalidVersion)},
		// req 5040-5.4-3
		{name: "there is no second Terminate",
			do: oneSegment(func(*target) []byte {
				return untagged(rdmap.OpTerminate, rdmap.QueueTerminate, 2, 0, []byte{0, 0, 0, 0})
			}),
			want: untaggedError(ddp.CodeNoBuffer)},
		{name: "what follows a Terminate is not placed",
			do: func(x *target) {
				x.sendSegment(untagged(rdmap.OpTerminate, rdmap.QueueTerminate, 1, 0, []byte{0, 0, 0, 0}))
				x.sendSegment(write(x.rw.STag(), base, evil(64)))
				x.sendSegment(sendSegment(1, 0, 8))
			},
			want: torndown{}},
	})
}
