// Package completions hands out the completions of a queue pair one by one, for ends that wait for
// each of them.
package completions

import (
	"context"

	"github.com/rddp-go/rddp/rdma"
)

// Queue is the completions of a CQ that were not looked at yet.
type Queue struct {
	cq      *rdma.CQ
	waiting []rdma.WC
}

// New returns the Queue of a CQ, which nobody else polls.
func New(cq *rdma.CQ) *Queue { return &Queue{cq: cq} }

// Next waits for the next completion, whatever its status.
func (q *Queue) Next(ctx context.Context) (wc rdma.WC, err error) {
	for len(q.waiting) == 0 {
		var wcs [8]rdma.WC
		n, err := q.cq.Poll(wcs[:])
		if err == nil && n == 0 {
			err = q.cq.Wait(ctx)
		}
		if err != nil {
			return wc, err
		}
		q.waiting = append(q.waiting, wcs[:n]...)
	}
	wc, q.waiting = q.waiting[0], q.waiting[1:]
	return wc, nil
}
