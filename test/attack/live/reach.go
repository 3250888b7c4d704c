//go:build linux

package main

import (
	"context"
	"net/netip"

	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// reach is what the victim's program has with a server that it has connected to: sessions on one
// association, and memory that it sends from.
type reach struct {
	qps   []*rdma.QP
	cq    *rdma.CQ
	mr    *rdma.MR
	mem   []byte
	stats reachStats
	up    chan struct{} // closed when all are connected, or not
}

// reachStats is what became of its requests.
type reachStats struct{ Good, Failed int }

// reach connects to a server, and gives up the one before.
func (v *victim) reach(to netip.AddrPort) error {
	v.leave()
	r := &reach{mem: pattern(reachSends * reachLen), up: make(chan struct{})}
	pd := v.dev.AllocPD()
	var err error
	if r.mr, err = pd.Register(r.mem, 0, nil); err != nil {
		return err
	}
	if r.cq, err = v.dev.CreateCQ(2 * reachStreams * queueLen); err != nil {
		return err
	}
	for range reachStreams {
		qp, err := v.dev.CreateQP(&rdma.QPConfig{PD: pd, SendCQ: r.cq, RecvCQ: r.cq, MaxSend: queueLen, MaxRecv: 1})
		if err != nil {
			return err
		}
		r.qps = append(r.qps, qp)
	}
	v.mu.Lock()
	v.reached = r
	v.mu.Unlock()
	go func() {
		defer close(r.up)
		for _, qp := range r.qps {
			if _, err := qp.Connect(context.Background(), to, nil); err != nil {
				return // the attacker sees that
			}
		}
	}()
	return nil
}

// leave ends what there is of it.
func (v *victim) leave() {
	v.mu.Lock()
	r := v.reached
	v.reached = nil
	v.mu.Unlock()
	if r == nil {
		return
	}
	for _, qp := range r.qps {
		qp.Close()
	}
	r.mr.Invalidate()
}

// post sends n messages on the first session, or one on each. Whether it may, the attack shows.
func (r *reach) post(n int) {
	<-r.up
	qps := r.qps
	if n > 1 {
		qps = qps[:1]
	}
	for _, qp := range qps {
		for i := range n {
			_ = qp.PostSend(&rdma.SendWR{ID: uint64(i), Op: rdma.OpSend,
				SGL: []rdma.SGE{r.mr.SGE(i*reachLen, reachLen)}})
		}
	}
}

// completed takes what has completed. Its memory is the program's again, which writes there what
// nobody else may see.
func (r *reach) completed() (any, error) {
	wcs := make([]rdma.WC, queueLen)
	n, err := r.cq.Poll(wcs)
	for _, wc := range wcs[:n] {
		for b := r.mem[wc.ID*reachLen:][:reachLen]; len(b) > 0; {
			b = b[copy(b, secret):]
		}
		if wc.Status == rdmap.StatusSuccess {
			r.stats.Good++
		} else {
			r.stats.Failed++
		}
	}
	return r.stats, err
}
