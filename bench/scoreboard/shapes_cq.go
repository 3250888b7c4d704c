package main

import (
	"time"

	"github.com/rddp-go/rddp/rdma"
)

// sharedCQ are the QPs of one end whose completions one goroutine polls and answers, as programs do
// that are written for RDMA.
type sharedCQ struct {
	cq  *rdma.CQ
	qps []*rdmaEnd
	of  map[uint32]int // where each is, by its number
}

func newCQEnds(list []*rdmaEnd, cq *rdma.CQ) *sharedCQ {
	v := &sharedCQ{cq: cq, qps: list, of: make(map[uint32]int)}
	for i, e := range list {
		v.of[e.qp.Num()] = i
	}
	return v
}

// runEnd is that of an end.
func (v *sharedCQ) runEnd(c *cost, r *report) error {
	if v.qps[0].Server {
		return v.answerAll(c, r)
	}
	return v.askAll(c, r)
}

// forEachCompletion is completions, with the QP of each. Its receive buffer is posted again before.
func (v *sharedCQ) forEachCompletion(f func(i int, wc *rdma.WC) (more bool, err error)) error {
	return forEachCompletion(v.cq, func(wc *rdma.WC) (bool, error) {
		i := v.of[wc.QPNum]
		if wc.Opcode == rdma.WCRecv {
			if err := v.qps[i].postRecv(wc.ID); err != nil {
				return false, err
			}
		}
		return f(i, wc)
	})
}

// exchangeMarks is a mark on the first QP, and the peer's.
func (v *sharedCQ) exchangeMarks() error {
	if err := v.qps[0].postMark(); err != nil {
		return err
	}
	return v.forEachCompletion(func(int, *rdma.WC) (bool, error) { return false, nil })
}

func (v *sharedCQ) askAll(c *cost, r *report) error {
	if err := v.exchangeMarks(); err != nil {
		return err
	}
	c.startClock()
	list, began := v.qps[0].newTrips(len(v.qps)), time.Now()
	asked := make([]time.Time, len(v.qps))
	for i, e := range v.qps {
		asked[i] = time.Now()
		if err := e.postRequests(); err != nil {
			return err
		}
	}
	left := len(v.qps)
	err := v.forEachCompletion(func(i int, _ *rdma.WC) (bool, error) {
		now, t := time.Now(), &list[i]
		t.addTrip(now.Sub(asked[i]))
		if t.wantsMore(now, t.n) {
			asked[i] = now
			return true, v.qps[i].postRequests()
		}
		left--
		return left > 0, nil
	})
	if err != nil {
		return err
	}
	r.sumTrips(list, time.Since(began))
	c.stopClock(r)
	return v.exchangeMarks()
}

// answerAll ends after the second mark, which playRDMA answers.
func (v *sharedCQ) answerAll(c *cost, r *report) error {
	marks := 0
	return v.forEachCompletion(func(i int, wc *rdma.WC) (bool, error) {
		if wc.ByteLen != mark {
			return true, v.qps[i].postRequests()
		}
		if marks++; marks == 2 {
			c.stopClock(r)
			return false, nil
		}
		c.startClock()
		return true, v.qps[0].postMark()
	})
}
