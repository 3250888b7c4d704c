package rdmap

import (
	"math/rand/v2"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/must"
)

// ring is a CQ for tests.
type ring struct{ wcs []WC }

func (r *ring) Push(wc WC) { r.wcs = append(r.wcs, wc) }

// take returns what has completed since the last call.
func (r *ring) take() []WC {
	w := r.wcs
	r.wcs = nil
	return w
}

// seed is the randomness of the STags.
type seed struct{ *rand.ChaCha8 }

func newSeed(b byte) seed { return seed{rand.NewChaCha8([32]byte{b})} }

// end is one side of a tiny lower layer: it implements ddp.LLP and Host.
type end struct {
	t      testing.TB
	qp     *QP
	table  *ddp.Table
	scq    ring
	rcq    ring
	mulpdu int

	sent     [][]byte // segments on their way to the peer, in order of submission
	log      [][]byte // every segment that was cut
	unacked  int      // segments that arrived at the peer and are not acknowledged
	detached int
	parts    int // that Host.Detach takes
	failed   []*StreamError
	shared   bool
	finish   bool // LLP.Finish
	abort    bool // LLP.Abort
	gone     bool // the peer has been told, or the own stream was closed
	closedBy int  // Host.PeerClosed
	high     int  // Host.HighWater
	broken   *InternalError
	flush    bool // Host.FlushLater
}

func (e *end) MULPDU() int                     { return e.mulpdu }
func (e *end) Ready()                          {}
func (e *end) Finish()                         { e.finish = true }
func (e *end) Abort()                          { e.abort = true }
func (e *end) SharedRegion(r *ddp.Region) bool { return e.shared }
func (e *end) FlushLater()                     { e.flush = true }
func (e *end) HighWater()                      { e.high++ }
func (e *end) Broken(err *InternalError)       { e.broken = err }
func (e *end) Detach() bool                    { e.detached++; return e.detached < e.parts }
func (e *end) Failed(err *StreamError)         { e.failed = append(e.failed, err) }
func (e *end) PeerClosed()                     { e.closedBy++ }

const testPD = 7

// newEnd makes an end with room for everything a test posts.
func newEnd(t testing.TB, id byte, change func(*Config)) *end {
	e := &end{t: t, mulpdu: 100, table: ddp.NewTable(newSeed(id))}
	cfg := Config{Table: e.table, PD: testPD, Stream: ddp.StreamID(id), QPNum: uint32(id),
		SendCQ: &e.scq, RecvCQ: &e.rcq, Host: e,
		MaxSend: 16, MaxRecv: 16, MaxSGE: 3, MaxInline: 32, IRD: 2, ORD: 2}
	if change != nil {
		change(&cfg)
	}
	qp := must.Get(NewQP(cfg))(t)
	e.qp = qp
	qp.Stream().Attach(e)
	return e
}

// memory registers n octets with the rights given.
func (e *end) memory(n int, a ddp.Access) (*ddp.Region, []byte) {
	b := make([]byte, n)
	r := must.Get(e.table.Register(ddp.Spec{PD: testPD, Mem: ddp.Bytes(b), Base: 1 << 40, Access: a}))(e.t)
	return r, b
}

// sge names octets [off, off+n) of r.
func sge(r *ddp.Region, off, n int) SGE {
	return SGE{LKey: r.STag(), Addr: r.Base() + uint64(off), Len: uint32(n)}
}

func (e *end) post(wr SendWR) {
	e.t.Helper()
	must.Error(e.t, "PostSend", e.qp.PostSend(&wr), nil)
}

func (e *end) recv(id uint64, r *ddp.Region, off, n int) {
	e.t.Helper()
	must.Error(e.t, "PostRecv", e.qp.PostRecv(&RecvWR{ID: id, SGL: []SGE{sge(r, off, n)}}), nil)
}

// cutOne puts the next segment on the wire.
func (e *end) cutOne() bool {
	var seg ddp.Segment
	ok := e.qp.Stream().NextSegment(e.mulpdu, &seg)
	if e.flush {
		e.flush = false
		e.qp.Flush()
	}
	if !ok {
		return false
	}
	b := append([]byte(nil), seg.Header[:seg.HeaderLen]...)
	b = append(append(b, seg.Body[0]...), seg.Body[1]...)
	must.That(e.t, len(b) <= e.mulpdu, "segment of %d octets, MULPDU is %d", len(b), e.mulpdu)
	e.sent, e.log = append(e.sent, b), append(e.log, b)
	return true
}

func (e *end) cutAll() (n int) {
	for e.cutOne() {
		n++
	}
	return n
}

// pair is two ends and the wire between them.
type pair struct {
	a, b *end
	rnd  *rand.Rand // places segments out of order when set
	lazy bool       // acknowledgements wait for ack
}

func newPair(t testing.TB, change func(*Config)) *pair {
	p := &pair{a: newEnd(t, 1, change), b: newEnd(t, 2, change)}
	p.a.qp.Start()
	p.b.qp.Start()
	return p
}

// arrive hands n segments from one end to the other: placed in any order, delivered in order.
func (p *pair) arrive(from, to *end, n int) {
	n = min(n, len(from.sent))
	batch := from.sent[:n]
	from.sent = from.sent[n:]
	placed := make([]ddp.Placed, n)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if p.rnd != nil {
		p.rnd.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	fault := n
	for _, i := range order {
		if i < fault {
			if to.qp.Stream().Place(batch[i], &placed[i]); placed[i].Err != nil {
				fault = i
			}
		}
	}
	for i := range placed {
		if i <= fault {
			to.qp.Stream().Deliver(&placed[i])
		}
	}
	from.unacked += n
}

func (e *end) ack() {
	for ; e.unacked > 0; e.unacked-- {
		e.qp.Stream().Acked()
	}
}

// step moves everything one way once and reports progress.
func (p *pair) step(from, to *end) bool {
	n := from.cutAll()
	n = max(n, len(from.sent))
	p.arrive(from, to, n)
	if !p.lazy {
		n += from.unacked
		from.ack()
	}
	if (from.finish || from.abort) && !from.gone {
		from.gone = true
		to.qp.Stream().HalfClosed()
		n++
	}
	if from.abort {
		from.qp.Stream().Closed(nil)
	}
	return n > 0
}

// run lets both ends talk until nothing moves.
func (p *pair) run() {
	for i := 0; ; i++ {
		x, y := p.step(p.a, p.b), p.step(p.b, p.a)
		if !x && !y {
			return
		}
		must.That(p.a.t, i <= 100000, "the ends never come to rest")
	}
}

// wants compares completions by ID, status and operation.
func wants(t testing.TB, what string, got []WC, want ...WC) {
	t.Helper()
	must.That(t, len(got) == len(want), "%s: %d completions %v, want %d", what, len(got), got, len(want))
	for i := range want {
		g, w := got[i], want[i]
		must.That(t, g.ID == w.ID && g.Status == w.Status && g.Opcode == w.Opcode,
			"%s: completion %d is {ID %d, %v, %v}, want {ID %d, %v, %v}", what, i, g.ID, g.Status, g.Opcode, w.ID, w.Status, w.Opcode)
	}
}

func fill(b []byte, from byte) {
	for i := range b {
		b[i] = from + byte(i)
	}
}

func same(t testing.TB, what string, got, want []byte) {
	t.Helper()
	must.Slice(t, what, got, want)
}

// untagged and tagged make raw segments for a hostile peer.
func untagged(qn, msn uint32, rsvd [5]byte, mo uint32, last bool, payload []byte) []byte {
	b := make([]byte, ddp.UntaggedHeaderLen, ddp.UntaggedHeaderLen+len(payload))
	ddp.Untagged{Last: last, Rsvd: rsvd, QN: qn, MSN: msn, MO: mo}.Put(b)
	return append(b, payload...)
}

func tagged(rsvd uint8, tag ddp.STag, to uint64, last bool, payload []byte) []byte {
	b := make([]byte, ddp.TaggedHeaderLen, ddp.TaggedHeaderLen+len(payload))
	ddp.Tagged{Last: last, Rsvd: rsvd, STag: tag, TO: to}.Put(b)
	return append(b, payload...)
}

// inject delivers raw segments.
func (e *end) inject(segs ...[]byte) {
	for _, s := range segs {
		var p ddp.Placed
		e.qp.Stream().Place(s, &p)
		e.qp.Stream().Deliver(&p)
	}
}

// lastWord returns the Terminate that the end sent as its last message, and fails when there is none.
func (e *end) lastWord() (Terminate, []byte) {
	e.t.Helper()
	e.cutAll()
	must.That(e.t, len(e.log) != 0, "nothing was sent")
	s := e.log[len(e.log)-1]
	v := ddp.UntaggedView(s)
	must.That(e.t, !v.Control().Tagged() && v.QN() == QueueTerminate && v.MSN() == 1 && v.RsvdULP() == [5]byte{0x47},
		"last segment is no Terminate: % x", s)
	tm := must.Get(ParseTerminate(v.Payload()))(e.t)
	return tm, s
}
