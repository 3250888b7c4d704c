package rdma

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

func TestQueuesFitTheirCQ(t *testing.T) {
	// req 5042-6.4.3.2-2, 5042-6.4.3.2-3
	x := newLab(t, nil)
	pd := x.a.AllocPD()
	srq := must.Get(pd.CreateSRQ(5, 1))(t)
	newCQ := func(depth int) *CQ {
		return must.Get(x.a.CreateCQ(depth))(t)
	}
	for _, row := range []struct {
		name     string
		depth    int
		queues   []QPConfig
		need     int // by the last, which is refused; 0: none is
		separate bool
	}{
		{name: "exactly", depth: 10, queues: []QPConfig{{MaxSend: 6, MaxRecv: 4}}},
		{name: "one short", depth: 9, queues: []QPConfig{{MaxSend: 6, MaxRecv: 4}}, need: 10},
		{name: "the default depths", depth: 255, queues: []QPConfig{{}}, need: 256},
		{name: "the sum of two QPs", depth: 10, queues: []QPConfig{{MaxSend: 3, MaxRecv: 3}, {MaxSend: 3, MaxRecv: 3}}, need: 12},
		{name: "a CQ for each direction", depth: 6, queues: []QPConfig{{MaxSend: 6, MaxRecv: 6}}, separate: true},
		{name: "a shared receive queue counts once", depth: 9, queues: []QPConfig{{MaxSend: 2, SRQ: srq}, {MaxSend: 2, SRQ: srq}}},
		{name: "and counts", depth: 6, queues: []QPConfig{{MaxSend: 2, SRQ: srq}}, need: 7},
	} {
		t.Run(row.name, func(t *testing.T) {
			send := newCQ(row.depth)
			recv := send
			if row.separate {
				recv = newCQ(row.depth)
			}
			var qps []*QP
			for i, c := range row.queues {
				c.PD, c.SendCQ, c.RecvCQ = pd, send, recv
				qp, err := x.a.CreateQP(&c)
				var size *CQSizeError
				switch {
				case i < len(row.queues)-1 || row.need == 0:
					must.OK(t, err)
					qps = append(qps, qp)
				case !errors.As(err, &size) || size.Depth != row.depth || size.Need != row.need:
					t.Errorf("%v, want a need of %d", err, row.need)
				}
			}
			for _, qp := range qps {
				qp.Close()
			}
			for _, cq := range []*CQ{send, recv} { // all of it is free again, also after a refusal
				check.That(t, cq.freeDepth == row.depth && len(cq.qps)+len(cq.srqs) == 0,
					"room for %d of %d, %d QPs", cq.freeDepth, row.depth, len(cq.qps))
			}
		})
	}
}

// Completions that nobody has polled take room from the QPs that come after their own.
func TestUnpolledCompletionsTakeRoom(t *testing.T) {
	x := newLab(t, nil)
	pd := x.a.AllocPD()
	cq := must.Get(x.a.CreateCQ(4))(t)
	cfg := QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, MaxSend: 1, MaxRecv: 3}
	qp := must.Get(x.a.CreateQP(&cfg))(t)
	for range 3 {
		must.OK(t, qp.PostRecv(&RecvWR{}))
	}
	qp.Close()
	var size *CQSizeError
	_, err := x.a.CreateQP(&cfg)
	check.That(t, errors.As(err, &size) && size.Need == 7, "with 3 flushed receives in it: %v", err)
	var wcs [3]WC
	n, err := cq.Poll(wcs[:])
	check.That(t, n == 3 && err == nil, "%d completions, %v", n, err)
	check.Do(x.a.CreateQP(&cfg))(t)
}

func TestNoUserTakesMoreThanItsShare(t *testing.T) {
	// req 5041-8.3.2-1, 5041-8.3.2-2, 5040-8.1.2-1, 5042-3-2: users get from the Device what they
	// share, and not from each other.
	for _, row := range []struct {
		name   string
		limits Limits
		ird    int
		want   LimitError
	}{
		// req 5042-7.2-2
		{"read request queue entries", Limits{MaxPDReads: 10}, 5, LimitError{"sum of IRD of the PD", 15, 10}},
		// req 5040-8.1.2-5
		{"QPs", Limits{MaxQPs: 2}, 200, LimitError{"number of QPs of the PD", 3, 2}},
	} {
		t.Run(row.name, func(t *testing.T) {
			x := newLab(t, &Config{Limits: row.limits})
			greedy, modest := x.a.AllocPD(), x.a.AllocPD()
			cq := must.Get(x.a.CreateCQ(1 << 12))(t)
			create := func(pd *PD) (*QP, error) {
				return x.a.CreateQP(&QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, IRD: row.ird})
			}
			var qps []*QP
			for range 2 {
				qp := must.Get(create(greedy))(t)
				qps = append(qps, qp)
			}
			var limit *LimitError
			_, err := create(greedy)
			check.That(t, errors.As(err, &limit) && *limit == row.want, "beyond the share: %v", err)
			_, err = create(modest)
			check.That(t, err == nil, "another user: %v", err)
			qps[0].Close()
			qps[0].Close()
			_, err = create(greedy)
			check.That(t, err == nil, "what was given back: %v", err)
			_, err = create(greedy)
			check.That(t, errors.As(err, &limit), "what was given back once, taken twice: %v", err)
		})
	}
}

func TestLimitsOutOfRange(t *testing.T) {
	var l Limits
	want := Limits{MaxCQE: 1 << 20, MaxWR: 1 << 16, MaxSGE: 64, MaxReads: 256, MaxPDReads: 1 << 20, MaxQPs: 1 << 16,
		MaxRegions: 1 << 20, MaxPending: 64,
		MaxRequests: 1024, MaxEarly: 65536, MaxOutOfOrder: 65535, MaxStreams: 1024, MaxEvents: 128}
	check.That(t, l.applyDefaults() == nil && l == want, "defaults %+v, want %+v", l, want)
	most := []int64{1 << 30, 1 << 20, 1024, rdmap.MaxReads, 1 << 30, 1 << 30, 1 << 30, 65535, 1 << 20, 1 << 30, 65535,
		65535, 1 << 20}
	for i, most := range most {
		for n, good := range map[int64]bool{-1: false, 1: true, most: true, most + 1: false} {
			var l Limits
			reflect.ValueOf(&l).Elem().Field(i).SetInt(n)
			var limit *LimitError
			err := l.applyDefaults()
			check.That(t, errors.As(err, &limit) != good && (good || limit.Got == int(n) && limit.Max == int(most)),
				"%+v: %v", l, err)
		}
	}
}

// Each depth of a QP is what was asked for, within the Device's limits, or its default.
func TestDepthsOfAQP(t *testing.T) {
	x := newLab(t, &Config{Limits: Limits{MaxWR: 200, MaxSGE: 9, MaxReads: 30}})
	cq := must.Get(x.a.CreateCQ(1000))(t)
	what := [...]string{"MaxSend", "MaxRecv", "MaxSGE", "MaxInline", "IRD", "ORD"}
	def, most := [...]int{128, 128, 4, 64, 16, 16}, [...]int{200, 200, 9, 1 << 16, 30, 30}
	create := func(d [6]int) (*side, error) {
		s := &side{t: t, pd: x.a.AllocPD(), cq: cq}
		var err error
		s.qp, err = x.a.CreateQP(&QPConfig{PD: s.pd, SendCQ: cq, RecvCQ: cq, MaxSend: d[0], MaxRecv: d[1],
			MaxSGE: d[2], MaxInline: d[3], IRD: d[4], ORD: d[5]})
		return s, err
	}
	for _, row := range [][2][6]int{{{}, def}, {{1, 2, 3, 5, 6, 7}, {1, 2, 3, 5, 6, 7}}, {most, most},
		{{9, 9, 9, 9, -1, -1}, {9, 9, 9, 9, 0, 0}}} {
		a := must.Get(create(row[0]))(t)
		b := newSide(t, x.b, nil, nil)
		got, q := [6]int{4: a.qp.IRD(), a.qp.ORD()}, a.qp
		for q.PostRecv(&RecvWR{}) == nil {
			got[1]++
		}
		must.Do(x.connect(q, nil, func(r *Request) error { return r.Accept(b.qp, nil) }))(t)
		p, mr := q.lockCore(), must.Get(a.pd.Register(make([]byte, 9), 0, nil))(t) // nothing leaves
		post := func(pieces, inline int, want error) {
			t.Helper()
			wr := SendWR{Op: OpWrite, SGL: slices.Repeat([]SGE{mr.SGE(0, 1)}, pieces), Inline: make([]byte, inline)}
			err := q.core.PostSend(&wr)
			if err == nil {
				got[0]++
			}
			check.That(t, (want == nil || err == want) && (want != nil || err == nil || err == rdmap.ErrQueueFull),
				"%d pieces, %d octets inline: %v", pieces, inline, err)
		}
		for _, over := range []int{1, 0} {
			post(row[1][2]+over, 0, [...]error{nil, rdmap.ErrSGECount}[over])
			post(0, row[1][3]+over, [...]error{nil, rdmap.ErrInline}[over])
		}
		for q.core.PostSend(&SendWR{Op: OpWrite}) == nil {
			got[0]++
		}
		q.unlockCore(p)
		q.Close()
		got[2], got[3] = row[1][2], row[1][3]
		check.Equal(t, "depths", got, row[1])
	}
	for i := range most {
		over := [6]int{4: 1}
		over[i] = most[i] + 1
		var limit *LimitError
		_, err := create(over)
		check.That(t, errors.As(err, &limit) && *limit == (LimitError{what[i], most[i] + 1, most[i]}),
			"beyond the limit: %v", err)
		over[i] = -1
		_, err = create(over)
		check.That(t, errors.As(err, new(*rdmap.ConfigError)) == (i < 3), "%s negative: %v", what[i], err)
	}
}
