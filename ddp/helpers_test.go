package ddp

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// recorder is a ULP that keeps a log of what it is told. Queue 0 is its receive queue; the right
// needed for tagged segments is RemoteWrite unless need says otherwise.
type recorder struct {
	log       []string
	fault     *Error
	queues    []*Queue
	need      Access
	refuse    *Error
	onFatal   func()
	onFail    func()
	onMsg     func()
	onDrained func()
}

func (u *recorder) addLine(format string, args ...any) {
	u.log = append(u.log, fmt.Sprintf(format, args...))
}

func (u *recorder) AdmitTagged(rsvd uint8, r *Region, stag STag, to uint64, n int) (Access, *Error) {
	return u.need, u.refuse
}

func (u *recorder) Buffer(qn, msn uint32, _ [5]byte) (*RecvBuffer, uint8) {
	return u.queues[qn].Lookup(msn)
}

func (u *recorder) DeliverTagged(rsvd uint8, stag STag, to, length uint64) {
	u.addLine("tagged rsvd=%#x stag=%#x to=%d len=%d", rsvd, uint32(stag), to, length)
	if u.onMsg != nil {
		u.onMsg()
	}
}

func (u *recorder) DeliverUntagged(qn, msn uint32, rsvd [5]byte, length uint32, b *RecvBuffer) {
	u.addLine("untagged qn=%d msn=%d rsvd=%x len=%d token=%d", qn, msn, rsvd, length, b.Token)
	u.queues[qn].Pop()
	if u.onMsg != nil {
		u.onMsg()
	}
}

func (u *recorder) Completed(token uint64) { u.addLine("completed %d", token) }
func (u *recorder) Failed(token uint64, err error) {
	u.addLine("failed %d: %v", token, err)
	if u.onFail != nil {
		u.onFail()
	}
}
func (u *recorder) Drained() {
	if u.onDrained != nil {
		u.onDrained()
	}
}
func (u *recorder) PeerClosed() { u.addLine("peer closed") }
func (u *recorder) Fatal(err *Error) {
	u.fault = err
	u.addLine("fatal %#x/%#02x", uint8(err.Type), err.Code)
	if u.onFatal != nil {
		u.onFatal()
	}
}

func (u *recorder) checkLog(t *testing.T, want ...string) {
	t.Helper()
	must.Slice(t, "what the ULP was told", u.log, want)
	u.log = nil
}

// lower is an LLP that counts what it is asked.
type lower struct {
	mulpdu                 int
	ready, finish, aborted int
}

func (l *lower) MULPDU() int { return l.mulpdu }
func (l *lower) Ready()      { l.ready++ }
func (l *lower) Finish()     { l.finish++ }
func (l *lower) Abort()      { l.aborted++ }

// entropy is a fixed source of randomness.
type entropy struct{ n byte }

func (e *entropy) Read(p []byte) (int, error) {
	for i := range p {
		e.n += 7
		p[i] = e.n
	}
	return len(p), nil
}

const (
	testPD     PD       = 5
	testStream StreamID = 9
)

type rig struct {
	*Stream
	ulp   *recorder
	llp   *lower
	table *Table
}

// newRig returns an attached stream with three queues of depth 4.
func newRig(t testing.TB) *rig {
	t.Helper()
	u := &recorder{need: RemoteWrite, queues: []*Queue{NewQueue(4), NewQueue(4), NewQueue(4)}}
	tab := NewTable(new(entropy))
	s := NewStream(StreamConfig{ID: testStream, PD: testPD, Table: tab, ULP: u, Queues: 3})
	r := &rig{Stream: s, ulp: u, llp: &lower{mulpdu: 1500}, table: tab}
	s.Attach(r.llp)
	return r
}

func (r *rig) registerRegion(t testing.TB, sp Spec) *Region {
	t.Helper()
	reg := must.Get(r.table.Register(sp))(t)
	t.Cleanup(func() { check.Equal(t, "accesses to a region never end", reg.accessState.Load()&accessCountMask, 0) })
	return reg
}

func (r *rig) postBuffer(t testing.TB, qn int, token uint64, pieces ...[]byte) {
	t.Helper()
	b := must.Get(MakeRecvBuffer(gatherOf(pieces...), token))(t)
	must.OK(t, r.ulp.queues[qn].Post(b))
}

// deliverSegment places and delivers a segment.
func (r *rig) deliverSegment(seg []byte) {
	var p Placed
	r.Place(seg, &p)
	r.Deliver(&p)
}

func (r *rig) placeSegment(seg []byte) Placed {
	var p Placed
	r.Place(seg, &p)
	return p
}

// cutAll takes every segment that there is, as wire octets.
func (r *rig) cutAll(max int) [][]byte {
	var out [][]byte
	var seg Segment
	for r.NextSegment(max, &seg) {
		out = append(out, wireBytes(&seg))
	}
	return out
}

func wireBytes(s *Segment) []byte {
	return slices.Concat(s.Header[:s.HeaderLen], s.Body[0], s.Body[1])
}

func gatherOf(pieces ...[]byte) Gather {
	g := Gather{}
	for _, p := range pieces {
		g = append(g, Piece{Mem: Bytes(p), Len: uint64(len(p))})
	}
	return g
}

func taggedSeg(last bool, rsvd uint8, stag STag, to uint64, payload []byte) []byte {
	b := make([]byte, TaggedHeaderLen)
	Tagged{Last: last, Rsvd: rsvd, STag: stag, TO: to}.Put(b)
	return append(b, payload...)
}

func untaggedSeg(last bool, qn, msn, mo uint32, payload []byte) []byte {
	b := make([]byte, UntaggedHeaderLen)
	Untagged{Last: last, Rsvd: [5]byte{1, 2, 3, 4, 5}, QN: qn, MSN: msn, MO: mo}.Put(b)
	return append(b, payload...)
}

// patternOf returns n octets that differ from their neighbours.
func patternOf(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + 1)
	}
	return b
}

func isZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }
