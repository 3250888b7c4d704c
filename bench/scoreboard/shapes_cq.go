package main

import (
	"time"

	"github.com/rddp-go/rddp/rdma"
)

// cqEnds are the QPs of one end whose completions one goroutine polls and answers, as programs do
// that are written for RDMA.
type cqEnds struct {
	cq  *rdma.CQ
	qps []*rdmaEnd
	of  map[uint32]int // where each is, by its number
}

func newCQEnds(list []*rdmaEnd, cq *rdma.CQ) *cqEnds {
	v := &cqEnds{cq: cq, qps: list, of: make(map[uint32]int)}
	for i, e := range list {
		v.of[e.qp.Num()] = i
	}
	return v
}

// play is that of an end.
func (v *cqEnds) play(c *cost, r *report) error {
	if v.qps[0].Server {
		return v.answerAll(c, r)
	}
	return v.askAll(c, r)
}

// each is completions, with the QP of each. Its receive buffer is posted again before.
func (v *cqEnds) each(f func(i int, wc *rdma.WC) (more bool, err error)) error {
	return completions(v.cq, func(wc *rdma.WC) (bool, error) {
		i := v.of[wc.QPNum]
		if wc.Opcode == rdma.WCRecv {
			if err := v.qps[i].recv(wc.ID); err != nil {
				return false, err
			}
		}
		return f(i, wc)
	})
}

// exchange is a mark on the first QP, and the peer's.
func (v *cqEnds) exchange() error {
	if err := v.qps[0].mark(); err != nil {
		return err
	}
	return v.each(func(int, *rdma.WC) (bool, error) { return false, nil })
}

func (v *cqEnds) askAll(c *cost, r *report) error {
	if err := v.exchange(); err != nil {
		return err
	}
	c.begin()
	list, began := v.qps[0].newTrips(len(v.qps)), time.Now()
	asked := make([]time.Time, len(v.qps))
	for i, e := range v.qps {
		asked[i] = time.Now()
		if err := e.post(); err != nil {
			return err
		}
	}
	left := len(v.qps)
	err := v.each(func(i int, _ *rdma.WC) (bool, error) {
		now, t := time.Now(), &list[i]
		t.add(now.Sub(asked[i]))
		if t.more(now, t.n) {
			asked[i] = now
			return true, v.qps[i].post()
		}
		left--
		return left > 0, nil
	})
	if err != nil {
		return err
	}
	r.trips(list, time.Since(began))
	c.end(r)
	return v.exchange()
}

// answerAll ends after the second mark, which playRDMA answers.
func (v *cqEnds) answerAll(c *cost, r *report) error {
	marks := 0
	return v.each(func(i int, wc *rdma.WC) (bool, error) {
		if wc.ByteLen != mark {
			return true, v.qps[i].post()
		}
		if marks++; marks == 2 {
			c.end(r)
			return false, nil
		}
		c.begin()
		return true, v.qps[0].mark()
	})
}
