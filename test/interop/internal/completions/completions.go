// Package completions hands out the completions of a queue pair one by one, for ends that wait for
// each of them. Those of its send queue and of its receive queue have no order between them: over TCP
// the answer to a Send may be there before the completion of the Send.
package completions

import (
	"context"
	"slices"

	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// Queue is the completions of a CQ that were not looked at yet.
type Queue struct {
	cq      *rdma.CQ
	waiting []rdma.WC
}

// New returns the Queue of a CQ, which nobody else polls.
func New(cq *rdma.CQ) *Queue { return &Queue{cq: cq} }

// Next waits for the next completion of a kind, or of a request that has failed.
func (q *Queue) Next(ctx context.Context, op rdmap.WCOpcode) (wc rdma.WC, err error) {
	for {
		i := slices.IndexFunc(q.waiting, func(wc rdma.WC) bool {
			return wc.Opcode == op || wc.Status != rdmap.StatusSuccess
		})
		if i >= 0 {
			wc = q.waiting[i]
			q.waiting = slices.Delete(q.waiting, i, i+1)
			return wc, nil
		}
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
}
