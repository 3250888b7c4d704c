package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rddp-go/rddp/rdma"
)

// cqEnds are the QPs of one end whose completions one goroutine polls and answers, as programs do that are written for RDMA.
type cqEnds struct {
	of  map[uint32]int // by number
	qps []*rdmaEnd
}

func newCQEnds(list []*rdmaEnd) *cqEnds {
	v := &cqEnds{of: make(map[uint32]int), qps: list}
	for i, e := range list {
		v.of[e.qp.Num()] = i
	}
	return v
}

// play is that of an end.
func (v *cqEnds) play(first *rdmaEnd, cq *rdma.CQ, c *cost, r *report) error {
	if first.Server {
		return v.answerAll(first, cq, c, r)
	}
	return v.askAll(first, cq, c, r)
}

// each calls f for each completion, until it says that this is all. The receive buffer is posted again before.
func (v *cqEnds) each(cq *rdma.CQ, f func(i int, wc *rdma.WC) (more bool, err error)) error {
	var wcs [64]rdma.WC
	for {
		if err := cq.Wait(context.Background()); err != nil {
			return err
		}
		n, err := cq.Poll(wcs[:])
		if err != nil {
			return err
		}
		for k := range wcs[:n] {
			wc := &wcs[k]
			if wc.Status != rdma.StatusSuccess {
				return fmt.Errorf("a request completed with %v", wc.Status)
			}
			i := v.of[wc.QPNum]
			if wc.Opcode == rdma.WCRecv {
				if err := v.qps[i].recv(wc.ID); err != nil {
					return err
				}
			}
			if more, err := f(i, wc); err != nil || !more {
				return err // what is polled already is of no interest then
			}
		}
	}
}

// exchange is a mark on the first QP, and the peer's.
func (v *cqEnds) exchange(first *rdmaEnd, cq *rdma.CQ) error {
	if err := first.mark(); err != nil {
		return err
	}
	return v.each(cq, func(int, *rdma.WC) (bool, error) { return false, nil })
}

func (v *cqEnds) askAll(first *rdmaEnd, cq *rdma.CQ, c *cost, r *report) error {
	if err := v.exchange(first, cq); err != nil {
		return err
	}
	c.begin()
	list, began := first.newTrips(len(v.qps)), time.Now()
	asked := make([]time.Time, len(v.qps))
	for i, e := range v.qps {
		asked[i] = time.Now()
		if err := e.post(); err != nil {
			return err
		}
	}
	left := len(v.qps)
	err := v.each(cq, func(i int, _ *rdma.WC) (bool, error) {
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
	return v.exchange(first, cq)
}

// answerAll ends after the second mark, which playRDMA answers.
func (v *cqEnds) answerAll(first *rdmaEnd, cq *rdma.CQ, c *cost, r *report) error {
	marks := 0
	return v.each(cq, func(i int, wc *rdma.WC) (bool, error) {
		if wc.ByteLen != mark {
			return true, v.qps[i].post()
		}
		if marks++; marks == 2 {
			c.end(r)
			return false, nil
		}
		c.begin()
		return true, first.mark()
	})
}
