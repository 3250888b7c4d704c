package rdma

import (
	"testing"

	"github.com/rddp-go/rddp/internal/crowd"
	"github.com/rddp-go/rddp/internal/must"
)

// Goroutines of different associations make QPs, and take from one shared receive queue, which fails under the race detector only.
func TestWhatAssociationsShareMayBeUsedAtOnce(t *testing.T) {
	d := newLab(t, nil).a
	pd := d.AllocPD()
	srq, err := pd.CreateSRQ(64, 1)
	must.OK(t, err)
	cq, err := d.CreateCQ(1024)
	must.OK(t, err)
	take := func(int) {
		if b, ok := (srqRef{s: srq}).TakeBuffer(); ok {
			srqRef{s: srq}.ReleaseBuffer(b.Token)
		}
	}
	create := func(int) {
		if qp, err := d.CreateQP(&QPConfig{PD: d.AllocPD(), SendCQ: cq, RecvCQ: cq}); err != nil {
			t.Error(err)
		} else {
			qp.Close()
		}
	}
	crowd.Meet(200, take, take, create, create, func(int) { _ = srq.PostRecv(&RecvWR{}) })
}
