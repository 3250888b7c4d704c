package rdmap

import (
	"math"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
)

// tally is a CQ that only counts.
type tally struct {
	n, bad int
}

func (c *tally) Push(wc WC) {
	c.n++
	if wc.Status != StatusSuccess {
		c.bad++
	}
}

// loop is a pair whose wire is one buffer.
type loop struct {
	*pair
	seg  ddp.Segment
	wire [2048]byte
	put  ddp.Placed
}

func newLoop(t testing.TB, cq CQ) *loop {
	l := &loop{pair: newPair(t, func(c *Config) { c.SendCQ, c.RecvCQ = cq, cq })}
	l.a.mulpdu, l.b.mulpdu = 1400, 1400
	return l
}

// run moves all segments.
func (l *loop) run() {
	for l.move(l.a, l.b) || l.move(l.b, l.a) {
	}
}

func (l *loop) move(from, to *end) bool {
	s := &l.seg
	if !from.qp.Stream().NextSegment(from.mulpdu, s) {
		return false
	}
	n := copy(l.wire[:], s.Header[:s.HeaderLen])
	n += copy(l.wire[n:], s.Body[0])
	n += copy(l.wire[n:], s.Body[1])
	to.qp.Stream().Place(l.wire[:n], &l.put)
	to.qp.Stream().Deliver(&l.put)
	from.qp.Stream().Acked()
	return true
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	var cq tally
	l := newLoop(t, &cq)
	ra, _ := l.a.memory(4096, ddp.LocalWrite)
	rb, _ := l.b.memory(4096, ddp.LocalWrite|ddp.RemoteRead|ddp.RemoteWrite|ddp.RemoteAtomic)
	recv := RecvWR{SGL: []SGE{sge(rb, 0, 2000), sge(rb, 2000, 1000)}}
	reqs := []SendWR{
		{SGL: []SGE{sge(ra, 0, 1500), sge(ra, 1500, 10)}},
		{Op: WRSendSE, Inline: []byte("inline")},
		{Op: WRWrite, SGL: []SGE{sge(ra, 0, 4000)}, RemoteSTag: rb.STag(), RemoteTO: rb.Base()},
		{Op: WRRead, SGL: []SGE{sge(ra, 0, 3000)}, RemoteSTag: rb.STag(), RemoteTO: rb.Base()},
		{Op: WRAtomic, Atomic: FetchAdd(1), RemoteSTag: rb.STag(), RemoteTO: rb.Base()},
		{Op: WRImm, Immediate: 1},
		{Op: WRWriteImmSE, Immediate: 1, SGL: []SGE{sge(ra, 0, 4000)}, RemoteSTag: rb.STag(), RemoteTO: rb.Base()},
	}
	var now rawio.Time
	var took Latency
	l.a.qp.Measure(&now, &took)
	round := func() {
		for range 4 {
			must.OK(t, l.b.qp.PostRecv(&recv))
		}
		for i := range reqs {
			must.OK(t, l.a.qp.PostSend(&reqs[i]))
			now += rawio.Time(10 * time.Microsecond) // the first waits for 70 and the last for 10
		}
		l.run()
	}
	round() // queues grow to their size
	check.Equal(t, "allocations for 8 messages", testing.AllocsPerRun(200, round), 0)
	check.That(t, cq.bad == 0 && cq.n == 202*11, "%d completions, %d bad", cq.n, cq.bad)
	const us = time.Microsecond
	for what, c := range map[string]struct {
		of     *Histogram
		n      uint64
		sum    time.Duration
		bucket int
	}{"Sends and Immediate Data": {&took.Send, 3, (70 + 60 + 20) * us, 5}, "Writes": {&took.Write, 2, (50 + 10) * us, 4},
		"Reads": {&took.Read, 1, 40 * us, 6}, "atomics": {&took.Atomic, 1, 30 * us, 5}} {
		check.That(t, c.of.Total() == 202*c.n && c.of.Sum == 202*c.sum && c.of.Count[c.bucket] == 202, "%s: %+v", what, *c.of)
	}
	var sum Latency
	sum.Add(&took)
	check.Equal(t, "what is added up", sum, took)
}

func BenchmarkSend64(b *testing.B)         { benchmarkSend64(b, nil) }
func BenchmarkSend64Measured(b *testing.B) { benchmarkSend64(b, new(Latency)) }

func benchmarkSend64(b *testing.B, took *Latency) {
	var cq tally
	l := newLoop(b, &cq)
	l.a.qp.Measure(new(rawio.Time), took)
	ra, _ := l.a.memory(64, 0)
	rb, _ := l.b.memory(64, ddp.LocalWrite)
	recv, send := RecvWR{SGL: []SGE{sge(rb, 0, 64)}}, SendWR{SGL: []SGE{sge(ra, 0, 64)}}
	b.ReportAllocs()
	for b.Loop() {
		if l.b.qp.PostRecv(&recv) != nil || l.a.qp.PostSend(&send) != nil {
			b.Fatal("post")
		}
		l.run()
	}
}

func BenchmarkRead1M(b *testing.B) {
	var cq tally
	l := newLoop(b, &cq)
	const size = 1 << 20
	ra, _ := l.a.memory(size, ddp.LocalWrite)
	rb, _ := l.b.memory(size, ddp.RemoteRead)
	wr := SendWR{Op: WRRead, SGL: []SGE{sge(ra, 0, size)}, RemoteSTag: rb.STag(), RemoteTO: rb.Base()}
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if l.a.qp.PostSend(&wr) != nil {
			b.Fatal("post")
		}
		l.run()
	}
}

// What a QP says that it holds is what making it takes, in each of its parts.
func TestHeldIsWhatAQueuePairTakes(t *testing.T) {
	base := Config{MaxSend: 1, MaxRecv: 1, MaxSGE: 1}
	measure := func(change func(*Config)) (held, taken int) {
		cfg := base
		cfg.Table, cfg.Stream, cfg.SendCQ, cfg.RecvCQ, cfg.Host = ddp.NewTable(newSeed(1)), 1, &ring{}, &ring{}, &end{}
		change(&cfg)
		taken = math.MaxInt // what else goes on in the process can only add to it
		for range 5 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			qp, err := NewQP(cfg)
			runtime.ReadMemStats(&after)
			must.OK(t, err)
			waiting := cfg.MaxRecv * int(unsafe.Sizeof(ddp.RecvBuffer{})) // receives between posting and use
			held, taken = qp.Held(), min(taken, int(after.TotalAlloc-before.TotalAlloc)+waiting)
		}
		return held, taken
	}
	held0, taken0 := measure(func(*Config) {})
	for name, change := range map[string]func(*Config){
		"MaxSend": func(c *Config) { c.MaxSend = 8000 }, "MaxRecv": func(c *Config) { c.MaxRecv = 8192 }, "MaxInline": func(c *Config) { c.MaxInline = 65536 },
		"IRD": func(c *Config) { c.IRD = 8192 }, "ORD": func(c *Config) { c.ORD = 8192 }, "ORD without atomics": func(c *Config) { c.ORD, c.NoAtomics = 8192, true },
		"MaxSGE": func(c *Config) { c.MaxSGE, c.MaxSend, c.MaxRecv = 1024, 40, 40 },
	} {
		held, taken := measure(change)
		if held, taken := held-held0, taken-taken0; held < taken*99/100 || held > taken*101/100 {
			t.Errorf("%s: %d octets more are held by its own account, and %d were taken", name, held, taken)
		}
	}
}
