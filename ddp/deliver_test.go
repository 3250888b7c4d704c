package ddp

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestPlacementOutOfOrderDeliveryInOrder(t *testing.T) {
	r := newRig(t)
	tagged, a, b := make([]byte, 30), make([]byte, 30), make([]byte, 30)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(tagged), Base: 7, Access: RemoteWrite})
	r.postBuffer(t, 0, 100, a)
	r.postBuffer(t, 0, 101, b)
	msg := patternOf(30)
	segs := [][]byte{
		taggedSeg(false, 0x40, reg.STag(), 7, msg[:10]),
		taggedSeg(true, 0x40, reg.STag(), 17, msg[10:]),
		untaggedSeg(false, 0, 1, 0, msg[:20]),
		untaggedSeg(true, 0, 1, 20, msg[20:]),
		untaggedSeg(true, 0, 2, 0, msg[:3]),
	}
	placed := make([]Placed, len(segs))
	for _, i := range []int{4, 3, 1, 0, 2} { // req 5041-5.3-3
		r.Place(segs[i], &placed[i])
	}
	// req 5041-5.2-4
	must.That(t, bytes.Equal(tagged, msg) && bytes.Equal(a, msg) && bytes.Equal(b[:3], msg[:3]), "not placed")
	r.ulp.checkLog(t)
	// req 5041-5.4-2, 5041-5.3-6: each message at its last segment, in the sender's order.
	r.Deliver(&placed[0])
	r.ulp.checkLog(t)
	r.Deliver(&placed[1])
	r.ulp.checkLog(t, "tagged rsvd=0x40 stag="+hexText(reg.STag())+" to=7 len=30") // req 5041-4.2-3, 5041-4.2-6
	r.Deliver(&placed[2])
	r.ulp.checkLog(t)
	r.Deliver(&placed[3])
	// req 5041-5.4-3, 5041-4.3-3, 5040-3.1-4, 5040-3.1-5: length is MO plus payload of the last
	// segment.
	r.ulp.checkLog(t, "untagged qn=0 msn=1 rsvd=0102030405 len=30 token=100")
	r.Deliver(&placed[4])
	// req 5041-1.2-2: shorter than its buffer, which is used up.
	r.ulp.checkLog(t, "untagged qn=0 msn=2 rsvd=0102030405 len=3 token=101")
	check.Equal(t, "buffers left", r.ulp.queues[0].Len(), 0)
	r.Deliver(&Placed{})
	r.ulp.checkLog(t)
}

func hexText(s STag) string { return fmt.Sprintf("%#x", uint32(s)) }

func TestTaggedBufferIsWrittenAgain(t *testing.T) {
	r := newRig(t)
	mem := make([]byte, 4)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Access: RemoteWrite})
	for _, s := range []string{"once", "more", "yes!"} {
		r.deliverSegment(taggedSeg(true, 0, reg.STag(), 0, []byte(s))) // req 5041-5.1.1-1
		must.Equal(t, "memory", string(mem), s)
	}
}

func TestMSNWrapOnReceive(t *testing.T) {
	r := newRig(t)
	r.recvMSN[0], r.ulp.queues[0].nextMSN = math.MaxUint32, math.MaxUint32
	bufs := [3][1]byte{}
	for i := range bufs {
		r.postBuffer(t, 0, uint64(i), bufs[i][:])
	}
	late := r.placeSegment(untaggedSeg(true, 0, 1, 0, []byte{3}))
	// req 5041-4.3-8, 5041-5.1.2-1: 0xFFFFFFFF, 0, 1 are the first, second and third buffer.
	r.deliverSegment(untaggedSeg(true, 0, math.MaxUint32, 0, []byte{1}))
	r.deliverSegment(untaggedSeg(true, 0, 0, 0, []byte{2}))
	r.Deliver(&late)
	check.Equal(t, "buffers", bufs, [3][1]byte{{1}, {2}, {3}})
	r.ulp.checkLog(t, "untagged qn=0 msn=4294967295 rsvd=0102030405 len=1 token=0",
		"untagged qn=0 msn=0 rsvd=0102030405 len=1 token=1", "untagged qn=0 msn=1 rsvd=0102030405 len=1 token=2")
	r.deliverSegment(untaggedSeg(true, 0, math.MaxUint32, 0, []byte{1})) // req 5041-7.1-5
	r.ulp.checkLog(t, "fatal 0x2/0x03")
}

func TestMessageIsDeliveredOnce(t *testing.T) {
	r := newRig(t)
	r.postBuffer(t, 0, 1, make([]byte, 8))
	r.postBuffer(t, 0, 2, make([]byte, 8))
	seg := untaggedSeg(true, 0, 1, 0, []byte{1})
	first, second := r.placeSegment(seg), r.placeSegment(seg) // both arrive before the first is delivered
	r.Deliver(&first)
	r.Deliver(&second) // req 5041-5.3-5
	r.ulp.checkLog(t, "untagged qn=0 msn=1 rsvd=0102030405 len=1 token=1", "fatal 0x2/0x03")
	checkReport(t, r.ulp.fault, seg)
}

func TestSegmentOfADeliveredMessage(t *testing.T) {
	// req 5041-5.3-5
	r := newRig(t)
	r.postBuffer(t, 0, 1, make([]byte, 8))
	stray := untaggedSeg(false, 0, 1, 2, []byte{1})
	late := r.placeSegment(stray) // arrives in time, but was sent after the last segment
	r.deliverSegment(untaggedSeg(true, 0, 1, 0, []byte{1}))
	r.Deliver(&late) // req 5041-7.1-5
	r.ulp.checkLog(t, "untagged qn=0 msn=1 rsvd=0102030405 len=1 token=1", "fatal 0x2/0x03")
	checkReport(t, r.ulp.fault, stray)
}

// A peer that breaks messages off must not make DDP report octets of one message with another.
func TestTaggedMessageThatIsBrokenOff(t *testing.T) {
	r := newRig(t)
	mem := Bytes(make([]byte, 100))
	a := r.registerRegion(t, Spec{PD: testPD, Mem: mem, Access: RemoteWrite})
	b := r.registerRegion(t, Spec{PD: testPD, Mem: mem, Access: RemoteWrite})
	r.postBuffer(t, 0, 1, make([]byte, 8))
	r.deliverSegment(taggedSeg(false, 0, a.STag(), 0, make([]byte, 10)))
	r.deliverSegment(taggedSeg(true, 0, b.STag(), 50, make([]byte, 1)))
	r.ulp.checkLog(t, "tagged rsvd=0x0 stag="+hexText(b.STag())+" to=50 len=1")
	r.deliverSegment(taggedSeg(false, 0, a.STag(), 0, make([]byte, 10)))
	r.deliverSegment(untaggedSeg(true, 0, 1, 0, nil))
	r.deliverSegment(taggedSeg(true, 0, a.STag(), 60, make([]byte, 4)))
	r.ulp.checkLog(t, "untagged qn=0 msn=1 rsvd=0102030405 len=0 token=1", "tagged rsvd=0x0 stag="+hexText(a.STag())+
		" to=60 len=4")
	// An empty last segment ends the message that it follows, whatever STag it names.
	r.deliverSegment(taggedSeg(false, 0, a.STag(), 5, make([]byte, 10)))
	r.deliverSegment(taggedSeg(true, 0, b.STag(), 15, nil))
	r.ulp.checkLog(t, "tagged rsvd=0x0 stag="+hexText(b.STag())+" to=5 len=10")
}

func TestMSNMustNotSkipAtDelivery(t *testing.T) {
	// req 5041-5.3-6
	r := newRig(t)
	r.postBuffer(t, 0, 1, make([]byte, 8))
	r.postBuffer(t, 0, 2, make([]byte, 8))
	r.deliverSegment(untaggedSeg(true, 0, 2, 0, []byte{1})) // req 5041-5.4-2: message 1 was not delivered
	r.ulp.checkLog(t, "fatal 0x2/0x03")
}

func TestFaultIsReportedInItsTurn(t *testing.T) {
	r := newRig(t)
	mem := make([]byte, 8)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Access: RemoteWrite})
	bad := taggedSeg(true, 0, reg.STag(), 8, []byte{1})
	later := r.placeSegment(bad)
	first := r.placeSegment(taggedSeg(true, 0, reg.STag(), 0, []byte{1}))
	r.ulp.checkLog(t)
	r.Deliver(&first)
	r.Deliver(&later) // req 5041-6.2.2-1, 5041-7.1-14
	r.ulp.checkLog(t, "tagged rsvd=0x0 stag="+hexText(reg.STag())+" to=0 len=1", "fatal 0x1/0x01")
	checkReport(t, r.ulp.fault, bad)

	// req 5041-7.1-16: every later segment is dropped silently, also those placed before.
	r.Deliver(&first)
	r.deliverSegment(taggedSeg(true, 0, reg.STag(), 2, []byte{7}))
	r.deliverSegment(bad)
	r.ulp.checkLog(t)
	check.Equal(t, "memory after the error was reported", mem[2], 0)
	// req 5041-6.2-1, 5041-6.2.2-4
	check.Equal(t, "teardown without a request of the ULP", r.llp.aborted+r.llp.finish, 0)
}

func TestOneMoreMessageAfterAFault(t *testing.T) {
	r := newRig(t)
	_ = r.SendUntagged(0, [5]byte{}, nil, 1)
	r.deliverSegment([]byte{0})
	r.ulp.checkLog(t, "fatal 0x2/0x06")
	err := r.SendUntagged(2, [5]byte{}, nil, 2)
	must.That(t, err == nil, "last message: %v", err) // req 5041-6.2.2-3, 5041-7.1-17
	check.Equal(t, "message after the last", r.SendUntagged(2, [5]byte{}, nil, 3), ErrFaulted)
	segs := r.cutAll(1500)
	check.That(t, len(segs) == 2 && UntaggedView(segs[1]).QN() == 2, "%d segments", len(segs))
}

func TestULPFindsAFaultInADeliveredMessage(t *testing.T) {
	r := newRig(t)
	r.postBuffer(t, 0, 1, make([]byte, 99))
	own := errors.New("unexpected opcode")
	var report *Error
	r.ulp.onMsg = func() { report = r.Fail(TypeLocal, 0, own) }
	seg := append([]byte{0x7D}, untaggedSeg(true, 0, 1, 0, patternOf(9))[1:]...)
	r.deliverSegment(seg)
	must.That(t, report != nil && errors.Is(report, own), "report %v", report)
	checkReport(t, report, seg) // the header as received, reserved bits included
	r.ulp.log = nil
	r.deliverSegment([]byte{0})
	r.ulp.checkLog(t)
	_ = r.SendUntagged(2, [5]byte{}, nil, 2)
	check.Equal(t, "more than one message after a fault", r.SendUntagged(2, [5]byte{}, nil, 3), ErrFaulted)
	e := r.Fail(TypeLocal, 0, own)
	check.That(t, e.HeaderLen == 0 && e.SegmentLen == 0, "report outside a delivery quotes a header: %+v", e)
}

func TestStreamsAreIndependent(t *testing.T) {
	a := newRig(t)
	u := &recorder{queues: []*Queue{NewQueue(1)}}
	b := NewStream(StreamConfig{ID: 10, PD: testPD, Table: a.table, ULP: u, Queues: 1})
	b.Attach(new(lower))
	a.deliverSegment([]byte{0}) // req 5041-1.2-1: a fault on one stream is none of the other's
	buf, _ := MakeRecvBuffer(nil, 1)
	_ = u.queues[0].Post(buf)
	var p Placed
	b.Place(untaggedSeg(true, 0, 1, 0, nil), &p)
	b.Deliver(&p)
	u.checkLog(t, "untagged qn=0 msn=1 rsvd=0102030405 len=0 token=1")
	// req 5041-8.2-2, 5041-8.3-3: an STag of the one stream does not work on the other.
	reg := a.registerRegion(t, Spec{PD: testPD, Mem: Bytes(make([]byte, 1)), Access: RemoteWrite, Scope: testStream})
	b.Place(taggedSeg(true, 0, reg.STag(), 0, []byte{1}), &p)
	check.That(t, p.Err != nil && p.Err.Code == CodeNotAssociated, "stream-scoped STag on another stream: %v", p.Err)
}

// A peer sends the end of a message and not the rest of it: what a buffer, shared with others,
// holds of somebody else's message is not delivered as this peer's.
func TestMessageIsDeliveredWhole(t *testing.T) {
	// req 5041-5.4-2
	type seg struct {
		mo   uint32
		n    int
		last bool
	}
	var scattered []seg
	for i := range maxGapSpans + 1 {
		scattered = append(scattered, seg{mo: uint32(2 + 2*i), n: 1})
	}
	for _, row := range []struct {
		name  string
		segs  []seg
		cause error
	}{
		{"the last segment alone", []seg{{5, 3, true}}, ErrIncomplete},
		{"a last segment without payload, far behind", []seg{{8, 0, true}}, ErrIncomplete},
		{"one octet is missing", []seg{{0, 4, false}, {5, 3, true}}, ErrIncomplete},
		{"the first octet is missing", []seg{{1, 4, false}, {5, 3, true}}, ErrIncomplete},
		{"the first segment twice in place of the second", []seg{{0, 3, false}, {0, 3, false}, {6, 2, true}}, ErrIncomplete},
		{"segments that overlap, and leave a gap", []seg{{4, 3, false}, {3, 2, false}, {0, 2, false}, {1, 1, false}, {7, 1, true}}, ErrIncomplete},
		{"pieces that stand apart, more than are kept", scattered, ErrScattered},
		{"in order", []seg{{0, 3, false}, {3, 3, false}, {6, 2, true}}, nil},
		{"in the order of a sender's own", []seg{{3, 2, false}, {6, 1, false}, {0, 3, false}, {5, 1, false}, {7, 1, true}}, nil},
		{"backwards", []seg{{6, 1, false}, {5, 1, false}, {4, 1, false}, {3, 1, false}, {2, 1, false}, {1, 1, false}, {0, 1, false}, {7, 1, true}}, nil},
		{"segments that overlap", []seg{{2, 4, false}, {0, 3, false}, {1, 5, false}, {5, 3, true}}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t)
			r.postBuffer(t, 0, 1, bytes.Repeat([]byte{'s'}, 8+2*len(scattered)))
			r.postBuffer(t, 0, 2, make([]byte, 8))
			for _, s := range row.segs {
				b := untaggedSeg(s.last, 0, 1, s.mo, bytes.Repeat([]byte{'m'}, s.n))
				if !s.last {
					b[1] = 0xFF // req 5041-4.3-4: the RsvdULP values differ
				}
				r.deliverSegment(b)
			}
			if row.cause != nil {
				r.ulp.checkLog(t, "fatal 0x2/0x04")
				check.Error(t, "because", r.ulp.fault, row.cause)
				return
			}
			r.ulp.checkLog(t, "untagged qn=0 msn=1 rsvd=0102030405 len=8 token=1")
			r.deliverSegment(untaggedSeg(true, 0, 2, 1, []byte{1})) // the next one begins anew
			r.ulp.checkLog(t, "fatal 0x2/0x04")
		})
	}
}

// A segment of the next message fills no gap of this one.
func TestGapIsNotFilledByTheNextMessage(t *testing.T) {
	r := newRig(t)
	r.postBuffer(t, 0, 1, make([]byte, 8))
	r.postBuffer(t, 0, 2, make([]byte, 8))
	for _, s := range [][]byte{untaggedSeg(false, 0, 1, 0, []byte{1, 2}), untaggedSeg(false, 0, 2, 2, []byte{3, 4}),
		untaggedSeg(true, 0, 1, 4, []byte{5})} {
		r.deliverSegment(s)
	}
	r.ulp.checkLog(t, "fatal 0x2/0x04")
}

// What has come of a message is known to the octet, in whatever order, as long as no more than
// maxGapSpans pieces stand apart.
func TestWhatHasComeIsKnownToTheOctet(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5041, 1))
	for range 3_000 {
		var c receivedRanges
		var come [64]bool
		for range 40 {
			from := rnd.IntN(60)
			to := from + rnd.IntN(6)
			for i := from; i < to; i++ {
				come[i] = true
			}
			apart, whole := 0, slices.Index(come[:], false)
			for i := whole; i < len(come); i++ {
				if come[i] && !come[i-1] {
					apart++
				}
			}
			ok := c.addRange(uint64(from), uint64(to))
			must.That(t, from >= to || ok == (apart <= maxGapSpans), "%d pieces apart: taken in %v", apart, ok)
			if !ok {
				break
			}
			must.That(t, c.isComplete(uint64(whole)) && !c.isComplete(uint64(whole+1)),
				"%d octets have come, and %+v", whole, c)
		}
	}
}

func TestErrorNumbers(t *testing.T) {
	// req 5041-7.2-1, 5041-7.2-2, 5041-7.2-3, 5041-7.2-4: the table of section 7.2.
	types := []ErrorType{TypeLocal, TypeTagged, TypeUntagged, TypeLLP}
	tagged := []uint8{CodeInvalidSTag, CodeBaseBounds, CodeNotAssociated, CodeTOWrap, CodeTaggedVersion}
	untagged := []uint8{0, CodeInvalidQN, CodeNoBuffer, CodeMSNRange, CodeInvalidMO, CodeTooLong, CodeUntaggedVersion}
	for i, typ := range types {
		check.That(t, int(typ) == i, "type %d has number %#x", i, typ)
	}
	for i, c := range tagged {
		check.That(t, int(c) == i, "tagged code %d has number %#x", i, c)
	}
	for i, c := range untagged {
		check.That(t, int(c) == i, "untagged code %d has number %#x", i, c)
	}
}

func TestErrorTexts(t *testing.T) {
	seen := map[string]bool{}
	for typ, codes := range map[ErrorType][]uint8{
		TypeLocal:    {0},
		TypeTagged:   {0, 1, 2, 3, 4},
		TypeUntagged: {1, 2, 3, 4, 5, 6},
		TypeLLP:      {0},
		7:            {9},
	} {
		for _, c := range codes {
			s := (&Error{Type: typ, Code: c}).Error()
			check.That(t, !seen[s] && strings.Contains(s, "error type 0x7 code 0x09") == (typ == 7) &&
				strings.Contains(s, "error type") == (typ == 7), "%d/%d: not the words for it: %s", typ, c, s)
			seen[s] = true
		}
	}
}

// generous has a buffer for every message, also for one that was delivered.
type generous struct {
	*recorder
	buf RecvBuffer
}

func (g *generous) Buffer(uint32, uint32, [5]byte) (*RecvBuffer, uint8) { return &g.buf, 0 }

func (g *generous) DeliverUntagged(qn, msn uint32, _ [5]byte, n uint32, _ *RecvBuffer) {
	g.addLine("untagged %d/%d: %d", qn, msn, n)
}

// stingy has a buffer for no message.
type stingy struct {
	*recorder
	code uint8
}

func (s *stingy) Buffer(uint32, uint32, [5]byte) (*RecvBuffer, uint8) { return nil, s.code }

func TestUpperLayerSaysWhyItHasNoBuffer(t *testing.T) {
	for code, want := range map[uint8]uint8{0: CodeNoBuffer, CodeNoBuffer: CodeNoBuffer, CodeMSNRange: CodeMSNRange} {
		s := NewStream(StreamConfig{ID: 1, Table: NewTable(new(entropy)), ULP: &stingy{new(recorder), code}, Queues: 1})
		s.Attach(new(lower))
		var p Placed
		s.Place(untaggedSeg(true, 0, 1, 0, []byte{1}), &p)
		check.That(t, p.Err != nil && p.Err.Type == TypeUntagged && p.Err.Code == want, "code %d: %v", code, p.Err)
	}
}

// A message that was delivered is not placed again, whatever the upper layer says of its buffer.
func TestDeliveredMessageIsNotPlacedAgain(t *testing.T) {
	// req 5041-7.1-5, 5041-5.3-5
	mem := make([]byte, 8)
	g := &generous{recorder: new(recorder)}
	g.buf = must.Get(MakeRecvBuffer(gatherOf(mem), 0))(t)
	s := NewStream(StreamConfig{ID: testStream, PD: testPD, Table: NewTable(new(entropy)), ULP: g, Queues: 1})
	s.Attach(&lower{mulpdu: 1500})
	r := &rig{Stream: s}
	r.deliverSegment(untaggedSeg(true, 0, 1, 0, []byte("first")))
	clear(mem) // the user's again
	p := r.placeSegment(untaggedSeg(true, 0, 1, 0, []byte("again")))
	check.That(t, p.Err != nil && p.Err.Type == TypeUntagged && p.Err.Code == CodeMSNRange && isZero(mem),
		"%v, memory %q", p.Err, mem)
}
