package rdmapeer

import (
	"bytes"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

const recvAt = pageLocal * pageLen // of the first receive

func TestSendAttacks(t *testing.T) {
	two := setup{recvs: 2}
	none := setup{recvs: -1}
	// placed is the same attack, which may fill n octets of the i-th receive: until it is
	// delivered, that is indeterminate.
	placed := func(i, n int, seg func(x *target) []byte) func(*target) {
		return func(x *target) {
			x.sendSegment(seg(x))
			copy(x.want[recvAt+i*recvLen:], ddp.UntaggedView(x.last).Payload()[:n])
		}
	}
	runAttacks(t, []attack{
		{name: "a Send that fits is received",
			do: placed(0, 64, func(*target) []byte { return sendSegment(1, 0, 64) }), want: unharmed{}, good: 1},
		// req 5041-7.1-4, 5040-5.3-4
		{name: "a Send one octet longer than the receive places nothing",
			do:   oneSegment(func(*target) []byte { return sendSegment(1, 0, 65) }),
			want: untaggedError(ddp.CodeTooLong)},
		{name: "a Send that runs over the end in its second segment places nothing of that",
			do: func(x *target) {
				x.sendSegment(more(sendSegment(1, 0, 60)))
				copy(x.want[recvAt:], evil(60))
				x.sendSegment(sendSegment(1, 60, 5))
			},
			want: untaggedError(ddp.CodeTooLong)},
		// req 5041-7.1-3
		{name: "a message offset at the end of the receive places nothing",
			do:   oneSegment(func(*target) []byte { return sendSegment(1, 64, 1) }),
			want: untaggedError(ddp.CodeInvalidMO)},
		{name: "a message offset beyond the receive is invalid even without octets",
			do:   oneSegment(func(*target) []byte { return sendSegment(1, 65, 0) }),
			want: untaggedError(ddp.CodeInvalidMO)},
		{name: "a message offset whose end wraps 32 bits places nothing",
			do:   oneSegment(func(*target) []byte { return sendSegment(1, 1<<32-8, 16) }),
			want: untaggedError(ddp.CodeInvalidMO)},

		// req 5041-7.1-2, 5041-7.1-6
		{name: "a Send without a receive is an error, not something that waits",
			with: none,
			do:   oneSegment(func(*target) []byte { return sendSegment(1, 0, 8) }),
			want: untaggedError(ddp.CodeNoBuffer)},
		{name: "a Send of no octets without a receive is an error",
			with: none,
			do:   oneSegment(func(*target) []byte { return sendSegment(1, 0, 0) }),
			want: untaggedError(ddp.CodeNoBuffer)},
		{name: "a Send beyond the last receive is an error",
			do:   oneSegment(func(*target) []byte { return sendSegment(2, 0, 8) }),
			want: untaggedError(ddp.CodeNoBuffer)},
		{name: "a second Send for one receive is an error",
			do: func(x *target) {
				x.sendSegment(sendSegment(1, 0, 8))
				x.sendSegment(sendSegment(2, 0, 8))
				copy(x.want[recvAt:], evil(8))
			},
			want: untaggedError(ddp.CodeNoBuffer), good: 1},
		// req 5041-7.1-5, 5041-4.3-7
		{name: "message sequence number 0 comes before the first",
			do:   oneSegment(func(*target) []byte { return sendSegment(0, 0, 8) }),
			want: untaggedError(ddp.CodeMSNRange)},
		{name: "a message sequence number half the range away is one that was delivered long ago",
			do:   oneSegment(func(*target) []byte { return sendSegment(1+1<<31, 0, 8) }),
			want: untaggedError(ddp.CodeMSNRange)},
		{name: "a message sequence number just below half the range away has no receive",
			do:   oneSegment(func(*target) []byte { return sendSegment(1<<31, 0, 8) }),
			want: untaggedError(ddp.CodeNoBuffer)},
		{name: "the highest message sequence number was delivered long ago",
			do:   oneSegment(func(*target) []byte { return sendSegment(1<<32-1, 0, 8) }),
			want: untaggedError(ddp.CodeMSNRange)},
		{name: "a message sequence number is used once: what was received does not change",
			// req 5041-5.3-5
			with: two,
			do: func(x *target) {
				x.sendSegment(sendSegment(1, 0, 8))
				copy(x.want[recvAt:], evil(8))
				x.sendSegment(untagged(rdmap.OpSend, rdmap.QueueSend, 1, 0, bytes.Repeat([]byte{7}, 8)))
			},
			want: untaggedError(ddp.CodeMSNRange), good: 1},
		{name: "a Send that leaves a message sequence number out is not delivered",
			with: two,
			do:   placed(1, 8, func(*target) []byte { return sendSegment(2, 0, 8) }),
			want: untaggedError(ddp.CodeMSNRange)},

		// req 5041-7.1-1, 5040-3.1-2
		{name: "queue 4 does not exist",
			do:   oneSegment(func(*target) []byte { return untagged(rdmap.OpSend, 4, 1, 0, evil(8)) }),
			want: untaggedError(ddp.CodeInvalidQN)},
		{name: "queue 2^32-1 does not exist",
			do:   oneSegment(func(*target) []byte { return untagged(rdmap.OpSend, 1<<32-1, 1, 0, evil(8)) }),
			want: untaggedError(ddp.CodeInvalidQN)},
		// req 5040-4.2-2
		{name: "a Send on the queue of Read Requests is an unexpected opcode",
			do: oneSegment(func(*target) []byte {
				return untagged(rdmap.OpSend, rdmap.QueueReadRequest, 1, 0, evil(28))
			}),
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "a Send on the queue of the Terminate is an unexpected opcode",
			do: oneSegment(func(*target) []byte {
				return untagged(rdmap.OpSend, rdmap.QueueTerminate, 1, 0, evil(4))
			}),
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "a Read Request on the queue of Sends is an unexpected opcode",
			do: placed(0, 28, func(*target) []byte {
				return untagged(rdmap.OpReadRequest, rdmap.QueueSend, 1, 0, evil(28))
			}),
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "an RDMA Write to an untagged buffer is an unexpected opcode",
			do:   placed(0, 8, func(*target) []byte { return untagged(rdmap.OpWrite, rdmap.QueueSend, 1, 0, evil(8)) }),
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "a Terminate on the queue of Sends is an unexpected opcode",
			do: placed(0, 4, func(*target) []byte {
				return untagged(rdmap.OpTerminate, rdmap.QueueSend, 1, 0, evil(4))
			}),
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		// req 5040-4.1-11, 5040-7.2-2
		{name: "a reserved opcode on the queue of Sends is unexpected",
			do:   placed(0, 8, func(*target) []byte { return untagged(12, rdmap.QueueSend, 1, 0, evil(8)) }),
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "a reserved opcode on the queue of Read Requests is unexpected",
			do:   oneSegment(func(*target) []byte { return untagged(15, rdmap.QueueReadRequest, 1, 0, evil(28)) }),
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		// req 5040-7.2-3
		{name: "a Send of RDMAP version 0 is not delivered",
			do:   placed(0, 8, func(*target) []byte { return with(sendSegment(1, 0, 8), 1, byte(rdmap.OpSend)) }),
			want: operationError(rdmap.CodeInvalidVersion)},
		{name: "a Send of RDMAP version 2 is not delivered",
			do:   placed(0, 8, func(*target) []byte { return with(sendSegment(1, 0, 8), 1, 0x80|byte(rdmap.OpSend)) }),
			want: operationError(rdmap.CodeInvalidVersion)},
		// req 5041-4.1-11
		{name: "a Send of DDP version 0 is refused",
			do:   oneSegment(func(*target) []byte { return with(sendSegment(1, 0, 8), 0, 0x40) }),
			want: untaggedError(ddp.CodeUntaggedVersion)},
		{name: "a Send of DDP version 3 is refused",
			do:   oneSegment(func(*target) []byte { return with(sendSegment(1, 0, 8), 0, 0x43) }),
			want: untaggedError(ddp.CodeUntaggedVersion)},
		// req 5041-4.4-1
		{name: "an untagged segment one octet short of its header is refused",
			do:   oneSegment(func(*target) []byte { return sendSegment(1, 0, 0)[:ddp.UntaggedHeaderLen-1] }),
			want: untaggedError(ddp.CodeInvalidQN)},
		{name: "an untagged segment with the length of a tagged header is refused",
			do:   oneSegment(func(*target) []byte { return sendSegment(1, 0, 0)[:ddp.TaggedHeaderLen] }),
			want: untaggedError(ddp.CodeInvalidQN)},
		{name: "a segment of no octets is refused",
			do: oneSegment(func(*target) []byte { return nil }), want: terminated{
				layer: rdmap.LayerDDP, etype: rdmap.EType(ddp.TypeUntagged), code: ddp.CodeUntaggedVersion,
				bare: true}},

		// req 5040-5.3-11, 5040-7.2-4, 5042-6.1.1-3
		{name: "a Send does not invalidate a region of another Protection Domain",
			do:   invalidateRefused(func(x *target) *rdma.MR { return x.foreign }),
			want: protectionError(rdmap.CodeCannotInvalidate)},
		{name: "a Send does not invalidate the region of another queue pair",
			do:   invalidateRefused(func(x *target) *rdma.MR { return x.scoped }),
			want: protectionError(rdmap.CodeCannotInvalidate)},
		// req 5040-8.1.1-7
		{name: "a Send does not invalidate a region that several queue pairs share",
			do:   invalidateRefused(func(x *target) *rdma.MR { return x.rw }),
			want: protectionError(rdmap.CodeCannotInvalidate)},
		{name: "a Send does not invalidate memory that was never advertised",
			do:   invalidateRefused(func(x *target) *rdma.MR { return x.local }),
			want: protectionError(rdmap.CodeCannotInvalidate)},
		{name: "a Send does not invalidate what is invalid already",
			do:   oneSegment(func(x *target) []byte { return invalidating(rdmap.OpSendInv, 1, x.revoked.STag()) }),
			want: protectionError(rdmap.CodeCannotInvalidate)},
		{name: "a Send with Solicited Event does not invalidate an STag that was made up",
			do:   oneSegment(func(*target) []byte { return invalidating(rdmap.OpSendSEInv, 1, 0xBAD) }),
			want: protectionError(rdmap.CodeCannotInvalidate)},
		{name: "a Send does not invalidate STag 0",
			do:   oneSegment(func(*target) []byte { return invalidating(rdmap.OpSendInv, 1, 0) }),
			want: protectionError(rdmap.CodeCannotInvalidate)},
		{name: "a Write behind the Send that invalidated its region is refused",
			// req 5040-5.3-10
			do: func(x *target) {
				x.sendSegment(invalidating(rdmap.OpSendInv, 1, x.mine.STag()))
				x.sendSegment(write(x.mine.STag(), base, evil(8)))
			},
			want: taggedError(ddp.CodeInvalidSTag), good: 1},
		{name: "a plain Send invalidates nothing, whatever stands where an STag would",
			// req 5040-4.1-10
			do: func(x *target) {
				x.sendSegment(invalidating(rdmap.OpSend, 1, x.mine.STag()))
				x.sendSegment(write(x.mine.STag(), base, evil(8)))
				copy(x.want[pageMine*pageLen:], evil(8))
			},
			want: unharmed{}, good: 1},
	})
}

func TestSharedReceivesAreSharedFairly(t *testing.T) {
	// req 5042-6.4.3.1-1, 5040-8.1.2-7, 5041-8.3.2-6
	const share = 3
	var srq *rdma.SRQ
	var wasPosted int
	runAttacks(t, []attack{
		{name: "a peer that begins messages and ends none takes its share of the receives and no more",
			with: setup{recvs: -1, qp: func(c *rdma.QPConfig) {
				srq = must(c.PD.CreateSRQ(16, 1))
				c.SRQ, c.MaxRecv = srq, share
			}},
			do: func(x *target) {
				for i := range uint64(8) {
					wr := &rdma.RecvWR{ID: i, SGL: []rdma.SGE{x.local.SGE(int(i)*recvLen, recvLen)}}
					if err := srq.PostRecv(wr); err != nil {
						x.t.Fatal(err)
					}
				}
				wasPosted = srq.Len()
				for i := range uint32(8) {
					x.sendSegment(more(sendSegment(i+1, 0, 8)))
					if i < share {
						copy(x.want[recvAt+int(i)*recvLen:], evil(8))
					}
					if i == share {
						x.culprit = x.last
					}
				}
				x.posted = share // they are given back when the stream ends
				x.awaitCompletions(0)
				x.posted = 0
				if n := srq.Len(); n != wasPosted-share {
					x.t.Errorf("%d of %d shared receives are left, want all but %d", n, wasPosted, share)
				}
			},
			want: untaggedError(ddp.CodeNoBuffer)},
	})
}
