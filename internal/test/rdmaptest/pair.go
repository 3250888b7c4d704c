// Package rdmaptest is the harness of rdma/rdmap. It has two ends of a stream with the wire between
// them, and the segments of a hostile peer. A player tells what comes of a step. Parties know how
// everything must end.
package rdmaptest

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// Ring is a CQ for tests.
type Ring struct{ wcs []rdmap.WC }

func (r *Ring) Push(wc rdmap.WC) { r.wcs = append(r.wcs, wc) }

// Take returns what has completed since the last call.
func (r *Ring) Take() []rdmap.WC {
	w := r.wcs
	r.wcs = nil
	return w
}

// NewSeed is the randomness of the STags.
func NewSeed(b byte) io.Reader { return rand.NewChaCha8([32]byte{b}) }

// checkedLock is one that nobody else wants: who takes it has given it back before.
type checkedLock struct {
	t    testing.TB
	held bool
}

func (l *checkedLock) Lock()   { must.That(l.t, !l.held, "a lock is taken twice"); l.held = true }
func (l *checkedLock) Unlock() { must.That(l.t, l.held, "a lock is given back twice"); l.held = false }

// End is one side of a tiny lower layer: it implements ddp.LLP and Host.
type End struct {
	t     testing.TB
	QP    *rdmap.QP
	Table *ddp.Table
	SCQ   Ring
	RCQ   Ring
	Size  int // of a segment: the MULPDU

	Sent     [][]byte // segments on their way to the peer, in order of submission
	Log      [][]byte // every segment that was cut
	Unacked  int      // segments that arrived at the peer and are not acknowledged
	Detached int
	Parts    int // that Host.Detach takes
	Failures []*rdmap.StreamError
	Shared   bool
	Finished bool // LLP.Finish
	Aborted  bool // LLP.Abort
	gone     bool // the peer has been told, or the own stream was closed
	ClosedBy int  // Host.PeerClosed
	High     int  // Host.HighWater
	Fault    *rdmap.InternalError
	Flushes  bool // Host.FlushLater
}

func (e *End) MULPDU() int                     { return e.Size }
func (e *End) Ready()                          {}
func (e *End) Finish()                         { e.Finished = true }
func (e *End) Abort()                          { e.Aborted = true }
func (e *End) SharedRegion(r *ddp.Region) bool { return e.Shared }
func (e *End) FlushLater()                     { e.Flushes = true }
func (e *End) HighWater()                      { e.High++ }
func (e *End) Broken(err *rdmap.InternalError) { e.Fault = err }
func (e *End) Detach() bool                    { e.Detached++; return e.Detached < e.Parts }
func (e *End) Failed(err *rdmap.StreamError)   { e.Failures = append(e.Failures, err) }
func (e *End) PeerClosed()                     { e.ClosedBy++ }

// PD is the protection domain of all that is not foreign.
const PD = 7

// NewEnd makes an end with room for everything a test posts.
func NewEnd(t testing.TB, id byte, change func(*rdmap.Config)) *End {
	e := &End{t: t, Size: 100, Table: ddp.NewTable(NewSeed(id))}
	cfg := rdmap.Config{Table: e.Table, PD: PD, Stream: ddp.StreamID(id), QPNum: uint32(id),
		SendCQ: &e.SCQ, RecvCQ: &e.RCQ, Host: e,
		MaxSend: 16, MaxRecv: 16, MaxSGE: 3, MaxInline: 32, IRD: 2, ORD: 2}
	cfg.RecvLock = &checkedLock{t: t}
	if change != nil {
		change(&cfg)
	}
	e.QP = must.Get(rdmap.NewQP(cfg))(t)
	e.QP.Stream().Attach(e)
	return e
}

// Memory registers n octets with the rights given.
func (e *End) Memory(n int, a ddp.Access) (*ddp.Region, []byte) {
	b := make([]byte, n)
	r := must.Get(e.Table.Register(ddp.Spec{PD: PD, Mem: ddp.Bytes(b), Base: 1 << 40, Access: a}))(e.t)
	return r, b
}

// SGE names octets [off, off+n) of r.
func SGE(r *ddp.Region, off, n int) rdmap.SGE {
	return rdmap.SGE{LKey: r.STag(), Addr: r.Base() + uint64(off), Len: uint32(n)}
}

// Post and Recv end the test where the QP takes no more.
func (e *End) Post(wr rdmap.SendWR) {
	e.t.Helper()
	must.Error(e.t, "PostSend", e.QP.PostSend(&wr), nil)
}

func (e *End) Recv(id uint64, r *ddp.Region, off, n int) {
	e.t.Helper()
	must.Error(e.t, "PostRecv", e.QP.PostRecv(&rdmap.RecvWR{ID: id, SGL: []rdmap.SGE{SGE(r, off, n)}}), nil)
}

// CutOne puts the next segment on the wire.
func (e *End) CutOne() bool {
	var seg ddp.Segment
	ok := e.QP.Stream().NextSegment(e.Size, &seg)
	if e.Flushes {
		e.Flushes = false
		e.QP.Flush()
	}
	if !ok {
		return false
	}
	b := append([]byte(nil), seg.Header[:seg.HeaderLen]...)
	b = append(append(b, seg.Body[0]...), seg.Body[1]...)
	must.That(e.t, len(b) <= e.Size, "segment of %d octets, MULPDU is %d", len(b), e.Size)
	e.Sent, e.Log = append(e.Sent, b), append(e.Log, b)
	return true
}

func (e *End) CutAll() (n int) {
	for e.CutOne() {
		n++
	}
	return n
}

// Pair is two ends and the wire between them.
type Pair struct {
	A, B *End
	Rnd  *rand.Rand // places segments out of order when set
	Lazy bool       // acknowledgements wait for Ack
}

func NewPair(t testing.TB, change func(*rdmap.Config)) *Pair {
	p := &Pair{A: NewEnd(t, 1, change), B: NewEnd(t, 2, change)}
	p.A.QP.Start()
	p.B.QP.Start()
	return p
}

// Arrive hands n segments from one end to the other: placed in any order, delivered in order.
func (p *Pair) Arrive(from, to *End, n int) {
	n = min(n, len(from.Sent))
	batch := from.Sent[:n]
	from.Sent = from.Sent[n:]
	placed := make([]ddp.Placed, n)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if p.Rnd != nil {
		p.Rnd.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	fault := n
	for _, i := range order {
		if i < fault {
			if to.QP.Stream().Place(batch[i], &placed[i]); placed[i].Err != nil {
				fault = i
			}
		}
	}
	for i := range placed {
		if i <= fault {
			to.QP.Stream().Deliver(&placed[i])
		}
	}
	from.Unacked += n
}

func (e *End) Ack() {
	for ; e.Unacked > 0; e.Unacked-- {
		e.QP.Stream().Acked()
	}
}

// moveOnce moves everything one way once and reports progress.
func (p *Pair) moveOnce(from, to *End) bool {
	n := from.CutAll()
	n = max(n, len(from.Sent))
	p.Arrive(from, to, n)
	if !p.Lazy {
		n += from.Unacked
		from.Ack()
	}
	if (from.Finished || from.Aborted) && !from.gone {
		from.gone = true
		to.QP.Stream().HalfClosed()
		n++
	}
	if from.Aborted {
		from.QP.Stream().Closed(nil)
	}
	return n > 0
}

// Run lets both ends talk until nothing moves.
func (p *Pair) Run() {
	for i := 0; ; i++ {
		x, y := p.moveOnce(p.A, p.B), p.moveOnce(p.B, p.A)
		if !x && !y {
			return
		}
		must.That(p.A.t, i <= 100000, "the ends never come to rest")
	}
}

// Wants compares completions by ID, status and operation.
func Wants(t testing.TB, what string, got []rdmap.WC, want ...rdmap.WC) {
	t.Helper()
	must.That(t, len(got) == len(want), "%s: %d completions %v, want %d", what, len(got), got, len(want))
	for i := range want {
		g, w := got[i], want[i]
		must.That(t, g.ID == w.ID && g.Status == w.Status && g.Opcode == w.Opcode,
			"%s: completion %d is {ID %d, %v, %v}, want {ID %d, %v, %v}", what, i, g.ID, g.Status, g.Opcode, w.ID,
			w.Status, w.Opcode)
	}
}

func Fill(b []byte, from byte) {
	for i := range b {
		b[i] = from + byte(i)
	}
}

func Same(t testing.TB, what string, got, want []byte) {
	t.Helper()
	must.Slice(t, what, got, want)
}

// Untagged and Tagged make raw segments for a hostile peer.
func Untagged(qn, msn uint32, rsvd [5]byte, mo uint32, last bool, payload []byte) []byte {
	b := make([]byte, ddp.UntaggedHeaderLen, ddp.UntaggedHeaderLen+len(payload))
	ddp.Untagged{Last: last, Rsvd: rsvd, QN: qn, MSN: msn, MO: mo}.Put(b)
	return append(b, payload...)
}

// Rsvd is the RsvdULP of an untagged message.
func Rsvd(op rdmap.Opcode, inv ddp.STag) (r [5]byte) {
	r[0] = rdmap.Control(op)
	binary.BigEndian.PutUint32(r[1:], uint32(inv))
	return r
}

func Tagged(rsvd uint8, tag ddp.STag, to uint64, last bool, payload []byte) []byte {
	b := make([]byte, ddp.TaggedHeaderLen, ddp.TaggedHeaderLen+len(payload))
	ddp.Tagged{Last: last, Rsvd: rsvd, STag: tag, TO: to}.Put(b)
	return append(b, payload...)
}

// Inject delivers raw segments.
func (e *End) Inject(segs ...[]byte) {
	for _, s := range segs {
		var p ddp.Placed
		e.QP.Stream().Place(s, &p)
		e.QP.Stream().Deliver(&p)
	}
}

// LastTerminate returns the Terminate that the end sent as its last message, and fails when there
// is none.
func (e *End) LastTerminate() (rdmap.Terminate, []byte) {
	e.t.Helper()
	e.CutAll()
	must.That(e.t, len(e.Log) != 0, "nothing was sent")
	s := e.Log[len(e.Log)-1]
	v := ddp.UntaggedView(s)
	must.That(e.t, !v.Control().Tagged() && v.QN() == rdmap.QueueTerminate && v.MSN() == 1 &&
		v.RsvdULP() == [5]byte{0x47},
		"last segment is no Terminate: % x", s)
	return must.Get(rdmap.ParseTerminate(v.Payload()))(e.t), s
}

func IdlePair(t *testing.T, change func(*rdmap.Config)) *Pair {
	return &Pair{A: NewEnd(t, 1, change), B: NewEnd(t, 2, nil)}
}

// SharedPair is one sender and one receiver whose receives come from a shared queue.
func SharedPair(t testing.TB, depth, share int) (*Pair, *rdmap.SharedQueue, *ddp.Region, []byte) {
	p := &Pair{A: NewEnd(t, 1, nil)}
	var srq *rdmap.SharedQueue
	p.B = NewEnd(t, 2, func(c *rdmap.Config) {
		srq = must.Get(rdmap.NewSharedQueue(c.Table, c.PD, depth, 2))(t)
		c.SRQ, c.MaxRecv = srq, share
	})
	p.A.QP.Start()
	p.B.QP.Start()
	r, b := p.B.Memory(1000, ddp.LocalWrite)
	return p, srq, r, b
}

// Messages counts the DDP messages in a log and checks that each is one of RDMAP.
func Messages(t *testing.T, log [][]byte) (n int) {
	t.Helper()
	for _, s := range log {
		c := ddp.Control(s[0])
		control := s[1]
		if !c.Tagged() {
			rsvd := ddp.UntaggedView(s).RsvdULP()
			control = rsvd[0]
		}
		version, op := rdmap.SplitControl(control)
		check.That(t, version == 1 && op <= 7, "a segment that is no RDMAP: % x", s[:2])
		if c.Last() {
			n++
		}
	}
	return n
}

func Atomic(id uint64, r *ddp.Region, off int, op rdmap.AtomicOp) rdmap.SendWR {
	return rdmap.SendWR{ID: id, Op: rdmap.WRAtomic, RemoteSTag: r.STag(), RemoteTO: r.Base() + uint64(off), Atomic: op}
}

func Word(b []byte, i int) uint64 { return binary.NativeEndian.Uint64(b[8*i:]) }

// Originals checks completions of atomics that began with ID 0.
func Originals(t *testing.T, got []rdmap.WC, want ...uint64) {
	t.Helper()
	must.That(t, len(got) == len(want), "completions %v, want %d", got, len(want))
	for i, wc := range got {
		check.That(t, wc.ID == uint64(i) && wc.Status == rdmap.StatusSuccess && wc.Opcode == rdmap.WCAtomic &&
			wc.Original == want[i],
			"completion %+v, want atomic %d with original value %d", wc, i, want[i])
	}
}
