package ddp

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestUntaggedChecks(t *testing.T) {
	one := []byte{1}
	for _, c := range []struct {
		name string
		seg  []byte
		code uint8 // 0: placed
	}{
		// req 5041-7.1-1, 5041-7.2-3
		{"QN beyond the stream's queues", untaggedSeg(true, 3, 1, 0, one), CodeInvalidQN},
		{"QN of 2^32-1", untaggedSeg(true, math.MaxUint32, 1, 0, one), CodeInvalidQN},
		// req 5041-7.1-2
		{"MSN one above the last posted buffer", untaggedSeg(true, 0, 3, 0, one), CodeNoBuffer},
		{"MSN on a queue without buffers", untaggedSeg(true, 1, 1, 0, one), CodeNoBuffer},
		{"zero length without a buffer to consume", untaggedSeg(true, 1, 1, 0, nil), CodeNoBuffer},
		// req 5041-7.1-5
		{"MSN of a message before the first", untaggedSeg(true, 0, 0, 0, one), CodeMSNRange},
		{"MSN half the number space behind", untaggedSeg(true, 0, 1<<31+1, 0, one), CodeMSNRange},
		// req 5041-7.1-3
		{"MO at the end of the buffer", untaggedSeg(true, 0, 1, 100, one), CodeInvalidMO},
		{"MO of 2^32-1", untaggedSeg(true, 0, 1, math.MaxUint32, one), CodeInvalidMO},
		{"zero length beyond the buffer", untaggedSeg(true, 0, 1, 101, nil), CodeInvalidMO},
		// req 5041-7.1-4
		{"one octet too long", untaggedSeg(true, 0, 1, 0, make([]byte, 101)), CodeTooLong},
		{"last octet beyond the buffer", untaggedSeg(true, 0, 1, 99, []byte{1, 2}), CodeTooLong},
		// req 5041-4.1-11
		{"version 0", append([]byte{0x40}, untaggedSeg(true, 0, 1, 0, one)[1:]...), CodeUntaggedVersion},
		{"version 2 without payload", append([]byte{0x42}, untaggedSeg(true, 0, 1, 0, nil)[1:]...), CodeUntaggedVersion},
		// req 5041-4.4-1
		{"segment shorter than its header", untaggedSeg(true, 0, 1, 0, nil)[:17], CodeInvalidQN},
		{"empty segment", nil, CodeUntaggedVersion},

		{"the whole buffer", untaggedSeg(true, 0, 1, 0, make([]byte, 100)), 0},
		{"the last octet of the buffer", untaggedSeg(true, 0, 1, 99, one), 0},
		{"zero length", untaggedSeg(true, 0, 1, 0, nil), 0},
		{"zero length at the end of the buffer", untaggedSeg(true, 0, 1, 100, nil), 0},
		{"the second buffer before the first", untaggedSeg(true, 0, 2, 0, one), 0},
		// req 5041-4.1-9
		{"reserved bits set", append([]byte{0x7D}, untaggedSeg(true, 0, 1, 0, one)[1:]...), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			arena := make([]byte, 300)
			r.postBuffer(t, 0, 1, arena[100:200])
			r.postBuffer(t, 0, 2, make([]byte, 8))
			for i := range c.seg[min(len(c.seg), UntaggedHeaderLen):] {
				c.seg[UntaggedHeaderLen+i] = 0xEE
			}
			p := r.placeSegment(c.seg)
			if c.code == 0 {
				must.That(t, p.Err == nil, "refused: %v", p.Err)
				return
			}
			must.That(t, p.Err != nil && p.Err.Type == TypeUntagged && p.Err.Code == c.code,
				"fault %v, want code %#02x", p.Err, c.code)
			check.That(t, isZero(arena), "a refused segment changed memory") // req 5041-7.1-14
			checkReport(t, p.Err, c.seg)                                     // req 5041-7.1-15, 5040-3.1-6
		})
	}
}

// checkReport checks what the error report says of the segment.
func checkReport(t *testing.T, e *Error, seg []byte) {
	t.Helper()
	want := seg
	if len(want) > 0 {
		want = want[:min(len(want), Control(want[0]).HeaderLen())]
	}
	check.That(t, bytes.Equal(e.Header[:e.HeaderLen], want) && e.SegmentLen == len(seg),
		"report has header % x and length %d", e.Header[:e.HeaderLen], e.SegmentLen)
}

func TestTaggedChecks(t *testing.T) {
	const base = 1 << 40
	const top = math.MaxUint64 - 100 // base of a region that ends at 2^64-1
	spec := func(s Spec) Spec {
		if s.Access == 0 {
			s.Access = RemoteWrite
		}
		return s
	}
	one := []byte{0xEE}
	for _, c := range []struct {
		name string
		spec Spec
		to   uint64
		n    int
		typ  ErrorType // TypeLLP: placed
		code uint8
	}{
		{"first octet", Spec{PD: testPD, Base: base}, base, 1, TypeLLP, 0},
		{"last octet", Spec{PD: testPD, Base: base}, base + 99, 1, TypeLLP, 0},
		{"whole range", Spec{PD: testPD, Base: base}, base, 100, TypeLLP, 0}, // req 5041-2.3-1
		{"base 0", Spec{PD: testPD}, 0, 100, TypeLLP, 0},
		{"scoped to this stream", Spec{PD: testPD, Scope: testStream}, 0, 1, TypeLLP, 0},
		{"last octet that does not wrap", Spec{PD: testPD, Base: top}, math.MaxUint64 - 1, 1, TypeLLP, 0},
		// req 5041-7.1-11, 5041-7.1-12, 5041-8.1-1: octet-granular, both ends
		{"one octet below the base", Spec{PD: testPD, Base: base}, base - 1, 1, TypeTagged, CodeBaseBounds},
		{"starts below, ends within", Spec{PD: testPD, Base: base}, base - 1, 2, TypeTagged, CodeBaseBounds},
		{"TO at the end", Spec{PD: testPD, Base: base}, base + 100, 1, TypeTagged, CodeBaseBounds},
		{"one octet past the end", Spec{PD: testPD, Base: base}, base + 99, 2, TypeTagged, CodeBaseBounds},
		{"far above", Spec{PD: testPD}, 1 << 63, 1, TypeTagged, CodeBaseBounds},
		{"empty memory", Spec{PD: testPD, Mem: Bytes([]byte{})}, 0, 1, TypeTagged, CodeBaseBounds},
		// req 5041-7.1-13, 5040-4.4-5
		{"sum wraps to within the range", Spec{PD: testPD}, math.MaxUint64, 50, TypeTagged, CodeTOWrap},
		{"sum of exactly 2^64", Spec{PD: testPD, Base: top}, math.MaxUint64, 1, TypeTagged, CodeTOWrap},
		// req 5041-7.1-9, 5041-8.2-1, 5041-8.2-2, 5041-8.2-4, 5042-6.1.1-3, 5042-6.1.1-4
		{"other Protection Domain", Spec{PD: testPD + 1}, 0, 1, TypeTagged, CodeNotAssociated},
		{"scoped to another stream", Spec{PD: testPD, Scope: testStream + 1}, 0, 1, TypeTagged, CodeNotAssociated},
		{"scoped to this stream in another PD", Spec{PD: testPD + 1, Scope: testStream}, 0, 1, TypeTagged, CodeNotAssociated},
		// req 5041-7.1-10, 5041-8.3.1-1
		{"no right to write", Spec{PD: testPD, Access: LocalWrite | RemoteRead}, 0, 1, TypeTagged, CodeInvalidSTag},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			arena := make([]byte, 300)
			s := spec(c.spec)
			if s.Mem.RAM() == nil {
				s.Mem = Bytes(arena[100:200])
			}
			reg := r.registerRegion(t, s)
			seg := taggedSeg(true, 0, reg.STag(), c.to, bytes.Repeat(one, c.n))
			p := r.placeSegment(seg)
			if c.typ == TypeLLP {
				must.That(t, p.Err == nil, "refused: %v", p.Err)
				off := 100 + int(c.to-c.spec.Base)
				// req 5041-5.2-4
				check.That(t, isZero(arena[:off]) && isZero(arena[off+c.n:]) && bytes.Count(arena, one) == c.n,
					"not placed to the octet")
				return
			}
			must.That(t, p.Err != nil && p.Err.Type == c.typ && p.Err.Code == c.code, "fault %v, want %d/%#02x",
				p.Err, c.typ, c.code)
			check.That(t, isZero(arena), "a refused segment changed memory") // req 5041-7.1-14, 5040-7.2-1
			checkReport(t, p.Err, seg)
		})
	}
}

func TestTaggedSTagStates(t *testing.T) {
	r := newRig(t)
	mem := make([]byte, 10)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Access: RemoteWrite})
	seg := taggedSeg(false, 0, reg.STag(), 0, []byte{1})
	bad := func(what string, seg []byte, code uint8) {
		t.Helper()
		p := r.placeSegment(seg)
		check.That(t, p.Err != nil && errors.Is(p.Err, &Error{Type: TypeTagged, Code: code}), "%s: %v", what, p.Err)
	}
	bad("unknown STag", taggedSeg(true, 0, reg.STag()+1, 0, []byte{1}), CodeInvalidSTag) // req 5041-4.2-4, 5041-7.2-2
	bad("STag 0", taggedSeg(true, 0, 0, 0, []byte{1}), CodeInvalidSTag)
	bad("version 3", append([]byte{0x83}, seg[1:]...), CodeTaggedVersion) // req 5041-4.1-11
	bad("version 3 and zero length", append([]byte{0xC3}, seg[1:14]...), CodeTaggedVersion)
	bad("shorter than its header", seg[:13], CodeInvalidSTag) // req 5041-4.4-1
	bad("one octet", seg[:1], CodeInvalidSTag)

	reg.Invalidate()
	bad("invalidated STag", seg, CodeInvalidSTag) // req 5041-8.3-2, 5041-8.3-4
	must.OK(t, r.table.Rebind(reg, Bytes(mem), 0, RemoteWrite))
	p := r.placeSegment(seg)
	check.That(t, p.Err == nil, "valid again: %v", p.Err)
	must.OK(t, r.table.SetAccess(reg, RemoteRead))
	bad("right to write revoked", seg, CodeInvalidSTag) // req 5041-8.3.1-1
	_ = r.table.Deregister(reg)
	bad("deregistered STag", seg, CodeInvalidSTag)
}

func TestZeroLengthTaggedIsNotChecked(t *testing.T) {
	r := newRig(t)
	r.ulp.refuse = &Error{Cause: errors.New("must not be asked")}
	// req 5041-5.2-9, 5041-5.2-10: any STag and TO will do.
	r.deliverSegment(taggedSeg(true, 0x40, 0xFFFFFFFF, math.MaxUint64, nil))
	r.deliverSegment(taggedSeg(true, 0x41, 0, 0, nil))
	r.ulp.checkLog(t, "tagged rsvd=0x40 stag=0xffffffff to=18446744073709551615 len=0",
		"tagged rsvd=0x41 stag=0x0 to=0 len=0")
}

func TestULPRefusesTaggedSegment(t *testing.T) {
	r := newRig(t)
	mem := make([]byte, 10)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Access: RemoteWrite | LocalWrite})
	own := errors.New("no read outstanding")
	r.ulp.refuse = &Error{Cause: own}
	seg := taggedSeg(true, 2, reg.STag(), 0, []byte{1})
	p := r.placeSegment(seg)
	must.That(t, errors.Is(p.Err, own) && isZero(mem), "fault %v, memory %x", p.Err, mem)
	checkReport(t, p.Err, seg)
	reg.Invalidate() // would hang if the refused access were still counted
}

func TestScatterList(t *testing.T) {
	r := newRig(t)
	arena := make([]byte, 40)
	r.postBuffer(t, 0, 1, arena[2:5], nil, arena[10:11], arena[20:30])
	msg := patternOf(14)
	// out of order and twice, req 5041-5.3-3, 5041-5.3-4
	for _, cut := range [][2]int{{9, 14}, {0, 2}, {2, 9}, {2, 9}} {
		p := r.placeSegment(untaggedSeg(false, 0, 1, uint32(cut[0]), msg[cut[0]:cut[1]]))
		must.That(t, p.Err == nil, "%v", p.Err)
	}
	want := make([]byte, 40)
	copy(want[2:5], msg)
	copy(want[10:], msg[3:4])
	copy(want[20:], msg[4:])
	must.Slice(t, "memory", arena, want)
}

func TestDeviceAsSink(t *testing.T) {
	r := newRig(t)
	d := &disk{b: make([]byte, 20)}
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Device(d, 10), Base: 100, Access: RemoteWrite})
	if p := r.placeSegment(taggedSeg(true, 0, reg.STag(), 104, []byte("abc"))); p.Err != nil ||
		string(d.b[4:7]) != "abc" {
		t.Fatalf("fault %v, device %q", p.Err, d.b)
	}
	if p := r.placeSegment(taggedSeg(true, 0, reg.STag(), 109, []byte("ab"))); p.Err == nil ||
		p.Err.Code != CodeBaseBounds {
		t.Errorf("past the end: %v", p.Err)
	}
	d.err = errors.New("disk full")
	p := r.placeSegment(taggedSeg(true, 0, reg.STag(), 104, []byte("xyz")))
	// req 5041-7.2-1
	check.That(t, errors.Is(p.Err, &Error{Type: TypeLocal}) && errors.Is(p.Err, d.err), "failing device: %v", p.Err)
}

func TestPostedBufferOfARevokedRegion(t *testing.T) {
	r := newRig(t)
	mem := make([]byte, 10)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Access: LocalWrite})
	piece, fault := r.Resolve(reg.STag(), 0, 10, LocalWrite)
	must.That(t, fault == nil, "%v", fault)
	b := must.Get(MakeRecvBuffer(Gather{piece}, 1))(t)
	_ = r.ulp.queues[0].Post(b)
	reg.Invalidate()
	p := r.placeSegment(untaggedSeg(true, 0, 1, 0, []byte{1}))
	// req 5041-8.3.1-2
	must.That(t, errors.Is(p.Err, &Error{Type: TypeLocal}) && errors.Is(p.Err, ErrRevoked) && isZero(mem),
		"fault %v, memory %x", p.Err, mem)
}

func TestResolveChecksRightsAndBounds(t *testing.T) {
	r := newRig(t)
	mem := patternOf(100)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Base: 1000, Access: RemoteRead})
	p, err := r.Resolve(reg.STag(), 1010, 90, RemoteRead)
	check.That(t, err == nil && p.Off == 10 && p.Len == 90 && p.Mem.Len() == 90 && p.Region == reg,
		"piece %+v, fault %v", p, err)
	if p, err := r.Resolve(12345, 0, 0, RemoteRead); err != nil || p.Len != 0 {
		t.Errorf("zero length with any STag: %+v, %v", p, err) // req 5042-6.3.5-2
	}
	for name, c := range map[string]struct {
		to, n uint64
		need  Access
		code  uint8
	}{
		"past the end":                 {1010, 91, RemoteRead, CodeBaseBounds},
		"length that wraps the offset": {1010, math.MaxUint64 - 1000, RemoteRead, CodeTOWrap},
		"right not granted":            {1010, 1, RemoteWrite, CodeInvalidSTag},
	} {
		_, err := r.Resolve(reg.STag(), c.to, c.n, c.need)
		check.That(t, err != nil && err.Code == c.code, "%s: %v", name, err)
	}
	got, err := r.CheckSTag(reg.STag())
	check.That(t, err == nil && got == reg, "CheckSTag: %v %v", got, err)
	_, err = r.CheckSTag(reg.STag() ^ 1)
	check.That(t, err != nil && err.Code == CodeInvalidSTag, "CheckSTag of an unknown STag: %v", err)
	reg.Invalidate() // would hang if a refused access were still counted
}

func TestMissingBufferEndsTheStream(t *testing.T) {
	// req 5041-7.1-6, 5041-7.1-8: a fault of the system, told once, and the end of the stream: it
	// cannot recur.
	r := newRig(t)
	for msn := range uint32(3) {
		r.deliverSegment(untaggedSeg(true, 0, 1+msn, 0, []byte{1}))
	}
	r.ulp.checkLog(t, "fatal 0x2/0x02")
	check.Error(t, "fault", r.ulp.fault, &Error{Type: TypeUntagged, Code: CodeNoBuffer})
	if err := r.SendUntagged(0, [5]byte{}, nil, 1); err == nil {
		err = r.SendUntagged(0, [5]byte{}, nil, 2)
		check.That(t, err != nil, "the stream goes on")
	}
}

// A receive buffer that says more than its memory has, be it that its region was given other
// memory, is a local error, and no octet of the segment is written. strict is an upper layer that
// has no queues.
type strict struct{ *recorder }

func (strict) Buffer(uint32, uint32, [5]byte) (*RecvBuffer, uint8) { return nil, CodeInvalidQN }

func TestULPSaysWhyItHasNoBuffer(t *testing.T) {
	r := newRig(t)
	s := NewStream(StreamConfig{ID: testStream, PD: testPD, Queues: 1, Table: r.table, ULP: strict{r.ulp}})
	s.Attach(new(lower))
	var p Placed
	s.Place(untaggedSeg(true, 0, 1, 0, nil), &p)
	check.That(t, p.Err != nil && p.Err.Code == CodeInvalidQN, "%v", p.Err)
}

func TestBufferThatHasLessMemoryTakesNothing(t *testing.T) {
	// req 5041-7.2-1
	mem := make([]byte, 8)
	r := newRig(t)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Access: LocalWrite})
	rebound := must.Get(MakeRecvBuffer(Gather{{Region: reg, Len: 8}}, 1))(t)
	must.OK(t, r.table.Rebind(reg, Bytes(mem[:4]), 0, LocalWrite))
	for name, b := range map[string]RecvBuffer{
		"rebound":            rebound,
		"longer than memory": {Pieces: Gather{{Mem: Bytes(mem[:4]), Len: 8}}, Len: 8},
		"beyond its pieces":  {Pieces: Gather{{Mem: Bytes(mem[:4]), Len: 4}}, Len: 8},
	} {
		r := newRig(t)
		must.OK(t, r.ulp.queues[0].Post(b))
		clear(mem)
		p := r.placeSegment(untaggedSeg(true, 0, 1, 0, patternOf(8)))
		check.That(t, p.Err != nil && p.Err.Type == TypeLocal && isZero(mem[4:]), "%s: %v, memory %x", name, p.Err, mem)
	}
}

// short is a device that writes less than it is asked to and calls that a success.
type short struct{}

func (*short) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

func (*short) WriteAt(p []byte, _ int64) (int, error) { return len(p) / 2, nil }

// What a device has not taken in whole is not placed.
func TestDeviceThatWritesTooLittle(t *testing.T) {
	// req 5041-7.2-1
	r := newRig(t)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Device(&short{}, 8), Access: RemoteWrite})
	p := r.placeSegment(taggedSeg(true, 0, reg.STag(), 0, patternOf(8)))
	check.That(t, p.Err != nil && p.Err.Type == TypeLocal && errors.Is(p.Err, io.ErrShortWrite), "%v", p.Err)
}
