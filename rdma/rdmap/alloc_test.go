package rdmap_test

import (
	"math"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/rdmaptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// tally is a CQ that only counts.
type tally struct {
	n, bad int
}

func (c *tally) Push(wc rdmap.WC) {
	c.n++
	if wc.Status != rdmap.StatusSuccess {
		c.bad++
	}
}

// loop is a pair whose wire is one buffer.
type loop struct {
	*rdmaptest.Pair
	seg  ddp.Segment
	wire [2048]byte
	put  ddp.Placed
}

func newLoop(t testing.TB, cq rdmap.CQ) *loop {
	l := &loop{Pair: rdmaptest.NewPair(t, func(c *rdmap.Config) { c.SendCQ, c.RecvCQ = cq, cq })}
	l.A.Size, l.B.Size = 1400, 1400
	return l
}

// moveAll moves all segments.
func (l *loop) moveAll() {
	for l.moveOne(l.A, l.B) || l.moveOne(l.B, l.A) {
	}
}

func (l *loop) moveOne(from, to *rdmaptest.End) bool {
	s := &l.seg
	if !from.QP.Stream().NextSegment(from.Size, s) {
		return false
	}
	n := copy(l.wire[:], s.Header[:s.HeaderLen])
	n += copy(l.wire[n:], s.Body[0])
	n += copy(l.wire[n:], s.Body[1])
	to.QP.Stream().Place(l.wire[:n], &l.put)
	to.QP.Stream().Deliver(&l.put)
	from.QP.Stream().Acked()
	return true
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	var cq tally
	l := newLoop(t, &cq)
	ra, _ := l.A.Memory(4096, ddp.LocalWrite)
	rb, _ := l.B.Memory(4096, ddp.LocalWrite|ddp.RemoteRead|ddp.RemoteWrite|ddp.RemoteAtomic)
	recv := rdmap.RecvWR{SGL: []rdmap.SGE{rdmaptest.SGE(rb, 0, 2000), rdmaptest.SGE(rb, 2000, 1000)}}
	reqs := []rdmap.SendWR{
		{SGL: []rdmap.SGE{rdmaptest.SGE(ra, 0, 1500), rdmaptest.SGE(ra, 1500, 10)}},
		{Op: rdmap.WRSendSE, Inline: []byte("inline")},
		{Op: rdmap.WRWrite, SGL: []rdmap.SGE{rdmaptest.SGE(ra, 0, 4000)}, RemoteSTag: rb.STag(), RemoteTO: rb.Base()},
		{Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(ra, 0, 3000)}, RemoteSTag: rb.STag(), RemoteTO: rb.Base()},
		{Op: rdmap.WRAtomic, Atomic: rdmap.FetchAdd(1), RemoteSTag: rb.STag(), RemoteTO: rb.Base()},
		{Op: rdmap.WRImm, Immediate: 1},
		{Op: rdmap.WRWriteImmSE, Immediate: 1, SGL: []rdmap.SGE{rdmaptest.SGE(ra, 0, 4000)}, RemoteSTag: rb.STag(), RemoteTO: rb.Base()},
	}
	var now rawio.Time
	var took rdmap.Latency
	l.A.QP.Measure(&now, &took)
	round := func() {
		for range 4 {
			must.OK(t, l.B.QP.PostRecv(&recv))
		}
		for i := range reqs {
			must.OK(t, l.A.QP.PostSend(&reqs[i]))
			now += rawio.Time(10 * time.Microsecond) // the first waits for 70 and the last for 10
		}
		l.moveAll()
	}
	round() // queues grow to their size
	check.Equal(t, "allocations for 8 messages", testing.AllocsPerRun(200, round), 0)
	check.That(t, cq.bad == 0 && cq.n == 202*11, "%d completions, %d bad", cq.n, cq.bad)
	const us = time.Microsecond
	for what, c := range map[string]struct {
		of     *rdmap.Histogram
		n      uint64
		sum    time.Duration
		bucket int
	}{"Sends and Immediate Data": {&took.Send, 3, (70 + 60 + 20) * us, 5},
		"Writes": {&took.Write, 2, (50 + 10) * us, 4},
		"Reads":  {&took.Read, 1, 40 * us, 6}, "atomics": {&took.Atomic, 1, 30 * us, 5}} {
		check.That(t, c.of.Total() == 202*c.n && c.of.Sum == 202*c.sum && c.of.Count[c.bucket] == 202, "%s: %+v",
			what, *c.of)
	}
	var sum rdmap.Latency
	sum.Add(&took)
	check.Equal(t, "what is added up", sum, took)
}

func BenchmarkSend64(b *testing.B)         { benchmarkSend64(b, nil) }
func BenchmarkSend64Measured(b *testing.B) { benchmarkSend64(b, new(rdmap.Latency)) }

func benchmarkSend64(b *testing.B, took *rdmap.Latency) {
	var cq tally
	l := newLoop(b, &cq)
	l.A.QP.Measure(new(rawio.Time), took)
	ra, _ := l.A.Memory(64, 0)
	rb, _ := l.B.Memory(64, ddp.LocalWrite)
	recv, send := rdmap.RecvWR{SGL: []rdmap.SGE{rdmaptest.SGE(rb, 0, 64)}},
		rdmap.SendWR{SGL: []rdmap.SGE{rdmaptest.SGE(ra, 0, 64)}}
	b.ReportAllocs()
	for b.Loop() {
		if l.B.QP.PostRecv(&recv) != nil || l.A.QP.PostSend(&send) != nil {
			b.Fatal("post")
		}
		l.moveAll()
	}
}

func BenchmarkRead1M(b *testing.B) {
	var cq tally
	l := newLoop(b, &cq)
	const size = 1 << 20
	ra, _ := l.A.Memory(size, ddp.LocalWrite)
	rb, _ := l.B.Memory(size, ddp.RemoteRead)
	wr := rdmap.SendWR{Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(ra, 0, size)}, RemoteSTag: rb.STag(),
		RemoteTO: rb.Base()}
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if l.A.QP.PostSend(&wr) != nil {
			b.Fatal("post")
		}
		l.moveAll()
	}
}

// What a QP says that it holds is what making it takes, in each of its parts.
func TestHeldIsWhatAQueuePairTakes(t *testing.T) {
	base := rdmap.Config{MaxSend: 1, MaxRecv: 1, MaxSGE: 1}
	measure := func(change func(*rdmap.Config)) (held, taken int) {
		cfg := base
		cfg.Table, cfg.Stream, cfg.SendCQ, cfg.RecvCQ, cfg.Host = ddp.NewTable(rdmaptest.NewSeed(1)), 1,
			&rdmaptest.Ring{}, &rdmaptest.Ring{}, &rdmaptest.End{}
		change(&cfg)
		taken = math.MaxInt // what else goes on in the process can only add to it
		for range 5 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			qp, err := rdmap.NewQP(cfg)
			runtime.ReadMemStats(&after)
			must.OK(t, err)
			waiting := cfg.MaxRecv * int(unsafe.Sizeof(ddp.RecvBuffer{})) // receives between posting and use
			held, taken = qp.Held(), min(taken, int(after.TotalAlloc-before.TotalAlloc)+waiting)
		}
		return held, taken
	}
	held0, taken0 := measure(func(*rdmap.Config) {})
	for name, change := range map[string]func(*rdmap.Config){
		"MaxSend": func(c *rdmap.Config) { c.MaxSend = 8000 }, "MaxRecv": func(c *rdmap.Config) { c.MaxRecv = 8192 },
		"MaxInline": func(c *rdmap.Config) { c.MaxInline = 65536 },
		"IRD":       func(c *rdmap.Config) { c.IRD = 8192 }, "ORD": func(c *rdmap.Config) { c.ORD = 8192 },
		"ORD without atomics": func(c *rdmap.Config) { c.ORD, c.NoAtomics = 8192, true },
		"MaxSGE":              func(c *rdmap.Config) { c.MaxSGE, c.MaxSend, c.MaxRecv = 1024, 40, 40 },
	} {
		held, taken := measure(change)
		if held, taken := held-held0, taken-taken0; held < taken*99/100 || held > taken*101/100 {
			t.Errorf("%s: %d octets more are held by its own account, and %d were taken", name, held, taken)
		}
	}
}
