package rdmapeer

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp"
)

func TestGuessedSTagsReachNothing(t *testing.T) {
	// req 5042-6.1.1-1, 5042-6.1.1-5, 5042-6.3.1-1, 5040-8.1.1-8, 5040-7.2-5, 5041-7.1-9,
	// 5041-8.3-4
	l := newLab(t)
	rnd := rand.New(rand.NewPCG(3, 4))
	for _, sweep := range []struct {
		name  string
		tries int
		guess func(i int, known ddp.STag) ddp.STag // known was registered just before
	}{
		{"at random", 24, func(int, ddp.STag) ddp.STag { return ddp.STag(rnd.Uint32()) }},
		{"upwards from a known one", 16, func(i int, known ddp.STag) ddp.STag { return known + 1 + ddp.STag(i) }},
		{"downwards from a known one", 16, func(i int, known ddp.STag) ddp.STag { return known - 1 - ddp.STag(i) }},
		{"one bit away from a known one", 32, func(i int, known ddp.STag) ddp.STag { return known ^ 1<<i }},
		{"by a counter from 0", 16, func(i int, _ ddp.STag) ddp.STag { return ddp.STag(i) }},
		{"by an index in the high bits", 16, func(i int, _ ddp.STag) ddp.STag { return ddp.STag(i) << 8 }},
	} {
		t.Run(sweep.name, func(t *testing.T) {
			for i := range sweep.tries {
				x := l.newTarget(t, &setup{})
				stag := sweep.guess(i, x.big.STag())
				if i%2 == 0 {
					x.sendSegment(write(stag, base, evil(64)))
					taggedError(ddp.CodeInvalidSTag).checkOutcome(x, 0)
				} else {
					x.sendSegment(readRequest(1, rdmap.ReadRequest{Size: 64, SrcSTag: stag, SrcTO: base}))
					readError(rdmap.CodeInvalidSTag).checkOutcome(x, 0)
				}
				l.checkUnhurt(t, x.want)
			}
		})
	}
}

func TestTagsOfEarlierRegistrationsAreNotReissued(t *testing.T) {
	// req 5042-6.1.1-5, 5040-8.1.1-9
	l := newLab(t)
	pd := l.b.AllocPD()
	seen := make(map[ddp.STag]bool)
	var last ddp.STag
	var neighbours int
	for range 20_000 {
		mr := must(pd.Register(l.arenaPage(pageMine), rdma.RemoteWrite, nil))
		stag := mr.STag()
		if seen[stag] {
			t.Fatalf("STag %#x is given out a second time", stag)
		}
		seen[stag] = true
		if d := int32(stag - last); -256 < d && d < 256 {
			neighbours++
		}
		last = stag
		if err := mr.Deregister(); err != nil {
			t.Fatal(err)
		}
	}
	if neighbours > 2 { // of 20,000 random pairs, 512 in 2^32 are that close
		t.Errorf("%d of 20000 STags are close to the one before", neighbours)
	}
}

func TestTaggedAttacks(t *testing.T) {
	runAttacks(t, []attack{
		// req 5042-6.2.1-1, 5041-8.1-1, 5041-7.1-11, 5041-7.1-12, 5040-8.1.1-3
		{name: "a Write to the octet before a region is out of bounds",
			do:   func(x *target) { x.sendSegment(write(x.rw.STag(), base-1, evil(1))) },
			want: taggedError(ddp.CodeBaseBounds)},
		{name: "a Write that begins before a region places nothing of itself",
			do:   func(x *target) { x.sendSegment(write(x.rw.STag(), base-1, evil(64))) },
			want: taggedError(ddp.CodeBaseBounds)},
		{name: "a Write to the octet behind a region is out of bounds",
			do:   func(x *target) { x.sendSegment(write(x.rw.STag(), base+pageLen, evil(1))) },
			want: taggedError(ddp.CodeBaseBounds)},
		{name: "a Write whose last octet is behind a region places nothing of itself",
			do:   func(x *target) { x.sendSegment(write(x.rw.STag(), base+pageLen-63, evil(64))) },
			want: taggedError(ddp.CodeBaseBounds)},
		{name: "a Write up to the last octet of a region is in bounds",
			do: func(x *target) {
				x.sendSegment(write(x.rw.STag(), base+pageLen-64, evil(64)))
				copy(x.want[(pageRW+1)*pageLen-64:], evil(64))
			},
			want: unharmed{}},
		{name: "a Write at Tagged Offset 0 of a region that begins elsewhere is out of bounds",
			do:   func(x *target) { x.sendSegment(write(x.rw.STag(), 0, evil(8))) },
			want: taggedError(ddp.CodeBaseBounds)},
		{name: "a Write to an offset that equals the region's in its low 32 bits is out of bounds",
			do:   func(x *target) { x.sendSegment(write(x.rw.STag(), base&0xFFFFFFFF, evil(8))) },
			want: taggedError(ddp.CodeBaseBounds)},
		{name: "of a message that runs out of the region the segments inside are placed and no other",
			do: func(x *target) {
				x.sendSegment(more(write(x.rw.STag(), base+pageLen-64, evil(64))))
				x.sendSegment(write(x.rw.STag(), base+pageLen, evil(64)))
				copy(x.want[(pageRW+1)*pageLen-64:], evil(64))
			},
			want: taggedError(ddp.CodeBaseBounds)},
		{name: "nothing is placed behind an error, though it would be in bounds",
			// req 5041-7.1-14, 5041-7.1-16
			do: func(x *target) {
				x.sendSegment(write(x.rw.STag(), base+pageLen, evil(1)))
				x.culprit = x.last
				x.sendSegment(write(x.rw.STag(), base, evil(64)))
			},
			want: taggedError(ddp.CodeBaseBounds)},
		{name: "of several errors the Terminate reports the first in the order of sending, not of arrival",
			// req 5040-7.1-5, 5043-6.1-2
			do: func(x *target) {
				x.segmentAs(x.ssn+1, write(x.rw.STag()+1, base, evil(8)))
				x.segmentAs(x.ssn, write(x.rw.STag(), base+pageLen, evil(1)))
				x.ssn += 2
			},
			want: taggedError(ddp.CodeBaseBounds)},

		// req 5041-7.1-13
		{name: "a Write whose end wraps the Tagged Offset is a wrap",
			do:   func(x *target) { x.sendSegment(write(x.top.STag(), 1<<64-8, evil(16))) },
			want: taggedError(ddp.CodeTOWrap)},
		{name: "a Write that ends at 2^64 exactly is a wrap",
			do:   func(x *target) { x.sendSegment(write(x.top.STag(), 1<<64-8, evil(8))) },
			want: taggedError(ddp.CodeTOWrap)},
		{name: "a Write whose wrapped end would lie in the region is a wrap",
			do:   func(x *target) { x.sendSegment(write(x.rw.STag(), 1<<64-1, evil(1000))) },
			want: taggedError(ddp.CodeTOWrap)},
		{name: "a Write to the last octet below the wrap is in bounds",
			do: func(x *target) {
				x.sendSegment(write(x.top.STag(), 1<<64-9, evil(8)))
				copy(x.want[(pageTop+1)*pageLen-8:], evil(8))
			},
			want: unharmed{}},

		// req 5042-6.1.1-3, 5042-2.2.4-1, 5041-8.2-1, 5040-8.1.1-1
		{name: "a Write to another Protection Domain is refused",
			do:   func(x *target) { x.sendSegment(write(x.foreign.STag(), base, evil(64))) },
			want: taggedError(ddp.CodeNotAssociated)},
		// req 5042-6.1.1-4, 5042-2.2.5-1, 5041-8.2-2, 5040-8.1.1-2
		{name: "a Write to the region of another queue pair of the same Protection Domain is refused",
			do:   func(x *target) { x.sendSegment(write(x.scoped.STag(), base, evil(64))) },
			want: taggedError(ddp.CodeNotAssociated)},
		{name: "a Write to the region of this queue pair alone is placed",
			do: func(x *target) {
				x.sendSegment(write(x.mine.STag(), base+10, evil(64)))
				copy(x.want[pageMine*pageLen+10:], evil(64))
			},
			want: unharmed{}},

		// req 5042-6.2.2-2, 5041-8.3.1-2, 5040-8.1.1-6
		{name: "a Write to an invalidated region is refused",
			do:   func(x *target) { x.sendSegment(write(x.revoked.STag(), base, evil(64))) },
			want: taggedError(ddp.CodeInvalidSTag)},
		{name: "a Write to a region that was deregistered is refused",
			do:   func(x *target) { x.sendSegment(write(x.gone.STag(), base, evil(64))) },
			want: taggedError(ddp.CodeInvalidSTag)},
		{name: "a region invalidated in the middle of a message changes no more",
			do: func(x *target) {
				x.sendSegment(more(write(x.rw.STag(), base, evil(64))))
				x.readMemory(x.ro.STag(), base, 8) // what came before is placed
				x.rw.Invalidate()
				copy(x.want[pageRW*pageLen:], evil(64))
				x.sendSegment(write(x.rw.STag(), base+64, evil(64)))
			},
			want: taggedError(ddp.CodeInvalidSTag)},
		{name: "a region invalidated under Writes at full speed changes no more",
			do: func(x *target) {
				for i := range 300 {
					x.sendSegment(write(x.rw.STag(), base+uint64(i)*8, evil(8)))
					if i == 100 {
						x.rw.Invalidate()
						copy(x.want[pageRW*pageLen:], x.arenaPage(pageRW))
					}
				}
				x.culprit = anyOf
			},
			want: taggedError(ddp.CodeInvalidSTag)},

		// req 5042-2.2.2-1, 5041-7.1-10, 5041-8.3.1-1
		{name: "a Write to a region that may only be read is refused",
			do:   func(x *target) { x.sendSegment(write(x.ro.STag(), base, evil(64))) },
			want: taggedError(ddp.CodeInvalidSTag)},
		{name: "a Write to a region for atomics only is refused",
			do:   func(x *target) { x.sendSegment(write(x.atomic.STag(), base, evil(8))) },
			want: taggedError(ddp.CodeInvalidSTag)},
		{name: "a Write to memory of the program that was never advertised is refused",
			do:   func(x *target) { x.sendSegment(write(x.local.STag(), base, evil(64))) },
			want: taggedError(ddp.CodeInvalidSTag)},
		{name: "a Write is refused once its right was taken away",
			do: func(x *target) {
				if err := x.rw.SetAccess(rdma.RemoteRead); err != nil {
					x.t.Fatal(err)
				}
				x.sendSegment(write(x.rw.STag(), base, evil(64)))
			},
			want: taggedError(ddp.CodeInvalidSTag)},

		// req 5042-6.2.1-1, 5041-8.3-4
		{name: "a memory window opens its octets",
			do: onWindow(func(x *target, w *rdma.MW) {
				x.sendSegment(write(w.STag(), 0, evil(64)))
				copy(x.want[pageLocal*pageLen+2048:], evil(64))
			}),
			want: unharmed{}},
		{name: "a memory window does not open the octet behind it, which is of the same region",
			do:   onWindow(func(x *target, w *rdma.MW) { x.sendSegment(write(w.STag(), 64, evil(1))) }),
			want: taggedError(ddp.CodeBaseBounds)},
		{name: "a memory window does not open the octet before it, which is of the same region",
			do:   onWindow(func(x *target, w *rdma.MW) { x.sendSegment(write(w.STag(), 1<<64-1, evil(1))) }),
			want: taggedError(ddp.CodeTOWrap)},
		{name: "a memory window does not open more than it grants",
			do: onWindow(func(x *target, w *rdma.MW) {
				x.sendSegment(readRequest(1, rdmap.ReadRequest{Size: 8, SrcSTag: w.STag()}))
			}),
			want: readError(rdmap.CodeAccess)},
		{name: "a memory window that has ended opens nothing",
			do: onWindow(func(x *target, w *rdma.MW) {
				w.Invalidate()
				x.sendSegment(write(w.STag(), 0, evil(8)))
			}),
			want: taggedError(ddp.CodeInvalidSTag)},
		{name: "a memory window ends with its region",
			do: onWindow(func(x *target, w *rdma.MW) {
				x.local.Invalidate()
				x.sendSegment(write(w.STag(), 0, evil(8)))
			}),
			want: taggedError(ddp.CodeInvalidSTag)},
		{name: "a memory window for another queue pair opens nothing",
			do: func(x *target) {
				x.sendSegment(write(must(x.local.Bind(x.other, 2048, 64, rdma.RemoteWrite)).STag(), 0, evil(8)))
			},
			want: taggedError(ddp.CodeNotAssociated)},

		// req 5041-5.2-10, 5041-5.2-9
		{name: "a Write of no octets may name any STag and offset",
			do:   func(x *target) { x.sendSegment(write(0xBAD, 1<<64-1, nil)) },
			want: unharmed{}},

		// req 5041-4.1-11, 5041-7.2-2
		{name: "a Write of DDP version 0 is refused", do: badVersion(0), want: taggedError(ddp.CodeTaggedVersion)},
		{name: "a Write of DDP version 2 is refused", do: badVersion(2), want: taggedError(ddp.CodeTaggedVersion)},
		{name: "a Write of DDP version 3 is refused", do: badVersion(3), want: taggedError(ddp.CodeTaggedVersion)},
		// req 5040-7.2-3, 5040-4.1-6
		{name: "a Write of RDMAP version 0 is refused",
			do:   func(x *target) { x.sendSegment(with(write(x.rw.STag(), base, evil(8)), 1, 0x00)) },
			want: operationError(rdmap.CodeInvalidVersion)},
		{name: "a Write of RDMAP version 2 is refused",
			do:   func(x *target) { x.sendSegment(with(write(x.rw.STag(), base, evil(8)), 1, 0x80)) },
			want: operationError(rdmap.CodeInvalidVersion)},
		{name: "a Write of RDMAP version 3 is refused",
			do:   func(x *target) { x.sendSegment(with(write(x.rw.STag(), base, evil(8)), 1, 0xC0)) },
			want: operationError(rdmap.CodeInvalidVersion)},
		// req 5041-4.1-9, 5040-4.1-8
		{name: "reserved bits change nothing",
			do: func(x *target) {
				seg := write(x.rw.STag(), base, evil(8))
				x.sendSegment(with(with(seg, 0, seg[0]|0x3C), 1, seg[1]|0x30))
				copy(x.want[pageRW*pageLen:], evil(8))
			},
			want: unharmed{}},

		// req 5040-7.2-2, 5040-4.2-2
		{name: "a Send to a tagged buffer is an unexpected opcode",
			do:   func(x *target) { x.sendSegment(tagged(rdmap.OpSend, x.rw.STag(), base, evil(8))) },
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "a Terminate to a tagged buffer is an unexpected opcode",
			do:   func(x *target) { x.sendSegment(tagged(rdmap.OpTerminate, x.rw.STag(), base, evil(8))) },
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "an Atomic Request to a tagged buffer is an unexpected opcode",
			do:   func(x *target) { x.sendSegment(tagged(rdmap.OpAtomicRequest, x.rw.STag(), base, evil(52))) },
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "a tagged message of a reserved opcode without payload is an unexpected opcode",
			do:   func(x *target) { x.sendSegment(tagged(13, 0, 0, nil)) },
			want: operationError(rdmap.CodeUnexpectedOpcode)},
		// req 5040-4.1-11
		{name: "reserved opcode 12 to a tagged buffer is unexpected", do: reservedOpcode(12), want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "reserved opcode 13 to a tagged buffer is unexpected", do: reservedOpcode(13), want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "reserved opcode 14 to a tagged buffer is unexpected", do: reservedOpcode(14), want: operationError(rdmap.CodeUnexpectedOpcode)},
		{name: "reserved opcode 15 to a tagged buffer is unexpected", do: reservedOpcode(15), want: operationError(rdmap.CodeUnexpectedOpcode)},

		// req 5041-4.4-1
		{name: "a tagged segment one octet short of its header is refused",
			do:   func(x *target) { x.sendSegment(write(x.rw.STag(), base, nil)[:ddp.TaggedHeaderLen-1]) },
			want: taggedError(ddp.CodeInvalidSTag)},
		{name: "a tagged segment of a control field alone is refused",
			do:   func(x *target) { x.sendSegment(write(x.rw.STag(), base, nil)[:1]) },
			want: taggedError(ddp.CodeInvalidSTag)},

		{name: "the common association is not the only one that is safe",
			// req 5043-11.3-5
			with: setup{own: &sctp.Config{}},
			do:   func(x *target) { x.sendSegment(write(x.foreign.STag(), base, evil(64))) },
			want: taggedError(ddp.CodeNotAssociated)},
	})
}

func TestSixtyFourQueuePairsFailAtOnce(t *testing.T) {
	// req 5043-11.3-5, 5042-6.1.1-1
	l := newLab(t)
	var xs []*target
	for range 64 {
		xs = append(xs, l.newTarget(t, &setup{}))
	}
	for i, x := range xs {
		x.sendSegment(write(x.foreign.STag(), base+uint64(i), evil(64)))
	}
	for i, x := range xs {
		t.Run(fmt.Sprint(i), func(t *testing.T) { taggedError(ddp.CodeNotAssociated).checkOutcome(x, 0) })
	}
	l.checkUnhurt(t, bytes.Clone(l.pattern))
}
