package ddp

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestSegmentationExamples(t *testing.T) {
	t.Run("untagged 2048 octets at MULPDU 1500", func(t *testing.T) {
		// req 5041-5.2-5, 5041-5.2-1, 5041-4.3-10, 5041-4.1-7: MO 0 with 1482 octets, MO 1482 with
		// 566.
		r := newRig(t)
		msg := patternOf(2048)
		must.OK(t, r.SendUntagged(1, [5]byte{9, 8, 7, 6, 5}, gatherOf(msg), 1))
		segs := r.cutAll(1500)
		must.That(t, len(segs) == 2 && len(segs[0]) == 1500 && len(segs[1]) == 18+566, "segments %d", len(segs))
		var got []byte
		for i, b := range segs {
			v := UntaggedView(b)
			// req 5041-4.1-3, 5041-4.1-4, 5041-4.1-5, 5041-4.1-6: T = 0; L on the last one only.
			check.That(t, !v.Control().Tagged() && v.Control().Last() == (i == 1), "segment %d control %#x", i,
				v.Control())
			// req 5041-4.3-2, 5041-4.3-5, 5041-4.3-9: the same RsvdULP, QN and MSN in all.
			check.That(t, v.RsvdULP() == [5]byte{9, 8, 7, 6, 5} && v.QN() == 1 && v.MSN() == 1 &&
				v.MO() == uint32(i*1482),
				"segment %d: %x %d %d %d", i, v.RsvdULP(), v.QN(), v.MSN(), v.MO())
			got = append(got, v.Payload()...)
		}
		check.That(t, bytes.Equal(got, msg), "octets of the message were lost or changed") // req 5041-5.2-3
	})
	t.Run("tagged 2048 octets at TO 16384 and MULPDU 1500", func(t *testing.T) {
		// req 5041-5.2-7, 5041-5.2-6, 5041-4.2-7: TO 16384 with 1486 octets, TO 17870 with 562.
		r := newRig(t)
		msg := patternOf(2048)
		must.OK(t, r.SendTagged(0xCAFE, 16384, 0x42, gatherOf(msg), 1))
		segs := r.cutAll(1500)
		must.That(t, len(segs) == 2 && len(segs[0]) == 1500 && len(segs[1]) == 14+562, "segments %d", len(segs))
		for i, b := range segs {
			v := TaggedView(b)
			// req 5041-4.1-2, 5041-4.2-2, 5041-4.2-5: T = 1; the ULP's STag and RsvdULP in all.
			check.That(t, v.Control().Tagged() && v.Control().Last() == (i == 1) && v.STag() == 0xCAFE &&
				v.RsvdULP() == 0x42,
				"segment %d: % x", i, b[:14])
			check.That(t, v.TO() == []uint64{16384, 17870}[i], "segment %d TO %d", i, v.TO())
		}
	})
	t.Run("zero length is one segment with L and no payload", func(t *testing.T) {
		r := newRig(t)
		_ = r.SendUntagged(1, [5]byte{}, nil, 1)
		_ = r.SendTagged(3, 0, 0, Gather{{}}, 2)
		segs := r.cutAll(TaggedHeaderLen + 4) // req 5041-5.2-8, 5041-4.1-4
		must.That(t, len(segs) == 2 && len(segs[0]) == 18 && segs[0][0] == 0x41 && len(segs[1]) == 14 &&
			segs[1][0] == 0xC1,
			"segments % x", segs)
	})
	t.Run("a message that fits exactly is one segment", func(t *testing.T) {
		r := newRig(t)
		_ = r.SendUntagged(0, [5]byte{}, gatherOf(patternOf(1482)), 1)
		segs := r.cutAll(1500)
		must.That(t, len(segs) == 1 && segs[0][0] == 0x41, "%d segments", len(segs))
	})
}

func TestMULPDUChangeAppliesToTheNextSegment(t *testing.T) {
	r := newRig(t)
	msg := patternOf(3000)
	_ = r.SendUntagged(0, [5]byte{}, gatherOf(msg), 1)
	var seg Segment
	var got []byte
	for i, max := range []int{1018, 518, 1018, 2000} { // req 5041-5.2-1
		rest := r.Rest()
		must.That(t, rest == uint64(len(msg)-len(got)), "%d octets left after %d", rest, len(got))
		must.That(t, r.NextSegment(max, &seg) && seg.Len() <= max, "segment %d has %d octets, MULPDU %d", i,
			seg.Len(), max)
		mo := UntaggedView(seg.Header[:]).MO()
		must.That(t, mo == uint32(len(got)), "segment %d has MO %d after %d octets", i, mo, len(got))
		got = append(got, wireBytes(&seg)[18:]...)
	}
	must.That(t, !r.Pending() && r.Rest() == 0 && bytes.Equal(got, msg), "message not sent in whole")
	_ = r.SendUntagged(0, [5]byte{}, gatherOf(msg), 2)
	for _, max := range []int{UntaggedHeaderLen, UntaggedHeaderLen - 1, 0} {
		must.That(t, !r.NextSegment(max, &seg) && r.Pending(),
			"a MULPDU without room for payload must give no segment and lose none")
	}
}

func TestMessageOrderAndMSN(t *testing.T) {
	r := newRig(t)
	r.sendMSN[0] = math.MaxUint32 - 1
	send := func(qn uint32) { must.OK(t, r.SendUntagged(qn, [5]byte{}, gatherOf(patternOf(30)), 0)) }
	// req 5041-5.3-1, 5041-5.3-2: order of submission, increasing MO. req 5041-4.3-6, 5041-4.3-7,
	// 5041-4.3-8: each queue counts by itself, from 1; 0xFFFFFFFF is followed by 0.
	send(0)
	send(1)
	send(0)
	send(0)
	send(1)
	send(0)
	want := [][2]uint32{{0, 0xFFFFFFFE}, {1, 1}, {0, 0xFFFFFFFF}, {0, 0}, {1, 2}, {0, 1}}
	segs := r.cutAll(18 + 20)
	must.Equal(t, "segments", len(segs), 2*len(want))
	for i, b := range segs {
		v := UntaggedView(b)
		check.That(t, v.QN() == want[i/2][0] && v.MSN() == want[i/2][1] && v.MO() == uint32(i%2*20),
			"segment %d: QN %d MSN %#x MO %d", i, v.QN(), v.MSN(), v.MO())
	}
}

func TestMessageLengthLimit(t *testing.T) {
	mib := patternOf(1 << 20)
	g := Gather{}
	for range 4095 {
		g = append(g, Piece{Mem: Bytes(mib), Len: 1 << 20})
	}
	g = append(g, Piece{Mem: Bytes(mib), Len: 1<<20 - 1})
	r := newRig(t)
	err := r.SendTagged(1, 0, 0, append(g[:len(g):len(g)], Piece{Mem: Bytes(mib), Len: 1}), 1)
	check.That(t, err == ErrMessageTooLong, "2^32 octets: %v", err) // req 5041-5.2-2
	must.OK(t, r.SendUntagged(0, [5]byte{}, g, 1))
	var seg Segment
	var sum uint64
	for r.NextSegment(1<<21+18, &seg) {
		v := UntaggedView(seg.Header[:])
		must.That(t, uint64(v.MO()) == sum, "MO %d after %d octets", v.MO(), sum)
		sum += uint64(seg.Len() - 18)
	}
	must.That(t, sum == math.MaxUint32 && Control(seg.Header[0]).Last(), "sent %d octets", sum)
}

func TestSendRefusesBadRanges(t *testing.T) {
	r := newRig(t)
	mem := Bytes(make([]byte, 10))
	huge := Piece{Mem: Device(new(disk), math.MaxUint64), Len: math.MaxUint64 / 2}
	for _, c := range []struct {
		name string
		got  error
		want error
	}{
		{"piece beyond its memory", r.SendUntagged(0, [5]byte{}, Gather{{Mem: mem, Off: 5, Len: 6}}, 0), ErrRange},
		{"piece offset and length wrap", r.SendUntagged(0, [5]byte{}, Gather{{Mem: mem, Off: 5, Len: math.MaxUint64}}, 0), ErrRange},
		{"tagged offset and length wrap", r.SendTagged(1, math.MaxUint64-9, 0, Gather{{Mem: mem, Len: 10}}, 0), ErrRange},
		{"sum of lengths wraps 64 bits", r.SendUntagged(0, [5]byte{}, Gather{{Mem: mem, Len: 1}, huge, huge, huge}, 0), ErrMessageTooLong},
		{"queue number beyond the stream", r.SendUntagged(3, [5]byte{}, nil, 0), ErrQueueNumber},
	} {
		check.Equal(t, c.name, c.got, c.want)
	}
	check.That(t, !r.Pending(), "a refused message was queued")
	// req 5041-5.2-10: the TO of nothing is not checked, and the last octet there can be is at
	// 2^64-2.
	none := r.SendTagged(1, math.MaxUint64, 0, nil, 0)
	last := r.SendTagged(1, math.MaxUint64-10, 0, Gather{{Mem: mem, Len: 10}}, 0)
	want := [][]byte{taggedSeg(true, 0, 1, math.MaxUint64, nil),
		taggedSeg(true, 0, 1, math.MaxUint64-10, make([]byte, 10))}
	got := r.cutAll(100)
	check.That(t, none == nil && last == nil && slices.EqualFunc(got, want, bytes.Equal), "at the top: %v, %v, % x",
		none, last, got)
}

func TestSegmentSpansTwoPiecesAtMost(t *testing.T) {
	r := newRig(t)
	a, b, c := []byte("aaaa"), []byte("bb"), []byte("cccccc")
	g := Gather{{Mem: Bytes(a), Off: 1, Len: 3}, {}, {Mem: Bytes(b), Len: 2}, {Mem: Bytes(c), Len: 6}, {}}
	_ = r.SendUntagged(0, [5]byte{}, g, 1)
	var seg Segment
	var bodies []string
	for r.NextSegment(1500, &seg) {
		bodies = append(bodies, string(seg.Body[0])+"|"+string(seg.Body[1]))
	}
	must.That(t, len(bodies) == 2 && bodies[0] == "aaa|bb" && bodies[1] == "cccccc|", "bodies %q", bodies)
	check.Equal(t, "payload, not copied", &seg.Body[0][0], &c[0])
}

func TestCompletionWhenAllSegmentsAreAcknowledged(t *testing.T) {
	r := newRig(t)
	r.Acked() // there is nothing
	_ = r.SendUntagged(0, [5]byte{}, gatherOf(patternOf(30)), 71)
	_ = r.SendTagged(4, 0, 0, nil, 72)
	r.Acked()         // nothing has gone
	r.cutAll(18 + 10) // three segments and one
	r.Acked()
	r.Acked()
	r.ulp.checkLog(t)
	must.Equal(t, "unfinished", r.Unfinished(), 2)
	r.Acked() // req 5041-5.4-1
	r.ulp.checkLog(t, "completed 71")
	r.Acked()
	r.ulp.checkLog(t, "completed 72")
	r.Acked()
	r.ulp.checkLog(t)
}

// However many messages wait, and wherever the queue of them begins in its memory, they leave and
// complete in their order.
func TestManyMessagesKeepTheirOrder(t *testing.T) {
	r := newRig(t)
	rnd := rand.New(rand.NewPCG(5041, 3))
	sent, cut, acked := uint64(0), uint64(0), uint64(0)
	for most := range 300 { // grows with time
		for range rnd.IntN(most + 1) {
			_ = r.SendTagged(4, sent, 0, nil, sent)
			sent++
		}
		var seg Segment
		for range rnd.IntN(most + 1) {
			must.That(t, r.NextSegment(1500, &seg) == (cut < sent), "%d sent, %d cut: more %v", sent, cut, cut == sent)
			if cut < sent {
				must.Equal(t, "where the next message begins", TaggedView(wireBytes(&seg)).TO(), cut)
				cut++
			}
		}
		for range rnd.IntN(most + 1) {
			if r.Acked(); acked < cut {
				r.ulp.checkLog(t, fmt.Sprint("completed ", acked))
				acked++
			}
		}
		r.ulp.checkLog(t)
		must.That(t, r.Unfinished() == int(sent-acked), "%d unfinished of %d", r.Unfinished(), sent-acked)
	}
	check.Equal(t, "octets held", uintptr(r.Held()), unsafe.Sizeof(*r.Stream)+3*(unsafe.Sizeof(receivedRanges{})+2*4)+
		uintptr(len(r.outMessages.buf))*unsafe.Sizeof(message{}))
}

func TestAcknowledgementBeforeTheMessageIsCut(t *testing.T) {
	r := newRig(t)
	_ = r.SendUntagged(0, [5]byte{}, gatherOf(patternOf(30)), 1)
	var seg Segment
	r.NextSegment(18+20, &seg)
	r.Acked()
	r.Acked() // one too many
	r.ulp.checkLog(t)
	r.NextSegment(18+20, &seg)
	r.Acked()
	r.ulp.checkLog(t, "completed 1")
}

func TestRevokedSourceFailsTheMessage(t *testing.T) {
	r := newRig(t)
	mem := patternOf(100)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Base: 100, Access: RemoteRead})
	piece, err := r.Resolve(reg.STag(), 150, 40, RemoteRead)
	must.That(t, err == nil, "%v", err)
	_ = r.SendTagged(1, 0, 0, Gather{piece}, 1)
	_ = r.SendTagged(1, 0, 0, gatherOf(patternOf(5)), 2)
	var seg Segment
	must.That(t, r.NextSegment(14+30, &seg) && bytes.Equal(seg.Body[0], mem[50:80]), "the segment is %x", seg.Body)
	reg.Invalidate()
	r.ulp.onFail = func() {
		r.ulp.onFail = nil
		check.Error(t, "last message", r.SendUntagged(2, [5]byte{}, nil, 3), nil)
		check.Equal(t, "message after it", r.SendUntagged(2, [5]byte{}, nil, 4), ErrFaulted)
	}
	must.That(t, !r.NextSegment(14+30, &seg), "octets of a revoked region were sent")
	r.ulp.checkLog(t) // the first segment still refers to the memory
	r.Acked()
	r.ulp.checkLog(t, "failed 1: "+ErrRevoked.Error(), "failed 2: "+ErrCanceled.Error())
	segs := r.cutAll(1500)
	must.That(t, len(segs) == 1 && UntaggedView(segs[0]).QN() == 2, "last message not sent: %x", segs)
	check.Error(t, "message from a revoked region", r.SendTagged(1, 0, 0, Gather{piece}, 9), ErrRevoked)
}

func TestCancelUnsentLeavesNoGapInTheMSNs(t *testing.T) {
	r := newRig(t)
	for i := range 3 {
		_ = r.SendUntagged(0, [5]byte{}, gatherOf(patternOf(10)), uint64(i))
	}
	var seg Segment
	r.NextSegment(1500, &seg)
	r.CancelUnsent()
	r.ulp.checkLog(t)
	r.Acked()
	r.ulp.checkLog(t, "completed 0", "failed 1: "+ErrCanceled.Error(), "failed 2: "+ErrCanceled.Error())
	_ = r.SendUntagged(0, [5]byte{}, nil, 9)
	segs := r.cutAll(1500)
	// req 5041-4.3-6
	check.That(t, UntaggedView(segs[0]).MSN() == 2, "MSN %d after a withdrawn message, want 2",
		UntaggedView(segs[0]).MSN())
}

// disk is a device in memory whose accesses can fail.
type disk struct {
	b   []byte
	err error
}

func (d *disk) ReadAt(p []byte, off int64) (int, error) {
	return copy(p, d.b[off:]), d.err
}

func (d *disk) WriteAt(p []byte, off int64) (int, error) {
	if d.err != nil {
		return 0, d.err
	}
	return copy(d.b[off:], p), nil
}

func TestDeviceAsSource(t *testing.T) {
	r := newRig(t)
	d := &disk{b: patternOf(100)}
	source, e := r.Resolve(r.registerRegion(t, Spec{PD: testPD, Mem: Device(d, 100)}).STag(), 10, 50, 0)
	must.That(t, e == nil, "%v", e)
	_ = r.SendTagged(1, 0, 0, Gather{source}, 1)
	segs := r.cutAll(14 + 40)
	must.That(t, len(segs) == 2 && bytes.Equal(append(segs[0][14:], segs[1][14:]...), d.b[10:60]),
		"device octets not sent")
	r.Acked()
	r.Acked()
	r.ulp.checkLog(t, "completed 1")
	for err, want := range map[error]string{nil: "unexpected EOF", io.EOF: "unexpected EOF",
		io.ErrClosedPipe: io.ErrClosedPipe.Error()} {
		r, d := newRig(t), &disk{b: patternOf(20), err: err} // shorter than it says
		_ = r.SendTagged(1, 0, 0, Gather{{Mem: Device(d, 100), Off: 10, Len: 50}}, 2)
		r.cutAll(14 + 40)
		r.ulp.checkLog(t, "failed 2: "+want)
		check.Equal(t, "octets cut of no message", r.Cut(), 0)
	}
	d.err = io.EOF // with all that was asked for
	_ = r.SendTagged(1, 0, 0, Gather{{Mem: Device(d, 100), Off: 90, Len: 10}}, 3)
	segs = r.cutAll(14 + 40)
	check.That(t, len(segs) == 1 && bytes.Equal(segs[0][14:], d.b[90:]), "the end of the device was not sent")
}

func TestULPMaySubmitWhenDrained(t *testing.T) {
	r := newRig(t)
	left := 3
	r.ulp.onDrained = func() {
		if left--; left >= 0 {
			_ = r.SendTagged(STag(left), 0, 0, gatherOf(patternOf(30)), uint64(left))
		}
	}
	_ = r.SendUntagged(0, [5]byte{}, gatherOf(patternOf(30)), 9)
	check.Equal(t, "segments", len(r.cutAll(18+20)), 8)
	check.That(t, left == -1, "drained %d times, want once a message", 3-left)
	// An end from within gives no segment out: its memory may be the user's again.
	for _, end := range []func(r *rig){func(r *rig) { r.Abort() }, func(r *rig) { r.Closed(nil) }} {
		r := newRig(t)
		r.ulp.onDrained = func() { end(r) }
		_ = r.SendUntagged(0, [5]byte{}, gatherOf(patternOf(3)), 9)
		check.Equal(t, "segments given out after the end", len(r.cutAll(1500)), 0)
	}
}

func TestASegmentIsNeverLongerThanItMayBe(t *testing.T) {
	var seg Segment
	for _, n := range []int{0, 1} {
		r := newRig(t)
		_ = r.SendTagged(1, 0, 0, gatherOf(patternOf(n)), 1)
		check.That(t, !r.NextSegment(13+n, &seg) && r.NextSegment(14+n, &seg),
			"a message of %d octets: not in what is too short, and in what is enough", n)
	}
}

func TestCutOfAFailedMessage(t *testing.T) {
	r := newRig(t)
	_ = r.SendTagged(1, 0, 0, gatherOf(patternOf(30)), 1)
	_ = r.SendTagged(1, 0, 0, gatherOf(patternOf(30)), 2)
	var seg Segment
	r.NextSegment(14+20, &seg)
	check.Equal(t, "octets cut", r.Cut(), 20)
	var cuts []uint64
	r.ulp.onFail = func() { cuts = append(cuts, r.Cut()) }
	r.CancelUnsent()
	r.Acked()
	check.That(t, len(cuts) == 2 && cuts[0] == 20 && cuts[1] == 0 && r.Cut() == 0 && r.Rest() == 0, "cut %v", cuts)
	one := newRig(t)
	_ = one.SendTagged(1, 0, 0, gatherOf(patternOf(30)), 1)
	one.NextSegment(14+20, &seg)
	one.CancelUnsent()
	one.Acked()
	check.That(t, one.Cut() == 0, "cut %d, with nothing to be cut", one.Cut())
	// A message was broken off: only a last word may follow.
	check.That(t, r.SendUntagged(0, [5]byte{}, nil, 3) == nil && r.SendUntagged(0, [5]byte{}, nil, 4) == ErrFaulted,
		"want exactly one more message")
}
