package ddp

import (
	"fmt"
	"math"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// vast is a device of any size that keeps count, and not what is written.
type vast struct {
	octets, end uint64
}

func (v *vast) ReadAt(p []byte, _ int64) (int, error) { return len(p), nil }

func (v *vast) WriteAt(p []byte, off int64) (int, error) {
	v.octets += uint64(len(p))
	v.end = max(v.end, uint64(off)+uint64(len(p)))
	return len(p), nil
}

// Messages of 2^32-1 octets are cut, placed at the right offsets and delivered, one octet more is
// refused, also where the peer's last segment would go beyond what the 32 bits of a message offset
// can tell.
func TestTheLongestMessages(t *testing.T) {
	// req 5041-5.2-2
	const most = 1<<32 - 1
	mib := make([]byte, 1<<20)
	var from Gather // the same octets over and over
	for left := uint64(most); left > 0; {
		n := min(left, uint64(len(mib)))
		from = append(from, Piece{Mem: Bytes(mib), Len: n})
		left -= n
	}
	for _, tagged := range []bool{true, false} {
		r := newRig(t)
		dev := new(vast)
		var want string
		if tagged {
			reg := r.registerRegion(t, Spec{PD: testPD, Mem: Device(dev, most), Base: 1<<63 + 5, Access: RemoteWrite})
			must.OK(t, r.SendTagged(reg.STag(), reg.Base(), 0, from, 7))
			want = fmt.Sprintf("tagged rsvd=0x0 stag=%#x to=%d len=%d", uint32(reg.STag()), reg.Base(), uint64(most))
		} else {
			b, err := MakeRecvBuffer(Gather{{Mem: Device(dev, most), Len: most}}, 3)
			must.That(t, err == nil && r.ulp.queues[0].Post(b) == nil, "%v", err)
			must.OK(t, r.SendUntagged(0, [5]byte{}, from, 7))
			want = fmt.Sprintf("untagged qn=0 msn=1 rsvd=0000000000 len=%d token=3", uint64(most))
		}
		var seg Segment
		wire := make([]byte, 1<<16) // the payload is of no interest
		for r.NextSegment(len(wire), &seg) {
			copy(wire, seg.Header[:seg.HeaderLen])
			r.deliverSegment(wire[:seg.Len()])
		}
		r.ulp.checkLog(t, want)
		check.That(t, dev.octets == most && dev.end == most, "tagged %v: %d octets placed, the last before %d",
			tagged, dev.octets, dev.end)
	}
	r := newRig(t)
	b, err := MakeRecvBuffer(Gather{{Mem: Device(new(vast), most), Len: most}}, 3)
	must.That(t, err == nil && r.ulp.queues[0].Post(b) == nil, "%v", err)
	r.deliverSegment(untaggedSeg(true, 0, 1, most, []byte{1}))
	r.ulp.checkLog(t, "fatal 0x2/0x04") // the offset is no octet of the buffer
}

// A message is as long as its pieces together, however long they are.
func TestLengthsDoNotWrap(t *testing.T) {
	// req 5041-5.2-2
	const most = math.MaxInt64
	dev := Device(&short{}, most)
	g := Gather{{Mem: dev, Len: most}, {Mem: dev, Len: most}, {Mem: dev, Len: 6}} // 2^64 + 4 octets
	check.Equal(t, "Len", g.Len(), math.MaxUint64)
	check.Fails(MakeRecvBuffer(g, 0))(t, "as a receive buffer", ErrMessageTooLong)
	check.Error(t, "as a message", newRig(t).SendTagged(1, 0, 0, g, 0), ErrMessageTooLong)
}
