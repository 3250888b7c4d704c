package rdmapeer

import (
	"bytes"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

func TestReadAttacks(t *testing.T) {
	runAttacks(t, []attack{
		// req 5042-6.3.1-1, 5040-7.2-7, 5040-7.2-8, 5042-2.2.4-1
		{name: "a Read from the octet before a region is out of bounds",
			do:   readOnce(func(_ *target, r *rdmap.ReadRequest) { r.SrcTO, r.Size = base-1, 1 }),
			want: readError(rdmap.CodeBounds)},
		{name: "a Read from the octet behind a region is out of bounds",
			do:   readOnce(func(_ *target, r *rdmap.ReadRequest) { r.SrcTO, r.Size = base+pageLen, 1 }),
			want: readError(rdmap.CodeBounds)},
		{name: "a Read whose last octet is behind a region returns nothing",
			do:   readOnce(func(_ *target, r *rdmap.ReadRequest) { r.SrcTO = base + pageLen - 63 }),
			want: readError(rdmap.CodeBounds)},
		{name: "a Read of 2^32-1 octets returns nothing",
			do:   readOnce(func(_ *target, r *rdmap.ReadRequest) { r.Size = 1<<32 - 1 }),
			want: readError(rdmap.CodeBounds)},
		{name: "a Read up to the last octet of a region returns what is there",
			do: func(x *target) {
				if got := x.readMemory(x.ro.STag(), base+pageLen-64, 64); !bytes.Equal(got,
					x.arenaPage(pageRO)[pageLen-64:]) {
					x.t.Errorf("got %x", got)
				}
			},
			want: unharmed{}},
		{name: "a Read at Tagged Offset 0 of a region that begins elsewhere is out of bounds",
			do:   readOnce(func(_ *target, r *rdmap.ReadRequest) { r.SrcTO = 0 }),
			want: readError(rdmap.CodeBounds)},
		// req 5040-7.2-9
		{name: "a Read whose end wraps the Tagged Offset is a wrap",
			do:   readOnce(func(x *target, r *rdmap.ReadRequest) { r.SrcSTag, r.SrcTO = x.top.STag(), 1<<64-8 }),
			want: readError(rdmap.CodeTOWrap)},
		{name: "a Read that ends at 2^64 exactly is a wrap",
			do:   readOnce(func(x *target, r *rdmap.ReadRequest) { r.SrcSTag, r.SrcTO = x.top.STag(), 1<<64-64 }),
			want: readError(rdmap.CodeTOWrap)},
		{name: "a Read whose wrapped end would lie in the region is a wrap",
			do:   readOnce(func(_ *target, r *rdmap.ReadRequest) { r.SrcTO, r.Size = 1<<64-1, 1000 }),
			want: readError(rdmap.CodeTOWrap)},
		{name: "a Read whose response could not be addressed is a wrap",
			do:   readOnce(func(_ *target, r *rdmap.ReadRequest) { r.SinkTO = 1<<64 - 63 }),
			want: readError(rdmap.CodeTOWrap)},

		// req 5040-7.2-5, 5042-6.1.1-1
		{name: "a Read of an invalidated region is refused",
			do: readFrom(func(x *target) *rdma.MR { return x.revoked }), want: readError(rdmap.CodeInvalidSTag)},
		{name: "a Read of a region that was deregistered is refused",
			do: readFrom(func(x *target) *rdma.MR { return x.gone }), want: readError(rdmap.CodeInvalidSTag)},
		// req 5040-7.2-6, 5042-6.1.1-3, 5042-6.1.1-4
		{name: "a Read from another Protection Domain is refused",
			do: readFrom(func(x *target) *rdma.MR { return x.foreign }), want: readError(rdmap.CodeNotAssociated)},
		{name: "a Read from the region of another queue pair is refused",
			do: readFrom(func(x *target) *rdma.MR { return x.scoped }), want: readError(rdmap.CodeNotAssociated)},
		// req 5042-6.3.5-2, 5042-6.3.5-1
		{name: "a Read of a region that may only be written is refused",
			do: readFrom(func(x *target) *rdma.MR { return x.wo }), want: readError(rdmap.CodeAccess)},
		{name: "a Read of a region for atomics only is refused",
			do: readFrom(func(x *target) *rdma.MR { return x.atomic }), want: readError(rdmap.CodeAccess)},
		{name: "a Read of memory of the program that was never advertised is refused",
			do: readFrom(func(x *target) *rdma.MR { return x.local }), want: readError(rdmap.CodeAccess)},
		// req 5040-5.2.1-12, 5040-5.2.1-13, 5042-6.3.5-2
		{name: "a Read of no octets may name any STag, and returns none",
			do: func(x *target) {
				for _, stag := range []ddp.STag{0, 0xBAD, x.foreign.STag(), x.wo.STag(), x.gone.STag()} {
					if got := x.readMemory(stag, 1<<64-1, 0); len(got) != 0 {
						x.t.Errorf("got %x", got)
					}
				}
			},
			want: unharmed{}},
		// req 5040-5.2.1-5
		{name: "a Read Request one octet short is refused",
			do: func(x *target) {
				x.sendSegment(readRequest(1, rdmap.ReadRequest{Size: 8, SrcSTag: x.ro.STag(), SrcTO: base})[:18+27])
			},
			want: operationError(rdmap.CodeUnspecified)},
		{name: "a Read Request one octet too long is refused",
			do: func(x *target) {
				x.sendSegment(append(readRequest(1, rdmap.ReadRequest{Size: 8, SrcSTag: x.ro.STag(), SrcTO: base}), 0))
			},
			want: operationError(rdmap.CodeUnspecified)},
		{name: "a Read Request of no octets is refused",
			do:   func(x *target) { x.sendSegment(untagged(rdmap.OpReadRequest, rdmap.QueueReadRequest, 1, 0, nil)) },
			want: operationError(rdmap.CodeUnspecified)},
		{name: "a Read Request longer than any request does not fit its buffer",
			do: func(x *target) {
				x.sendSegment(untagged(rdmap.OpReadRequest, rdmap.QueueReadRequest, 1, 0,
					evil(rdmap.AtomicRequestLen+1)))
			},
			want: untaggedError(ddp.CodeTooLong)},

		// req 5042-6.4.3.3-2, 5042-2.2.8-1, 5040-6.1-5
		{name: "one Read more than the IRD finds no buffer while their responses are under way",
			with: setup{own: slowConfig(), depth: 4},
			do: func(x *target) {
				for msn := range uint32(3) {
					x.sendSegment(readRequest(msn+1,
						rdmap.ReadRequest{SinkSTag: 0x51, Size: 32 * pageLen, SrcSTag: x.big.STag(), SrcTO: base}))
				}
				x.drainResponse()
			},
			want: untaggedError(ddp.CodeNoBuffer)},
		{name: "one Read more than the IRD finds no buffer when all come before their turn",
			do: func(x *target) {
				for i := uint16(3); i > 0; i-- {
					x.segmentAs(x.ssn+i-1,
						readRequest(uint32(i), rdmap.ReadRequest{SinkSTag: 0x51, Size: 8, SrcSTag: x.ro.STag(),
							SrcTO: base}))
					if i == 3 {
						x.culprit = x.last
					}
				}
				x.ssn += 3
			},
			want: untaggedError(ddp.CodeNoBuffer)},
		{name: "a thousand Reads beyond the IRD take no more than one",
			with: setup{own: slowConfig(), depth: 4},
			do: func(x *target) {
				for msn := range uint32(1000) {
					x.sendSegment(readRequest(msn+1,
						rdmap.ReadRequest{SinkSTag: 0x51, Size: 32 * pageLen, SrcSTag: x.big.STag(), SrcTO: base}))
					if msn == 2 {
						x.culprit = x.last
					}
				}
				x.drainResponse()
			},
			want: untaggedError(ddp.CodeNoBuffer)},
		{name: "a queue pair without an IRD serves no Read",
			with: setup{qp: func(c *rdma.QPConfig) { c.IRD = -1 }},
			do:   readOnce(func(*target, *rdmap.ReadRequest) {}),
			want: untaggedError(ddp.CodeNoBuffer)},
		{name: "Reads one after the other may go on for ever",
			do: func(x *target) {
				for i := range uint64(50) {
					if got := x.readMemory(x.ro.STag(), base+i, 32); !bytes.Equal(got, x.arenaPage(pageRO)[i:i+32]) {
						x.t.Fatalf("Read %d: %x", i, got)
					}
				}
			},
			want: unharmed{}},
	})
}

const sinkAt = pageLocal*pageLen + 1024 // of the victim's Read

func TestReadResponseAttacks(t *testing.T) {
	resp := func(stag ddp.STag, to uint64, n int) []byte { return tagged(rdmap.OpReadResponse, stag, to, evil(n)) }
	runAttacks(t, []attack{
		{name: "the response that was asked for is placed",
			do: readResponse(func(x *target, r rdmap.ReadRequest) {
				x.sendSegment(resp(r.SinkSTag, r.SinkTO, 64))
				copy(x.want[sinkAt:], evil(64))
			}),
			want: unharmed{}, good: 1},
		// req 5042-6.2.1-1, 5040-5.2.2-4, 5040-5.2.2-6
		{name: "a response that nobody asked for is not placed, though the peer may write there",
			do:   func(x *target) { x.sendSegment(resp(x.rw.STag(), base, 64)) },
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "a response that nobody asked for is not placed in memory that was never advertised",
			do:   func(x *target) { x.sendSegment(resp(x.local.STag(), base, 64)) },
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "a response that nobody asked for ends the stream even without octets",
			do:   func(x *target) { x.sendSegment(resp(0, 0, 0)) },
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "a second response to one Read is not placed",
			do: readResponse(func(x *target, r rdmap.ReadRequest) {
				x.sendSegment(resp(r.SinkSTag, r.SinkTO, 64))
				copy(x.want[sinkAt:], evil(64))
				seg := tagged(rdmap.OpReadResponse, r.SinkSTag, r.SinkTO, bytes.Repeat([]byte{1}, 64))
				x.sendSegment(seg)
			}),
			want: operationError(rdmap.CodeUnexpectedOpcode), good: 1},
		{name: "a response one octet too long places nothing of that segment",
			do:   readResponse(func(x *target, r rdmap.ReadRequest) { x.sendSegment(resp(r.SinkSTag, r.SinkTO, 65)) }),
			want: taggedError(ddp.CodeBaseBounds)},
		{name: "a response of one segment more than asked for places nothing of that segment",
			do: readResponse(func(x *target, r rdmap.ReadRequest) {
				x.sendSegment(more(resp(r.SinkSTag, r.SinkTO, 64)))
				copy(x.want[sinkAt:], evil(64))
				x.sendSegment(resp(r.SinkSTag, r.SinkTO+64, 1))
			}),
			want: taggedError(ddp.CodeBaseBounds)},
		{name: "a response to the octet before the sink is not placed, though the region begins earlier",
			do: readResponse(func(x *target, r rdmap.ReadRequest) {
				x.sendSegment(resp(r.SinkSTag, r.SinkTO-1, 64))
			}),
			want: taggedError(ddp.CodeBaseBounds)},
		{name: "a response behind the sink is not placed, though the region ends later",
			do: readResponse(func(x *target, r rdmap.ReadRequest) {
				x.sendSegment(resp(r.SinkSTag, r.SinkTO+64, 64))
			}),
			want: taggedError(ddp.CodeBaseBounds)},
		{name: "a response to an offset that wraps is not placed",
			do:   readResponse(func(x *target, r rdmap.ReadRequest) { x.sendSegment(resp(r.SinkSTag, 1<<64-1, 64)) }),
			want: taggedError(ddp.CodeBaseBounds)},
		{name: "a response to another STag is not placed, though the peer may write there",
			do:   readResponse(func(x *target, _ rdmap.ReadRequest) { x.sendSegment(resp(x.rw.STag(), base, 64)) }),
			want: taggedError(ddp.CodeInvalidSTag)},
		{name: "a response to the STag of another Protection Domain is not placed",
			do: readResponse(func(x *target, r rdmap.ReadRequest) {
				x.sendSegment(resp(x.foreign.STag(), r.SinkTO, 64))
			}),
			want: taggedError(ddp.CodeNotAssociated)},
		{name: "a response to an STag that was made up is not placed",
			do: readResponse(func(x *target, r rdmap.ReadRequest) {
				x.sendSegment(resp(r.SinkSTag^1, r.SinkTO, 64))
			}),
			want: taggedError(ddp.CodeInvalidSTag)},
		{name: "an RDMA Write to the sink of a Read is refused",
			do: readResponse(func(x *target, r rdmap.ReadRequest) {
				x.sendSegment(write(r.SinkSTag, r.SinkTO, evil(64)))
			}),
			want: taggedError(ddp.CodeInvalidSTag)},
		{name: "a response that is too short does not complete the Read",
			do: readResponse(func(x *target, r rdmap.ReadRequest) {
				x.sendSegment(resp(r.SinkSTag, r.SinkTO, 63))
				copy(x.want[sinkAt:], evil(63))
			}),
			want: operationError(rdmap.CodeUnspecified)},
		{name: "a response of no octets does not complete the Read",
			do:   readResponse(func(x *target, r rdmap.ReadRequest) { x.sendSegment(resp(r.SinkSTag, r.SinkTO, 0)) }),
			want: operationError(rdmap.CodeUnspecified)},
		{name: "a response that fills half of the sink twice does not complete the Read",
			do: readResponse(func(x *target, r rdmap.ReadRequest) {
				x.sendSegment(more(resp(r.SinkSTag, r.SinkTO+32, 32)))
				x.sendSegment(resp(r.SinkSTag, r.SinkTO+32, 32))
				copy(x.want[sinkAt+32:], evil(32))
			}),
			want: operationError(rdmap.CodeUnspecified)},
		{name: "a response after the sink was deregistered is not placed",
			do: readResponse(func(x *target, r rdmap.ReadRequest) {
				x.local.Invalidate()
				x.sendSegment(resp(r.SinkSTag, r.SinkTO, 64))
			}),
			want: taggedError(ddp.CodeInvalidSTag)},
	})
}
