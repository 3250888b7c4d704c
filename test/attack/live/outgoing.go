//go:build linux

package main

import (
	"context"
	"net/netip"

	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// outgoingSession is what the victim's program has with a server that it has connected to: sessions
// on one association, and memory that it sends from.
type outgoingSession struct {
	qps   []*rdma.QP
	cq    *rdma.CQ
	mr    *rdma.MR
	mem   []byte
	stats outgoingStats
	up    chan struct{} // closed when all are connected, or not
}

// outgoingStats is what became of its requests.
type outgoingStats struct{ Good, Failed int }

// connectTo connects to a server, and gives up the one before.
func (v *victim) connectTo(to netip.AddrPort) error {
	v.leaveOutgoing()
	r := &outgoingSession{mem: flowPattern(reachSends * reachLen), up: make(chan struct{})}
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

// leaveOutgoing ends what there is of it.
func (v *victim) leaveOutgoing() {
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

// postMessages sends n messages on the first session, or one on each. Whether it may, the attack
// shows.
func (r *outgoingSession) postMessages(n int) {
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

// takeCompletions takes what has completed. Its memory is the program's again, which writes there
// what nobody else may see.
func (r *outgoingSession) takeCompletions() (any, error) {
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
